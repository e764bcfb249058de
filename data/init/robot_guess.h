#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "configs/embodiment_config.h"
#include "data/health/health_report.h"
#include "data/init/dataset_facts.h"

namespace troupe::data {

/// A robot guessed from a dataset, and why.
struct RobotGuess {
  EmbodimentConfig embodiment;
  /// Field of the embodiment -> a sentence or two: why this value, and what else could stand there.
  std::map<std::string, std::string> why;
  /// "state.arm" -> the names of its dimensions; absent where info.json names none.
  std::map<std::string, std::vector<std::string>> joints;
  /// Of one view as its files are; pixels.
  std::int64_t view_height = 0, view_width = 0;
};

/// What metadata alone say: views of one size that have files, keys by modality.json or by the names of joints, the
/// label of rows, and which action keys may be relative. Pure.
/// Errors: failed_precondition (no camera that can be used, no action), naming what the dataset has.
Result<RobotGuess> guess_robot(const DatasetFacts& facts);

/// What statistics add, of the health of the dataset for guess.embodiment: keys that never move go, action keys that
/// do not follow the state are no more relative, and the normalisation suits the values. Pure.
void judge_by_statistics(const HealthReport& report, RobotGuess& guess);

}  // namespace troupe::data
