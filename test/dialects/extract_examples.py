#!/usr/bin/env python3
"""Runs every example in the descriptions of a dialect's .td files through dyna-opt.

Takes the records from llvm-tblgen, so descriptions made by concatenation are seen
as users see them. Every op must have an example, and the op must occur in one of
its own. An example's free values get the types that the parser asks for.
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys

TYPE_ERROR = re.compile(
    r"use of value '(%[\w.$-]+)' expects different type than prior uses: '(.*)' vs 'none'")

LAYERS = """
dyna.layer @embed[%w: tensor<257x96xf32>](%ids: tensor<?xi32>) -> tensor<?x96xf32> {
  %x = dyna.embedding %ids, %w : tensor<?xi32>, tensor<257x96xf32>
  dyna.return %x : tensor<?x96xf32>
}
dyna.layer @block[%g: tensor<96xf32>, %w: tensor<96x96xf32>](%x: tensor<?x96xf32>) -> tensor<?x96xf32> {
  dyna.return %x : tensor<?x96xf32>
}
dyna.layer @head[%w: tensor<257x96xf32>](%x: tensor<?x96xf32>, %targets: tensor<?xi32>) -> tensor<1xf64> {
  %loss = dyna.linear_cross_entropy %x, %w, %targets : tensor<?x96xf32>, tensor<257x96xf32>, tensor<?xi32>
  dyna.return %loss : tensor<1xf64>
}
dyna.parameter @wte : tensor<257x96xf32>
dyna.parameter @h.0.norm : tensor<96xf32>
dyna.parameter @h.0.weight : tensor<96x96xf32>
"""

# Two graphs, and a switch between them that a bucket is of.
SWITCHED = """exec.graph @s "dp=3" on <dp=3, pp=1, tp=1> {
stage ["a"]
}
exec.graph @l "tp=3" on <dp=1, pp=1, tp=3> {
stage ["a"]
}
"""
MOVED = """exec.switch_plan values of @s home @l {
tensor @w master element_bytes 4 from [rank 0 [0:4, 0:8]] to [rank 1 [0:4, 0:8]]
"""

# What has to stand round an example whose op cannot stand alone in a module.
AROUND = {
    "dyna.call": LAYERS + """
dyna.model @m(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %segments: !dyna.segments)
    facts<family = "custom", vocabulary = 257, positions = 0, width = 96, heads = 0, kv_heads = 0,
          head_dim = 0, feed_forward = 0, config = "{}"> {
  %0 = dyna.call "embed" @embed[@wte](%ids) : (tensor<?xi32>) -> tensor<?x96xf32>
EXAMPLE
  %2 = dyna.call "head" @head[@wte](%1, %targets) : (tensor<?x96xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %2 : tensor<1xf64>
}""",
    "dyna.return": "dyna.layer @l(%z: tensor<?x96xf32>) -> tensor<?x96xf32> {\nEXAMPLE\n}",
    "dyna.yield": "%r = dyna.rows : tensor<?x384xf32> {\nEXAMPLE\n}",
    "dist.yield": "%r = dist.exchange : tensor<?x96xf32> {\n"
                  "%a = dist.all_reduce %x over <1 [tp] on <tp=2>> : tensor<?x96xf32>\nEXAMPLE\n}",
    "dyna.function": """dyna.layer @scale[%g: tensor<96xf32>](%x: tensor<?x96xf32>) -> tensor<?x96xf32> {
  dyna.return %x : tensor<?x96xf32>
}
EXAMPLE""",
    "exec.stage": 'exec.graph @a "dp=1" on <dp=1, pp=1, tp=1> {\nEXAMPLE\n}',
    "exec.parameter": 'exec.graph @a "tp=2,pp=2" on <dp=1, pp=2, tp=2> {\nstage ["a"]\nstage ["b"]\nEXAMPLE\n}',
    "exec.micro_batch": "exec.plan @p model 0 target_tokens 0 {\nEXAMPLE\n}",
    "exec.rank": "exec.plan @p model 0 target_tokens 0 {\nEXAMPLE\n}",
    "exec.do": "exec.plan @p model 0 target_tokens 0 {\nrank 0 dynamic_bytes 0 {\nEXAMPLE\n}\n}",
    "exec.turn": 'exec.graph @s "dp=1" on <dp=1, pp=1, tp=1> {\nstage ["a"]\n}\nexec.orchestration home @s {\nEXAMPLE\n}',
    "exec.tensor": SWITCHED + "exec.switch_plan values of @s home @l {\n"
                   + "EXAMPLE\nbucket {\ntransfer tensor 0 [0:8, 0:2] from 0 to 0\ntransfer tensor 0 [0:8, 2:4] from 0 to 1\n}\n}",
    "exec.bucket": SWITCHED + MOVED + "EXAMPLE\n}",
    "exec.transfer": SWITCHED + MOVED + "bucket {\nEXAMPLE\n}\n"
                     + "bucket after 0 {\ntransfer tensor 0 [0:4, 0:8] from 2 to 1 source passing\n}\n}",
    "exec.phase": "exec.plan @p model 0 target_tokens 0 {\n}\nexec.step @s {\nEXAMPLE\n}",
}


def examples(description):
    """The code after `Example:`: fenced blocks, or spans in the rest of the paragraph."""
    found = re.findall(r"```mlir\n(.*?)```", description, re.S)
    for paragraph in re.findall(r"Example: (.*?)(?:\n\s*\n|\Z)", description, re.S):
        found += re.findall(r"`([^`]+)`", paragraph)
    return found


def module(name, code):
    if code.lstrip().startswith("#"):
        return f'"test.attribute"() {{value = {code.strip()}}} : () -> ()\n'
    return AROUND.get(name, "EXAMPLE").replace("EXAMPLE", code)


def free_values(text):
    """Values used in the text but defined nowhere in it."""
    defined = set()
    for results in re.findall(r"^\s*((?:%[\w.$-]+(?::\d+)?(?:\s*,\s*)?)+)\s*=\s", text, re.M):
        defined |= set(re.findall(r"%[\w.$-]+", results))
    defined |= set(re.findall(r"(%[\w.$-]+):", text))
    return [v for v in dict.fromkeys(re.findall(r"%[\w.$-]+", text)) if v not in defined]


def parse(opt, text):
    """None, or why the text does not parse."""
    types = {value: "none" for value in free_values(text)}
    while True:
        header = "".join(f'{value} = "test.value"() : () -> {kind}\n' for value, kind in types.items())
        run = subprocess.run([opt, "-allow-unregistered-dialect", "--verify-roundtrip", "-o", os.devnull],
                             input=header + text, capture_output=True, text=True)
        if run.returncode == 0:
            return None
        wish = TYPE_ERROR.search(run.stderr)
        if not wish or types.get(wish[1]) != "none":
            return run.stderr
        types[wish[1]] = wish[2]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("td")
    parser.add_argument("--source", required=True, help="root of the source tree")
    parser.add_argument("--opt", default="dyna-opt")
    parser.add_argument("--tblgen", default="llvm-tblgen")
    options = parser.parse_args()
    tblgen = os.path.realpath(shutil.which(options.tblgen))
    include = os.path.join(os.path.dirname(tblgen), "..", "include")
    records = json.loads(subprocess.run(
        [tblgen, "-dump-json", "-I", options.source, "-I", include, options.td],
        check=True, capture_output=True, text=True).stdout)

    kinds = records["!instanceof"]
    ops = [name for name in kinds["Op"] if records[name].get("opName")]
    failures, count = 0, 0
    for key in ops + kinds["AttrDef"] + kinds["TypeDef"]:
        record = records[key]
        is_op = key in ops
        name = key
        if is_op:
            name = f"{records[record['opDialect']['def']]['name']}.{record['opName']}"
        codes = examples(record["description"])
        if is_op and not any(re.search(re.escape(name) + r"\b(?!_)", code) for code in codes):
            print(f"{name}: no example of the op in its description")
            failures += 1
        for code in codes:
            count += 1
            error = parse(options.opt, module(name, code))
            if error:
                print(f"{name}: example does not parse:\n{code}\n{error}")
                failures += 1
    print(f"{count} examples of {len(ops)} ops, {failures} failures")
    return 1 if failures or not count else 0


if __name__ == "__main__":
    sys.exit(main())
