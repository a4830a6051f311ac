#!/usr/bin/env bash
# Installs what is missing, builds, and runs the tests:
#   tools/test.sh [--all] [--build-dir DIR]
# Without --all the tests that take minutes (target `check`), with it every test
# (target `check-all`).
set -euo pipefail
here=$(pwd)
cd "$(dirname "$0")/.."

target=check
build=build
usage() {
  echo "usage: tools/test.sh [--all] [--build-dir DIR]" >&2
  exit 2
}
while [ $# -gt 0 ]; do
  case "$1" in
    --all) target=check-all ;;
    --build-dir) [ $# -ge 2 ] || usage; build=$2; case "$build" in /*) ;; *) build=$here/$build ;; esac; shift ;;
    *) usage ;;
  esac
  shift
done
tools/build.sh --build-dir "$build" all test-depends
cmake --build "$build" --target "$target"
