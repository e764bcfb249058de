#!/usr/bin/env bash
# Simulators of other people's packages, through the bridge to Python, each in a throw-away environment of its own (bench/support/python_env.sh):
#     panda      PandaReachDense-v3 of panda-gym (Bullet), rl_panda_reach_sac: success of 0.9 and more in 100,000 environment steps at most
#     metaworld  reach-v3 of Meta-World: the package's scripted policy is recorded and cloned (rl_metaworld_reach_sft), Flow-GRPO goes on
#                (rl_metaworld_reach): the clone at 60 % at most, then 90 % of the episodes and more, within 90 minutes
#     pusht      PushT of gym-pusht draws pictures without a display, 100 steps of training and a video among them
#     lift       Lift of robosuite: 1,000 uniform actions, 1,000 steps of training, recordings that come out the same twice and play again to the bit
#     bench/rl/foreign_simulators.sh [--only panda|metaworld|pusht|lift]... [--seed S] [--episodes N] [--out RESULT.md] [--troupe TROUPE] [k=v]...
# k=v are given to every training. Everything stays in build/rl-curves/foreign-*; exit status 1 where a goal is missed.
set -euo pipefail
export LC_ALL=C
root=$(cd "$(dirname "$0")/../.." && pwd)
source "$root/bench/support/provenance.sh"
source "$root/bench/support/job_options.sh"
only=() seed=1 episodes=200 command="bench/rl/foreign_simulators.sh $*"
usage() { echo "foreign_simulators: $1" >&2; sed -n '8p' "$0" >&2; exit 2; }
option() {
  case $1 in
    --only) case $2 in panda|metaworld|pusht|lift) only+=("$2") ;; *) usage "--only $2; wanted panda, metaworld, pusht or lift" ;; esac ;;
    --seed) seed=$2 ;;
    --episodes) episodes=$2 ;;
    *) return 1 ;;
  esac
}
read_options "$@"
[ ${#only[@]} -gt 0 ] || only=(panda metaworld pusht lift)
refuse_dirty_tree "$out"
need_program "$troupe" troupe
folder=$root/build/rl-curves/foreign-$(date +%Y%m%d-%H%M%S)-$$
mkdir -p "$folder"
export TROUPE_PYTHON_FOLDER=$root/python
unset DISPLAY WAYLAND_DISPLAY
bridge=(msgpack==1.2.4 pyzmq==27.3.0)
status=0 versions=()

# An environment of packages in a folder of build/, for TROUPE_PYTHON.
python_of() {
  cd "$root"
  TROUPE_PYTHON=$(bench/support/python_env.sh "build/foreign-$1" "${@:2}" "${bridge[@]}")
  export TROUPE_PYTHON
  cd "$folder"
  versions+=("${*:2}")
}
say() { echo "$@" | tee -a "$folder/summary.txt"; }
missed() { say "- **missed**: $1"; status=1; }
# Trains a recipe; what it said is in NAME.txt.
train() {  # recipe, k=v...
  local begin=$EPOCHREALTIME
  "$troupe" run "$root/configs/recipes/$1.yaml" "job.seed=$seed" "${@:2}" ${words[@]+"${words[@]}"} >"$1.txt" 2>&1 || { tail "$1.txt" >&2; exit 1; }
  seconds=$(awk -v a="$begin" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.0f", b - a }')
}
# The success of a run's newest checkpoint over the evaluation's seeds, in percent.
success_of() {
  "$troupe" eval "$1" --episodes "$episodes" --videos 0 --json 2>/dev/null |
    python3 -c 'import json, sys; r = json.load(sys.stdin)["results"]; print("%.1f" % (100 * r["successes"] / r["episodes"]))'
}
# The environment steps of a run.
steps_of() {
  python3 -c 'import json, sys; print("%d" % max(json.loads(x)["m"].get("env/total_steps", 0) for x in open(sys.argv[1])))' runs/"$1"/*/metrics.jsonl
}
at_least() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a >= b) }'; }

panda() {
  python_of panda panda-gym==3.0.7 gymnasium==1.4.0 numpy==2.4.6
  train rl_panda_reach_sac
  local success steps
  success=$(success_of rl-panda-reach-sac) steps=$(steps_of rl-panda-reach-sac)
  say "- PandaReachDense-v3, soft actor-critic, seed $seed: success $success % of $episodes episodes after $steps environment steps, $seconds s"
  at_least "$success" 90 && at_least 100000 "$steps" || missed "a success of 90 % within 100,000 steps"
}

metaworld() {
  python_of metaworld metaworld==3.1.1 packaging==26.4 gymnasium==1.4.0 mujoco==3.3.0 numpy==2.4.6
  local clone after steps
  "$troupe" record metaworld:reach-v3 --out data/reach-v3 --episodes 4 --seed "$seed" max_episode_steps=100 >record.txt 2>&1
  train rl_metaworld_reach_sft
  clone=$(success_of rl-metaworld-reach-sft)
  train rl_metaworld_reach
  after=$(success_of rl-metaworld-reach) steps=$(steps_of rl-metaworld-reach)
  "$troupe" eval rl-metaworld-reach --episodes "$episodes" --videos 0 --compare rl-metaworld-reach-sft >compared.txt 2>/dev/null
  say "- metaworld:reach-v3, $(grep -m1 frames record.txt): cloned $clone %, after Flow-GRPO $after % of $episodes episodes," \
    "$steps environment steps, $seconds s"
  at_least 60 "$clone" || missed "a clone at 60 % at most"
  at_least "$after" 90 || missed "90 % of the episodes after Flow-GRPO"
  at_least 5400 "$seconds" || missed "90 minutes"
}

pusht() {
  python_of pusht gym-pusht==0.1.8 pymunk==6.11.1 pygame==2.6.1 gymnasium==1.4.0 numpy==2.4.6
  local id=gymnasium:gym_pusht:gym_pusht/PushT-v0 played steps
  "$troupe" env describe "$id" obs_type=pixels >describe.txt
  played=$("$TROUPE_PYTHON" "$root/bench/rl/foreign_play.py" steps "$id" obs_type=pixels 2>>play.txt) || missed "pictures of PushT"
  train rl_halfcheetah_ppo job.name=pusht "env={id: $id, num_envs: 2, blocks: 1, max_episode_steps: 50, options: {obs_type: pixels, render_mode: rgb_array}}" \
    policy.vision=cnn rollout.steps=50 training.steps=1 training.global_batch_size=50 training.micro_batch_size=50 eval.episodes=1
  steps=$(steps_of pusht)
  say "- PushT without a display: $(grep -m1 rgb. describe.txt | xargs); uniform actions:"
  say "$played"
  say "  trained on pictures for $steps steps; videos: $(find runs -name '*.mp4' | wc -l)"
  [ -n "$(find runs/pusht -name '*.mp4')" ] || missed "a video of PushT"
}

lift() {
  python_of lift robosuite==1.5.2 mujoco==3.6.0 numpy==1.26.4 pyarrow==21.0.0
  local played steps
  played=$("$TROUPE_PYTHON" "$root/bench/rl/foreign_play.py" steps robosuite:Lift 2>>play.txt) || missed "1,000 steps of Lift"
  say "- robosuite:Lift, uniform actions:"
  say "$played"
  train rl_halfcheetah_ppo job.name=lift "env={id: 'robosuite:Lift', num_envs: 2, blocks: 1, max_episode_steps: 500}" \
    rollout.steps=500 training.steps=1 training.global_batch_size=100 training.micro_batch_size=100 eval.episodes=1
  steps=$(steps_of lift)
  say "  trained for $steps steps"
  for copy in first second; do "$troupe" record robosuite:Lift --out "data/$copy" --episodes 4 --seed "$seed" >record-lift.txt 2>&1; done
  say "  recorded: $(grep -m1 frames record-lift.txt | sed 's/^[^ ]* //')"
  if diff -r data/first data/second >/dev/null; then say "  a second recording from the same seed has the same bytes"; else missed "recordings of Lift from one seed that are the same"; fi
  played=$("$TROUPE_PYTHON" "$root/bench/rl/foreign_play.py" replay data/first 2>>play.txt) || missed "a recording of Lift that plays again"
  say "$played"
}

for part in "${only[@]}"; do "$part"; done
[ -z "$out" ] || {
  printf "# Other people's simulators: %s\n\n" "${only[*]}"
  cat summary.txt
  [ ! -f compared.txt ] || printf '\n```\n%s\n```\n' "$(cat compared.txt)"
  printf '\n- command: `%s`\n' "$command"
  commit_and_machine
  echo "- $(version_of "$troupe"); $("$TROUPE_PYTHON" --version)"
  for line in "${versions[@]}"; do echo "- packages: $line ${bridge[*]}"; done
} >"${out:-/dev/null}"
exit "$status"
