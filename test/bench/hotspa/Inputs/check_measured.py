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


class Made:
    tokens = measured.LONG + 100
    lines = {"dp=2": [{"tokens": 100, "seconds": s} for s in (1, 2, 9)], "tp=2": [{"tokens": 100, "seconds": 4}],
             "switched": [{"tokens": 100, "seconds": 1, "phases": 2, "switch_seconds": s, "switch_bytes": 10} for s in (0.1, 0.3, 0.2)]}

    def rate(self, way, *pick):
        return measured.Runs.rate(self, way, *pick)

    def hidden(self):
        return 0.5


row = measured.row_of(Made(), copy=1e-3, moved=50)
assert row["tokens_per_s"] == {"dp=2": 50, "tp=2": 25, "switched": 100} and row["over_best"] == 2, row
assert row["switch_ms"] == 200 and row["least_switch_ms"] == 100 and row["copy_ms"] == 50 and row["lost_over_copy"] == 4, row
assert row["part_of_step"] == 0.2 and row["short_tokens"] == 100, row
page = "\n".join(measured.page_of([row]))
assert "| 100 | 50 | 25 | 100 | 2.00 | 1.00 | 200.0, 100.0 | 50.0 | 50 % |" in page, page
