#!/usr/bin/env bash
# Whether the simulation finds faults that are planted in the product: for each patch of tests/simulation/planted (or those
# named) it builds test_simulation with that patch, in a worktree of its own, and runs schedules until one breaks a rule.
#   tests/simulation/planted.sh [PATCH ...]      TROUPE_SCHEDULES: at most so many of each (2000)
# Exit 0 when all but one in twenty were found; the last line is the sum.
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD
tree=$(mktemp -d)
trap 'git worktree remove --force "$tree/tree" 2>/dev/null; rm -rf "$tree"' EXIT
git worktree add --quiet --detach "$tree/tree" HEAD
[ -e "$root/.deps" ] && ln -sfn "$root/.deps" "$tree/tree/.deps"
patches=("$@")
[ ${#patches[@]} -gt 0 ] || patches=("$root"/tests/simulation/planted/*.patch)
found=0
cd "$tree/tree"
for patch in "${patches[@]}"; do
  name=$(basename "$patch" .patch)
  git apply "$patch"
  scripts/build release test_simulation > "$tree/build.log" 2>&1 || { tail -20 "$tree/build.log"; exit 1; }
  if TROUPE_SCHEDULES=${TROUPE_SCHEDULES:-2000} timeout 600 build/release/tests/simulation/test_simulation > "$tree/run.log" 2>&1; then
    echo "MISSED $name"
  else
    found=$((found + 1))
    echo "found  $name: $(grep -m1 '^seed' "$tree/run.log" | cut -c1-60)"
  fi
  git apply --reverse "$patch"
done
echo "$found of ${#patches[@]} planted faults found"
[ $((found * 20)) -ge $((${#patches[@]} * 19)) ]
