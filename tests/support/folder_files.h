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

/// Changes the lowest bit of a file's byte `at`; negative: counted from its end.
inline void flip_byte(const std::string& path, std::int64_t at) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  if (at < 0) at += static_cast<std::int64_t>(std::filesystem::file_size(path));
  file.seekg(at);
  const int byte = file.get();
  file.seekp(at);
  file.put(static_cast<char>(byte ^ 1));
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
