#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "data/lerobot/lerobot_info.h"
#include "data/lerobot/modality.h"

namespace troupe::data {

/// A camera that the metadata name, and what its files are.
struct CameraFacts {
  /// Short name, and the feature of info.json.
  std::string name, feature;
  /// Of the first episode's video; of images in tables what info.json says. 0: no file was found.
  std::int64_t height = 0, width = 0;
  /// Episodes whose file is there.
  std::int64_t episodes = 0;
  /// Why training cannot use it; empty: it can.
  std::string trouble{};
};

/// What metadata and a look at the first files say of a dataset, before its tables are read.
struct DatasetFacts {
  /// Absolute.
  std::string root;
  LerobotInfo info;
  Modality modality;
  /// meta/modality.json is there.
  bool has_modality = false;
  /// In the order of modality.json or info.json; those that modality.json leaves out come last.
  std::vector<CameraFacts> cameras;
  std::int64_t episodes = 0;
};

/// Reads metadata, and the head of one video per camera. Errors: those of LerobotDataset::open and read_modality.
Result<DatasetFacts> read_dataset_facts(const std::string& path_or_repo_id);

}  // namespace troupe::data
