"""Settings of TeraPipe's table 1, and plans of them by `dyna-plan`, each asked for once.

The authors' program trains layers alone: it has no embedding and no head, and its loss is a mean of the last layer's
output. So a model here has a vocabulary of 64 words, and the costs say that embedding and head take no time. Each
stage has equally many layers, as in the paper.
"""

import hashlib
import json
import pathlib
import resource
import subprocess
import typing

COSTS = pathlib.Path(__file__).parent / "Inputs" / "v100-p3.textproto"


class Setting(typing.NamedTuple):
    number: str
    model: str
    batch: int
    dp: int
    pp: int
    tp: int
    published: float  # speedup of figure 5 or 7
    tokens: int = 2048

    @property
    def own(self):
        """Samples of a replica."""
        return self.batch // self.dp

    def strategy(self, more=""):
        each = MODELS[self.model][0] // self.pp
        layers = [each + 1] + [each] * (self.pp - 2) + [each + 1]
        return f"dp={self.dp},tp={self.tp},pp={self.pp}{more},layers=" + "+".join(map(str, layers))

    def name(self):
        """As --only has it."""
        return self.number + (f"@{self.tokens}" if self.tokens != 2048 else "")


# Layers, width, heads.
MODELS = {"1B": (24, 2048, 16), "13B": (40, 5120, 40), "44B": (96, 6144, 48), "175B": (96, 12288, 96)}
FIGURE5 = [Setting("(1)", "1B", 128, 8, 24, 1, 1.21), Setting("(2)", "1B", 72, 2, 12, 8, 1.00),
           Setting("(3)", "1B", 72, 1, 24, 8, 1.00), Setting("(4)", "13B", 32, 2, 20, 8, 1.40),
           Setting("(5)", "13B", 32, 1, 40, 8, 1.40), Setting("(6)", "44B", 8, 4, 96, 1, 1.88),
           Setting("(7)", "44B", 8, 2, 24, 8, 1.56), Setting("(8)", "44B", 8, 1, 48, 8, 2.40),
           Setting("(9)", "175B", 2, 1, 96, 4, 6.75), Setting("(10)", "175B", 2, 1, 48, 8, 5.02)]
FIGURE7 = [Setting("(5)", "13B", batch, 1, 40, 8, published, tokens)
           for tokens, batch, published in ((4096, 8, 2.76), (6144, 4, 4.97), (8192, 2, 7.83))]
FIGURE6 = ("(8)", "(9)")
UNIFORM = (1, 2, 4, 8, 16, 32, 64, 128)
# A step of as many tokens has fewer and longer samples; no figure of the paper.
LONGER = [Setting("(5)", "13B", max(1, 65536 // tokens), 1, 40, 8, 0, tokens)
          for tokens in (2048, 4096, 8192, 16384, 32768, 65536, 131072)]
# Totals of the authors' repository: without slices, with slices.
TOTALS = {"(3)": (0.913, 0.913), "(5)": (1.863, 1.328), "(10)": (5.822, 1.160)}


def divisors(number):
    return [n for n in range(1, number + 1) if number % n == 0]


def config(model, tokens, words=64):
    layers, width, heads = MODELS[model]
    return {"model_type": "gpt2", "vocab_size": words, "n_positions": tokens, "n_embd": width, "n_layer": layers, "n_head": heads,
            "n_inner": 4 * width, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0, "tie_word_embeddings": True}


class Bench:
    """Asks `tool` for plans. Rows are kept in terapipe.jsonl of the folder `store`, with their processor seconds."""

    def __init__(self, store, tool, work, costs=COSTS, row_seconds=0, most=0, ask=True):
        self.tool, self.work, self.row_seconds, self.most, self.asks = tool, work, row_seconds, most, ask
        self.costs = "".join(line for line in costs.read_text().splitlines(True) if not line.startswith("#"))
        self.store = store / "terapipe.jsonl"
        self.mark = hashlib.sha256(tool.read_bytes()).hexdigest()[:16]
        self.known, self.left = {}, []
        if self.store.exists():
            for line in self.store.read_text().splitlines():
                entry = json.loads(line)
                self.known[entry["key"]] = entry

    def ask(self, model, costs, words):
        """The row of dyna-plan; None if it has no plan or took too long. Asked once."""
        key = f"{self.mark} {hashlib.sha256(costs.encode()).hexdigest()[:8]} {model.name} {' '.join(words)}"
        entry = self.known.get(key)
        if entry and (entry["row"] or not entry["over"] or 0 < self.row_seconds <= entry["over"]) or not entry and not self.asks:
            return self.answered(entry, key)
        file = self.work / "costs.textproto"
        file.write_text(costs)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        limit = self.row_seconds and (lambda: resource.setrlimit(resource.RLIMIT_CPU, (self.row_seconds, self.row_seconds)))
        done = subprocess.run([str(self.tool), str(model), "--costs", str(file), *words], capture_output=True, text=True,
                              preexec_fn=limit or None)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        over = self.row_seconds if done.returncode < 0 and self.row_seconds and seconds >= self.row_seconds - 1 else 0
        lines = done.stdout.splitlines() if not over else []
        if not lines and not over and done.returncode not in (0, 1, 2):
            raise SystemExit(f"dyna-plan {' '.join(words)} ends with {done.returncode}: {done.stderr.strip()}")
        entry = {"key": key, "row": kept(json.loads(lines[0])) if lines else None, "over": over, "cpu_seconds": round(seconds, 2)}
        self.known[key] = entry
        with self.store.open("a") as out:
            out.write(json.dumps(entry) + "\n")
        return self.answered(entry, key)

    def answered(self, entry, key):
        if not entry or entry["over"]:
            self.left.append((key, f"more than {entry['over']} s of processor time" if entry else "not planned yet"))
            return None
        return entry["row"]

    def plan(self, setting, samples, *flags, pipeline="gpipe", change=None, more="", words=64):
        """Plans one step with so many samples in a micro-batch. `change` makes other costs from the text of these."""
        model = self.work / f"{setting.model}-{setting.tokens}-{words}.json"
        model.write_text(json.dumps(config(setting.model, setting.tokens, words)))
        asked = ["--strategy", setting.strategy(more), "--lengths", ",".join([str(setting.tokens)] * setting.batch),
                 "--tokens-per-batch", setting.tokens * setting.batch, "--tokens-per-micro-batch", setting.tokens * samples,
                 "--pipeline", pipeline, "--json", *flags]
        return self.ask(model, change(self.costs) if change else self.costs, [str(word) for word in asked])

    def uniform(self, setting, count):
        """Each sample in so many equal slices."""
        if self.most and setting.own * count > self.most:
            self.left.append((f"{setting.name()} uniform:{count}", f"{setting.own * count} micro-batches of a replica"))
            return None
        return self.plan(setting, 1, "--slices", f"uniform:{count}")

    def fixed_seconds(self, setting, count):
        """A lower bound of a step whose samples have so many slices: the fixed time of the calls of a stage."""
        launch = float(self.costs.split("launch_seconds:")[1].split()[0])
        return 2 * launch * setting.own * count * (MODELS[setting.model][0] // setting.pp)


def kept(row):
    """What is kept of a row of --json. A plan that does not fit has a row, too."""
    out = {name: row[name] for name in ("seconds", "bound_seconds", "busy_bound_seconds", "micro_batches", "exchange", "other_schedules", "fits")}
    out["cut"] = [part["tokens"] for part in row["cuts"][0]["slices"]] if row.get("cuts") else []
    out["peak_bytes"] = max(stage["peak_bytes"] for stage in row["stages"])
    return out
