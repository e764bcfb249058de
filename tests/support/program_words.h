#pragma once

#include <unistd.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/support/visible.h"

namespace troupe::testing {

/// What execve and posix_spawn take; valid as long as `words` are.
inline std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

/// This process's environment, "NAME=value" each: `added` in the place of its own values, and none of `left_out`.
inline std::vector<std::string> variables_with(const std::map<std::string, std::string>& added,
                                               const std::set<std::string>& left_out = {}) {
  std::vector<std::string> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string text = *variable, name = text.substr(0, text.find('='));
    if (!added.contains(name) && !left_out.contains(name)) variables.push_back(text);
  }
  for (const auto& [name, value] : added) variables.push_back(name + "=" + value);
  return variables;
}

}  // namespace troupe::testing
