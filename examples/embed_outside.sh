#!/usr/bin/env bash
# Installs a build into a scratch folder, then builds and runs a copy of examples/embed against it, outside this tree.
#   examples/embed_outside.sh [BUILD]      BUILD: a build folder in which everything is built
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build/release}
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT

cmake --install "$build" --prefix "$root/prefix" >/dev/null
"$root/prefix/bin/troupe" --version
# The package may name .deps, and nothing else of this tree.
if grep -rF "$PWD/" "$root"/prefix/lib*/cmake/Troupe | grep -vF "$PWD/.deps"; then
  echo "embed_outside: the installed package names paths of this tree"
  exit 1
fi

cp -r examples/embed "$root/source"
cmake -S "$root/source" -B "$root/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$root/prefix"
cmake --build "$root/build"
"$root/build/embed" "$root/toy-data"
