"""Runs what the pages show.

    check_docs.py mlir FILE...              every ```mlir block parses (dyna-opt on PATH)
    check_docs.py run PAGE WORK ROOT BUILD  every ```sh block of the page runs, in order
    check_docs.py pages ROOT                every block of commands is run by a test, or says why not

A page is run as a reader would type it in the source tree: in a folder WORK that looks
like one, with `build`, `tools`, `docs/examples` (models that train in a second), `corpus/` and
`heldout/`, and nothing else in the environment. A comment directly above a block says
what is special about it:

    <!-- not run: REASON -->    commands that a test cannot run
    <!-- file: NAME -->         the block is written to that file before the page runs
    <!-- printed -->            every line of the block is printed by the commands above it

Any other comment there is a fault of `pages`, so that none is misspelt in silence; so are
commands that could fail unnoticed, and names of files and targets that do not exist.

Prints page and line of what fails, and exits 1.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

BLOCK = re.compile(r"^(?:<!-- ([^\n]*?) -->\n)?```([^\n]*)\n(.*?)^```$", re.M | re.S)
COMMAND = re.compile(r"^\s*(?:\$ )?(?:\./\w|(?:export|cd|cmake|ninja|ctest|lit|mpirun|python3|bash|git|make)\s|dyna-\w|dynac |"
                     r"tools/|build[\w-]*/bin/)", re.M)
# Of `a && b` and `a || b` only the last command's failure ends a shell under -e, of `a &` none.
HIDES = re.compile(r"&&|\|\||&\s*$")
QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|#.*")
# Files of the source tree as pages name them: whole, or without the ending of a pair.
NAMED = re.compile(r"`((?:cmake|codegen|dialects|docs|frontends|passes|runtime|test|tools)/[\w./-]+)`")
PRESETS = re.compile(r"--preset[ =](\w+)")
TARGETS = re.compile(r"--target ([\w-]+)")
LANGUAGES = ("", "sh", "mlir", "text", "json", "cpp", "tablegen", "python")
# What a model is made of when a page trains it: all degrees that the pages use fit it.
SMALL = {"gpt2": {"n_embd": 8, "n_head": 4, "n_positions": 64},
         "llama": {"hidden_size": 16, "intermediate_size": 32, "num_attention_heads": 4, "num_key_value_heads": 2,
                   "max_position_embeddings": 64}}


def blocks(path):
    """(line, mark, language, text) of every fenced block."""
    text = pathlib.Path(path).read_text()
    for match in BLOCK.finditer(text):
        begin = match.start(2)
        yield text.count("\n", 0, begin) + 1, match.group(1) or "", match.group(2).strip(), match.group(3)


def check_mlir(pages):
    failures = count = 0
    for page in pages:
        for line, _, language, text in blocks(page):
            if language != "mlir":
                continue
            count += 1
            result = subprocess.run(["dyna-opt"], input=text, capture_output=True, text=True)
            if result.returncode != 0:
                failures += 1
                print(f"{page}:{line}: does not parse:\n{result.stderr}")
    print(f"{count} examples parsed, {failures} failed")
    return failures > 0 or count == 0


def prepare(work, root, build):
    """A folder that looks like the source tree to the commands of a page."""
    shutil.rmtree(work, ignore_errors=True)
    for folder in ("docs", "corpus", "heldout", "tmp"):
        (work / folder).mkdir(parents=True)
    (work / "build").symlink_to(build)
    (work / "tools").symlink_to(root.resolve() / "tools")
    shutil.copytree(root / "docs/examples", work / "docs/examples")
    for config in (work / "docs/examples").glob("*-tiny.json"):
        content = json.loads(config.read_text())
        content.update(SMALL[content["model_type"]])
        config.write_text(json.dumps(content))
    for page in (root / "docs").glob("*.md"):
        shutil.copy(page, work / "docs")
        shutil.copy(page, work / "corpus")
    for folder in (work, work / "heldout"):
        shutil.copy(root / "README.md", folder)


def run_page(page, work, root, build):
    work, root = pathlib.Path(work).resolve(), pathlib.Path(root)
    prepare(work, root, build)
    script = "set -euo pipefail\n"
    printed = []
    ran = skipped = 0
    for line, mark, language, text in blocks(page):
        if mark.startswith("file: "):
            (work / mark[len("file: "):]).write_text(text)
        elif mark == "printed":
            printed += [(line, ran, expected.strip()) for expected in text.splitlines() if expected.strip()]
        elif language == "sh" and mark.startswith("not run: "):
            skipped += 1
        elif language == "sh":
            ran += 1
            # `!` commands do not stop a shell under -e: make them.
            text = re.sub(r"^! (.*)$", r"if \1; then exit 1; fi", text, flags=re.M)
            script += f"echo '{page}:{line}'\n{text}"
    # Nothing that a reader would not have: a variable that a page forgot to set is missed.
    # Those of a sanitized build, which no reader has, are kept too.
    environment = {name: value for name, value in os.environ.items()
                   if name in ("HOME", "USER", "LANG", "OMPI_MCA_mca_base_env_list") or name.endswith("SAN_OPTIONS")}
    path = [folder for folder in os.environ["PATH"].split(":") if not os.path.exists(os.path.join(folder, "dynac"))]
    environment.update(PATH=":".join(path), TMPDIR=str(work / "tmp"), PYTHONDONTWRITEBYTECODE="1")
    result = subprocess.run(["bash", "-c", script], cwd=work, env=environment, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    missing = [f"{page}:{line}: not printed: {expected}" for line, _, expected in printed
               if expected not in [said.strip() for said in result.stdout.splitlines()]]
    failed = result.returncode != 0 or ran == 0 or bool(missing)
    # A fault is for people, beside the file check that reads the rest.
    print(result.stdout[-4000:], *missing, sep="\n", file=sys.stderr if failed else sys.stdout)
    print(f"{ran} blocks of commands run, {skipped} not run, exit code {result.returncode}")
    return failed


def check_pages(root):
    root = pathlib.Path(root)
    tests = "".join(path.read_text() for path in sorted((root / "test/docs").glob("*.test")))
    folders = [folder for folder in map(root.joinpath, ("cmake", "docs", "test", "tools")) if folder.is_dir()]
    lists = [root / "CMakeLists.txt", *(path for folder in folders for path in sorted(folder.rglob("*.txt")) + sorted(folder.rglob("*.cmake")))]
    targets = {"all", "install", *(name for path in lists if path.exists()
                                   for name in re.findall(r"add_custom_target\(\s*([\w-]+)", path.read_text()))}
    presets = (root / "CMakePresets.json").read_text()
    faults, reasons = [], []
    ran = 0
    for page in [root / "README.md", *sorted((root / "docs").rglob("*.md"))]:
        name = str(page.relative_to(root))
        fences = len(re.findall(r"^```", page.read_text(), re.M))
        here = list(blocks(page))
        if fences != 2 * len(here):
            faults.append(f"{name}: {fences} fences, but {len(here)} blocks: one is indented or never closed")
        is_run = False
        for line, mark, language, text in here:
            where = f"{name}:{line}"
            if language not in LANGUAGES:
                faults.append(f"{where}: a block of '{language}', expected one of {', '.join(LANGUAGES[1:])}")
            elif mark and not re.fullmatch(r"not run: .+|file: \S+|printed", mark):
                faults.append(f"{where}: '{mark}' means nothing; expected 'not run: REASON', 'file: NAME' or 'printed'")
            elif mark and (language == "sh") != mark.startswith("not run: "):
                faults.append(f"{where}: '{mark}' does not go with a block of '{language}'")
            elif mark.startswith("not run: "):
                reasons.append(f"{where}: {mark}")
            elif language == "sh":
                ran += 1
                is_run = True
                faults += [f"{name}:{line + number}: a failure in '{command}' would not be seen: one command a line"
                           for number, command in enumerate(text.splitlines(), 1) if HIDES.search(QUOTED.sub("", command))]
            elif language in ("", "text") and not mark.startswith("file: ") and COMMAND.search(text):
                faults.append(f"{where}: shows commands, but is no block of sh")
        if is_run and not re.search(rf"check_docs\.py run %dyna_src/{re.escape(name)} ", tests):
            faults.append(f"{name}: shows commands, but no test in test/docs runs them")
        for named in NAMED.findall(page.read_text()):
            if not (root / named).exists() and not list(root.glob(named + ".*")):
                faults.append(f"{name}: there is no {named}")
        for target in TARGETS.findall(page.read_text()):
            if target not in targets:
                faults.append(f"{name}: there is no target '{target}'")
        for preset in PRESETS.findall(page.read_text()):
            if f'"name": "{preset}"' not in presets:
                faults.append(f"{name}: there is no preset '{preset}'")
    print(*faults, *reasons, sep="\n")
    print(f"{ran} blocks of commands are run, {len(reasons)} are not and say why, {len(faults)} faults")
    return bool(faults) or ran == 0


if __name__ == "__main__":
    checks = {"mlir": lambda arguments: check_mlir(arguments), "run": lambda arguments: run_page(*arguments),
              "pages": lambda arguments: check_pages(*arguments)}
    sys.exit(checks[sys.argv[1]](sys.argv[2:]))
