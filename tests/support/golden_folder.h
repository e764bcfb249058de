#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "tests/support/visible.h"

namespace troupe::testing {

/// One case of a golden folder: NAME.json, with tensors in NAME.safetensors when it has any.
struct GoldenCase {
  std::string name;
  std::string kind;
  std::filesystem::path folder;
  nlohmann::json json;

  std::filesystem::path tensors() const { return folder / (name + ".safetensors"); }
  friend std::ostream& operator<<(std::ostream& out, const GoldenCase& c) { return out << c.name; }
};

/// The case's name as GoogleTest takes it: everything but ASCII letters and digits becomes an underscore.
inline std::string golden_case_name(const GoldenCase& c) {
  std::string name = c.name;
  for (char& letter : name) {
    if (!std::isalnum(static_cast<unsigned char>(letter))) letter = '_';
  }
  return name;
}

/// Folder `part` below TROUPE_GOLDEN, or of the checkout's neighbour shared/golden.
inline std::filesystem::path golden_folder(const std::string& part) {
  const char* root = std::getenv("TROUPE_GOLDEN");
  return std::filesystem::path(root != nullptr ? root : TROUPE_SOURCE_DIR "/../shared/golden") / part;
}

/// Every case directly in the folder, by name. A file that is no JSON object has the kind "unreadable", which no test
/// knows.
inline std::vector<GoldenCase> golden_cases(const std::string& part) {
  std::vector<GoldenCase> cases;
  const auto folder = golden_folder(part);
  if (!std::filesystem::is_directory(folder)) return cases;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".json") continue;
    std::ifstream in(entry.path());
    auto json = nlohmann::json::parse(in, nullptr, /*allow_exceptions=*/false);
    const auto kind = json.is_object() ? json.value("kind", "") : std::string("unreadable");
    cases.push_back({entry.path().stem().string(), kind, folder, std::move(json)});
  }
  std::sort(cases.begin(), cases.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return cases;
}

/// The folder's cases of one kind.
inline std::vector<GoldenCase> golden_cases(const std::string& part, const std::string& kind) {
  auto cases = golden_cases(part);
  std::erase_if(cases, [&kind](const GoldenCase& c) { return c.kind != kind; });
  return cases;
}

/// Fails on a case whose kind is neither tested by the caller nor named as left to other tests or later work; prints
/// how many of the latter there are.
inline void expect_known_kinds(const std::string& part, const std::set<std::string>& tested,
                               const std::set<std::string>& elsewhere) {
  std::map<std::string, int> left;
  for (const auto& c : golden_cases(part)) {
    EXPECT_TRUE(tested.count(c.kind) + elsewhere.count(c.kind) > 0)
        << c.name << " has unknown kind \"" << c.kind << "\"";
    if (elsewhere.count(c.kind) > 0) ++left[c.kind];
  }
  for (const auto& [kind, count] : left) {
    std::cout << "golden " << part << ": " << count << " case(s) of kind " << kind
              << " are left to other tests or later work\n";
  }
}

}  // namespace troupe::testing
