"""What measured.py makes of a trace and of steps, on made ones."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import measured


def event(name, tid, dur, **other):
    return {"ph": "X", "name": name, "pid": 0, "tid": tid, "ts": 0, "dur": dur, **other}


# Ten on their way, of which ranks stood three; what is computed does not count.
trace = {"traceEvents": [event("values", 1, 6), event("gradients", 2, 4), event("SWITCH_START", 0, 1), event("SWITCH_GRADS_WAIT", 0, 2),
                         event("FORWARD", 0, 100), {"ph": "M", "name": "thread_name", "pid": 0, "tid": 1}]}
assert abs(measured.hidden_share(trace) - 0.7) < 1e-9, measured.hidden_share(trace)
assert measured.hidden_share({"traceEvents": [event("FORWARD", 0, 5)]}) is None


def switch(name, rank, begin, dur, step=2, bucket=0):
    return event(name, 0, dur, pid=rank, ts=begin, args={"step": step, "phase": 0, "bucket": bucket})


# Rank 0 waits from 1,000 to 5,000, rank 1 begins its side at 4,000; in the other bucket it has begun long before,
# and in the next step the wait is over before rank 1 begins.
parts = measured.held_parts({"traceEvents": [
    switch("SWITCH_START", 0, 0, 500), switch("SWITCH_WAIT", 0, 1000, 4000), switch("SWITCH_START", 1, 4000, 700), switch("SWITCH_WAIT", 1, 4900, 0),
    switch("SWITCH_GRADS_START", 0, 6000, 100, bucket=1), switch("SWITCH_GRADS_START", 1, 5900, 100, bucket=1), switch("SWITCH_GRADS_WAIT", 0, 7000, 200, bucket=1),
    switch("SWITCH_START", 0, 9000, 20, step=3), switch("SWITCH_WAIT", 0, 9100, 30, step=3), switch("SWITCH_START", 1, 9500, 10, step=3), event("FORWARD", 0, 100)]})
assert parts == {2: (4.8, 1.8), 3: (0.05, 0.02)}, parts


class Made:
    tokens = measured.LONG + 100
    lines = {"dp=2": [{"tokens": 100, "seconds": s} for s in (1, 2, 9)], "tp=2": [{"tokens": 100, "seconds": 4}],
             "switched": [{"tokens": 100, "seconds": 1, "phases": 2, "switch_bytes": 10} for _ in range(3)]}

    def rate(self, way, *pick):
        return measured.Runs.rate(self, way, *pick)

    held, own, shares = [100, 300, 200], [60, 50, 70], [0.4, 0.5, 0.6]


row = measured.row_of(Made(), copy=1e-3, moved=50)
assert row["tokens_per_s"] == {"dp=2": 50, "tp=2": 25, "switched": 100} and row["over_best"] == 2, row
assert row["switch_ms"] == 200 and row["least_switch_ms"] == 100 and row["copy_ms"] == 50 and row["lost_over_copy"] == 4, row
assert row["own_ms"] == 60 and row["least_own_ms"] == 50 and row["own_over_copy"] == 1.2, row
assert row["part_of_step"] == 0.2 and row["short_tokens"] == 100, row
page = "\n".join(measured.page_of([row]))
assert "| 100 | 50 | 25 | 100 | 2.00 | 1.00 | 200.0, 100.0 | 60.0, 50.0 | 50.0 | 50 % |" in page, page
