"""check_files.py notices each kind of misplaced or overgrown file, and nothing else."""
import pathlib
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parent))
from check_files import violations  # noqa: E402

CASES = [  # (what, {file: text}, a word of the fault; None: accepted)
    ("a source", {"runtime/plan/A.cpp": b"int a;\n"}, None),
    ("a folder at the top", {"objects/A.txt": b"a\n"}, "the top level"),
    ("a file at the top", {"notes.md": b"a\n"}, "the top level"),
    ("a build", {"build-asan/A.o": b"\x7fELF\x02\x01\x01\x00"}, None),
    ("a hidden file", {".clangd": b"a\n"}, None),
    ("an object", {"test/A.o": b"\x7fELF\x02\x01\x01\x00"}, "compiled"),
    ("an archive under another name", {"tools/a": b"!<arch>\nabc"}, "compiled"),
    ("a long file", {"runtime/A.cpp": b"\n" * 601}, "601 lines"),
    ("the longest file", {"runtime/A.cpp": b"\n" * 600}, None),
    ("a long test", {"test/ATest.cpp": b"\n" * 651}, "651 lines"),
    ("long data", {"test/a.json": b"\n" * 5000}, None),
    ("a full folder", {f"runtime/plan/A{i}.h": b"\n" for i in range(29)}, "29 files"),
    ("two folders", {f"runtime/{'ab'[i % 2]}/A{i}.h": b"\n" for i in range(40)}, None),
    ("many cases", {f"test/cases/{i}": b"\n" for i in range(100)}, None),
]

failures = 0
for what, files, word in CASES:
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(text)
        found = violations(root)
        if (word is None) != (not found) or word is not None and not any(word in line for line in found):
            print(f"{what}: expected {word}, found {found}")
            failures += 1
print(f"{len(CASES)} cases, {failures} failures")
sys.exit(failures > 0)
