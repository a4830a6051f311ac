"""A copy of the source tree that extensions change, and the table of files that they may touch."""
import difflib
import fnmatch
import pathlib
import re
import subprocess

# What is no part of the product: tests, the reference evaluator among them, and pages.
NOT_PRODUCT = ("test/", "docs/")
ROW = re.compile(r"^\| \*\*(?P<kind>[^*|]+)\*\*[^|]* \| (?P<count>\d+) \| (?P<files>[^|]*) \|", re.M)


class Fault(Exception):
    """Something that a person has to mend; the text says what."""


def is_product(path):
    return not path.startswith(NOT_PRODUCT)


class SourceCopy:
    """The files of a source tree, changed in memory and then written to a folder."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.files = {path: (self.root / path).read_bytes() for path in self._paths()}

    def _paths(self):
        """Files that git does not ignore; without git, all that lie in no build folder."""
        listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=self.root,
                                capture_output=True, text=True)
        if listed.returncode == 0 and listed.stdout:
            names = listed.stdout.split("\0")[:-1]
            return sorted(name for name in set(names) if (self.root / name).is_file())
        builds = [cache.parent for cache in self.root.glob("*/CMakeCache.txt")]
        return sorted(path.relative_to(self.root).as_posix() for path in self.root.rglob("*")
                      if path.is_file() and not any(build in path.parents for build in builds))

    def new(self, path, text):
        if path in self.files:
            raise Fault(f"{path} is to be new, but is there already")
        self.files[path] = text.encode()

    def replace(self, path, anchor, text):
        """The anchor must stand in the file once."""
        if path not in self.files:
            raise Fault(f"{path} is to be changed, but there is no such file")
        old = self.files[path].decode()
        if old.count(anchor) != 1:
            raise Fault(f"{path}: expects to find this once, but it is there {old.count(anchor)} times; "
                        f"change the scaffolding with the file:\n{anchor}")
        self.files[path] = old.replace(anchor, text).encode()

    def before(self, path, anchor, text):
        self.replace(path, anchor, text + anchor)

    def after(self, path, anchor, text):
        self.replace(path, anchor, anchor + text)

    def apply(self, extension):
        """The product files that it changes, and the whole change as a diff."""
        old = dict(self.files)
        extension.edit(self)
        changed = sorted(path for path in self.files if self.files[path] != old.get(path))
        diff = "".join("".join(difflib.unified_diff(
            old.get(path, b"").decode().splitlines(True), self.files[path].decode().splitlines(True),
            f"a/{path}" if path in old else "/dev/null", f"b/{path}")) for path in changed)
        return [path for path in changed if is_product(path)], diff

    def write(self, folder):
        """Touches only what differs from what lies there, so that builds go on from where they were."""
        folder = pathlib.Path(folder)
        there = folder / "files"
        known = set(there.read_text().splitlines()) if there.exists() else set()
        for path in known - set(self.files):
            (folder / "source" / path).unlink(missing_ok=True)
        for path, content in self.files.items():
            target = folder / "source" / path
            if target.exists() and target.read_bytes() == content:
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
            target.chmod((self.root / path).stat().st_mode if (self.root / path).exists() else 0o644)
        there.write_text("".join(f"{path}\n" for path in sorted(self.files)))


def table(copy, page="docs/contributing.md"):
    """Of each kind of extension that the page counts: how many files, and the patterns of their paths."""
    rows = {}
    for row in ROW.finditer(copy.files[page].decode()):
        patterns = [re.sub(r"<[^>]*>", "*", name) for name in re.findall(r"`([^`]*)`", row["files"])]
        rows[row["kind"]] = int(row["count"]), patterns
    return rows


def check_files(kind, touched, rows):
    if kind not in rows:
        raise Fault(f"docs/contributing.md says nothing of the files of '{kind}'")
    allowed, patterns = rows[kind]
    names = ", ".join(touched)
    if len(touched) > allowed:
        raise Fault(f"docs/contributing.md promises that '{kind}' touches {allowed} files, but it touches {len(touched)}: {names}")
    unnamed = [path for path in touched if not any(fnmatch.fnmatchcase(path, pattern) for pattern in patterns)]
    if unnamed:
        raise Fault(f"'{kind}' touches {', '.join(unnamed)}, but docs/contributing.md names {', '.join(patterns)}")
