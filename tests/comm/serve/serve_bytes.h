#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/folder_files.h"

namespace troupe::comm {

/// Deadline of everything that a server's test waits for.
inline constexpr auto kPatience = std::chrono::milliseconds(20'000);

inline std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}
inline std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// The bytes of a file of tests/golden/serve.
inline std::vector<std::byte> fixture(const std::string& name) {
  const std::string text = testing::text_of(std::string(TROUPE_SOURCE_DIR) + "/tests/golden/serve/" + name);
  EXPECT_FALSE(text.empty()) << name;
  return bytes_of(text);
}

}  // namespace troupe::comm
