#!/usr/bin/env bash
# What tools/setup.sh --cuda does: puts nvcc, ptxas and the headers of CUDA, and those of
# cuDNN, its frontend and CUPTI, into folders of the user's cache, from NVIDIA's wheels, unless
# they are in a toolkit already. They need no GPU and no driver. CMake finds the folders by
# itself; dynac that of the toolkit by CUDA_HOME.
set -euo pipefail

# The wheels of one release, each in its latest fix.
release=13.0
toolkit_wheels=(nvidia-cuda-nvcc==13.0.88 nvidia-nvvm==13.0.88 nvidia-cuda-crt==13.0.88 nvidia-cuda-runtime==13.0.96)
# The library is what tests make plans with; of nvrtc the header alone stays.
cudnn_wheels=(nvidia-cudnn-cu13==9.19.1.2 nvidia-cuda-nvrtc==13.0.88)
frontend_wheel=nvidia-cudnn-frontend==1.32.0
cupti_wheel=nvidia-cuda-cupti==13.0.85
cache=${XDG_CACHE_HOME:-$HOME/.cache}/dyna
root=$cache/cuda-$release/nvidia/cu13

# fetch FOLDER WHEEL...: beside it first, so that a folder that is there is whole.
# `keep PART` makes the last changes to it.
fetch() {
  local folder=$1 log
  shift
  python3 -m pip --version >/dev/null 2>&1 || {
    echo "setup: needs pip to install CUDA: install python3-pip" >&2
    exit 2
  }
  echo "setup: installing $* in $folder"
  log=$(mktemp)
  rm -rf "$folder.part"
  python3 -m pip install --quiet --no-deps --target "$folder.part" "$@" >"$log" 2>&1 || {
    tail -n 5 "$log" >&2
    echo "setup: could not install $*" >&2
    rm -rf "$folder.part" "$log"
    exit 2
  }
  rm -f "$log"
  keep "$folder.part"
  rm -rf "$folder"
  mv "$folder.part" "$folder"
}

found=
if [ -z "${DYNA_SETUP_CUDA_AGAIN:-}" ]; then
  for place in "${CUDA_HOME:-}" /usr/local/cuda "$root"; do
    if [ -n "$place" ] && [ -x "$place/bin/ptxas" ] && [ -f "$place/include/cuda.h" ]; then
      found=$place
      break
    fi
  done
fi
if [ -n "$found" ]; then
  echo "setup: CUDA is in $found"
else
  # As CMake looks for it; the wheel has the name of the version alone.
  keep() { ln -sf libcudart.so.13 "$1/nvidia/cu13/lib/libcudart.so"; }
  fetch "$cache/cuda-$release" "${toolkit_wheels[@]}"
  "$root/bin/ptxas" --version | tail -n 1
  echo "setup: for dynac, export CUDA_HOME=$root"
fi

if [ -f "$found/include/cudnn.h" ] && [ -f "$found/include/nvrtc.h" ] || [ -d "$cache/cudnn-9.19" ]; then
  echo "setup: cuDNN is there"
else
  keep() { rm -rf "$1/nvidia/cu13/lib"; }
  fetch "$cache/cudnn-9.19" "${cudnn_wheels[@]}"
fi
if [ -f "$found/include/cudnn_frontend.h" ] || [ -d "$cache/cudnn-frontend-1.32" ]; then
  echo "setup: cuDNN's frontend is there"
else
  keep() { find "$1" -mindepth 1 -maxdepth 1 ! -name include ! -name '*.dist-info' -exec rm -rf {} +; }
  fetch "$cache/cudnn-frontend-1.32" "$frontend_wheel"
fi
if [ -f "$found/include/cupti.h" ] || [ -d "$cache/cupti-$release" ]; then
  echo "setup: CUPTI is there"
else
  keep() { rm -rf "$1/nvidia/cu13/lib"; }
  fetch "$cache/cupti-$release" "$cupti_wheel"
fi
