# Options of a script that runs a job: pairs of an option and its value, and k=v of the job. To be sourced by a script that has
#     option() { case $1 in --seeds) seeds=$2 ;; *) return 1 ;; esac }      # what becomes of option $1 with value $2
#     usage() { ... }                                                      # ends the script with message $1
# before its call of read_options "$@", which leaves the k=v in the array words.

words=()
read_options() {
  while [ $# -gt 0 ]; do
    if [[ $1 == *=* ]]; then
      words+=("$1")
      shift
      continue
    fi
    [ $# -ge 2 ] || usage "$1 needs a value"
    option "$1" "$2" || usage "unknown option '$1'"
    shift 2
  done
}
