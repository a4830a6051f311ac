#!/usr/bin/env bash
# Checks format, files, layering, lengths of functions, limits of time in tests, lit tests, text and
# (with --tidy) clang-tidy:
#   tools/lint.sh [--fix] [--tidy] [--build-dir DIR] [--jobs N]
# The format is that of clang-format 22 (package clang-format-22), pinned so that two
# versions never fight over a line. --tidy reads the compile commands of a build whose
# generated headers exist; it takes about as long as a build from nothing.
set -euo pipefail
build=build
fix=0
tidy=0
jobs=$(nproc)
usage() {
  echo "usage: tools/lint.sh [--fix] [--tidy] [--build-dir DIR] [--jobs N]" >&2
  exit 2
}
while [ $# -gt 0 ]; do
  case "$1" in
    --fix) fix=1 ;;
    --tidy) tidy=1 ;;
    --build-dir) [ $# -ge 2 ] || usage; build=$2; shift ;;
    --jobs) [ $# -ge 2 ] || usage; jobs=$2; shift ;;
    *) usage ;;
  esac
  shift
done
cd "$(dirname "$0")/.."

# Not `git ls-files`: a file is checked before it is added, and without git too.
mapfile -t sources < <(find dialects passes codegen frontends runtime tools test \
  -type f \( -name '*.cpp' -o -name '*.h' -o -name '*.cu' \) | sort)
[ ${#sources[@]} -gt 0 ] || { echo "lint: no sources below $(pwd)" >&2; exit 2; }

# Everything is checked before the first fault ends the script.
failed=0
formatter=$(command -v clang-format-22) || { echo "lint: install clang-format-22" >&2; exit 2; }
if [ "$fix" = 1 ]; then
  "$formatter" -i "${sources[@]}"
else
  "$formatter" --dry-run -Werror "${sources[@]}" || failed=1
fi
python3 test/lint/check_files.py . || failed=1
python3 test/lint/check_layering.py . || failed=1
python3 test/lint/check_lengths.py . || failed=1
python3 test/lint/check_limits.py . || failed=1
python3 test/lint/check_lit.py test || failed=1
python3 test/lint/check_text.py . || failed=1
if [ "$tidy" = 1 ]; then
  command -v run-clang-tidy-22 >/dev/null || { echo "lint: install clang-tidy-22" >&2; exit 2; }
  # Without commands for this tree every file would pass unread.
  grep -qs "\"file\": \"$(pwd)/runtime/" "$build/compile_commands.json" || {
    echo "lint: $build holds no compile commands of $(pwd)" >&2
    exit 2
  }
  run-clang-tidy-22 -quiet -hide-progress -j "$jobs" -p "$build" \
    "$(pwd)/(dialects|passes|codegen|frontends|runtime|tools)/.*\.cpp$" || failed=1
fi
exit "$failed"
