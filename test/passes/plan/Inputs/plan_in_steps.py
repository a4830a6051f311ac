#!/usr/bin/env python3
# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The passes that make a plan, each in a process of its own, against --dyna-plan: byte for byte.

    plan_in_steps.py MODULE OPTIONS...

OPTIONS are those of --dyna-plan; its `pipeline` is the `schedule` of the steps.
"""
import subprocess
import sys


def opt(flag, text):
    done = subprocess.run(["dyna-opt", flag, "-"], input=text, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{flag}\nends with {done.returncode}:\n{done.stderr}")
    return done.stdout, sorted(line for line in done.stderr.splitlines() if "remark" in line)


def plan_of(text):
    """The part of the module that is the plan."""
    return text[text.index("  exec.plan "):]


def main():
    module = open(sys.argv[1]).read()
    faults = 0
    for options in sys.argv[2:]:
        costs = " ".join(word for word in options.split() if word.startswith("costs="))
        whole, said = opt(f"--dyna-plan={options}", module)
        cut, remarks = opt("--dyna-build-micro-batches=" + options, module)
        scheduled, more = opt(f"--dyna-schedule={costs}", cut)
        ordered, none = opt(f"--dyna-order-communication={costs}", scheduled)
        good = ordered == whole and none == [] and len(remarks) + len(more) == len(said)
        # Each step adds something, and nothing that comes later.
        good &= "  rank " not in plan_of(cut) and "draft <" in cut
        good &= not any(word in plan_of(scheduled) for word in ("send", "recv", "update", "reduce", "gather", "batch 0 batch"))
        good &= "do load" in scheduled and "draft <" in scheduled and "draft <" not in ordered
        print(f"{'same' if good else 'OTHER'}: {options}")
        faults += not good
    print(f"{len(sys.argv) - 2} plans, {faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
