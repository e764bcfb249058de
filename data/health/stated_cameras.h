#pragma once

#include <map>
#include <string>
#include <vector>

#include "data/health/camera_facts.h"
#include "data/lerobot/lerobot_dataset.h"
#include "data/video/image_size.h"

namespace troupe::data {

/// What the files of one camera were found to be: video files by path, or the sizes of images in Parquet, each with
/// the tables that have it, in order.
struct FoundCamera {
  std::map<std::string, const ProbedVideos::File*> videos{};
  std::vector<std::pair<std::string, ImageSize>> images{};
};

/// D02 warnings: what info.json says of a camera (its shape, and the size, codec, pixel format and rate that LeRobot
/// writes into `info`) compared with its files. One finding for each fact, with the first file that differs.
void compare_with_info(const LerobotDataset& dataset, const NamedColumn& camera, const FoundCamera& found,
                       std::vector<HealthFinding>& findings);

/// D06: names the cameras that are depth maps, which no sample has as a view. A warning where meta/modality.json calls
/// one a view, else a note.
void name_depth_maps(const LerobotDataset& dataset, std::vector<HealthFinding>& findings);

}  // namespace troupe::data
