#pragma once

#include <string>

#include "base/namespaces.h"

namespace troupe::base {

/// A word of a command as a POSIX shell takes it: unchanged where it has only letters, digits and ones of `_-./:=,+@%`,
/// else in single quotes.
inline std::string shell_word(const std::string& text) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string("_-./:=,+@%").find(c) != std::string::npos;
  };
  std::string out = "'";
  bool plain = !text.empty();
  for (const char c : text) {
    plain &= is_plain(c);
    out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  }
  return plain ? text : out + "'";
}

}  // namespace troupe::base
