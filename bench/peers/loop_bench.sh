#!/usr/bin/env bash
# The whole loop of reinforcement learning, ours against the compiled loops that one would take instead: environment steps per second with collection
# and updates, for SAC updates per second. Each side at the fastest of its settings; rounds alternate all sides, case by case:
#   cartpole-16x128  PPO on CartPole-v1, 16 environments x 128 steps, 4 epochs of 4 minibatches of 512 rows, 2x64 tanh; goal: at least the compiled JAX
#   cartpole-64x32   the same with 64 x 32, 10 epochs of 32 minibatches of 64 rows                                         loop's speed, better twice
#   halfcheetah-64   PPO on HalfCheetah-v5, 64 x 32, 10 epochs of 32 minibatches of 64 rows, 2x64 tanh; goal: above every peer, and 0.8 of the bound
#   halfcheetah-256  the same with 2x256
#   pendulum         SAC on Pendulum-v1, 2x64 ReLU, batch 256, one update a step, 4 environments (PyTorch 1); goal: 0.8 of the bound
# The bound of a case is the time of its bare parts, one after the other on all cores: on HalfCheetah the environment pool stepped with random actions,
# policy calls and engine's updates (bench_env_sim, bench_model_policy_update), on Pendulum the engine's updates alone, on two threads
# (bench_model_sac_update).
# Peers: PPO as one XLA program (JAX; CartPole alone, as it has no such physics), PyTorch eager and through torch.compile over EnvPool, and sbx
# (Stable-Baselines3 in JAX) over EnvPool.
#     bench/peers/loop_bench.sh [--short] [--rounds 5] [--cases "cartpole-16x128 ..."] [--iterations 200] [--cheetah-iterations 40] [--peer-iterations 12]
#                               [--sac-steps 8] [--settings "k=v[,k=v...] ..."] [--peer-threads "ENVPOOL:ARITHMETIC ..."] [--jax-threads "pinned 1 all"]
#                               [--out RESULT.md] [--troupe TROUPE] [k=v ...]
# --iterations is ours and JAX's on CartPole, --cheetah-iterations ours, --peer-iterations that of loops in Python; the first 2 of a run do not count.
# --sac-steps counts 1,024 steps each. --settings are those of our job, one run each; a count of arithmetic threads above 1 leaves sbx as many as XLA
# takes, and 1 is one. --jax-threads: pinned to one processor, 1 thread of arithmetic, all. k=v: further settings of every job of ours. Python's packages
# come from PyPI into build/peers-env, build/python-env and build/sbx-env (bench/support/python_env.sh); they take 1, 5 and 6.3 GB.
set -euo pipefail
export LC_ALL=C
root=$(cd "$(dirname "$0")/../.." && pwd)
source "$root/bench/support/provenance.sh"
source "$root/bench/support/job_options.sh"
rounds=5 iterations=200 cheetah_iterations=40 peer_iterations=12 sac_steps=8 note=""
cases="cartpole-16x128 cartpole-64x32 halfcheetah-64 halfcheetah-256 pendulum"
settings="env.blocks=1 env.blocks=2 env.blocks=1,env.threads=2" peer_threads="1:1 2:1 2:2" jax_threads="pinned 1 all"
usage() { echo "loop_bench: $1" >&2; sed -n '14,16p' "$0" >&2; exit 2; }
flag() {
  case $1 in
    --short)
      rounds=1 iterations=6 cheetah_iterations=4 peer_iterations=3 sac_steps=4 note=" (--short)"
      settings=env.blocks=1 peer_threads=1:1 jax_threads=pinned
      ;;
    *) return 1 ;;
  esac
}
option() {
  case $1 in
    --rounds) rounds=$2 ;;
    --cases) cases=$2 ;;
    --iterations) iterations=$2 ;;
    --cheetah-iterations) cheetah_iterations=$2 ;;
    --peer-iterations) peer_iterations=$2 ;;
    --sac-steps) sac_steps=$2 ;;
    --settings) settings=$2 ;;
    --peer-threads) peer_threads=$2 ;;
    --jax-threads) jax_threads=$2 ;;
    *) return 1 ;;
  esac
}
read_options "$@"
release_troupe
for program in env/bench_env_sim model/bench_model_policy_update model/bench_model_sac_update; do
  need_program "$build/bench/$program" "${program#*/}"
done
[ "$sac_steps" -ge 4 ] || usage "--sac-steps $sac_steps: the first does not learn, and two more do not count; 4 at least"

source "$root/bench/peers/torch_peers.sh"
sbx_python=$(bench/support/python_env.sh build/sbx-env $(cat bench/peers/sbx_packages.txt))
one_thread=--xla_cpu_multi_thread_eigen=false

