"""check_layering.py notices each kind of wrong include, and accepts right ones."""
import pathlib
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parent))
from check_layering import ROOMS, SUBROOMS, cycles, differences, misplaced, violations  # noqa: E402

CASES = [  # (file, include line, is it wrong?)
    ("runtime/plan/A.h", '#include "runtime/abi/Abi.h"', False),
    ("runtime/plan/A.h", '#include "runtime/executor/run/Executor.h"', True),
    ("runtime/abi/A.h", '#include "runtime/base/error/Status.h"', True),
    ("runtime/base/A.h", '#include "runtime/abi/Abi.h"', False),
    ("dialects/dyna/A.cpp", '#include "runtime/base/text/Text.h"', False),
    ("runtime/data/A.h", '#include "runtime/checkpoint/Tensor.h"', True),
    ("runtime/checkpoint/A.h", '#include "runtime/data/Dataset.h"', False),
    ("runtime/plan/A.cpp", '#include "Text.h"', True),
    ("runtime/train/A.cpp", '#include "mlir/IR/Builders.h"', True),
    ("runtime/train/A.cpp", '#include "dialects/dyna/Dyna.h"', True),
    ("dialects/dyna/A.h", '#include "dialects/exec/Exec.h"', True),
    ("dialects/exec/A.h", '#include "dialects/dyna/Dyna.h"', False),
    ("dialects/dyna/A.cpp", '#include "passes/Pipelines.h"', True),
    ("passes/memory/A.cpp", '#include "codegen/cpu/Pipelines.h"', True),
    ("codegen/cpu/A.cpp", '#include "passes/Pipelines.h"', False),
    ("codegen/cpu/A.cpp", '#include "runtime/train/loop/Trainer.h"', True),
    ("codegen/cpu/A.cpp", '#include "codegen/rows/CodeBuilder.h"', False),
    ("codegen/rows/A.cpp", '#include "codegen/cpu/CpuLowering.h"', True),
    ("codegen/layers/A.cpp", '#include "codegen/rows/CodeBuilder.h"', False),
    ("codegen/layers/A.cpp", '#include "codegen/cpu/CpuLowering.h"', True),
    ("codegen/cuda/A.cpp", '#include "codegen/cpu/CpuLowering.h"', True),
    ("passes/memory/A.cpp", '#include "passes/plan/Passes.h"', True),
    ("passes/plan/A.cpp", '#include "passes/memory/value/Target.h"', False),
    ("passes/memory/A.cpp", '#include "passes/Pipelines.h"', True),
    ("passes/memory/A.cpp", '#include "passes/memory/place/B.h"', False),
    ("passes/memory/value/A.cpp", '#include "passes/memory/sweep/B.h"', False),
    ("passes/memory/value/A.cpp", '#include "passes/memory/place/B.h"', True),
    ("passes/memory/sweep/A.cpp", '#include "passes/memory/Passes.h"', True),
    ("runtime/base/text/A.h", '#include "runtime/base/error/B.h"', False),
    ("runtime/base/error/A.h", '#include "runtime/base/text/B.h"', True),
    ("runtime/executor/rank/A.h", '#include "runtime/executor/run/B.h"', True),
    ("passes/Pipelines.cpp", '#include "passes/plan/Passes.h"', False),
    ("frontends/A.cpp", '#include "passes/Pipelines.h"', True),
    ("passes/A.cpp", '#include "tools/dynac/X.h"', True),
    ("runtime/plan/A.def", '#include "runtime/executor/run/Executor.h"', True),
    ("runtime/plan/A.def", '#include "runtime/plan/program/BlockKinds.def"', False),
    ("dialects/dyna/A.td", 'include "dialects/exec/Exec.td"', True),
    ("dialects/dyna/A.td", 'include "DynaBase.td"', True),
    ("dialects/exec/A.td", 'include "dialects/dist/DistBase.td"', False),
    ("dialects/exec/A.td", 'include "mlir/IR/OpBase.td"', False),
    ("passes/plan/A.td", 'include "codegen/cpu/Passes.td"', True),
    ("runtime/plan/A.proto", 'import "runtime/cost/Costs.proto";', True),
    ("runtime/cost/A.proto", 'import public "runtime/plan/Plan.proto";', False),
    ("runtime/plan/A.proto", 'import "Manifest.proto";', True),
    ("runtime/plan/A.proto", 'import "google/protobuf/any.proto";', False),
    ("tools/dynac/A.cpp", '#include "codegen/aot/CompilerDriver.h"', False),
    ("runtime/planner/cut/A.cpp", '#include "runtime/planner/report/B.h"', True),
    ("runtime/planner/report/A.cpp", '#include "runtime/planner/cut/B.h"', False),
    ("runtime/planner/cut/batching/A.cpp", '#include "runtime/planner/order/B.h"', True),
    ("runtime/planner/cut/A.cpp", '#include "runtime/planner/cut/batching/B.h"', False),
    ("runtime/planner/cut/A.cpp", '#include "runtime/plan/verify/B.h"', False),
    ("runtime/plan/program/A.cpp", '#include "runtime/plan/Plan.pb.h"', False),
]

