# Options of a script that runs a job: --out RESULT and --troupe PROGRAM, which set out (empty without it) and troupe, further pairs of an option and its
# value, and k=v of the job. To be sourced by a script that has root, the tree's, and
#     option() { case $1 in --seeds) seeds=$2 ;; *) return 1 ;; esac }      # what becomes of option $1 with value $2
#     usage() { ... }                                                      # ends the script with message $1
# before its call of read_options "$@", which leaves the k=v in the array words. Options without a value, where there are any:
#     flag() { case $1 in --short) seeds=1 ;; *) return 1 ;; esac }

words=() out="" troupe=$root/build/release/app/troupe
read_options() {
  while [ $# -gt 0 ]; do
    if [[ $1 == *=* ]]; then
      words+=("$1")
      shift
      continue
    fi
    if declare -F flag >/dev/null && flag "$1"; then
      shift
      continue
    fi
    [ $# -ge 2 ] || usage "$1 needs a value"
    case $1 in
      --out) out=$(realpath -m "$2") ;;
      --troupe) troupe=$(realpath "$2") ;;
      *) option "$1" "$2" || usage "unknown option '$1'" ;;
    esac
    shift 2
  done
}