# sbx_env PROGRAM ARGUMENTS: one of bench/peers in the environment of JAX and sbx; otherwise as peer, after the words of
# pin, where there are any
sbx_env() { ${pin[@]+"${pin[@]}"} "$sbx_python" -W ignore "bench/peers/$1" "${@:2}" 2>"$work/error" || { cat "$work/error" >&2; exit 1; }; }

# record ROUND SIDE SETTING "steps wall return"
record() { printf '%s %s %s %s\n' "$1" "$2" "$3" "$4" >>"$records"; printf '%s %s %s %s %s\n' "$name" "$1" "$2" "$3" "$4" >&2; }

# ours ROUND JOB k=v...: once for every setting; a job with sac is counted in updates
ours() {
  local setting runs figures
  for setting in $settings; do
    runs=$work/runs-$name-$1
    our_run "$2" "job.run_root=$runs" cluster.isolation.env=inline cluster.isolation.rollout=thread "metrics.sinks=[jsonl]" "${@:3}" ${setting//,/ }
    if [ "$unit" = updates ]; then
      figures=$(python3 bench/peers/sac_report.py run "$runs/latest")
    else
      figures=$(python3 bench/peers/ppo_report.py rate "$runs/latest" --skip 2)
    fi
    record "$1" loop "$setting" "$figures"
    rm -rf "$runs"
  done
}

# ppo_bound ROUND WIDTH: 2,048 steps of 64 HalfCheetahs, 32 policy calls for all, which the cores share, and 320 updates
ppo_bound() {
  local pool parts cores
  cores=$(nproc)
  pool=$("$build/bench/env/bench_env_sim" --pool --env HalfCheetah-v5 --num-envs 64 --threads "$cores")
  parts=$("$build/bench/model/bench_model_policy_update" --parts --rows 64 --width "$2" --threads "$cores")
  record "$1" bound "threads=$cores" "$(awk -v cores="$cores" '{ printf "2048 %.6f nan", 2048 * $3 / $1 + (32 * $5 / cores + 320 * $4) * 1e-6 }' <<<"$pool $parts")"
}

# sac_bound ROUND: 1,000 updates
sac_bound() {
  local milliseconds
  milliseconds=$("$build/bench/model/bench_model_sac_update" --benchmark_filter='BM_SacEngine/pendulum/2/' --benchmark_format=csv 2>"$work/error" |
    awk -F, '/^"BM_/ { print $3 }') && [ -n "$milliseconds" ] || { cat "$work/error" >&2; echo "loop_bench: bench_model_sac_update told no time" >&2; exit 1; }
  record "$1" bound threads=2 "1000 $milliseconds nan"
}

# in_torch ROUND SIDE ARGUMENTS: the PPO in PyTorch over EnvPool, once for every pair of threads
in_torch() {
  local pair figures
  for pair in $peer_threads; do
    figures=$(OMP_NUM_THREADS=${pair#*:} peer ppo_cleanrl_style.py --envs envpool --env-threads "${pair%:*}" --torch-threads "${pair#*:}" \
      --iterations "$peer_iterations" --skip 2 "${@:3}")
    record "$1" "$2" "num_threads=${pair%:*},torch_threads=${pair#*:}" "$figures"
  done
}

# in_sbx ROUND ARGUMENTS: the same of sbx
in_sbx() {
  local pair arithmetic flags figures
  for pair in $peer_threads; do
    arithmetic=all flags=""
    [ "${pair#*:}" != 1 ] || arithmetic=1 flags=$one_thread
    figures=$(XLA_FLAGS=$flags sbx_env sbx_loops.py --env-threads "${pair%:*}" "${@:2}")
    record "$1" sbx "num_threads=${pair%:*},xla_threads=$arithmetic" "$figures"
  done
}

# in_jax ROUND ARGUMENTS: the compiled loop, once for every way of threads
in_jax() {
  local threads flags pin figures
  for threads in $jax_threads; do
    flags="" pin=()
    case $threads in
      pinned) pin=(taskset -c "$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')") ;;
      1) flags=$one_thread ;;
      all) ;;
      *) usage "--jax-threads $threads: pinned, 1 or all" ;;
    esac
    figures=$(XLA_FLAGS=$flags sbx_env ppo_jax.py --iterations "$iterations" --skip 2 "${@:2}")
    record "$1" jax "xla_threads=$threads" "$figures"
  done
}

