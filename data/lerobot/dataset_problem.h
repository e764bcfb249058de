#pragma once

#include <string>

namespace troupe::data {

/// A finding about the files of a dataset; codes are those of docs/data.md#defects ("D06").
struct DatasetProblem {
  /// A letter and two digits: "D06".
  std::string code;
  /// The file, or the dataset's folder.
  std::string path;
  /// A sentence that names the file.
  std::string text;
};

}  // namespace troupe::data
