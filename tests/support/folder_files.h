#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "tests/support/visible.h"

namespace troupe::testing {

/// The bytes of a file; none where it cannot be read.
inline std::string text_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << in.rdbuf();  // a file of /proc whose process ends meanwhile fails here; an iterator would throw
  return bytes.str();
}

/// Names and bytes of the files in a folder that end in `extension`.
inline std::map<std::string, std::string> files_of(const std::string& folder, const std::string& extension) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == extension) files[entry.path().filename().string()] = text_of(entry.path().string());
  }
  return files;
}

/// Every file below a folder by its path from there, with its bytes: equal for folders that hold the same.
inline std::map<std::string, std::string> files_below(const std::string& folder) {
  std::map<std::string, std::string> all;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) all[entry.path().lexically_relative(folder).string()] = text_of(entry.path().string());
  }
  return all;
}

}  // namespace troupe::testing