failures = 0
for name, line, wrong in CASES:
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / name
        path.parent.mkdir(parents=True)
        path.write_text(line + "\n")
        if bool(violations(pathlib.Path(folder))) != wrong:
            failures += 1
            print(f"{name}: {line}: expected {'a violation' if wrong else 'none'}")

UNITS = {"runtime/plan/A.h": ["B.h"], "runtime/plan/B.h": [], "runtime/plan/B.cpp": ["B.h", "C.h"], "runtime/plan/C.h": []}
for back, expected in [(None, []), ("A.h", ["runtime/plan/A, runtime/plan/B, runtime/plan/C"]),
                       ("B.h", ["runtime/plan/B, runtime/plan/C"])]:
    with tempfile.TemporaryDirectory() as folder:
        for name, headers in UNITS.items():
            path = pathlib.Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            headers = headers + ([back] if back and name.endswith("C.h") else [])
            path.write_text("".join(f'#include "runtime/plan/{header}"\n' for header in headers))
        found = [line.partition(": ")[2] for line in cycles(pathlib.Path(folder))]
        if found != expected:
            failures += 1
            print(f"C.h includes {back}: expected {expected}, but found {found}")

for name, wrong in [("runtime/planner/A.cpp", True), ("runtime/planner/attic/A.cpp", True), ("runtime/planner/cut/A.cpp", False),
                    ("runtime/planner/cut/batching/A.cpp", False), ("runtime/plan/Plan.proto", False), ("runtime/sim/A.cpp", False)]:
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / name
        path.parent.mkdir(parents=True)
        path.touch()
        if bool(misplaced(pathlib.Path(folder))) != wrong:
            failures += 1
            print(f"{name}: expected {'to be misplaced' if wrong else 'no complaint'}")


def paragraph(place, told):
    rooms = ", ".join(f"`{room}` (`within`, [a page](of-`its`.md))" for room in told)
    return f"Rooms of `{place}`, lowest first: {rooms}. `test/lint/check_layering.py` enforces it.\n\n"


RIGHT = {"runtime/": ROOMS, **{f"runtime/{room}/": order for room, order in SUBROOMS.items()}}
for place, rooms in RIGHT.items():
    for told, expected in [(rooms, 0), (rooms[:-1], 1), (rooms[1:] + rooms[:1], 1), (None, 1)]:
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder) / "docs/architecture.md"
            page.parent.mkdir()
            stated = {**RIGHT, place: told}
            page.write_text("".join(paragraph(name, order) for name, order in stated.items() if order))
            if len(differences(pathlib.Path(folder))) != expected:
                failures += 1
                print(f"a page that tells {told} of {place}: expected {expected} differences")
sys.exit(failures)
