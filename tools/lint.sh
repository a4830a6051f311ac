#!/usr/bin/env bash
# Checks format, layering, lit tests and (with --tidy) clang-tidy:
#   tools/lint.sh [--fix] [--tidy] [--build-dir DIR]
# The format is that of clang-format 22 (package clang-format-22), pinned so that two
# versions never fight over a line.
set -euo pipefail
cd "$(dirname "$0")/.."

fix=0
tidy=0
build=build
while [ $# -gt 0 ]; do
  case "$1" in
    --fix) fix=1 ;;
    --tidy) tidy=1 ;;
    --build-dir) build=${2:?--build-dir needs a folder}; shift ;;
    *) echo "usage: tools/lint.sh [--fix] [--tidy] [--build-dir DIR]" >&2; exit 2 ;;
  esac
  shift
done
formatter=$(command -v clang-format-22) || { echo "lint: install clang-format-22" >&2; exit 2; }
mapfile -t sources < <(git ls-files '*.cpp' '*.h')
if [ "$fix" = 1 ]; then
  "$formatter" -i "${sources[@]}"
else
  "$formatter" --dry-run -Werror "${sources[@]}"
fi
python3 test/lint/check_layering.py .
python3 test/lint/check_lit.py test
if [ "$tidy" = 1 ]; then
  run-clang-tidy-22 -quiet -p "$build" "$(pwd)/(dialects|passes|codegen|frontends|runtime|tools)/.*\.cpp$"
fi
