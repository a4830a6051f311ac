#!/usr/bin/env bash
# What tools/setup.sh --cuda does: puts nvcc, ptxas and the headers of CUDA into a folder
# of the user's cache, from NVIDIA's wheels, unless there is a toolkit already. They need
# no GPU and no driver. CMake finds the folder by itself; dynac by CUDA_HOME.
set -euo pipefail

# The wheels of one release, each in its latest fix.
release=13.0
wheels=(nvidia-cuda-nvcc==13.0.88 nvidia-nvvm==13.0.88 nvidia-cuda-crt==13.0.88 nvidia-cuda-runtime==13.0.96)
folder=${XDG_CACHE_HOME:-$HOME/.cache}/dyna/cuda-$release
root=$folder/nvidia/cu13

if [ -z "${DYNA_SETUP_CUDA_AGAIN:-}" ]; then
  for found in "${CUDA_HOME:-}" /usr/local/cuda "$root"; do
    if [ -n "$found" ] && [ -x "$found/bin/ptxas" ] && [ -f "$found/include/cuda.h" ]; then
      echo "setup: CUDA is in $found"
      exit 0
    fi
  done
fi
python3 -m pip --version >/dev/null 2>&1 || {
  echo "setup: needs pip to install CUDA: install python3-pip" >&2
  exit 2
}
echo "setup: installing CUDA $release in $root"
log=$(mktemp)
# Beside it first: a folder that is there is whole.
rm -rf "$folder.part"
python3 -m pip install --quiet --no-deps --target "$folder.part" "${wheels[@]}" >"$log" 2>&1 || {
  tail -n 5 "$log" >&2
  echo "setup: could not install ${wheels[*]}" >&2
  rm -rf "$folder.part" "$log"
  exit 2
}
rm -f "$log"
# As CMake looks for it; the wheel has the name of the version alone.
ln -sf libcudart.so.13 "$folder.part/nvidia/cu13/lib/libcudart.so"
rm -rf "$folder"
mv "$folder.part" "$folder"
"$root/bin/ptxas" --version | tail -n 1
echo "setup: for dynac, export CUDA_HOME=$root"
