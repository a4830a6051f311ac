"""Extends a copy of the source tree by one of each kind of docs/contributing.md, builds it and runs what is new.

    scaffold_test.py ROOT WORK [--only KIND]... [--no-compiler] [--cmake F] [--c-compiler F] [--cxx-compiler F] [--lit F]

Every extension changes files of its own accord; how many of the product, the page's table says, and so many at most
they may be. All stand in one copy, WORK/source, with one build; WORK/KIND.diff has the change of each. WORK stays, so
that the next run builds only what has changed.
"""
import argparse
import pathlib
import re
import subprocess
import sys
import time

sys.dont_write_bytecode = True
from extensions import EXTENSIONS  # noqa: E402
from source_copy import Fault, SourceCopy, check_files, table  # noqa: E402


class Build:
    def __init__(self, work, options):
        self.work, self.options = work, options
        self.source, self.folder = work / "source", work / "source/build"

    def run(self, command, **more):
        return subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, cwd=self.work, **more)

    def must(self, command):
        done = self.run(command)
        if done.returncode != 0:
            raise Fault(f"{' '.join(map(str, command))} ends with {done.returncode}:\n{done.stdout[-6000:]}")
        return done.stdout

    def make(self, targets):
        if not (self.folder / "build.ninja").exists():
            self.must([self.options.cmake, "-S", self.source, "-B", self.folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                       f"-DCMAKE_C_COMPILER={self.options.c_compiler}", f"-DCMAKE_CXX_COMPILER={self.options.cxx_compiler}"])
        self.must([self.options.cmake, "--build", self.folder, "--target", *targets])

    def tool(self, name):
        return self.folder / "bin" / name

    def check(self, holds, what):
        if not holds:
            raise Fault(what)

    def expect(self, command, text, fails=False):
        done = self.run([self.tool(command[0]), *command[1:]])
        words = " ".join(done.stdout.split())  # help breaks lines
        self.check((done.returncode != 0) == fails and text in words,
                   f"{' '.join(map(str, command))} ends with {done.returncode}, expects '{text}' in:\n{done.stdout[-6000:]}")

    def gtest(self, binary, only="*", at_least=1):
        """A filter that fits nothing passes too, so what has passed is counted."""
        out = self.must([self.tool(binary), f"--gtest_filter={only}", "--gtest_brief=1"])
        passed = re.search(r"\[  PASSED  \] (\d+) test", out)
        self.check(passed and int(passed[1]) >= at_least, f"{binary} --gtest_filter={only}: expects {at_least} tests, got\n{out[-2000:]}")

    def lit(self, *paths):
        self.must([sys.executable, self.options.lit, "-v", *(self.folder / path for path in paths)])

    def walk_passes(self, name):
        """It is found without being told of, and runs over every module under test/."""
        out = self.must([sys.executable, self.source / "test/passes/walk_passes.py", self.source / "test",
                         "--opt", self.tool("dyna-opt"), "--only", name])
        self.check("forms of 1 passes" in out, out)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", type=pathlib.Path)
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("--only", action="append", metavar="KIND", help="of these kinds alone")
    parser.add_argument("--no-compiler", action="store_true", help="only what the runtime's tests try")
    parser.add_argument("--cmake", default="cmake")
    parser.add_argument("--c-compiler", default="clang-22")
    parser.add_argument("--cxx-compiler", default="clang++-22")
    parser.add_argument("--lit", default="/usr/lib/llvm-22/bin/lit")
    options = parser.parse_args()
    work = options.work.resolve()
    work.mkdir(parents=True, exist_ok=True)

    copy, build = SourceCopy(options.root.resolve()), Build(work, options)
    rows = table(copy)
    chosen = [extension for extension in EXTENSIONS if not options.only or extension.kind in options.only]
    for extension in chosen:
        touched, diff = copy.apply(extension)
        (work / f"{extension.kind.replace(' ', '-')}.diff").write_text(diff)
        check_files(extension.kind, touched, rows)
        print(f"{extension.kind}: {len(touched)} of {rows[extension.kind][0]} files: {', '.join(touched)}", flush=True)
    copy.write(work)

    # What a target needs of the compiler is built last: runtime faults are seen sooner.
    for part in ["runtime"] + ([] if options.no_compiler else ["compiler"]):
        targets = sorted({target for extension in chosen
                          for target in (extension.targets if part == "runtime" else extension.compiler_targets)})
        if not targets:
            continue
        begin = time.monotonic()
        build.make(targets)
        print(f"built {', '.join(targets)} in {time.monotonic() - begin:.0f} s", flush=True)
        for extension in chosen:
            begin = time.monotonic()
            (extension.try_runtime if part == "runtime" else extension.try_compiler)(build)
            print(f"{extension.kind}: tried in {time.monotonic() - begin:.0f} s", flush=True)


if __name__ == "__main__":
    try:
        main()
    except Fault as fault:
        sys.exit(f"scaffold: {fault}")
