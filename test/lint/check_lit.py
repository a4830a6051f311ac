"""Finds lit tests that cannot fail: directives without a colon, checks and expected
diagnostics that nobody reads.

Usage: check_lit.py FOLDER. Exits 1 and names file and line if there is one.
"""
import difflib
import pathlib
import re
import sys

NO_COLON = re.compile(
    r"^\s*(//|#)\s*(CHECK|[A-Z][A-Z0-9_]*)-(LABEL|NEXT|SAME|NOT|DAG|EMPTY|COUNT-\d+)(\{LITERAL\})?(\s|$)")
DIRECTIVE = re.compile(
    r"^\s*(?://|#)\s*([A-Z][A-Z0-9_-]*?)(?:-(?:LABEL|NEXT|SAME|NOT|DAG|EMPTY|COUNT-\d+))?(?:\{LITERAL\})?:", re.M)
DIAGNOSTIC = re.compile(r"^\s*//\s*expected-\w+", re.M)
KEYWORDS = {"RUN", "REQUIRES", "UNSUPPORTED", "XFAIL", "NOTE", "TODO", "END", "ALLOW_RETRIES"}


def faults(folder):
    found = []
    paths = sorted(list(folder.rglob("*.mlir")) + list(folder.rglob("*.test")))
    for path in paths:
        if "Inputs" in path.parts:
            continue
        text = path.read_text(errors="replace")
        for number, line in enumerate(text.splitlines(), 1):
            if NO_COLON.search(line):
                found.append(f"{path}:{number}: directive without a colon")
        runs = " ".join(re.findall(r"RUN:(.*)", text))
        if not runs:
            found.append(f"{path}: no RUN line")
            continue
        prefixes = set()
        if "FileCheck" in runs:
            prefixes.add("CHECK")
            for names in re.findall(r"--?check-prefix(?:es)?[= ]([\w,-]+)", runs):
                prefixes.update(names.split(","))
        used = {name for name in DIRECTIVE.findall(text) if name not in KEYWORDS}
        for name in sorted(used - prefixes):
            if name.startswith(("CHECK", *prefixes)) or difflib.get_close_matches(name, prefixes | {"CHECK", "RUN"}, cutoff=0.75):
                found.append(f"{path}: {name} lines, but no RUN line checks them")
        if "FileCheck" in runs and not used:
            found.append(f"{path}: calls FileCheck, but has nothing to check")
        if DIAGNOSTIC.search(text) and "verify-diagnostics" not in runs:
            found.append(f"{path}: expects diagnostics, but no RUN line verifies them")
    return found


if __name__ == "__main__":
    bad = faults(pathlib.Path(sys.argv[1]))
    print("\n".join(bad) if bad else "every lit test can fail")
    sys.exit(1 if bad else 0)
