"""What a run predicted of its first step is what dyna-plan says of it: check_predicted.py [--differ] METRICS PLANNED."""

import json
import sys

differ = sys.argv[1] == "--differ"
metrics, planned = sys.argv[-2:]
with open(metrics) as file:
    predicted = json.loads(file.readline())["predicted"]
with open(planned) as file:
    row = json.load(file)
assert predicted["switch_bytes"] > 0 and len(predicted["phases"]) == 2, predicted
# Of these only one of the two speaks.
del row["plan"], row["alone"], row["fits"]
assert (predicted == row) != differ, (predicted, row)
