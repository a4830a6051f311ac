"""Enforces which folder may include which (docs/architecture.md).

Usage: check_layering.py ROOT. Prints every include that points the wrong way, and
every cycle of units (a header and the source of its name), and exits 1 if there is one.
"""
import pathlib
import re
import sys

# What each top-level folder may include beside itself.
FOLDERS = {
    "dialects": ["runtime/base", "runtime/layout", "runtime/plan"],
    "passes": ["dialects", "runtime/abi", "runtime/base", "runtime/layout", "runtime/plan", "runtime/cost",
               "runtime/sim", "runtime/planner"],
    "codegen": ["dialects", "passes", "runtime/abi", "runtime/base", "runtime/layout", "runtime/plan"],
    "frontends": ["dialects"],
    "runtime": [],
}
# dialects, lowest first.
DIALECTS = ["dyna", "dist", "exec"]
# codegen: what targets share, each target for itself, what joins them.
CODEGEN = {"rows": 0, "layers": 1, "cpu": 2, "cuda": 2, "aot": 3}
# Folders inside a phase of passes/, lowest first. The passes themselves lie beside them and are above.
PARTS = {"distribute": ["deduce"], "memory": ["sweep", "value", "place"]}
# Phases of passes/, lowest first; `Pipelines` is above all of them.
PASSES = ["differentiate", "distribute", "memory", "plan", "orchestrate"]
# Rooms of runtime/, lowest first.
ROOMS = ["abi", "base", "layout", "plan", "cost", "sim", "planner", "elastic", "device", "transport", "store", "data", "checkpoint",
         "executor", "train"]
RANK = {room: rank for rank, room in enumerate(ROOMS)}
# Rooms inside a room of runtime/, lowest first. All its C++ lies in these.
SUBROOMS = {
    "base": ["error", "text", "file", "thread", "load", "wire"],
    "plan": ["program", "model", "graph", "verify"],
    "planner": ["slice", "cut", "order", "request", "switch", "estimate", "place", "write", "divide", "graph", "step", "report", "search"],
    "elastic": ["prune", "freeze", "balance", "pack", "decide"],
    "executor": ["open", "trace", "rank", "step", "run", "change"],
    "train": ["flags", "files", "session", "plans", "open", "profile", "loop"],
}

# Of C++, of TableGen and of protobuf.
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)
TD_INCLUDE = re.compile(r'^\s*include\s*(")([^"]+)"', re.M)
PROTO_IMPORT = re.compile(r'^\s*import\s+(?:public\s+|weak\s+)?(")([^"]+)"', re.M)
CPP = [".h", ".cpp", ".cu", ".cuh", ".inc", ".def"]
INCLUDES = {**dict.fromkeys(CPP, INCLUDE), ".td": TD_INCLUDE, ".proto": PROTO_IMPORT}
COMPILER = re.compile(r"^(mlir|llvm|clang)(-c)?/")


def mayInclude(here, there):
    """The same of two files of runtime/, by the parts of their paths."""
    room = here[1]
    if room != there[1]:
        return RANK[there[1]] < RANK[room]
    order = SUBROOMS.get(room, [])
    # What is generated from .proto files lies below all rooms.
    if len(here) < 4 or len(there) < 4 or here[2] not in order or there[2] not in order:
        return True
    return order.index(there[2]) <= order.index(here[2])


def partRank(path):
    """The place of a file in the order of its phase's parts, by the parts of its path."""
    order = PARTS[path[1]]
    return order.index(path[2]) if path[2] in order else len(order)


def allowed(source, target):
    """Whether a file at `source` may include the project file `target`."""
    here, there = source.parts, pathlib.PurePosixPath(target).parts
    top = here[0]
    if top in ("tools", "test"):
        return True
    if top == "runtime" and there[0] == "runtime":
        return mayInclude(here, there)
    if top == "dialects" and there[0] == "dialects":
        return DIALECTS.index(there[1]) <= DIALECTS.index(here[1])
    if top == "passes" and there[0] == "passes":
        if here[1] == there[1] and here[1] in PARTS:
            return partRank(there) <= partRank(here)
        return here[1] not in PASSES or there[1] in PASSES[:PASSES.index(here[1]) + 1]
    if top == "codegen" and there[0] == "codegen":
        return here[1] == there[1] or CODEGEN[there[1]] < CODEGEN[here[1]]
    if top == there[0]:
        return True
    return any(target.startswith(prefix + "/") for prefix in FOLDERS[top])


