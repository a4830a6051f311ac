"""check_lit.py notices each kind of dead check, and accepts live ones."""
import pathlib
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parent))
from check_lit import faults  # noqa: E402

CASES = [  # (text, is it a fault?)
    ("// RUN: dyna-opt %s | FileCheck %s\n// CHECK: a\n", False),
    ("// RUN: dyna-opt %s | FileCheck %s\n// CHECK: a\n// CHECK-NOT b\n", True),
    ("// RUN: dyna-opt %s\n// CHECK: a\n", True),
    ("// RUN: dyna-opt %s | FileCheck %s\n", True),
    ("// CHECK: a\n", True),
    ("// RUN: dyna-opt %s | FileCheck %s --check-prefix=X\n// X: a\n", False),
    ("// RUN: dyna-opt %s | FileCheck %s --check-prefix=X\n// X: a\n// CHECK-A: b\n", True),
    ("// RUN: dyna-opt %s | FileCheck %s\n// CHECK: a\n// CHEK-NEXT: b\n", True),
    ("// RUN: dyna-opt %s | FileCheck %s\n// CHECK: a\n// RUNS: dyna-opt %s\n", True),
    ("// RUN: dyna-opt %s | FileCheck %s --check-prefix=LAYER\n// LAYER: a\n// LAYR: b\n", True),
    ("// RUN: dyna-opt %s -verify-diagnostics\n", False),
    ("// RUN: dyna-opt %s -verify-diagnostics\n// expected-error @+1 {{a}}\n", False),
    ("// RUN: not dyna-opt %s\n// expected-error @+1 {{a}}\n", True),
]

failures = 0
for text, wrong in CASES:
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "a.mlir").write_text(text)
        if bool(faults(pathlib.Path(folder))) != wrong:
            failures += 1
            print(f"{text!r}: expected {'a fault' if wrong else 'none'}")
sys.exit(failures)
