"""Counts sentences that are too long and doc comments without a verb, and lets neither grow.

Usage: check_text.py ROOT [--update] [--list FOLDER]. A sentence has at most 25 words, in the comments of headers,
in the summaries and descriptions of .td files, in README.md and in the pages of docs/. A doc comment begins with a
verb or a noun phrase, not with a word that makes it a clause without a verb ("Of", "What", "Whether", ...).
test/lint/text_debt.json has the number of each that a folder may still have. More than that is an error. --update
lowers the numbers to what is there, and never raises one; --list prints the places of a folder.
"""
import json
import pathlib
import re
import sys

MOST_WORDS = 25
DEBT = pathlib.Path("test/lint/text_debt.json")
SOURCES = ["codegen", "dialects", "frontends", "passes", "runtime", "tools"]
# Such a beginning has no verb in nearly all cases; "What is" and "There is" can be said shorter.
VERBLESS = re.compile(r"(Of|What|Whether|That|Those|Who|Whose|The same|There is|There are)\b")
COMMENT = re.compile(r"^\s*(?:///?<?|.*?[;,{}]\s*///<)(?!/)\s?(.*)$")
DESCRIBED = re.compile(r'\b(?:description|summary) = (?:\[\{(.*?)\}\]|"((?:[^"\\]|\\.)*)")', re.S)
ENDS = re.compile(r"(?<=[.!?:;])\s+(?=[A-Z`(\"'])|\n\s*\n")


def sentences(text):
    """Sentences of a text: a line of a list or a heading is one of its own."""
    text = re.sub(r"^\s*(?:[-*]|\d+\.|\([A-Z]?\w\w?\))\s+", "\n\n", text, flags=re.M)
    return [" ".join(part.split()) for part in ENDS.split(text) if part.strip()]


def words(sentence):
    """Words that are read one by one; a piece of code or a link is one."""
    sentence = re.sub(r"`[^`]*`", "code", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", sentence))
    return [word for word in sentence.split() if re.search(r"\w", word)]


def comments(text):
    """(line, text, is it a doc comment) of each block of line comments of a header."""
    block, begin, isDoc = [], 0, False
    for number, line in enumerate([*text.split("\n"), ""], 1):
        found = COMMENT.match(line) if "//" in line else None
        own = found and "//=" not in line and "SPDX" not in line
        doc = bool(own and "///" in line)
        starts = own and block and (doc != isDoc or "///<" in line)
        if block and (not own or starts):
            yield begin, "\n".join(block), isDoc
            block = []
        if own:
            if not block:
                begin, isDoc = number, doc
            # Indented lines are code, pictures or tables.
            block.append("" if found[1].startswith("    ") else found[1])


def definitions(text):
    """(line, text) of each summary and description of a .td file."""
    for found in DESCRIBED.finditer(text):
        yield text.count("\n", 0, found.start()) + 1, page(found[1] or found[2] or "")


def page(text):
    """The sentences' text of a page: without code, tables, headings and pictures."""
    text = re.sub(r"^ *```.*?^ *```", "\n", text, flags=re.M | re.S)
    return "\n".join("" if re.match(r"\s*(\||#|!\[|<)", line) else line for line in text.split("\n"))


def faults(root):
    """(folder, kind, place, text) of all that is there."""
    for folder in SOURCES:
        for path in sorted((root / folder).rglob("*.h")):
            name = path.relative_to(root).as_posix()
            own = "/".join(path.relative_to(root).parent.parts[:2])
            for line, text, isDoc in comments(path.read_text(errors="replace")):
                if isDoc and VERBLESS.match(text):
                    yield own, "verbless", f"{name}:{line}", text.split("\n")[0]
                for sentence in sentences(text):
                    if len(words(sentence)) > MOST_WORDS:
                        yield own, "long", f"{name}:{line}", sentence
        for path in sorted((root / folder).rglob("*.td")):
            name = path.relative_to(root).as_posix()
            own = "/".join(path.relative_to(root).parent.parts[:2])
            for line, text in definitions(path.read_text(errors="replace")):
                for sentence in sentences(text):
                    if len(words(sentence)) > MOST_WORDS:
                        yield own, "long", f"{name}:{line}", sentence
    for path in [*root.glob("README.md"), *sorted((root / "docs").rglob("*.md"))]:
        name = path.relative_to(root).as_posix()
        own = "/".join(name.split("/")[:2]) if name.count("/") > 1 else "docs"
        for sentence in sentences(page(path.read_text(errors="replace"))):
            if len(words(sentence)) > MOST_WORDS:
                yield own, "long", name, sentence


def counts(root):
    found = {}
    for folder, kind, _, _ in faults(root):
        own = found.setdefault(folder, {})
        own[kind] = own.get(kind, 0) + 1
    return found


def complaints(found, allowed):
    """What is more than allowed."""
    return [f"{folder}: {own[kind]} {text}, at most {allowed.get(folder, {}).get(kind, 0)}: write the new ones otherwise "
            f"(check_text.py . --list {folder})"
            for folder, own in sorted(found.items())
            for kind, text in [("verbless", "doc comments without a verb"), ("long", f"sentences above {MOST_WORDS} words")]
            if own.get(kind, 0) > allowed.get(folder, {}).get(kind, 0)]


def lowered(found, allowed):
    """The smaller of both numbers, in every place."""
    kept = {folder: {kind: min(number, found.get(folder, {}).get(kind, 0)) for kind, number in own.items()}
            for folder, own in allowed.items()}
    return {folder: {kind: number for kind, number in sorted(own.items()) if number}
            for folder, own in sorted(kept.items()) if any(own.values())}


def main(arguments):
    root = pathlib.Path(arguments[0])
    if "--list" in arguments:
        wanted = arguments[arguments.index("--list") + 1]
        for folder, kind, place, text in faults(root):
            if folder == wanted:
                print(f"{place}: {kind}: {text[:160]}")
        return 0
    debt = root / DEBT
    allowed = json.loads(debt.read_text()) if debt.exists() else {}
    found = counts(root)
    if "--update" in arguments:
        debt.write_text(json.dumps(lowered(found, allowed), indent=1) + "\n")
    bad = complaints(found, allowed)
    total = {kind: sum(own.get(kind, 0) for own in found.values()) for kind in ("verbless", "long")}
    print("\n".join(bad) if bad else f"no folder has more long sentences ({total['long']}) or doc comments without a verb "
                                     f"({total['verbless']}) than it had")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
