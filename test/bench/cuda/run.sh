#!/usr/bin/env bash
# Measures --target=cuda, on machines that have a GPU and nothing else of this project:
#   test/bench/cuda/run.sh --pack DIR [--build-dir DIR]   writes all that such a machine needs, here
#   DIR/run.sh [--out DIR] [--seconds N] [PART...]         runs it, there; --list: the parts
# Python 3 and a driver are all that is needed there; what PyTorch is compared with, if it is there.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if [ "${1:-}" = --pack ]; then
  shift
  exec python3 "$here/pack.py" "$@"
fi
exec python3 "$here/parts.py" "$@"
