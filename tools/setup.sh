#!/usr/bin/env bash
# Installs what is missing of the packages in tools/packages.txt: tools/setup.sh [--cuda].
# Asks for nothing when all are there. Needs Debian 12 (or a system with the same package
# names) and, to install, root or sudo. With --cuda also what compiles code for GPUs
# (tools/setup-cuda.sh), without which all else is built.
set -euo pipefail
cd "$(dirname "$0")/.."

case "$#:${1:-}" in
0:) then=true ;;
1:--cuda) then=tools/setup-cuda.sh ;;
*)
  echo "usage: tools/setup.sh [--cuda]" >&2
  exit 2
  ;;
esac

missing=()
while read -r package; do
  case "$package" in ''|'#'*) continue ;; esac
  if [ "$(dpkg-query -W -f '${Status}' "$package" 2>/dev/null)" != "install ok installed" ]; then
    missing+=("$package")
  fi
done < tools/packages.txt
[ ${#missing[@]} -eq 0 ] && exec "$then"

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || {
    echo "setup: needs root or sudo to install: ${missing[*]}" >&2
    exit 2
  }
  as_root=(sudo)
fi
echo "setup: installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
"${as_root[@]}" apt-get update -qq || echo "setup: apt-get update failed; trying with the lists at hand" >&2
"${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >"$log" 2>&1 || {
  tail -n 20 "$log" >&2
  echo "setup: could not install ${missing[*]}; LLVM 22 comes from Debian 12's security updates: enable bookworm-security" >&2
  exit 2
}
rm -f "$log"
exec "$then"
