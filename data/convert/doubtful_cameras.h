#pragma once

// Internal to data/convert: cameras that a conversion could lose without a word.
#include <arrow/type_fwd.h>

#include <string>
#include <vector>

#include "data/lerobot/lerobot_info.h"

namespace troupe::data {

/// A camera of which info.json and the files say different things: it is listed and nothing holds its frames, or
/// videos of it lie there and it is not listed.
struct DoubtfulCamera {
  std::string name;
  /// The code and a clause that names the file: "D06 camera 'x' has no file (...)".
  std::string why;
};

/// DoubtfulCamera::why of a listed camera without files.
std::string no_file_of(const std::string& camera, const std::string& where);

/// Cameras of dtype image that a readable table has no column of; all tables of a dataset have the same.
void add_absent_images(const LerobotInfo& info, const std::string& table, const arrow::Schema& columns,
                       std::vector<DoubtfulCamera>& out);

/// Videos in folders that stand where the template has the camera's name, of what info.json does not list as a camera.
void add_unlisted_cameras(const std::string& root, const LerobotInfo& info, std::vector<DoubtfulCamera>& out);

}  // namespace troupe::data
