"""Prints docs/ops.md from the definitions of the ops.

    list_ops.py ROOT     ROOT is the source tree; llvm-tblgen is on PATH
"""
import json
import pathlib
import shutil
import subprocess
import sys

# Title, file of definitions, and the sentence above the table.
DIALECTS = (
    ("dyna", "dyna/DynaOps.td", "The model, its layers and their gradients ([rationale](rationale/dyna.md))."),
    ("dist", "dist/DistOps.td", "Exchanges between ranks ([rationale](rationale/dist.md))."),
    ("exec", "exec/Exec.td", "Stages and plans as text ([rationale](rationale/exec.md))."),
)


def ops(root, file):
    """(name, summary) of every op, in the order of names."""
    tblgen = pathlib.Path(shutil.which("llvm-tblgen"))
    text = subprocess.run([tblgen, "-dump-json", "-I", tblgen.parent.parent / "include", "-I", root, root / "dialects" / file],
                          check=True, capture_output=True, text=True).stdout
    records = json.loads(text)
    defined = (records[name] for name in records["!instanceof"]["Op"])
    return sorted((op["opName"], op["summary"]) for op in defined)


def main(root):
    print("# Ops\n\nEvery op with its summary. Operands, constraints and an example of each are in the pages that the target `docs`\n"
          "makes from the definitions (`cmake --build build --target docs`). This page is printed by `test/docs/list_ops.py`.")
    for dialect, file, sentence in DIALECTS:
        print(f"\n## {dialect}\n\n{sentence}\n\n| op | |\n|---|---|")
        for name, summary in ops(root, file):
            print(f"| `{dialect}.{name}` | {summary.replace('|', chr(92) + '|')} |")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
