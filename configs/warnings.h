#pragma once

#include <string>
#include <vector>

#include "configs/job_config.h"

namespace troupe::configs {

/// The learning rate of presets/dreamzero_tiny.yaml, which trains from random values.
inline constexpr double kLrFromRandom = 3e-3;
/// The rate to try after training has diverged at `rate`.
double lower_rate(double rate);

/// Below this rate a model with random values hardly moves.
inline constexpr double kLeastLrFromRandom = 1e-4;

/// A doubt about a job that passed every check: it can run, and probably does not do what was meant.
struct ConfigWarning {
  /// The key to look at.
  std::string key;
  /// Begins with the key.
  std::string message;
  /// What to write instead; may be empty.
  std::string fix;
};

/// Adapters on random weights, a rate of 0, a rate of fine-tuning on random weights, a dataset that is named twice. In
/// the order of the sections. Looks at the file system only to see whether two paths are one folder.
std::vector<ConfigWarning> find_warnings(const JobConfig& job);

}  // namespace troupe::configs
