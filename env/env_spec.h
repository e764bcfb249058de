#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "base/result.h"

namespace troupe::env {

/// How an observation is stored in a block. Actions are always f32; a discrete action is its index, 0 to n - 1.
enum class EnvDType : std::uint8_t { u8, f32, f64 };
constexpr auto enum_names(EnvDType) { return std::array{"u8", "f32", "f64"}; }
/// Bytes of one element.
constexpr std::int64_t env_dtype_bytes(EnvDType type) {
  return type == EnvDType::u8 ? 1 : type == EnvDType::f32 ? 4 : 8;
}

/// Who reads a field of an observation.
enum class EnvReader : std::uint8_t {
  /// The policy, and its critics.
  policy,
  /// Critics alone: what a simulator knows and a robot will not.
  critic,
  /// Which actions are allowed at this observation, [choices] of u8 or f32, 0 where not; of discrete actions alone, one
  /// field at most. A row that goes on and allows none is lost.
  action_mask,
  /// UTF-8, u8 [longest], zeros behind it: told once, so the same at every observation of an episode. Policies and
  /// their critics read it with policy.text.
  text,
};
constexpr auto enum_names(EnvReader) { return std::array{"policy", "critic", "action_mask", "text"}; }

/// One named part of an agent's observation, without batch dimension. Bounds hold for every element; infinite ones
/// are allowed. Names are flat and dot separated: "state", "rgb.front", "depth.front", "seg.front". Images are
/// u8 [H,W,3] (HWC), depth f32 [H,W] in metres with 0 for no hit, seg u8 [H,W].
struct EnvField {
  /// Unique in its EnvSpec; policy networks and datasets find a field by it.
  std::string name;
  /// Of one agent; empty for a scalar.
  std::vector<std::int64_t> shape;
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  /// For people, such as "m" or "rad"; empty: none or mixed.
  std::string unit = {};
  EnvDType dtype = EnvDType::f32;
  EnvReader reader = EnvReader::policy;
  /// False: rollout.normalize_obs leaves it as it is, such as numbers that are flags.
  bool normalise = true;

  /// Elements of one agent's field, and its bytes.
  std::int64_t numel() const {
    std::int64_t n = 1;
    for (const std::int64_t d : shape) n *= d;
    return n;
  }
  std::int64_t bytes() const { return numel() * env_dtype_bytes(dtype); }
};

/// What an environment takes: a vector of `size` numbers in [low, high], or one of `choices` actions.
struct ActionSpace {
  /// Above 0: discrete; `size` is then 1 and low, high are unused.
  std::int64_t choices = 0;
  /// Numbers A of one action.
  std::int64_t size = 1;
  /// Of each dimension.
  std::vector<float> low, high;
  std::string unit = {};

  bool is_discrete() const { return choices > 0; }
  /// Number `i` of an action as an environment may have it: within its bounds, as it is where they are none.
  float clipped(std::size_t i, float wanted) const {
    return is_discrete() ? wanted : std::clamp(wanted, low[i], high[i]);
  }
};

/// What an environment is. One per registry row and options; constant for the life of its environments.
struct EnvSpec {
  /// "HalfCheetah-v5", "arm7/lift-v1".
  std::string id;
  /// The order is the memory order.
  std::vector<EnvField> observation;
  /// Of one agent at one control step; a policy step takes K of them.
  ActionSpace action;
  /// Names of the f64 values a step reports beside the reward, such as "x_position".
  std::vector<std::string> info;
  /// Steps say whether the task is solved.
  bool has_success = false;
  /// Observations are dear (images): step() may be given none to write, and Env::observe() is asked.
  bool observes_on_demand = false;
  /// Control steps after which the pool truncates; 0: never.
  std::int64_t max_steps = 0;
  /// Control steps per simulated second; 0: no unit of time.
  double control_hz = 0;
  /// Physics steps per control step.
  std::int64_t frame_skip = 1;
  /// Mean return that counts as solved; NaN: none stated.
  double reward_threshold = std::numeric_limits<double>::quiet_NaN();
  /// Names that render() takes.
  std::vector<std::string> cameras;
  /// P: number of agents in one environment. All act at every step; each has an observation, an action and a reward, of
  /// the same form for all. They share the episode.
  std::int64_t agents = 1;

  /// Numbers of one control step's actions, [P, A].
  std::int64_t action_numbers() const { return agents * action.size; }
};

/// Refuses what contradicts itself: names that are empty or given twice, shapes and ranges that are none, an action
/// whose bounds have another size. Errors: invalid_argument, beginning with the key ("observation[1].shape[0] is 0").
Result<void> check_env_spec(const EnvSpec& spec);

}  // namespace troupe::env
