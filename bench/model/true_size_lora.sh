#!/usr/bin/env bash
# Three steps of DreamZero 5B at its true size with low-rank adapters, and one after a resume: losses, memory beside the plan's, checkpoint sizes.
#     bench/model/true_size_lora.sh --data LEROBOT_FOLDER [--out RESULT.md] [--troupe TROUPE] [k=v]...
# The recordings' pixels go through stand-ins of the frozen encoders, so any dataset of the job's embodiment (gr1_unified) will do.
# Wants 22 GiB of memory and 25 GB on the disk of build/; 15 minutes on two cores. What it wrote there is removed.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
source "$root/bench/support/provenance.sh"
source "$root/bench/support/job_options.sh"
data=""
usage() { echo "true_size_lora: $1" >&2; sed -n '3p' "$0" >&2; exit 2; }
option() {
  case $1 in
    --data) data=$(realpath "$2") ;;
    *) return 1 ;;
  esac
}
read_options "$@"
[ -n "$data" ] || usage "--data is missing"
refuse_dirty_tree "$out"
need_program "$troupe" troupe
work=$(mktemp -d "$root/build/true-size-lora-XXXXXX")
trap 'rm -rf "$work"' EXIT
page=$work/page
python3 -B "$root/bench/model/true_size_lora.py" "$troupe" "$root/bench/model/true_size_lora.yaml" "$work" "data.sets[0].path=$data" \
  "data.features.cache=$work/features" ${words[@]+"${words[@]}"} >"$page"
cat "$page"
if [ -n "$out" ]; then
  command="bench/model/true_size_lora.sh --data $(basename "$data")${words[*]:+ ${words[*]}}"  # where the data lie is this machine's
  { cat "$page"; echo; echo "- command: \`$command\`"; commit_and_machine; } >"$out"
fi
