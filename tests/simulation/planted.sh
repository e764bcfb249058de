#!/usr/bin/env bash
# Whether the simulation finds faults that are planted in the product: for each patch of tests/simulation/planted (or those
# named) it builds test_simulation with that patch, in a copy of the working tree, and runs schedules until one breaks a
# rule. A patch whose first line is "program: PROGRAM" is looked for by that test program instead (tests/crash).
#   tests/simulation/planted.sh [PATCH ...]      TROUPE_SCHEDULES: at most so many of each (2000)
# Exit 0 when all but one in twenty were found, and all of them were tried; the last line is the sum.
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
mkdir "$copy/tree"
git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' file; do
  [ -e "$file" ] && printf '%s\0' "$file"
done | tar --null -T - -c | tar -x -C "$copy/tree"
[ -e "$root/.deps" ] && ln -sfn "$root/.deps" "$copy/tree/.deps"
patches=()
for patch in "$@"; do patches+=("$(realpath "$patch")"); done
[ ${#patches[@]} -gt 0 ] || patches=("$root"/tests/simulation/planted/*.patch)
found=0
tried=0
cd "$copy/tree"
for patch in "${patches[@]}"; do
  name=$(basename "$patch" .patch)
  program=$(sed -n '1s/^program: //p' "$patch")
  program=${program:-test_simulation}
  if ! git apply "$patch" 2> "$copy/apply.log"; then
    echo "STALE  $name: $(head -1 "$copy/apply.log")"
    continue
  fi
  if ! scripts/build release "$program" > "$copy/build.log" 2>&1; then
    echo "BROKEN $name: $(grep -m1 'error: ' "$copy/build.log" || true)"
    git apply --reverse "$patch"
    continue
  fi
  tried=$((tried + 1))
  code=0
  TROUPE_SCHEDULES=${TROUPE_SCHEDULES:-2000} timeout 600 "$(find build/release/tests -name "$program" -type f)" \
    > "$copy/run.log" 2>&1 || code=$?
  # what a rule says; an end of the program by itself finds nothing
  if [ "$program" = test_simulation ]; then
    what=$(grep -m1 -A1 '^seed' "$copy/run.log" | tail -1 || true)
  else
    what=$(grep -m1 -A2 'Failure' "$copy/run.log" | tail -1 || true)
  fi
  if [ -n "$what" ]; then
    found=$((found + 1))
    echo "found  $name: $(echo "$what" | cut -c1-120)"
  elif [ "$code" -ne 0 ]; then
    echo "ENDED  $name: $program ended with $code and broke no rule"
  else
    echo "MISSED $name"
  fi
  git apply --reverse "$patch"
done
echo "$found of ${#patches[@]} planted faults found, $tried tried"
[ "$tried" -eq ${#patches[@]} ] && [ $((found * 20)) -ge $((${#patches[@]} * 19)) ]
