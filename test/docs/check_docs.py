"""Runs what the pages show.

    check_docs.py mlir FILE...          every ```mlir block parses (dyna-opt on PATH)
    check_docs.py commands FILE WORKDIR every ```sh block of the page runs, in order

Prints page and line of what fails, and exits 1.
"""
import pathlib
import re
import subprocess
import sys

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)


def blocks(path, language):
    text = pathlib.Path(path).read_text()
    for match in BLOCK.finditer(text):
        if match.group(1) == language:
            yield text.count("\n", 0, match.start()) + 1, match.group(2)


def check_mlir(pages):
    failures = count = 0
    for page in pages:
        for line, text in blocks(page, "mlir"):
            count += 1
            result = subprocess.run(["dyna-opt"], input=text, capture_output=True, text=True)
            if result.returncode != 0:
                failures += 1
                print(f"{page}:{line}: does not parse:\n{result.stderr}")
    print(f"{count} examples parsed, {failures} failed")
    return failures > 0 or count == 0


def check_commands(page, folder):
    script = "set -eu\n"
    count = 0
    for line, text in blocks(page, "sh"):
        count += 1
        # `!` commands do not stop a shell under -e: make them.
        text = re.sub(r"^! (.*)$", r"if \1; then exit 1; fi", text, flags=re.M)
        script += f"echo '{page}:{line}' >&2\n{text}"
    pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
    result = subprocess.run(["bash", "-c", script], cwd=folder, capture_output=True, text=True)
    print(result.stdout[-2000:], result.stderr[-3000:])
    print(f"{count} blocks of commands, exit code {result.returncode}")
    return result.returncode != 0 or count == 0


if __name__ == "__main__":
    if sys.argv[1] == "mlir":
        sys.exit(check_mlir(sys.argv[2:]))
    sys.exit(check_commands(sys.argv[2], sys.argv[3]))