def misplaced(root):
    """C++ that lies in a room with sub-rooms, but in none of these."""
    found = []
    for room, order in SUBROOMS.items():
        for path in sorted((root / "runtime" / room).rglob("*")):
            parts = path.relative_to(root).parts
            if path.suffix in CPP and (len(parts) < 4 or parts[2] not in order):
                found.append(f"{path.relative_to(root)}: lies in none of {', '.join(order)}")
    return found


def violations(root):
    found = []
    for path in sorted(root.rglob("*")):
        source = path.relative_to(root)
        if path.suffix not in INCLUDES or len(source.parts) < 2:
            continue
        if source.parts[0] not in list(FOLDERS) + ["tools", "test"]:
            continue
        text = path.read_text(errors="replace")
        for match in INCLUDES[path.suffix].finditer(text):
            target = match.group(2)
            line = text.count("\n", 0, match.start()) + 1
            if source.parts[0] == "runtime" and COMPILER.match(target):
                found.append(f"{source}:{line}: runtime includes a compiler header: {target}")
            head = target.split("/")[0]
            if head in list(FOLDERS) + ["tools", "test"]:
                if head in ("tools", "test") and source.parts[0] not in ("tools", "test"):
                    found.append(f"{source}:{line}: {source.parts[0]} includes {target}")
                elif head in FOLDERS and not allowed(source, target):
                    found.append(f"{source}:{line}: may not include {target}")
            elif match.group(1) == '"' and "/" not in target:
                found.append(f"{source}:{line}: includes start at the root: {target}")
    return found


def cycles(root):
    """One line for each set of units that all include each other, in the end."""
    units = {}
    for path in sorted(root.rglob("*")):
        source = path.relative_to(root)
        if path.suffix not in (".h", ".cpp") or len(source.parts) < 2 or source.parts[0] not in FOLDERS:
            continue
        unit = str(source.with_suffix(""))
        headers = [name[:-2] for _, name in INCLUDE.findall(path.read_text(errors="replace")) if name.endswith(".h")]
        units.setdefault(unit, set()).update(name for name in headers if name != unit)

    def reached(unit):
        seen, todo = set(), [unit]
        while todo:
            for name in units.get(todo.pop(), ()):
                if name not in seen:
                    seen.add(name)
                    todo.append(name)
        return seen

    reach = {unit: reached(unit) for unit in units}
    found = {tuple(sorted(other for other in reach[unit] if other in units and unit in reach[other]))
             for unit in units if unit in reach[unit]}
    return [f"these include each other: {', '.join(cycle)}" for cycle in sorted(found)]


def differences(root):
    """What docs/architecture.md says of rooms otherwise than this script, which enforces it."""
    page = root / "docs/architecture.md"
    if not page.exists():
        return []
    text = page.read_text()
    found = []
    for place, rooms in [("runtime/", ROOMS), *((f"runtime/{room}/", order) for room, order in SUBROOMS.items())]:
        begin = text.find(f"Rooms of `{place}`")
        if begin < 0:
            found.append(f"docs/architecture.md: no 'Rooms of `{place}`', which are {', '.join(rooms)}")
            continue
        listed = text[text.index(":", begin):text.index("\n\n", begin)].split("`test/lint/check_layering.py`")[0]
        stated = re.findall(r"`(\w+)`", re.sub(r"\([^()]*(?:\([^()]*\)[^()]*)*\)", "", listed))
        if stated != rooms:
            found.append(f"docs/architecture.md: rooms of {place} are {', '.join(stated)}, expected {', '.join(rooms)}")
    return found


if __name__ == "__main__":
    root = pathlib.Path(sys.argv[1])
    bad = violations(root) + misplaced(root) + cycles(root) + differences(root)
    print("\n".join(bad) if bad else "every include points the right way")
    sys.exit(1 if bad else 0)
