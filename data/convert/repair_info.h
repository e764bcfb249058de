#pragma once

// Internal to data/convert: an info.json that its dataset's files contradict, made to fit them.
#include <string>
#include <vector>

#include "base/result.h"
#include "data/convert/dataset_source.h"

namespace troupe::data {

/// meta/info.json with what LeRobot would have written in place of keys that are missing or say nothing: version,
/// templates, chunk size, counts. Errors: what nothing else in the dataset tells, such as fps; those of read_json_file.
Result<JsonDoc> mend_info(const std::string& root, std::vector<std::string>& notes);

/// Features that are the columns of the table at `path`: columns that info.json lacks, others that the table lacks,
/// types and widths. Cameras stay. Errors: data_loss.
Result<void> mend_features(const std::string& path, JsonDoc& features, std::vector<std::string>& notes);

}  // namespace troupe::data
