"""Enforces that functions are short: 60 lines from the first of their head to their closing brace.

Usage: check_lengths.py ROOT. Prints every longer one below the product's folders, and exits 1 if there is one. It
reads braces, not C++: what stands in a body, lambdas and classes too, counts with the function around it.
"""
import pathlib
import re
import sys

MOST = 60
FOLDERS = ["codegen", "dialects", "frontends", "passes", "runtime", "tools"]
SUFFIXES = [".h", ".cpp", ".cu", ".cuh", ".inc", ".def"]
# Files whose functions may be longer, and why.
EXEMPT = {
    "runtime/device/cuda/kernels/attention/AttentionFma.cu": "a kernel keeps its registers in one function",
    "runtime/device/cuda/kernels/attention/AttentionMma.cu": "a kernel keeps its registers in one function",
    "runtime/device/cuda/kernels/product/ProductMma.cu": "a kernel keeps its registers in one function",
}

# Comments, directives with their continued lines, raw and plain literals, each as long as before.
SKIPPED = re.compile(r'//[^\n]*|/\*.*?\*/|^[ \t]*#(?:[^\n\\]|\\.)*|R"([^(\s]*)\(.*?\)\1"|"(?:[^"\\\n]|\\.)*"|'
                     r"(?<![0-9a-zA-Z])'(?:[^'\\\n]|\\.)+'", re.S | re.M)
SCOPE = re.compile(r"\b(namespace|class|struct|enum|union|extern)\b")
AFTER_PARAMETERS = re.compile(r"\)\s*(const|override|noexcept|final|\s)*$")


def plain(text):
    """The text without what braces in it do not count in; its lines stay."""
    return SKIPPED.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def is_function(head):
    """Whether a brace behind these words opens one."""
    if "(" not in head or head.endswith(("=", "return")):
        return False
    return not SCOPE.search(head) or AFTER_PARAMETERS.search(head)


def functions(text):
    """(line, lines, head) of each that is in no other."""
    text = plain(text)
    start, depth, inside = 0, 0, None
    for found in re.finditer(r"[{};]", text):
        at = found.start()
        if found[0] == "{":
            head = text[start:at].strip()
            depth += 1
            if inside is None and is_function(head):
                inside = (depth, at - len(text[start:at].lstrip()), head)
        elif found[0] == "}":
            if inside and depth == inside[0]:
                line = text.count("\n", 0, inside[1]) + 1
                yield line, text.count("\n", inside[1], at) + 1, " ".join(inside[2].split())
                inside = None
            depth -= 1
        if inside is None:
            start = at + 1


def violations(root):
    found, exempt = [], set()
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in SUFFIXES:
                continue
            name = path.relative_to(root).as_posix()
            for line, lines, head in functions(path.read_text(errors="replace")):
                if lines <= MOST:
                    continue
                if name in EXEMPT:
                    exempt.add(name)
                else:
                    found.append(f"{name}:{line}: {lines} lines, at most {MOST}: cut it into functions with names of their "
                                 f"own: {head[:90]}")
    unused = [f"{name}: no function is longer than {MOST} lines any more: take it from EXEMPT of check_lengths.py"
              for name in EXEMPT if (root / name).exists() and name not in exempt]
    return found + unused


if __name__ == "__main__":
    faults = violations(pathlib.Path(sys.argv[1]))
    print("\n".join(faults) if faults else f"every function has at most {MOST} lines")
    sys.exit(bool(faults))
