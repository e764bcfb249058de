#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/lerobot/dataset_problem.h"
#include "data/lerobot/lerobot_dataset.h"

namespace troupe::data {

/// A path template of info.json by which no file is found, while another well-known one finds files.
struct TemplateHint {
  /// data_path, video_path or chunks_size: the key of info.json that is wrong.
  std::string key;
  /// What info.json says, and what it would have to say.
  std::string said, wanted;
  /// For video_path: the camera; empty: data_path.
  std::string camera;

  /// D01 about info.json: what is said, what would find the files.
  DatasetProblem problem(const std::string& root) const;
  /// Is a problem of an episode the absence of a file that this template looks for?
  bool explains(const DatasetProblem& problem) const;
};

/// Looks for files of the first episodes (at most 50) by data_path and, camera by camera, by video_path; where there is
/// none, by the templates of LeRobot v1 to v3 and their usual variations, and by chunks_size 1000. Opens no file.
std::vector<TemplateHint> template_hints(const LerobotDataset& dataset);

}  // namespace troupe::data
