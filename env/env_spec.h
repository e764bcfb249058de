#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace troupe {

/// How an observation is stored in a block. Actions are always f32; a discrete action is its index, 0 to n - 1.
enum class EnvDType : std::uint8_t { u8, f32, f64 };
constexpr std::int64_t env_dtype_bytes(EnvDType type) {
  return type == EnvDType::u8 ? 1 : type == EnvDType::f32 ? 4 : 8;
}

/// One named part of an observation or action, without batch dimension. Bounds hold for every element; infinite ones are
/// allowed. Names are flat and dot separated (sim.md 1.1): "state", "rgb.front", "depth.front", "seg.front". Images are
/// u8 [H,W,3] (HWC), depth f32 [H,W] in metres with 0 for no hit, seg u8 [H,W].
struct EnvField {
  std::string name;
  std::vector<std::int64_t> shape;
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  std::string unit = {};
  EnvDType dtype = EnvDType::f32;

  std::int64_t numel() const {
    std::int64_t n = 1;
    for (const std::int64_t d : shape) n *= d;
    return n;
  }
  std::int64_t bytes() const { return numel() * env_dtype_bytes(dtype); }
};

/// What an environment takes: a vector of `size` numbers in [low, high], or one of `choices` actions.
struct ActionSpace {
  std::int64_t choices = 0;      ///< above 0: discrete; `size` is then 1 and low, high are unused
  std::int64_t size = 1;         ///< A
  std::vector<float> low, high;  ///< of each dimension
  std::string unit = {};

  bool is_discrete() const { return choices > 0; }
};

/// What an environment is. One per registry row and options; constant for the life of its environments.
struct EnvSpec {
  std::string id;                     ///< "HalfCheetah-v5", "arm7/lift-v1"
  std::vector<EnvField> observation;  ///< the order is the memory order
  ActionSpace action;
  std::vector<std::string> info;  ///< names of the f64 values a step reports beside the reward, such as "x_position"
  bool has_success = false;       ///< steps say whether the task is solved
  bool observes_on_demand =
      false;  ///< observations are dear (images): step() may be given none to write, and Env::observe() is asked
  std::int64_t max_steps = 0;   ///< control steps after which the pool truncates; 0: never
  double control_hz = 0;        ///< control steps per simulated second; 0: no unit of time
  std::int64_t frame_skip = 1;  ///< physics steps per control step
  double reward_threshold =
      std::numeric_limits<double>::quiet_NaN();  ///< mean return that counts as solved; NaN: none stated
  std::vector<std::string> cameras;              ///< names that render() takes
};

}  // namespace troupe
