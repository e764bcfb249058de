#!/usr/bin/env bash
# Proximal policy optimisation end to end, ours against a CleanRL-style PPO in PyTorch over EnvPool and over Gymnasium's vector API: environment
# steps per second with collection and updates, on HalfCheetah-v5, 64 environments x 32 steps, 32 minibatches of 64, 10 epochs, 2xHIDDEN tanh, a table
# for each HIDDEN. Rounds alternate all sides, PyTorch over EnvPool eager and compiled; the first 2 iterations of a run do not count; each side at the
# fastest of its settings (threads). Expect at least twice the better peer with the generic unit, three times with the explicit MLP backward.
#     bench/peers/ppo_bench.sh [--short] [--rounds 5] [--iterations 40] [--hidden "64 256"] [--env-threads "1 2"] [--torch-threads "1 2"]
#                              [--gym-modes "sync async"] [--out RESULT.md] [--troupe TROUPE] [k=v ...]
# k=v: further settings of bench/rl/ppo_throughput.yaml. Python's packages come from PyPI into build/peers-env and build/python-env
# (bench/support/python_env.sh); torch is of the second, all else of the first.
set -euo pipefail
export LC_ALL=C
root=$(cd "$(dirname "$0")/../.." && pwd)
source "$root/bench/support/provenance.sh"
rounds=5 iterations=40 widths="64 256" env_threads="1 2" torch_threads="1 2" gym_modes="sync async" out="" troupe=$root/build/release/app/troupe settings=() note=""
while [ $# -gt 0 ]; do
  case $1 in
    --short) rounds=1 iterations=4 widths=64 env_threads=2 torch_threads=1 gym_modes=sync note=" (--short)" ;;
    --rounds) rounds=$2; shift ;;
    --iterations) iterations=$2; shift ;;
    --hidden) widths=$2; shift ;;
    --env-threads) env_threads=$2; shift ;;
    --torch-threads) torch_threads=$2; shift ;;
    --gym-modes) gym_modes=$2; shift ;;
    --out) out=$(realpath -m "$2"); shift ;;
    --troupe) troupe=$(realpath "$2"); shift ;;
    *=*) settings+=("$1") ;;
    *) echo "ppo_bench: unknown argument '$1'" >&2; sed -n '6,7p' "$0" >&2; exit 2 ;;
  esac
  shift
done
refuse_dirty_tree "$out"
need_program "$troupe" troupe
cd "$root"
peers=$(bench/support/python_env.sh build/peers-env $(cat bench/peers/python_packages.txt))
python=$(bench/support/python_env.sh build/python-env $(cat bench/data/python_packages.txt))
packages=$("$peers" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
threads=$(nproc)

peer() { PYTHONPATH=$packages "$python" -W ignore bench/peers/ppo_cleanrl_style.py "$@" 2>"$work/error" || { cat "$work/error" >&2; exit 1; }; }

# record ROUND SIDE SETTING "steps wall return"
record() { printf '%s %s %s %s\n' "$1" "$2" "$3" "$4" >>"$records"; printf '%s %s %s %s\n' "$1" "$2" "$3" "$4" >&2; }

# ours ROUND SIDE EXPLICIT_BACKWARD: once for every count of stepping threads
ours() {
  local count runs figures
  for count in $env_threads; do
    runs=$work/runs-$2-$count-$1
    if ! "$troupe" run bench/rl/ppo_throughput.yaml --resume never "job.run_root=$runs" "training.steps=$iterations" "env.threads=$count" \
        "algorithm.explicit_backward=$3" "policy.hidden=[$hidden, $hidden]" ${settings[@]+"${settings[@]}"} >"$work/error" 2>&1; then
      cat "$work/error" >&2
      exit 1
    fi
    figures=$(python3 bench/peers/ppo_report.py rate "$runs/latest" --skip 2)
    record "$1" "$2" "env.threads=$count" "$figures"
    rm -rf "$runs"
  done
}

# theirs ROUND SIDE ENVS NAME [--compile]: once for every count of intra-op threads
theirs() {
  local count figures
  for count in $torch_threads; do
    figures=$(OMP_NUM_THREADS=$count peer --envs "$3" --torch-threads "$count" --env-threads "$threads" --iterations "$iterations" --skip 2 \
      --hidden "$hidden" "${@:5}")
    record "$1" "$2" "$4torch_threads=$count" "$figures"
  done
}

load=$(cut -d' ' -f1 /proc/loadavg)
table=""
for hidden in $widths; do
  records=$work/records-$hidden
  for round in $(seq "$rounds"); do
    ours "$round" explicit true
    theirs "$round" envpool envpool "num_threads=$threads,"
    theirs "$round" compiled envpool "num_threads=$threads," --compile
    ours "$round" generic false
    for mode in $gym_modes; do theirs "$round" gymnasium "gym-$mode" "$mode,"; done
  done
  table+=$(printf '## 2x%s\n\n' "$hidden"; python3 bench/peers/ppo_report.py table "$records"; printf '\n\n.')
  table=${table%.}
done
versions=$(peer --version)
printf '%s\n\n%s; ours: %s\n' "$table" "$versions" "$("$troupe" --version)"
[ -n "$out" ] || exit 0
mkdir -p "$(dirname "$out")"
{
  echo "# PPO end to end against PyTorch over EnvPool and Gymnasium"
  echo
  echo "HalfCheetah-v5, 64 environments x 32 steps, 32 minibatches of 64, 10 epochs, tanh networks. $rounds alternating rounds of $iterations iterations, the first 2 not"
  echo "counted, each run a process (ours: processes) of its own; medians (lowest .. highest). One-minute load average before them $load, on $threads hardware threads."
  echo "A ratio is of one round; a side's setting is the fastest by its median."
  echo
  echo "$table"
  echo
  echo "- command: \`bench/peers/ppo_bench.sh --rounds $rounds --iterations $iterations --hidden \"$widths\" --env-threads \"$env_threads\" --torch-threads \"$torch_threads\" --gym-modes \"$gym_modes\"${settings[*]:+ ${settings[*]}}\`$note"
  commit_and_machine
  echo "- theirs: $versions, $("$python" --version)"
  echo "- ours: $(version_of "$troupe"), libmujoco 3.6.0 of PyPI's wheel, g++ $(g++ -dumpfullversion), $(uname -sr)"
  echo
  echo "## Configuration"
  echo '```yaml'
  cat bench/rl/ppo_throughput.yaml
  echo '```'
} >"$out"
echo "written: $out"
