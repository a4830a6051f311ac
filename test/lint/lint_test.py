"""tools/lint.sh accepts a clean tree and notices one fault of each kind."""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
CLEAN = {
    "runtime/plan/model/A.h": '#include "runtime/abi/Abi.h"\n',
    # Longer than a line may be: comments stay as they are written.
    "runtime/plan/model/A.cpp": "//" + " long" * 20 + "\n\nint twice(int x) { return 2 * x; }\n",
    "test/a.mlir": "// RUN: dyna-opt %s | FileCheck %s\n// CHECK: a\n",
}
MOVED = """#include <string>
#include <utility>

std::string take(std::string text) {
  std::string other = std::move(text);
  return other + text;
}
"""
CASES = [  # (what, file, text, arguments, a word of the message; None: accepted)
    ("clean", None, None, [], None),
    ("format", "runtime/plan/model/B.cpp", "int  twice(int x) { return 2*x; }\n", [], "clang-format"),
    ("format of a test", "test/B.cpp", "int  twice(int x) { return 2*x; }\n", [], "clang-format"),
    ("compiled file", "tools/b", "\x7fELF", [], "a compiled file"),
    ("layering", "runtime/plan/model/B.h", '#include "runtime/executor/run/Executor.h"\n', [], "may not include"),
    ("long function", "runtime/plan/model/B.cpp", "int twice(int x) {\n" + "  x += 1;\n" * 60 + "  return x;\n}\n", [], "at most 60"),
    ("limit in seconds", "test/b_test.py", "process.wait(timeout=60)\n", [], "a limit in seconds"),
    ("comment without a verb", "runtime/plan/model/B.h", "/// Of a plan.\nint twice(int x);\n", [], "without a verb"),
    ("dead check", "test/b.mlir", "// RUN: dyna-opt %s\n// CHECK: a\n", [], "CHECK"),
    ("clean for clang-tidy", None, None, ["--tidy"], None),
    ("use after a move", "runtime/plan/model/A.cpp", MOVED, ["--tidy"], "bugprone-use-after-move"),
    ("an option without its value", None, None, ["--build-dir"], "usage: tools/lint.sh"),
    ("build of another tree", None, None, ["--tidy", "--build-dir", "test"], "no compile commands"),
]


def lint(root, arguments):
    return subprocess.run(["bash", str(root / "tools/lint.sh"), *arguments], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)


def make_tree(root):
    for folder in ("dialects", "passes", "codegen", "frontends", "runtime", "tools", "test/lint", "build"):
        (root / folder).mkdir(parents=True)
    for name in ("tools/lint.sh", ".clang-format", ".clang-tidy", "test/lint/check_files.py", "test/lint/check_layering.py",
                 "test/lint/check_lengths.py", "test/lint/check_limits.py", "test/lint/check_lit.py", "test/lint/check_text.py"):
        shutil.copy(SOURCE / name, root / name)
    for name, text in CLEAN.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    file = str(root / "runtime/plan/model/A.cpp")
    (root / "build/compile_commands.json").write_text(json.dumps(
        [{"directory": str(root), "file": file, "command": f"clang++-22 -std=c++17 -I{root} -c {file}"}], indent=1))


failures = 0
for what, name, text, arguments, word in CASES:
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder).resolve()
        make_tree(root)
        if name:
            (root / name).write_text(text)
        done = lint(root, arguments)
        is_right = done.returncode == 0 if word is None else done.returncode != 0 and word in done.stdout
        if not is_right:
            failures += 1
            print(f"{what}: exit code {done.returncode}, expected {'success' if word is None else word}\n{done.stdout}")
sys.exit(failures)
