"""check_text.py counts what it should, and complains of what is new."""
import json
import pathlib
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parent))
from check_text import DEBT, complaints, counts, lowered, main  # noqa: E402

LONG = "Word " * 26
SHORT = "Word " * 25
CASES = [  # (file, text, verbless, long)
    ("runtime/sim/A.h", "/// Returns the number.\nint a();\n", 0, 0),
    ("runtime/sim/A.h", "/// Of a plan.\nint a();\n", 1, 0),
    ("runtime/sim/A.h", "// Of a plan.\nint a();\n", 0, 0),
    ("runtime/sim/A.h", "/// Offset of a plan.\nint a();\n", 0, 0),
    ("runtime/sim/A.h", "int a; ///< What it is.\nint b; ///< Whether it is.\n", 2, 0),
    ("runtime/sim/A.h", "/// Returns one.\n/// The same as before.\nint a();\n", 0, 0),
    ("runtime/sim/A.h", "/// The same of a step.\nint a();\n", 1, 0),
    ("runtime/sim/A.h", f"// {SHORT}.\n", 0, 0),
    ("runtime/sim/A.h", f"// {LONG}.\n", 0, 1),
    ("runtime/sim/A.h", "// " + "Word word. " * 30 + "\n", 0, 0),
    ("runtime/sim/A.h", "// " + "\n// ".join(["word word"] * 14) + "\n", 0, 1),
    ("runtime/sim/A.h", "// " + "\n//\n// ".join(["word word"] * 14) + "\n", 0, 0),
    ("runtime/sim/A.h", "// " + "\n// - ".join(["Word word"] * 14) + "\n", 0, 0),
    ("runtime/sim/A.h", f"//     {LONG}\n// Words.\n", 0, 0),
    ("runtime/sim/A.h", f'const char *text = "{LONG}";\n', 0, 0),
    ("runtime/sim/A.cpp", f"/// Of it. {LONG}\n", 0, 0),
    ("docs/a.md", f"{LONG}.\n", 0, 1),
    ("docs/a.md", f"{SHORT}.\n", 0, 0),
    ("docs/a.md", f"```\n{LONG}\n```\n| {LONG} |\n# {LONG}\n", 0, 0),
    ("docs/a.md", "`" + LONG + "` is a word.\n", 0, 0),
    ("docs/a.md", f"See [{SHORT}](https://one.two/{'a-b/' * 40}).\n", 0, 1),
    ("docs/results/a.md", f"{LONG}.\n", 0, 1),
    ("README.md", f"{LONG}.\n", 0, 1),
    ("dialects/a/A.td", f'let summary = "{LONG}.";\n', 0, 1),
    ("dialects/a/A.td", f'let summary = "{SHORT}.";\n', 0, 0),
    ("dialects/a/A.td", f"let description = [{{\n  {LONG}.\n}}];\n", 0, 1),
    ("dialects/a/A.td", f"let description = [{{\n  - {SHORT}.\n  - {SHORT}.\n}}];\n", 0, 0),
    ("dialects/a/A.td", f"let description = [{{\n  ```mlir\n  {LONG}.\n  Word.\n  ```\n  | {LONG} |\n}}];\n", 0, 0),
    ("dialects/a/A.td", f'let description = "{LONG}";\n', 0, 1),
    ("dialects/a/A.td", f'// {LONG}\nlet format = "{LONG}";\n', 0, 0),
]

failures = 0


def expect(given, expected, what):
    global failures
    if given != expected:
        failures += 1
        print(f"{what}: expected {expected}, but got {given}")


for name, text, verbless, long in CASES:
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        found = counts(pathlib.Path(folder))
        of = {kind: sum(own.get(kind, 0) for own in found.values()) for kind in ("verbless", "long")}
        expect(of, {"verbless": verbless, "long": long}, f"{name}: {text[:60]!r}")

FOUND = {"docs": {"long": 3}, "runtime/sim": {"verbless": 1}}
expect(len(complaints(FOUND, {"docs": {"long": 3}, "runtime/sim": {"verbless": 2}})), 0, "as many as allowed, or fewer")
expect(len(complaints(FOUND, {"docs": {"long": 2}, "runtime/sim": {"verbless": 1}})), 1, "one more than allowed")
expect(len(complaints(FOUND, {})), 2, "a new folder has none")
expect(lowered(FOUND, {"docs": {"long": 2}, "runtime/sim": {"long": 7, "verbless": 5}, "runtime/base": {"long": 1}}),
       {"docs": {"long": 2}, "runtime/sim": {"verbless": 1}}, "numbers only fall")

with tempfile.TemporaryDirectory() as folder:
    root = pathlib.Path(folder)
    for place in ("docs", "test/lint"):
        (root / place).mkdir(parents=True)
    (root / "docs/a.md").write_text(f"{LONG}.\n")
    expect(main([folder]), 1, "a long sentence without a table")
    (root / DEBT).write_text(json.dumps({"docs": {"long": 4}}))
    expect(main([folder]), 0, "a long sentence that the table has")
    main([folder, "--update"])
    expect(json.loads((root / DEBT).read_text()), {"docs": {"long": 1}}, "--update")
sys.exit(1 if failures else 0)
