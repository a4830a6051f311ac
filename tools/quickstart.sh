#!/usr/bin/env bash
# Installs what is missing, builds Dyna, compiles a GPT to a native binary and trains it
# on real text:
#   tools/quickstart.sh [--data PATH] [--steps N] [--model CONFIG.json] [--out DIR]
#                       [--build-dir DIR] [--no-build]
# PATH is a text file, a folder of them, a .jsonl file or a Megatron-LM .idx/.bin prefix,
# or several of them with commas in between; the default is cut from a tree that every
# machine has after set-up: the comments, functions and classes in the C++ headers of
# LLVM, most of them short and some very long. CONFIG.json is a HuggingFace GPT-2 or LLaMA
# configuration. Paths are those of the folder the script is called from. --no-build
# takes the tools in the build folder as they are.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
here=$(pwd)

usage="usage: tools/quickstart.sh [--data PATH] [--steps N] [--model CONFIG.json] [--out DIR] [--build-dir DIR] [--no-build]"
complain() { echo "quickstart: $1" >&2; exit 2; }
absolute() { case "$1" in /*) echo "$1" ;; *) echo "$here/$1" ;; esac; }
absolute_list() {
  local rest="$1," result=
  while [ -n "$rest" ]; do
    result+=,$(absolute "${rest%%,*}")
    rest=${rest#*,} # each ends in a comma, the last one too
  done
  echo "${result#,}"
}
data=
builds=1
steps=70
model=$root/docs/examples/gpt-tiny.json
out=$root/quickstart
build=$root/build
while [ $# -gt 0 ]; do
  case "$1" in
    --?*=*) set -- "${1%%=*}" "${1#*=}" "${@:2}" ;;
  esac
  case "$1" in
    -h|--help) echo "$usage"; exit 0 ;;
    --no-build) builds=0; shift; continue ;;
    --data|--steps|--model|--out|--build-dir)
      [ $# -ge 2 ] && [ -n "$2" ] || complain "$1 needs a value; $usage" ;;
    *) complain "unknown option '$1'; $usage" ;;
  esac
  case "$1" in
    --data) data=$(absolute_list "$2") ;;
    --steps) steps=$2 ;;
    --model) model=$(absolute "$2") ;;
    --out) out=$(absolute "$2") ;;
    --build-dir) build=$(absolute "$2") ;;
  esac
  shift 2
done
case "$steps" in ''|*[!0-9]*|0) complain "--steps expects a positive number, but got '$steps'" ;; esac
[ -f "$model" ] || complain "no model configuration at '$model'"
IFS=, read -ra sources <<<"$data"
for source in ${sources[@]+"${sources[@]}"}; do
  [ -e "$source" ] || [ -e "$source.idx" ] || complain "no data at '$source'"
done

# Building the tools is enough: the tests have a script of their own.
if [ "$builds" = 1 ]; then
  "$root/tools/build.sh" --build-dir "$build" quickstart-tools
elif [ ! -x "$build/bin/dynac" ]; then
  complain "no tools in '$build/bin': leave out --no-build, or name the build with --build-dir"
fi
# A folder for each run: no run meets the checkpoints of another.
out=$out/$(date +%Y%m%d-%H%M%S)
mkdir -p "$out"
out=$(cd "$out" && pwd)
echo "quickstart: compiling $(basename "$model")"
"$build/bin/dyna-translate" --from-config "$model" -o "$out/model.mlir"
"$build/bin/dynac" "$out/model.mlir" -o "$out/train" --compute-type=f32
if [ -z "$data" ]; then
  data=$out/records.jsonl
  python3 "$root/tools/header-records.py" /usr/lib/llvm-22/include "$data"
fi
echo "quickstart: training on $data"
cd "$out"
# One text file is one document, of which none can be held out.
held_out=(--held-out-fraction 0.02)
few_held_out=(--held-out-tokens 1)
if [ "${#sources[@]}" = 1 ] && [ -f "${sources[0]}" ]; then
  case "${sources[0]}" in
    *.jsonl|*.idx|*.bin) ;;
    *) held_out=() few_held_out=() ;;
  esac
fi
train() {
  ./train --data "$data" ${held_out[@]+"${held_out[@]}"} --tokens-per-batch 16384 --tokens-per-micro-batch 4096 \
    --schedule-steps "$steps" --lr 1e-3 "$@"
}
train --seed 1 --steps "$steps" ${held_out[@]+--held-out-tokens 131072} --metrics "$out/metrics.jsonl" --save "$out/checkpoints" \
  --trace "$out/trace.json" --trace-steps 2

# What planning for lengths brings: a few steps as they are, and the same samples padded to
# the longest of their micro-batch. A machine has other work, which comes and goes: the runs
# of a pair follow each other, each pair in the other order than the one before, on samples
# of its own. The first step of a run warms up; of all others the median ratio counts.
pairs=3
few=$((steps < 3 ? steps : 3))
again() { # padded or plain, pair
  local pad=()
  [ "$1" = plain ] || pad=(--pad)
  train --seed "$2" --steps "$few" ${few_held_out[@]+"${few_held_out[@]}"} --no-progress ${pad[@]+"${pad[@]}"} \
    --metrics "$out/$1-$2.jsonl" >"$out/$1-$2.txt"
}
echo "quickstart: $((2 * pairs)) runs of $few steps follow, the same samples padded and as they are"
for ((pair = 1; pair <= pairs; pair++)); do
  order=(plain padded)
  ((pair % 2)) || order=(padded plain)
  for kind in "${order[@]}"; do again "$kind" "$pair"; done
done
seconds() { # of a metrics file: step, tokens, seconds
  sed -n 's/.*"step": \([0-9]*\), .*"tokens": \([0-9]*\), .*"seconds": \([0-9.]*\),.*/\1 \2 \3/p' "$1"
}
for ((pair = 1; pair <= pairs; pair++)); do
  join <(seconds "$out/plain-$pair.jsonl") <(seconds "$out/padded-$pair.jsonl")
done |
  awk -v few="$few" '$1 > 1 || few == 1 { print $5 / $3, $2 / $5, $2 / $3 }' | sort -n |
  awk '{ line[NR] = $0 } END {
    split(line[int((NR + 1) / 2)], at, " ")
    printf "  %-22s %d tokens/s padded, %d tokens/s as they are: %.2f times as fast (median of %d steps)\n",
      "the same samples", at[2], at[3], at[1], NR }'
echo "quickstart: everything is in $out; look at trace.json in ui.perfetto.dev"
