"""Plans the same module under strategies of every kind, some drawn, and takes each plan
through `--mlir-to-plan` and `--plan-to-mlir`, twice."""
import os
import random
import re
import subprocess
import sys

module, work = sys.argv[1:3]
os.makedirs(work, exist_ok=True)
draw = random.Random(5)


def strategy():
    tp = draw.choice([1, 2])
    text = f"dp={draw.randint(1, 3)},tp={tp},pp={draw.randint(1, 3)}"
    if tp > 1:
        text += f",sp={draw.randint(0, 1)}"
    return text + f",zero={draw.randint(0, 1)},recompute={draw.choice(['none', 'selective', 'full'])}"


def options():
    lengths = ",".join(str(draw.randint(1, 48)) for _ in range(draw.randint(3, 9)))
    rest = f" schedule={draw.choice(['gpipe', '1f1b'])} in-flight={draw.randint(1, 3)}"
    rest += draw.choice(["", " split-backward", " evaluate"])
    return f"strategy={strategy()} lengths={lengths} micro-batch=48{rest}"


def run(*command):
    result = subprocess.run(command, capture_output=True)
    assert result.returncode == 0, f"{command}: {result.stderr.decode()}"
    return result.stdout


def body(text):
    """An exec.plan without what the message does not hold: its name, graph and lengths."""
    plan = text[text.index("exec.plan"):]
    plan = re.sub(r"exec\.plan @\S+( of @\S+)?", "exec.plan", plan)
    return re.sub(r" lengths \[[^]]*\]", "", plan, count=1).strip()


seen = set()
for _ in range(12):
    flags = options()
    printed = run("dyna-opt", module, f"-dyna-plan={flags}")
    files = [os.path.join(work, name) for name in ("plan.mlir", "a.pb", "again.mlir", "b.pb")]
    open(files[0], "wb").write(printed)
    run("dyna-translate", "--mlir-to-plan", files[0], "-o", files[1])
    run("dyna-translate", "--plan-to-mlir", files[1], "-o", files[2])
    run("dyna-translate", "--mlir-to-plan", files[2], "-o", files[3])
    first, second = open(files[1], "rb").read(), open(files[3], "rb").read()
    assert first and first == second, f"{flags}: {len(first)} and {len(second)} bytes"
    assert body(printed.decode()) == body(open(files[2]).read()), flags
    seen.add(first)
assert len(seen) == 12, "strategies give different plans"
