#!/usr/bin/env bash
# Measures --target=cuda, on machines that have a GPU and nothing else of this project:
#   test/bench/cuda/run.sh --pack DIR [--build-dir DIR]   writes all that such a machine needs, here
#   DIR/run.sh [--out DIR] [--seconds N] [PART...]         runs it, there; --list: the parts
# Python 3.8, a driver and glibc 2.34 (Ubuntu 22.04, Debian 12) are all that is needed there; what PyTorch is compared with, if it is there.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if [ "${1:-}" = --pack ]; then
  shift
  exec python3 "$here/pack.py" "$@"
fi
if ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 8))' 2>/dev/null; then
  echo "run.sh: needs Python 3.8 or newer as python3: $(python3 --version 2>&1 | head -n 1)" >&2
  exit 2
fi
exec python3 "$here/parts.py" "$@"
