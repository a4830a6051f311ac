"""Puts what a GPU machine needs into one folder: test/bench/cuda/run.sh --pack DIR [--build-dir DIR]

Training binaries of --target=cuda (the golden models in all types, and those of MODELS in bf16, with what their kernels move), the golden files,
the conformance suites over real kernels, lengths of real data, and the scripts that run them. Under 60 MB, which is
checked: such machines are lent for minutes, and the folder travels first. What is compiled goes into one archive, since
all of it has the same runtime, and the same kernels four times over.
"""
import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path[:0] = [str(HERE), str(HERE.parent)]
import floors  # noqa: E402
from train_step import real_lengths  # noqa: E402

LIMIT = 60 * 2**20


def gpt(width, layers, heads):
    return {"model_type": "gpt2", "vocab_size": 50257, "n_positions": 4096, "n_embd": width, "n_layer": layers,
            "n_head": heads, "activation_function": "gelu_new", "resid_pdrop": 0.0, "embd_pdrop": 0.0,
            "attn_pdrop": 0.0, "tie_word_embeddings": True}


# GPT-2's own sizes, and GPT-3's of 1.3 billion.
MODELS = {"124m": gpt(768, 12, 12), "350m": gpt(1024, 24, 16), "1.3b": gpt(2048, 24, 16)}
# For tests of these scripts, on emulated kernels.
TINY = {"tiny": {**gpt(32, 2, 2), "vocab_size": 300, "n_positions": 64}}


def run(*command):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        sys.exit(f"pack: {' '.join(map(str, command))}\nended with {done.returncode}:\n{done.stdout}")


def compile_model(name, config, folder, binaries, tools, target):
    """The binary, its configuration, and what code generation says of its kernels, of the same compilation."""
    text, module, binary, dump = folder / f"{name}.json", binaries / f"{name}.mlir", binaries / f"train-{name}", binaries / "dump"
    text.write_text(json.dumps(config))
    run(tools / "dyna-translate", "--gpt2", text, "-o", module)
    run(tools / "dynac", module, "-o", binary, "--compute-type=bf16", "--dump-dir", dump, *target)
    kernels = floors.kernels_of((dump / "lower.mlir").read_text(), (dump / "memory.mlir").read_text())
    # By these names the driver finds them, and a probe sees them.
    contents = binary.read_bytes()
    absent = [kernel for kernel in kernels["row_bytes"] if kernel.encode() + b"\0" not in contents]
    if absent or not floors.calls_of_step(kernels):
        sys.exit(f"pack: of the kernels whose bytes dynac tells, {binary.name} lacks {absent or 'all of a step'}")
    (folder / f"{name}.kernels.json").write_text(json.dumps(kernels))
    module.unlink()
    shutil.rmtree(dump)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path, help="is made, or filled again")
    parser.add_argument("--build-dir", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--arch", default="sm_80,sm_90,sm_100", help="as dynac's; emulated: tiny models, for tests of these scripts")
    parser.add_argument("--types", default="f64,f32,bf16", help="of the golden models")
    options = parser.parse_args()
    begin = time.monotonic()
    folder, tools = options.folder, options.build_dir / "bin"
    target = ["--target=cuda", f"--arch={options.arch}"]
    emulated = options.arch == "emulated"
    absent = [name for name in ("dyna-translate", "dynac") if not (tools / name).exists()]
    if absent:
        parser.error(f"{tools} has no {' and no '.join(absent)}: build first, or say by --build-dir where")
    folder.mkdir(parents=True, exist_ok=True)
    scratch = tempfile.TemporaryDirectory()
    binaries = pathlib.Path(scratch.name)

    for name, config in (TINY if emulated else MODELS).items():
        compile_model(name, config, folder, binaries, tools, target)

    golden = folder / "golden"
    golden.mkdir(exist_ok=True)
    for file in (ROOT / "test/golden").iterdir():
        if file.suffix in (".json", ".bin", ".idx"):
            shutil.copy(file, golden)
    run(sys.executable, ROOT / "test/e2e/golden/compare_golden.py", "--dynac", tools / "dynac", "--golden",
        ROOT / "test/golden", "--work", binaries / "golden", "--compile-only", "--types", options.types, *(f"--dynac-flag={flag}" for flag in target))

    suites = tools / ("device_cuda_conformance_test" if emulated else "device_cuda_gpu_test")
    if suites.exists():
        shutil.copy(suites, binaries / "suites")
    attention = tools / ("bench_cuda_attention_emulated" if emulated else "bench_cuda_attention")
    if attention.exists():
        shutil.copy(attention, binaries / "attention")
    probe = tools / "libdyna_kernel_probe.so"
    if probe.exists():
        shutil.copy(probe, binaries / "probe.so")
    with tarfile.open(folder / "binaries.tar.xz", "w:xz", preset=3) as archive:
        archive.add(binaries, "binaries")
    lengths, source = real_lengths(4000, cut=4096)
    (folder / "lengths.txt").write_text("\n".join(map(str, lengths)) + "\n")
    for file in (HERE / "run.sh", HERE / "parts.py", HERE / "activity.py", HERE / "floors.py", HERE.parent / "peers/torch_train.py",
                 HERE.parent / "peers/torch_attention.py", ROOT / "test/e2e/golden/compare_golden.py"):
        shutil.copy(file, folder)
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    if size > LIMIT:
        sys.exit(f"pack: {folder} has {size / 2**20:.0f} MiB, more than the {LIMIT / 2**20:.0f} that are to travel")
    print(json.dumps({"what": "cuda.pack", "folder": str(folder), "mib": round(size / 2**20, 1), "lengths": source,
                      "suites": suites.exists(), "seconds": round(time.monotonic() - begin, 1)}))


if __name__ == "__main__":
    main()
