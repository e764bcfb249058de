#pragma once

#include <string>
#include <vector>

#include "data/health/health_report.h"
#include "data/lerobot/lerobot_dataset.h"
#include "data/lerobot/modality.h"

namespace troupe::data {

/// D01 problem: a dataset that lists no feature or no episode (all of them discarded, say). Empty: it has both.
std::vector<HealthFinding> find_nothing_listed(const LerobotDataset& dataset);

/// D02 warnings: cameras and columns that meta/modality.json names and info.json does not have.
void check_modality_names(const LerobotDataset& dataset, const Modality& modality,
                          std::vector<HealthFinding>& findings);

/// D01 problems: what a job that names no keys and no views is refused for: a state or an action that is no list of
/// numbers, a meta/modality.json without a camera where there are some.
void check_default_keys(const LerobotDataset& dataset, const Modality& modality, std::vector<HealthFinding>& findings);

/// D01 problem: a meta/step_filter.jsonl that cannot be read.
void check_step_filter(const LerobotDataset& dataset, std::vector<HealthFinding>& findings);

/// D02 notes: columns that have several names, but not one for each number.
void note_names(const LerobotDataset& dataset, std::vector<HealthFinding>& findings);

/// What became of the cameras of info.json whose frames are videos.
struct CameraFiles {
  /// Features without any file that nothing but the feature table speaks of: they were never recorded.
  std::vector<std::string> never_recorded;
  /// Features without any file that should have some: the episodes' tables (v3) or meta/modality.json name them, or
  /// total_videos counts more videos than there are.
  std::vector<std::string> gone;
};

/// Looks for the files of every camera, and compares total_videos and total_chunks of info.json with what is there (v2;
/// D02 warnings, also for cameras that were never recorded). `modality_file`: meta/modality.json exists.
CameraFiles check_camera_files(const LerobotDataset& dataset, const Modality& modality, bool modality_file,
                               std::vector<HealthFinding>& findings);

}  // namespace troupe::data
