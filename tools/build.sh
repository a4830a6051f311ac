#!/usr/bin/env bash
# Installs what is missing and builds Dyna: tools/build.sh [--build-dir DIR] [TARGET...]
set -euo pipefail
here=$(pwd)
cd "$(dirname "$0")/.."

build=build
case "${1:-}" in -h | --help)
  echo "usage: tools/build.sh [--build-dir DIR] [TARGET...]"
  exit 0
  ;;
esac
if [ "${1:-}" = --build-dir ]; then
  [ $# -ge 2 ] || {
    echo "usage: tools/build.sh [--build-dir DIR] [TARGET...]" >&2
    exit 2
  }
  build=$2
  case "$build" in /*) ;; *) build=$here/$build ;; esac
  shift 2
fi
tools/setup.sh
if [ ! -f "$build/build.ninja" ]; then
  log=$(mktemp)
  cmake --preset release -B "$build" >"$log" 2>&1 || {
    cat "$log" >&2
    exit 1
  }
  rm -f "$log"
fi
cmake --build "$build" --target "${@:-all}"
