"""Plans the same module under strategies of every kind, some drawn, and takes each plan
through `--mlir-to-plan` and `--plan-to-mlir`: the same text, and the same bytes."""
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
    text += f",zero={draw.randint(0, 1)},recompute={draw.choice(['none', 'selective', 'full'])}"
    return text + draw.choice(["", ",order=pp+dp+tp", ",order=tp+pp+dp"])


def options():
    lengths = ",".join(str(draw.randint(1, 48)) for _ in range(draw.randint(3, 9)))
    rest = f" pipeline={draw.choice(['gpipe', '1f1b', 'cyclic', 'adaptive'])} in-flight={draw.randint(1, 3)}"
    rest += draw.choice(["", " split-backward", " evaluate"])
    return f"strategy={strategy()} lengths={lengths} tokens-per-micro-batch=48{rest}"


def run(*command):
    result = subprocess.run(command, capture_output=True)
    assert result.returncode == 0, f"{command}: {result.stderr.decode()}"
    return result.stdout


def alone(text):
    """An exec.plan without its graph, named by the module's or by the strategy."""
    return re.sub(r'(exec\.plan @("[^"]+"|\S+)) (of @\S+|strategy "[^"]*")', r"\1", text[text.index("exec.plan"):]).strip()


seen = set()
for _ in range(12):
    flags = options()
    printed = run("dyna-opt", module, f"-dyna-plan={flags}").decode()
    if draw.randint(0, 1):
        printed = re.sub(r" lengths \[[^]]*\] \{\n", " {\n", printed)
    if draw.randint(0, 1):
        printed = re.sub(r"exec\.plan @\S+", 'exec.plan @"a plan of mine"', printed)
    files = [os.path.join(work, name) for name in ("plan.mlir", "a.pb", "again.mlir", "b.pb")]
    open(files[0], "w").write(printed)
    run("dyna-translate", "--mlir-to-plan", files[0], "-o", files[1])
    run("dyna-translate", "--plan-to-mlir", files[1], "-o", files[2])
    run("dyna-translate", "--mlir-to-plan", files[2], "-o", files[3])
    first, second = open(files[1], "rb").read(), open(files[3], "rb").read()
    assert first and first == second, f"{flags}: {len(first)} and {len(second)} bytes"
    assert alone(printed) == alone(open(files[2]).read()), flags
    graph = os.path.join(work, "graph.mlir")
    open(graph, "w").write(printed[:printed.index("  exec.plan")] + "}\n")
    back = run("dyna-translate", "--plan-to-mlir", files[1], "--into", graph).decode()
    assert back.strip() == printed.strip(), flags
    seen.add(first)
assert len(seen) == 12, "strategies give different plans"
