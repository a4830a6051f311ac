"""check_docs.py notices each kind of fault in a page, and accepts pages without one."""
import contextlib
import io
import pathlib
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parent))
import check_docs  # noqa: E402

SH = "```sh\n{}\n```\n"
GOOD = SH.format("echo said")
CASES = [  # (text of the page, a word of what `pages` says, a word of what `run` says; None: accepted)
    (GOOD, None, None),
    (GOOD + "<!-- printed -->\n```text\nsaid\n```\n", None, None),
    (GOOD + "<!-- printed -->\n```text\nunsaid\n```\n", None, "not printed: unsaid"),
    ("<!-- file: made -->\n```text\nmade\n```\n" + SH.format("grep made made"), None, None),
    (GOOD + "<!-- not run: it is slow -->\n" + SH.format("false"), None, None),
    (GOOD + "<!-- not run: -->\n" + SH.format("false"), "means nothing", "exit code 1"),
    (GOOD + "<!-- prined -->\n```text\nunsaid\n```\n", "'prined' means nothing", None),
    (GOOD + "<!-- printed -->\n" + SH.format("false"), "does not go with a block of 'sh'", "not printed: false"),
    (GOOD + "<!-- not run: it is text -->\n```text\nx\n```\n", "does not go with a block of 'text'", None),
    (SH.format("false\ntrue"), None, "exit code 1"),
    (SH.format("false | cat\ntrue"), None, "exit code 1"),
    (SH.format("! true\ntrue"), None, "exit code 1"),
    (SH.format("! false"), None, None),
    (SH.format("echo $UNSET"), None, "exit code 1"),
    # Neither ends a shell: what is left of them must not be written.
    (SH.format("false && true\ntrue"), "would not be seen", None),
    (SH.format("false || true"), "would not be seen", None),
    (SH.format("false &\ntrue"), "would not be seen", None),
    (SH.format("echo 'a && b' \"c || d\"    # and && so &"), None, None),
    (GOOD + "```\ncmake --preset release\n```\n", "shows commands", None),
    (GOOD + "```text\n$ dynac gpt.mlir\n```\n", "shows commands", None),
    (GOOD + "```bash\nfalse\n```\n", "a block of 'bash'", None),
    (GOOD + "- a list\n  ```sh\n  false\n  ```\n```\n", "never closed", None),
    (GOOD + "See `docs/page.md`, `docs/page`.\n", None, None),
    (GOOD + "See `docs/pages.md`.\n", "there is no docs/pages.md", None),
    (GOOD + "`cmake --build build --target made`\n", None, None),
    (GOOD + "`cmake --build build --target unmade`\n", "no target 'unmade'", None),
    (GOOD + "`cmake --preset release`\n", None, None),
    (GOOD + "`cmake --preset realese`\n", "no preset 'realese'", None),
    # A page that shows nothing cannot be run, and need not be.
    ("Words.\n", "0 blocks of commands are run", "0 blocks of commands run"),
]


def make_tree(root, text):
    for folder in ("docs/examples", "test/docs", "build/bin"):
        (root / folder).mkdir(parents=True)
    (root / "README.md").write_text("Words.\n")
    (root / "CMakeLists.txt").write_text("add_custom_target(made)\n")
    (root / "CMakePresets.json").write_text('{"name": "release"}')
    (root / "docs/page.md").write_text(text)
    (root / "test/docs/page.test").write_text("# RUN: check_docs.py run %dyna_src/docs/page.md %t\n")


def said(check):
    """Whether the check failed, and what it printed."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        failed = check()
    return failed, out.getvalue()


failures = 0


def expect(what, word, check):
    global failures
    failed, text = said(check)
    if failed != (word is not None) or (word or "") not in text:
        failures += 1
        print(f"{what}: expected {word or 'no fault'}, but it {'failed' if failed else 'passed'} and said:\n{text}")


for text, of_pages, of_run in CASES:
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        make_tree(root, text)
        expect(f"pages of {text!r}", of_pages, lambda: check_docs.check_pages(root))
        expect(f"run of {text!r}", of_run, lambda: check_docs.run_page(root / "docs/page.md", root / "work", root, root / "build"))

with tempfile.TemporaryDirectory() as folder:
    root = pathlib.Path(folder)
    make_tree(root, GOOD)
    (root / "test/docs/page.test").unlink()
    expect("a page without a test", "no test in test/docs runs them", lambda: check_docs.check_pages(root))
sys.exit(failures)
