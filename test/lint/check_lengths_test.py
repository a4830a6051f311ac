"""check_lengths.py notices each kind of function that is too long, and nothing else."""
import pathlib
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parent))
from check_lengths import EXEMPT, MOST, violations  # noqa: E402

LINE = "  call();\n"


def function(head, lines):
    return f"{head} {{\n{LINE * (lines - 2)}}}\n"


HEAD = "static Status take(int a)"
CASES = [  # (what, file, text, lines of the faults)
    ("as long as may be", "runtime/A.cpp", function(HEAD, MOST), []),
    ("a line more", "runtime/A.cpp", function(HEAD, MOST + 1), [1]),
    ("the second of two", "passes/A.cpp", function(HEAD, 9) + function(HEAD, MOST + 1), [10]),
    ("a head of two lines", "tools/A.cpp", function("Status\ntake(int a)", MOST), [1]),
    ("a method", "codegen/A.h", "struct A {\n" + function("int get() const", MOST + 1) + "};\n", [2]),
    ("one with a list of initial values", "runtime/A.cpp", function("A::A(int a) : a_(a)", MOST + 1), [1]),
    ("one of a type with a keyword", "runtime/A.cpp", function("struct B make(const struct A &a)", MOST + 1), [1]),
    ("a lambda counts where it stands", "runtime/A.cpp",
     f"int take() {{\n  auto f = [&](int a) {{\n{LINE * 30}  }};\n{LINE * 30}}}\n", [1]),
    ("no function: a class", "runtime/A.h", "class A {\n" + "  int f(int a);\n" * 99 + "};\n", []),
    ("no function: a namespace", "runtime/A.h", "namespace a {\n" + "int f(int a);\n" * 99 + "} // namespace a\n", []),
    ("no function: a table", "runtime/A.cpp", "constexpr Row rows[] = {\n" + "    makeRow(1),\n" * 99 + "};\n", []),
    ("braces in words", "runtime/A.cpp", f'int take() {{\n  say("{{");\n  say(\'{{\'); // {{\n}}\n' + function(HEAD, MOST), []),
    ("braces in raw text", "runtime/A.cpp", f'int take() {{\n  say(R"({{\n{{)");\n}}\n' + function(HEAD, MOST + 1), [5]),
    ("a directive", "runtime/A.cpp", "#define OPEN { \\\n  {\n" + function(HEAD, MOST + 1), [3]),
    ("digits with marks", "runtime/A.cpp", "int take() {\n  return 1'000;\n}\n" + function(HEAD, MOST + 1), [4]),
    ("a test", "test/A.cpp", function(HEAD, 99), []),
    ("an exempt file", sorted(EXEMPT)[0], function(HEAD, MOST + 1), []),
    ("one that need not be exempt", sorted(EXEMPT)[0], function(HEAD, MOST), ["no function"]),
]

failures = 0
for what, name, text, expected in CASES:
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / name
        path.parent.mkdir(parents=True)
        path.write_text(text)
        faults = violations(pathlib.Path(folder))
        starts = [f"{name}:{line}: " if isinstance(line, int) else f"{name}: {line}" for line in expected]
        if len(faults) != len(starts) or not all(map(str.startswith, faults, starts)):
            failures += 1
            print(f"{what}: expected faults {starts}, got {faults}")
if failures:
    sys.exit(f"{failures} of {len(CASES)} cases fail")
print(f"{len(CASES)} cases pass")
