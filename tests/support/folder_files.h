#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "tests/support/visible.h"

namespace troupe::testing {

/// Every file below a folder by its path from there, with its bytes: equal for folders that hold the same.
inline std::map<std::string, std::string> files_below(const std::string& folder) {
  std::map<std::string, std::string> all;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream in(entry.path(), std::ios::binary);
    all[entry.path().lexically_relative(folder).string()] = std::string(std::istreambuf_iterator<char>(in), {});
  }
  return all;
}

}  // namespace troupe::testing
