#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "data/lerobot/lerobot_info.h"
#include "data/lerobot/modality.h"
#include "tests/data/data_test_support.h"
#include "tests/support/golden_folder.h"

namespace troupe::data {

/// What a dataset must have for a golden case to be about it: dimensions of vector columns, and of the keys of its
/// state and action.
struct DatasetTraits {
  std::map<std::string, std::size_t> columns{}, state{}, action{};
  bool empty() const { return columns.empty() && state.empty() && action.empty(); }
};

inline bool has_traits(const std::string& root, const DatasetTraits& traits) {
  const auto info = read_lerobot_info(root);
  if (!info) return false;
  for (const auto& [name, width] : traits.columns) {
    const LerobotFeature* feature = info->find(name);
    if (feature == nullptr) return false;
    if (feature->width() != static_cast<std::int64_t>(width)) return false;
  }
  if (traits.state.empty() && traits.action.empty()) return true;
  const auto modality = read_modality(root, *info);
  if (!modality) return false;
  const auto has_keys = [](const std::vector<VectorKey>& keys, const std::map<std::string, std::size_t>& wanted) {
    return std::all_of(wanted.begin(), wanted.end(), [&](const auto& w) {
      return std::any_of(keys.begin(), keys.end(),
                         [&](const VectorKey& k) { return k.name == w.first && k.width() == w.second; });
    });
  };
  return has_keys(modality->state, traits.state) && has_keys(modality->action, traits.action);
}

/// Root of the dataset that a case is about, below the case's folder or the shared data: the one that its key
/// "dataset" names, else the only one there with these traits. Empty where it is not here, which is printed. Fails
/// where a case names none and several have the traits.
inline std::string dataset_of(const testing::GoldenCase& c, const DatasetTraits& traits) {
  const std::string named = c.json.value("dataset", "");
  std::vector<std::string> found;
  for (const std::filesystem::path& folder : {c.folder, std::filesystem::path(shared_data())}) {
    std::error_code absent;
    for (const auto& entry : std::filesystem::directory_iterator(folder, absent)) {
      if (!std::filesystem::exists(entry.path() / "meta/info.json")) continue;
      const std::string root = entry.path().string();
      if (named.empty() ? !traits.empty() && has_traits(root, traits) : entry.path().filename() == named)
        found.push_back(root);
    }
  }
  if (found.empty()) {
    std::cout << c.file.string() << ": " << (named.empty() ? "no dataset with its columns" : "no dataset " + named)
              << " in " << c.folder.string() << " or " << shared_data() << "\n";
    return {};
  }
  if (named.empty() && found.size() > 1)
    ADD_FAILURE() << c.file << " has no key \"dataset\", and both " << found[0] << " and " << found[1]
                  << " have its columns";
  return found[0];
}

/// The dimensions of the statistics {"NAME": {"mean": [...], ...}, ...}.
inline std::map<std::string, std::size_t> widths_of(const OrderedJson& statistics) {
  std::map<std::string, std::size_t> out;
  for (const auto& [name, values] : statistics.items()) out[name] = values.at("mean").size();
  return out;
}

/// How far ours may be from golden `statistics`. GEAR sums float32 columns in float32; its relative statistics are
/// float64 throughout.
inline constexpr double kRuntimeMoments = 3e-5, kRuntimeQuantiles = 1e-6, kRelative = 1e-9;

/// Whether a golden file is about an episode: it names that one, or none.
inline bool is_about(const OrderedJson& file, std::int64_t episode) {
  return !file.contains("episodes") ||
         std::find(file["episodes"].begin(), file["episodes"].end(), episode) != file["episodes"].end();
}

/// The key of a modality that has this name.
inline const VectorKey& key_named(const std::vector<VectorKey>& keys, const std::string& name) {
  return *std::find_if(keys.begin(), keys.end(), [&](const VectorKey& k) { return k.name == name; });
}

/// A golden case with its dataset.
struct DatasetCase {
  testing::GoldenCase source;
  OrderedJson json;
  std::string root;
};

/// The cases of kind `statistics` whose dataset is here; relative statistics are of keys that state and action share.
inline std::vector<DatasetCase> statistics_cases() {
  std::vector<DatasetCase> out;
  for (const testing::GoldenCase& c : golden_data_cases("statistics")) {
    OrderedJson json = parse_golden(c);
    const auto relative = widths_of(part_of(json, "relative_statistics"));
    const std::string root = dataset_of(
        c, {.columns = widths_of(part_of(json, "runtime_statistics")), .state = relative, .action = relative});
    if (!root.empty()) out.push_back({c, std::move(json), root});
  }
  return out;
}

}  // namespace troupe::data
