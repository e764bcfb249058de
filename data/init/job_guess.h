#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "configs/data_config.h"
#include "data/health/health_report.h"
#include "data/init/robot_guess.h"

namespace troupe::data {

/// The machine that is to train.
struct MachineFacts {
  std::int64_t cores = 1;
  std::int64_t memory_bytes = 0;
};

/// What first jobs extend.
inline constexpr const char* kFirstPreset = "presets/dreamzero_micro.yaml";

/// A fine-tuning job on kFirstPreset, guessed from a dataset's health and the machine.
struct JobGuess {
  std::string name;
  /// Of the canvas and of one view on it; pixels.
  std::int64_t canvas_height = 0, canvas_width = 0, view_height = 0, view_width = 0;
  WindowConfig window;
  /// Padded dimensions of the model, and tokens of a prompt.
  std::int64_t action_dim = 0, max_state_dim = 0, text_tokens = 0;
  std::int64_t ranks = 1, global_batch = 8, micro_batch = 8, steps = 600;
  double lr = 0;
  /// Empty: the dataset is too small to hold anything out.
  std::vector<std::int64_t> eval_episodes;
  /// Episodes with bad files, which are left out.
  std::int64_t bad_episodes = 0;
  /// What a policy is told, at most ten.
  std::vector<std::string> instructions;
  /// Name of a value above -> why this one, and what else could stand there.
  std::map<std::string, std::string> why;
};

/// Window, canvas, held-out episodes, batch and rate for what the dataset has and the machine can do. Pure.
/// Errors: failed_precondition (no usable episode; all are shorter than the shortest window), naming the numbers.
Result<JobGuess> guess_job(const HealthReport& report, const RobotGuess& robot, const MachineFacts& machine);

}  // namespace troupe::data
