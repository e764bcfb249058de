#pragma once

#include <cstdio>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "base/result.h"

namespace troupe::bench {

/// The value, or std::runtime_error with the error's text.
template <class T>
T must(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().to_string());
  if constexpr (!std::is_void_v<T>) return std::move(result).value();
}

/// The exit status of a program: that of `body`, or `failed` after an exception, whose text goes to stderr.
template <class Body>
int exit_status(const std::string& program, int failed, Body body) {
  try {
    return body();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s: %s\n", program.c_str(), e.what());
    return failed;
  }
}

}  // namespace troupe::bench
