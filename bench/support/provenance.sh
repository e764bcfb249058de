# Lines of a result file that say how it came about, as bench/support/result_file.h's provenance() does for programs. To be sourced:
#     source "$root/bench/support/provenance.sh"

here=$(dirname "${BASH_SOURCE[0]}")

# Whether something but results differs from the commit.
is_dirty() { [ -n "$(git -C "$here/../.." --no-optional-locks status --porcelain -- . ':!bench/results')" ]; }

# Ends the script where the result file $1 would lie in bench/results and the tree is dirty.
refuse_dirty_tree() {
  [ -n "$1" ] && [ "$(realpath -m "$1/..")" = "$(realpath "$here/../results")" ] && is_dirty || return 0
  echo "$1: a result that is kept belongs to a commit, and this tree has uncommitted changes; commit them first" >&2
  exit 2
}

# Ends the script where there is no program at $1, which the target $2 builds.
need_program() {
  [ -x "$1" ] && return 0
  echo "$(basename "$0" .sh): $1 is not there; build it with scripts/build release $2" >&2
  exit 2
}

# Where programs are built ($build, from TROUPE_BUILD) and which troupe is run (TROUPE_BINARY): the release build unless told otherwise.
# Ends the script where there is no troupe.
release_troupe() {
  build=${TROUPE_BUILD:-$(realpath "$here/../..")/build/release}
  export TROUPE_BINARY=${TROUPE_BINARY:-$build/app/troupe}
  need_program "$TROUPE_BINARY" troupe
}

# The commit and the machine.
commit_and_machine() {
  local changed=""
  ! is_dirty || changed=" with uncommitted changes"
  echo "- commit: $(git -C "$here" rev-parse --short=12 HEAD)$changed"
  echo "- machine: $(awk -F': ' '/model name/ { print $2; exit }' /proc/cpuinfo), $(nproc) hardware threads"
}

# The version of the program at $1, and its path where that is inside the repository.
version_of() {
  local root path
  root=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../..")
  path=$(realpath "$1")
  echo "$("$1" --version)$([[ $path != "$root"/* ]] || echo " at ${path#"$root"/}")"
}
