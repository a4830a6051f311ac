"""Enforces what lies where: the top level, no compiled files, files and folders of a size that one can read.

Usage: check_files.py ROOT. Prints every fault, and exits 1 if there is one. It reads the tree and not git's index, so
that a file is checked before it is added.
"""
import pathlib
import re
import sys

TOP = {"CMakeLists.txt", "CMakePresets.json", "LICENSE", "README.md", "cmake", "codegen", "dialects", "docs", "frontends",
       "passes", "runtime", "test", "tools"}
# What builds and tools leave at the top level; .gitignore has the same names.
LEFT = re.compile(r"\.|build|quickstart$|compile_commands\.json$")
PRODUCT = ["codegen", "dialects", "frontends", "passes", "runtime", "tools"]
TEXT = [".h", ".cpp", ".cu", ".td", ".inc", ".def", ".py", ".sh", ".proto"]
MOST_LINES = 600
MOST_LINES_OF_A_TEST = 650
MOST_FILES = 28
COMPILED = (b"\x7fELF", b"!<arch>\n", b"\xcf\xfa\xed\xfe")


def walk(root):
    """Every file below `root` that belongs to the tree, in order."""
    for path in sorted(root.iterdir()):
        if LEFT.match(path.name):
            continue
        for file in [path] if path.is_file() else sorted(path.rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                yield file


def violations(root):
    found = [f"{path.name}: the top level has {', '.join(sorted(TOP))} alone" for path in sorted(root.iterdir())
             if path.name not in TOP and not LEFT.match(path.name)]
    folders = {}
    for path in walk(root):
        name = path.relative_to(root)
        with path.open("rb") as file:
            if file.read(8).startswith(COMPILED):
                found.append(f"{name}: a compiled file; the build makes it")
                continue
        product = name.parts[0] in PRODUCT
        if product:
            folders[name.parent] = folders.get(name.parent, 0) + 1
        most = MOST_LINES if product else MOST_LINES_OF_A_TEST
        if name.suffix in TEXT:
            lines = path.read_bytes().count(b"\n")
            if lines > most:
                found.append(f"{name}: {lines} lines, at most {most}: move a part with a name of its own to another file")
    return found + [f"{folder}/: {count} files, at most {MOST_FILES}: make folders inside" for folder, count in sorted(folders.items())
                    if count > MOST_FILES]


if __name__ == "__main__":
    bad = violations(pathlib.Path(sys.argv[1]))
    print("\n".join(bad) if bad else "every file lies where it belongs")
    sys.exit(1 if bad else 0)
