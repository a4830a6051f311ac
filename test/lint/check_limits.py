"""Enforces that no limit in seconds decides a test: on a busy machine everything takes longer.

Usage: check_limits.py ROOT. Prints every line below test/ and cmake/ that waits for a number of seconds, or that compares time
that has passed, and exits 1 if there is one. What hangs is ended by PATIENCE (test/patience.py), kPatience (test/Patience.h) or
DYNA_TEST_TIMEOUT (cmake/DynaProject.cmake); a deadline that is to pass is a multiple of what a run of the same kind has taken.
Where a limit is what a test is about, its line, or one of the two above, says `limit-is-tested`.
"""
import pathlib
import re
import sys

EXCUSE = "limit-is-tested"
CHRONO = r"std::chrono::\w+\(\s*[\d.]"
PYTHON = [r"\btimeout\s*=\s*[\d.]", r"\b(wait|join)\([\d.]", r"\b(monotonic|time|perf_counter)\(\)\s*\+\s*[\d.]",
          r"assertLess.*\b(monotonic|perf_counter)\(\)\s*-", r"--timeout=\d"]
CPP = [rf"\bnow\(\)\s*\+\s*{CHRONO}", rf"\bsetTimeout\(\s*{CHRONO}", rf"\bwait_(for|until)\([^;]*?{CHRONO}",
       r"\b(EXPECT|ASSERT)_L[TE]\(\s*[\w:]*now\(\)\s*-", r"--timeout=\d"]
CMAKE = [r"\bTIMEOUT\s+\d"]
LIT = [r"\btimeout\s+(-\S+\s+)*\d", r"--timeout[= ]\d"]
PATTERNS = {".py": PYTHON, ".cpp": CPP, ".h": CPP, ".txt": CMAKE, ".cmake": CMAKE, ".test": LIT, ".mlir": LIT}


def violations(root):
    """A line about each."""
    return [f"{name}:{line}: a limit in seconds: {text}" for name, line, text in limits(root)]


def limits(root):
    """(file, line, text) of each."""
    for folder in ("cmake", "test"):
        for path in sorted((root / folder).rglob("*")):
            patterns = PATTERNS.get(path.suffix)
            # Linters and their tests name what they look for.
            if not patterns or not path.is_file() or path.parent == root / "test" / "lint":
                continue
            text = path.read_text()
            lines = text.split("\n")
            starts = (found.start() for pattern in patterns for found in re.finditer(pattern, text))
            for number in sorted({text.count("\n", 0, start) for start in starts}):
                if not any(EXCUSE in line for line in lines[max(0, number - 2):number + 1]):
                    yield path.relative_to(root).as_posix(), number + 1, lines[number].strip()


def main():
    faults = violations(pathlib.Path(sys.argv[1]))
    if faults:
        print(*faults, sep="\n")
        print("wait with PATIENCE or kPatience, or take a multiple of what a run of the same kind takes; see test/lint/check_limits.py")
        sys.exit(1)
    print("no limit in seconds decides a test")


if __name__ == "__main__":
    main()