# ppo ROUND JOB TASK ENVIRONMENTS STEPS EPOCHS MINIBATCHES HIDDEN ITERATIONS k=v...
ppo() {
  local shape=(--num-envs "$4" --steps "$5" --epochs "$6" --minibatches "$7" --hidden "$8") rows=$(($4 * $5 / $7))
  ours "$1" "$2" "training.steps=$9" "env.num_envs=$4" "rollout.steps=$5" "algorithm.policy_gradient.update_epochs=$6" "training.global_batch_size=$rows" \
    "training.micro_batch_size=$rows" "policy.hidden=[$8, $8]" "${@:10}"
  [ "$3" != CartPole-v1 ] || in_jax "$1" "${shape[@]}"
  [ "$3" != HalfCheetah-v5 ] || ppo_bound "$1" "$8"
  in_torch "$1" envpool --task "$3" "${shape[@]}"
  in_torch "$1" compiled --task "$3" "${shape[@]}" --compile
  in_sbx "$1" --algorithm ppo --task "$3" --iterations "$peer_iterations" --skip 2 "${shape[@]}"
}

# sac ROUND
sac() {
  local threads figures
  ours "$1" rl_pendulum_sac "training.steps=$sac_steps" eval.episodes=1 env.threads=1
  sac_bound "$1"
  in_sbx "$1" --algorithm sac --task Pendulum-v1 --num-envs 4 --hidden 64 --steps $((sac_steps * 1024))
  for threads in $(printf '%s\n' $peer_threads | cut -d: -f2 | sort -u); do
    figures=$(OMP_NUM_THREADS=$threads peer sac_cleanrl_style.py --task Pendulum-v1 --hidden 64 --steps $((sac_steps * 1024)) --learning-starts 1024 \
      --eval-episodes 1 --torch-threads "$threads")
    record "$1" sac "torch_threads=$threads" "$figures"
  done
}

# one_case NAME ROUND: also sets title, unit and wanted
one_case() {
  unit="environment steps"
  case $1 in
    cartpole-16x128)
      title="CartPole-v1, 16 environments x 128 steps, 4 epochs of 4 minibatches of 512 rows, 2x64" wanted=jax=1
      ppo "$2" bench/rl/loop_cartpole.yaml CartPole-v1 16 128 4 4 64 "$iterations" env.threads=1
      ;;
    cartpole-64x32)
      title="CartPole-v1, 64 environments x 32 steps, 10 epochs of 32 minibatches of 64 rows, 2x64" wanted=jax=1
      ppo "$2" bench/rl/loop_cartpole.yaml CartPole-v1 64 32 10 32 64 "$iterations" env.threads=1
      ;;
    halfcheetah-64 | halfcheetah-256)
      title="HalfCheetah-v5, 64 environments x 32 steps, 10 epochs of 32 minibatches of 64 rows, 2x${1#*-}" wanted="bound=0.8 envpool=1 compiled=1 sbx=1"
      ppo "$2" bench/rl/ppo_throughput.yaml HalfCheetah-v5 64 32 10 32 "${1#*-}" "$cheetah_iterations"
      ;;
    pendulum)
      title="Pendulum-v1, SAC, 2x64 ReLU, batch 256, one update a step" unit=updates wanted="bound=0.8 sbx=1 sac=1"
      sac "$2"
      ;;
    *) usage "--cases: there is no '$1'" ;;
  esac
}

load=$(cut -d' ' -f1 /proc/loadavg)
table=""
for name in $cases; do
  records=$work/records-$name
  for round in $(seq "$rounds"); do one_case "$name" "$round"; done
  table+=$(printf '## %s\n\n' "$title"; python3 bench/peers/ppo_report.py table "$records" --unit "$unit" --wanted $wanted; printf '\n\n.')
  table=${table%.}
done
versions="$(peer ppo_cleanrl_style.py --version); $(sbx_env ppo_jax.py --version), one program; $(sbx_env sbx_loops.py --version)"
peer_result "Whole loops of reinforcement learning against PyTorch, JAX and sbx" \
  "$rounds alternating rounds, case by case, each run a process (ours: processes) of its own; medians (lowest .. highest). Iterations of a run: ours and JAX $iterations
on CartPole, ours $cheetah_iterations on HalfCheetah, others $peer_iterations; the first 2 do not count. SAC: $((sac_steps * 1024)) steps, the first 1,024 at random; of
ours and sbx's updates the first 1,024 do not count. One-minute load average before them $load, on $(nproc) hardware threads. A ratio is of one round; a side's
setting is the fastest by its median." \
  "bench/peers/loop_bench.sh --rounds $rounds --cases \"$cases\" --iterations $iterations --cheetah-iterations $cheetah_iterations --peer-iterations $peer_iterations \
--sac-steps $sac_steps --settings \"$settings\" --peer-threads \"$peer_threads\" --jax-threads \"$jax_threads\"" \
  "libmujoco 3.6.0 of PyPI's wheel" bench/rl/loop_cartpole.yaml bench/rl/ppo_throughput.yaml configs/recipes/rl_pendulum_sac.yaml
