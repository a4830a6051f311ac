"""What the probe saw of a training run: FILE's steps have the same kernels, each of a known use, on one stream; what they
train on comes by another, and one read a step brings back what became of it."""
import collections
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import activity  # noqa: E402

work, lost = activity.read(pathlib.Path(sys.argv[1]).read_text())
assert lost == 0, lost
windows = activity.step_windows(work, 1)
assert len(windows) >= 3, windows
counts = [collections.Counter(one.name for one in work if one.kind == "kernel" and begin < one.end <= end) for begin, end in windows]
assert all(count == counts[0] for count in counts), counts
unknown = {one.name for one in work if one.kind == "kernel" and activity.group_of(one.name) == "other"}
assert not unknown, unknown
found = {activity.group_of(name) for name in counts[0]}
assert found == {"attention", "update", "head", "tables", "sweeps", "products"}, found
main = {one.stream for one in work if one.kind == "kernel" and windows[0][0] < one.end <= windows[-1][1]}
assert len(main) == 1, main
for begin, end in windows:
    copies = [one for one in work if one.kind == "copy" and begin < one.end <= end]
    uploads = [one.stream in main for one in copies if one.name == "to device"]
    # The block that the step's results are read from begins with what the host gives it.
    assert uploads.count(True) == 1 and uploads.count(False) >= 1, uploads
    assert sum(one.name == "to host" for one in copies) == 1, [one.name for one in copies]
