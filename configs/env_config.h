#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/seconds.h"
#include "configs/bridge_config.h"
#include "configs/reward_config.h"

namespace troupe::configs {

/// Which simulator, how many environments, how episodes begin and end (docs/env.md#one-step-of-a-block).
struct EnvConfig {
  std::string id;
  /// 1 to 2^20. Read by workers/rollout, placement.
  /// A multiple of group_size, and of blocks where those are given; a block holds whole groups.
  std::int64_t num_envs = 64;
  /// 0 to 2^16. Read by workers/rollout, placement.
  std::int64_t blocks = 0;
  /// 1 to 2^16.
  /// grpo wants 2 or more.
  std::int64_t group_size = 1;
  /// 1 to 4096.
  std::int64_t chunk = 1;
  /// 0 to 4096.
  /// At most chunk.
  std::int64_t exec_steps = 0;
  /// Ascending, each below the executed actions of a chunk. Read by env/registry.
  /// policy.kind dreamzero alone wants them, with data.window.chunks above 1: data.window.video_offsets.
  std::vector<std::int64_t> frame_offsets;
  /// Read by workers/rollout, workers/learner/rl, env.
  /// grpo wants episode or fixed, sac wants auto.
  std::string reset_mode = "auto";
  /// Steps, 0 to 2^31.
  std::int64_t max_episode_steps = 0;
  std::string profile;
  /// Read by env/registry when a run begins; afterwards its env_spec.json counts.
  /// Describes env.id.
  std::string spec;
  /// 0 to 4096. Read by actors, env.
  /// Results do not depend on it.
  std::int64_t threads = 0;
  /// Read by workers/rollout.
  bool stagger = false;
  /// Seconds, 0.1 to 86400.
  Seconds step_timeout{30};
  std::map<std::string, std::string> options;
  RewardConfig reward;
  BridgeConfig bridge;

  /// Control steps from one policy call to the next.
  std::int64_t executed() const { return exec_steps == 0 ? chunk : exec_steps; }

  template <class V>
  static void describe(V& v) {
    v.field("id", &EnvConfig::id,
            "environment, such as CartPole-v1 or arm7/lift-v1 (docs/env.md lists all); empty: the job has none");
    v.field("num_envs", &EnvConfig::num_envs, "environments over all simulators; their ids are 0 to num_envs - 1",
            "count", 1, 1 << 20);
    v.field("blocks", &EnvConfig::blocks,
            "equal runs of environments that are stepped, answered and moved together; fixed for the job, so that "
            "results do not depend on pool sizes; 0: chosen from num_envs (docs/rl.md)",
            "count", 0, 1 << 16);
    v.field("group_size", &EnvConfig::group_size,
            "G: neighbouring environments that begin every episode in the same state", "count", 1, 1 << 16);
    v.field("chunk", &EnvConfig::chunk, "K: actions per policy call", "count", 1, 4096);
    v.field("exec_steps", &EnvConfig::exec_steps,
            "actions of a chunk that are executed before the policy is asked again; 0: all", "count", 0, 4096);
    v.field("frame_offsets", &EnvConfig::frame_offsets,
            "control steps since the last policy call whose pictures are observed, above the newest; empty: the newest "
            "picture alone");
    v.choice(
        "reset_mode", &EnvConfig::reset_mode,
        "auto: a new episode begins as soon as one ends (autoreset of Gymnasium); episode: one episode per environment "
        "and rollout, frozen once done (mode A); fixed: terminations are ignored, all end with the rollout (mode B)",
        {"auto", "episode", "fixed"});
    v.field("max_episode_steps", &EnvConfig::max_episode_steps,
            "control steps after which an episode is truncated; 0: the environment's own", "steps", 0, 1LL << 31);
    v.field("profile", &EnvConfig::profile,
            "observations and actions of environments that offer several (arm7: state, pixel, libero, droid); empty: "
            "the environment's first");
    v.field("spec", &EnvConfig::spec,
            "description of the environment as a file (`troupe env describe ID --out FILE`), where only simulators can "
            "make it; empty: the environment describes itself");
    v.field("threads", &EnvConfig::threads, "stepping threads of one simulator; 0: its planned cores", "count", 0,
            4096);
    v.field("stagger", &EnvConfig::stagger, "shorten the first episodes, so that environments do not end all at once");
    v.field("step_timeout_s", &EnvConfig::step_timeout,
            "longest wait for one policy step of a block before its simulator counts as stuck", "seconds", 0.1, 86400);
    v.map("options", &EnvConfig::options, "further settings by the names that the environment documents");
    v.group("reward", &EnvConfig::reward, "kind rl: what of a step is trained on as its reward (docs/env.md)");
    v.group("bridge", &EnvConfig::bridge, "environments in Python: who steps them (docs/bridge.md)");
  }
};

}  // namespace troupe::configs
