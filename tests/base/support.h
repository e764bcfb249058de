#pragma once

#include <fstream>
#include <sstream>
#include <string>

#include "tests/support/visible.h"

namespace troupe::testing {

inline std::string read_file(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

}  // namespace troupe::testing
