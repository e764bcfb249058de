#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "tests/support/visible.h"

namespace troupe::testing {

/// One case of a golden folder: NAME.json, with tensors in NAME.safetensors when it has any.
struct GoldenCase {
  /// The file's stem; "NAME.committed" for a case of tests/golden whose name another root has with other contents.
  std::string name;
  /// Field `kind` of the JSON; "" without one, "unreadable" for a file that is no JSON object.
  std::string kind;
  std::filesystem::path folder, file;
  nlohmann::json json;

  std::filesystem::path tensors() const {
    auto path = file;
    return path.replace_extension(".safetensors");
  }
  friend std::ostream& operator<<(std::ostream& out, const GoldenCase& c) { return out << c.name; }
};

/// The case's name as GoogleTest takes it: everything but ASCII letters and digits becomes an underscore.
inline std::string golden_case_name(const ::testing::TestParamInfo<GoldenCase>& c) {
  std::string name = c.param.name;
  for (char& letter : name) {
    if (!std::isalnum(static_cast<unsigned char>(letter))) letter = '_';
  }
  return name;
}

/// Where golden cases are: the folder that TROUPE_GOLDEN names (unset or empty: shared/golden beside the checkout),
/// then the cases that are committed. Only those that exist; GoldenListTest fails where TROUPE_GOLDEN names no folder.
inline std::vector<std::filesystem::path> golden_roots() {
  const char* named = std::getenv("TROUPE_GOLDEN");
  std::vector<std::filesystem::path> roots = {
      named != nullptr && *named != 0 ? named : TROUPE_SOURCE_DIR "/../shared/golden",
      TROUPE_SOURCE_DIR "/tests/golden"};
  std::error_code absent;
  if (std::filesystem::equivalent(roots[0], roots[1], absent)) roots.pop_back();
  std::erase_if(roots, [](const auto& root) { return !std::filesystem::is_directory(root); });
  return roots;
}

/// The roots in words, for what a test says when none of them has what it needs.
inline std::string golden_roots_text() {
  std::string text;
  for (const auto& root : golden_roots()) text += (text.empty() ? "" : " and ") + root.string();
  return text.empty() ? "any golden folder (there is none)" : text;
}

/// `path` below the first root that has it, such as "data/decode_frames.safetensors"; empty where none has.
inline std::filesystem::path find_golden(const std::string& path) {
  for (const auto& root : golden_roots()) {
    if (std::filesystem::exists(root / path)) return root / path;
  }
  return {};
}

/// Whether two files have the same bytes, or are both absent.
inline bool equal_golden_files(const std::filesystem::path& a, const std::filesystem::path& b) {
  if (!std::filesystem::exists(a) || !std::filesystem::exists(b))
    return std::filesystem::exists(a) == std::filesystem::exists(b);
  if (std::filesystem::file_size(a) != std::filesystem::file_size(b)) return false;
  std::ifstream x(a, std::ios::binary), y(b, std::ios::binary);
  return std::equal(std::istreambuf_iterator<char>(x), {}, std::istreambuf_iterator<char>(y), {});
}

/// Every case directly in folder `part` of every root, by name. A case that two roots have byte for byte is listed
/// once.
inline std::vector<GoldenCase> golden_cases(const std::string& part) {
  std::vector<GoldenCase> cases;
  for (const auto& root : golden_roots()) {
    if (!std::filesystem::is_directory(root / part)) continue;
    for (const auto& entry : std::filesystem::directory_iterator(root / part)) {
      if (entry.path().extension() != ".json") continue;
      std::ifstream in(entry.path());
      auto json = nlohmann::json::parse(in, nullptr, /*allow_exceptions=*/false);
      const auto kind = json.is_object() ? json.value("kind", "") : std::string("unreadable");
      GoldenCase found{entry.path().stem().string(), kind, root / part, entry.path(), std::move(json)};
      const auto twin = std::find_if(cases.begin(), cases.end(), [&](const auto& c) { return c.name == found.name; });
      if (twin != cases.end()) {
        if (equal_golden_files(twin->file, found.file) && equal_golden_files(twin->tensors(), found.tensors()))
          continue;
        found.name += ".committed";
      }
      cases.push_back(std::move(found));
    }
  }
  std::sort(cases.begin(), cases.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return cases;
}

/// The folders' cases of one kind.
inline std::vector<GoldenCase> golden_cases(const std::string& part, const std::string& kind) {
  auto cases = golden_cases(part);
  std::erase_if(cases, [&kind](const GoldenCase& c) { return c.kind != kind; });
  return cases;
}

/// Fails on a case whose kind is neither tested by the caller nor named as left to other tests or later work; prints
/// how many of the latter there are, and the tested kinds that no root has a case of.
inline void expect_known_kinds(const std::string& part, const std::set<std::string>& tested,
                               const std::set<std::string>& elsewhere) {
  std::map<std::string, int> left;
  std::set<std::string> missing = tested;
  for (const auto& c : golden_cases(part)) {
    EXPECT_TRUE(tested.count(c.kind) + elsewhere.count(c.kind) > 0)
        << c.file << " has unknown kind \"" << c.kind << "\"";
    if (elsewhere.count(c.kind) > 0) ++left[c.kind];
    missing.erase(c.kind);
  }
  for (const auto& [kind, count] : left) {
    std::cout << "golden " << part << ": " << count << " case(s) of kind " << kind
              << " are left to other tests or later work\n";
  }
  for (const auto& kind : missing)
    std::cout << "golden " << part << ": no case of kind " << kind << " in " << golden_roots_text() << "\n";
}

}  // namespace troupe::testing
