#pragma once

#include <string>

namespace troupe {

/// A finding about the files of a dataset; codes are those of data.md 6.3 ("D06"), docs/data.md lists them.
struct DatasetProblem {
  std::string code;
  std::string path;  ///< the file, or the dataset's folder
  std::string text;  ///< a sentence that names the file
};

}  // namespace troupe
