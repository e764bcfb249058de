#!/usr/bin/env bash
# Jobs that run long: are descriptors, threads and memory of every process flat? (docs/lab.md)
#     bench/faults/soak.sh [--minutes N] [--job sft|sac] [--out RESULT.md]     30 minutes of each unless told otherwise
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
source "$root/bench/support/provenance.sh"
build=${TROUPE_BUILD:-$root/build/release}
export TROUPE_BINARY=${TROUPE_BINARY:-$build/app/troupe}
need_program "$TROUPE_BINARY" troupe
out=""
for ((i = 1; i < $#; i++)); do [ "${!i}" != --out ] || { next=$((i + 1)); out=${!next}; }; done
refuse_dirty_tree "$out"
python3 -B "$root/bench/faults/soak.py" "$@"
[ -z "$out" ] || { echo; echo "- command: \`bench/faults/soak.sh $*\`"; commit_and_machine; } >>"$out"
