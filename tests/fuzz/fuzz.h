#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>

#include "base/check.h"
#include "base/result.h"
#include "tests/support/visible.h"

namespace troupe::testing {

/// Says that the reader does not take the input. The seeds of tests/fuzz/corpus are good ones: while tests/fuzz/run
/// reads them (TROUPE_FUZZ_SEEDS), a refusal ends the program.
inline void refused(const Error& error) {
  static const bool seeds = std::getenv("TROUPE_FUZZ_SEEDS") != nullptr;
  TROUPE_CHECK(!seeds, error.to_string());
}

/// libFuzzer's input as readers take it.
inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}
inline std::span<const std::byte> bytes_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const std::byte*>(data), size};
}

}  // namespace troupe::testing
