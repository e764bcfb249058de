#!/usr/bin/env bash
# Jobs that run long: are descriptors, threads and memory of every process flat? (docs/lab.md)
#     bench/faults/soak.sh [--minutes N] [--every SECONDS] [--job sft|sac] [--out RESULT.md]     30 minutes of each unless told otherwise
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
source "$root/bench/support/provenance.sh"
release_troupe
out="" before=""
for word in "$@"; do
  [ "$before" != --out ] || out=$word
  [[ $word != --out=* ]] || out=${word#--out=}
  before=$word
done
refuse_dirty_tree "$out"
page=$(mktemp)
trap 'rm -f "$page"' EXIT
code=0
python3 -B "$root/bench/faults/soak.py" "$@" --out "$page" || code=$?
# A failed soak has a result too; what did not run has none.
if [ -n "$out" ] && [ -s "$page" ]; then
  { cat "$page"; echo; echo "- command: \`bench/faults/soak.sh $*\`"; commit_and_machine; } >"$out"
fi
exit "$code"
