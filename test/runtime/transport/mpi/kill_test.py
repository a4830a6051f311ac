"""What is left of an MPI job when one of its ranks ends badly: nothing.

Usage: kill_test.py MPI_LOOP. Runs it under mpirun with a rank that is killed,
fails, leaves or stalls, and checks that the job ends, with a non-zero status, with the right words, and that no process stays.
"""
import os
import pathlib
import re
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[3]))
from patience import PATIENCE  # noqa: E402

ENVIRONMENT = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
# What happens to rank 2, and what must be said.
CASES = [
    ("none", None),
    ("kill", "signal 9"),
    ("fail", "rank 2 failed: rank 2 was told to fail"),
    ("exit", "ended:|without calling|exit"),
    ("stall", r"not done after \d+ seconds"),
]


def is_running(pid):
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rsplit(")", 1)[1].split()[0] != "Z"


def run(binary, how):
    """Returns (exit status or None, output, pids)."""
    command = ["mpirun", "--oversubscribe", "-n", "4", binary, "30", how, "2"]
    process = subprocess.Popen(command, env=ENVIRONMENT, text=True, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT)
    try:
        output, _ = process.communicate(timeout=PATIENCE)
        status = process.returncode
    except subprocess.TimeoutExpired:
        process.terminate()  # mpirun takes its processes along
        output, _ = process.communicate(timeout=PATIENCE)
        status = None
    return status, output, [int(pid) for pid in re.findall(r"^pid (\d+)$", output, re.M)]


def faults(binary, how, words):
    status, output, pids = run(binary, how)
    if status is None:
        yield f"not over after {PATIENCE} s"
    elif (status == 0) != (how == "none"):
        yield f"mpirun returned {status}"
    if len(pids) != 4:
        yield f"{len(pids)} processes have started"
    if words and not re.search(words, output):
        yield f"no '{words}' in:\n{output}"
    limit = time.monotonic() + PATIENCE
    while left := [pid for pid in pids if is_running(pid)]:
        if time.monotonic() > limit:
            yield f"processes stay: {left}"
            break
        time.sleep(0.1)
    if how == "fail" and output.count("rank 2 failed") < 3:
        yield "not every rank names the cause"


def main():
    failed = False
    for how, words in CASES:
        begin = time.monotonic()
        found = list(faults(sys.argv[1], how, words))
        failed |= bool(found)
        print(f"{how}: {'; '.join(found) or 'ok'} ({time.monotonic() - begin:.1f} s)")
    sys.exit(failed)


if __name__ == "__main__":
    main()
