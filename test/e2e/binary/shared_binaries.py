# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Training binaries that several scripts ask for are compiled once per build.

What `dynac` made lies under DYNA_BUILD/test/e2e/shared, in a folder for the tools and
runtime libraries that it was made by, named after the module's text and the flags.
Whoever asks gets a copy of its own. Scripts that run at once wait for each other.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import pathlib
import shutil
import subprocess

BUILD = pathlib.Path(os.environ["DYNA_BUILD"])
FOLDER = BUILD / "test" / "e2e" / "shared"


def toolchain(dynac):
    """Changes when anything does that a binary is made by."""
    places = {pathlib.Path(dynac).resolve().parent.parent, BUILD}
    made_by = [pathlib.Path(dynac), *(place / "bin" / "dynac" for place in places)]
    for place in places:
        made_by += sorted((place / "lib").glob("*"))
    stamps = [(str(file), file.stat().st_mtime_ns, file.stat().st_size) for file in made_by if file.is_file()]
    return hashlib.sha256(json.dumps(stamps).encode()).hexdigest()[:16]


@contextlib.contextmanager
def locked(path):
    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def compile_binary(dynac, module, path, flags):
    """Puts the training binary of a module, compiled with `flags`, at `path`. No flag names a file."""
    made_by = toolchain(dynac)
    folder = FOLDER / made_by
    FOLDER.mkdir(parents=True, exist_ok=True)
    with locked(FOLDER / "lock"):
        for other in FOLDER.iterdir():
            if other.is_dir() and other.name != made_by:
                shutil.rmtree(other, ignore_errors=True)
        folder.mkdir(exist_ok=True)
    flags = [str(flag) for flag in flags]
    if any("/" in flag for flag in flags):
        raise ValueError(f"what is in a file is not known by its name: {flags}")
    key = hashlib.sha256(json.dumps([module.name, module.read_text(), flags]).encode()).hexdigest()[:24]
    with locked(folder / f"{key}.lock"):
        made = folder / key
        if not made.exists():
            command = [str(dynac), str(module), "-o", str(path), *flags]
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            if done.returncode != 0:
                raise AssertionError(f"{' '.join(command)}\nended with {done.returncode}:\n{done.stderr}{done.stdout}")
            unfinished = folder / f"{key}.part"
            shutil.copy2(path, unfinished)
            unfinished.rename(made)
        else:
            path.unlink(missing_ok=True)
            shutil.copy2(made, path)
    return path
