# Configuration of the lit tests: what %tools exist and which hardware is there.
import os
import shutil
import sys

import lit.formats
import lit.llvm

lit.llvm.initialize(lit_config, config)
from lit.llvm import llvm_config

config.name = "Dyna"
config.test_format = lit.formats.ShTest(not lit.llvm.llvm_config.use_lit_shell)
config.suffixes = [".mlir", ".test"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.dyna_obj_root, "test")
config.excludes = ["Inputs", "CMakeLists.txt", "lit.cfg.py", "lit.site.cfg.py"]

# A captured variable of one function never leaks into the next.
config.environment["FILECHECK_OPTS"] = "-enable-var-scope --allow-unused-prefixes=false"
config.substitutions.append(("%python", f"{sys.executable} -B"))
config.substitutions.append(("%dyna_src", config.dyna_src_root))
config.substitutions.append(("%dyna_obj", config.dyna_obj_root))

llvm_config.with_environment("PATH", config.dyna_tools_dir, append_path=True)
llvm_config.with_environment("PATH", config.llvm_tools_dir, append_path=True)

# Once per full run everything again, each module also through print and parse.
if lit_config.params.get("roundtrip"):
    config.substitutions.append(
        (r"(?<![\w/.-])dyna-opt(?=\s)(?!.*--verify-roundtrip)", "dyna-opt --verify-roundtrip"))

# `UNSUPPORTED: asan`, for what measures or limits memory.
for sanitizer, feature in (("address", "asan"), ("undefined", "ubsan"), ("thread", "tsan")):
    if sanitizer in config.dyna_sanitizers:
        config.available_features.add(feature)
# What mpirun gives its processes there (sanitizers/environment.cmake.in).
llvm_config.with_system_environment(["OMPI_MCA_mca_base_env_list"])
# The assembler of kernels, where codegen/cuda finds it.
for ptxas in (os.path.join(os.environ.get("CUDA_HOME", "-"), "bin/ptxas"), shutil.which("ptxas"),
              "/usr/local/cuda/bin/ptxas"):
    if ptxas and os.access(ptxas, os.X_OK):
        config.available_features.add("ptxas")
        config.substitutions.append(("%ptxas", ptxas))
        break
if os.path.exists(os.path.join(config.dyna_obj_root, "standins/cuda/libcupti.so.13")):
    config.available_features.add("cupti")
if shutil.which("nvidia-smi"):
    config.available_features.add("gpu")
if os.path.exists(os.path.join(config.dyna_src_root, "../shared/data")):
    config.available_features.add("shared-data")
