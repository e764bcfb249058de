# Lines of a result file that say how it came about, as bench/support/result_file.h's provenance() does for programs. To be sourced:
#     source "$root/bench/support/provenance.sh"

# The commit and the machine.
commit_and_machine() {
  local here changed=""
  here=$(dirname "${BASH_SOURCE[0]}")
  [ -z "$(git -C "$here" --no-optional-locks status --porcelain)" ] || changed=" with uncommitted changes"
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
