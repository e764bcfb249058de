#include "data/mixture_statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

namespace troupe::data {

namespace {

using Json = nlohmann::ordered_json;

Json to_json(const FeatureStatistics& s) {
  return {{"max", s.max}, {"min", s.min}, {"mean", s.mean}, {"std", s.std}, {"q01", s.q01}, {"q99", s.q99}};
}

/// The tag's entry of a dataset's own metadata.
Json entry_of(const Dataset& dataset) { return Json::parse(dataset.metadata_json()).at(dataset.spec().embodiment.tag); }

std::vector<std::string> key_names(const SampleColumns& columns) {
  std::vector<std::string> names;
  for (const VectorKey& key : columns.state) names.push_back(fmt::format("state.{}[{}]", key.name, key.width()));
  for (const ActionKey& key : columns.action)
    names.push_back(fmt::format("{}action.{}[{}]", key.relative ? "relative " : "", key.key.name, key.key.width()));
  return names;
}

Result<void> check_alike(const Dataset& a, const Dataset& b) {
  const auto refuse = [&](const std::string& what, const std::string& in_a, const std::string& in_b) {
    return invalid_argument(
        fmt::format("{} and {} have one embodiment tag, '{}', but differ in {}: {} and {}. Datasets of one tag are "
                    "normalised together; give one of them an embodiment with a tag of its own",
                    a.root(), b.root(), a.spec().embodiment.tag, what, in_a, in_b));
  };
  const auto listed = [](const std::vector<std::string>& names) { return fmt::format("{}", fmt::join(names, ", ")); };
  const auto keys_a = key_names(a.columns()), keys_b = key_names(b.columns());
  if (keys_a != keys_b) return refuse("keys", listed(keys_a), listed(keys_b));
  const Json of_a = entry_of(a).at("modalities"), of_b = entry_of(b).at("modalities");
  for (const auto& [section, value] : of_a.items()) {
    if (value != of_b.at(section)) return refuse("modalities." + section, value.dump(), of_b.at(section).dump());
  }
  return {};
}

/// Every key of some datasets merged; all have the keys of the first.
KeyStatistics merge_keys(const std::vector<const Dataset*>& members, std::span<const double> weights) {
  KeyStatistics out;
  const auto merge = [&](auto part, std::size_t count) {
    std::vector<FeatureStatistics> merged;
    for (std::size_t key = 0; key < count; ++key) {
      std::vector<const FeatureStatistics*> parts;
      for (const Dataset* d : members) parts.push_back(&(d->statistics().*part)[key]);
      merged.push_back(merge_features(parts, weights));
    }
    return merged;
  };
  out.state = merge(&KeyStatistics::state, members.front()->columns().state.size());
  out.action = merge(&KeyStatistics::action, members.front()->columns().action.size());
  return out;
}

/// The first member's entry with the merged statistics in place of its own.
Json merged_entry(const Dataset& first, const KeyStatistics& merged) {
  Json entry = entry_of(first);
  const SampleColumns& columns = first.columns();
  for (std::size_t i = 0; i < columns.state.size(); ++i)
    entry["statistics"]["state"][columns.state[i].name] = to_json(merged.state[i]);
  for (std::size_t i = 0; i < columns.action.size(); ++i)
    entry["statistics"]["action"][columns.action[i].key.name] = to_json(merged.action[i]);
  return entry;
}

}  // namespace

FeatureStatistics merge_features(std::span<const FeatureStatistics* const> parts, std::span<const double> weights) {
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  const std::size_t width = parts.front()->width();
  FeatureStatistics out;
  for (std::size_t d = 0; d < width; ++d) {
    // Deviations are taken from a mean, not from 0, so that equal constants keep a deviation of exactly 0.
    const double base = parts.front()->mean[d];
    double mean = base, variance = 0;
    for (std::size_t p = 0; p < parts.size(); ++p) mean += weights[p] / total * (parts[p]->mean[d] - base);
    for (std::size_t p = 0; p < parts.size(); ++p) {
      const double apart = parts[p]->mean[d] - mean, own = parts[p]->std[d];
      variance += weights[p] / total * (own * own + apart * apart);
    }
    const auto pick = [&](auto member, auto better) {
      double value = (parts.front()->*member)[d];
      for (const FeatureStatistics* part : parts) value = better(value, (part->*member)[d]);
      return value;
    };
    const auto least = [](double a, double b) { return std::min(a, b); };
    const auto most = [](double a, double b) { return std::max(a, b); };
    out.mean.push_back(mean);
    out.std.push_back(std::sqrt(variance));
    out.min.push_back(pick(&FeatureStatistics::min, least));
    out.max.push_back(pick(&FeatureStatistics::max, most));
    out.q01.push_back(pick(&FeatureStatistics::q01, least));
    out.q99.push_back(pick(&FeatureStatistics::q99, most));
  }
  return out;
}

Result<MixtureStatistics> mixture_statistics(std::span<const std::shared_ptr<const Dataset>> datasets,
                                             std::span<const double> shares) {
  MixtureStatistics out;
  out.of_dataset.resize(datasets.size());
  if (datasets.size() == 1) {
    out.of_dataset[0] = datasets[0]->statistics();
    out.metadata_json = datasets[0]->metadata_json();
    return out;
  }
  Json metadata = Json::object();
  for (std::size_t first = 0; first < datasets.size(); ++first) {
    const std::string& tag = datasets[first]->spec().embodiment.tag;
    if (metadata.contains(tag)) continue;
    std::vector<const Dataset*> members;
    std::vector<double> weights;
    std::vector<std::size_t> places;
    for (std::size_t i = first; i < datasets.size(); ++i) {
      if (datasets[i]->spec().embodiment.tag != tag) continue;
      TROUPE_TRY(check_alike(*datasets[first], *datasets[i]));
      members.push_back(datasets[i].get());
      weights.push_back(shares[i]);
      places.push_back(i);
    }
    const bool alone = members.size() == 1;
    const KeyStatistics merged = alone ? members.front()->statistics() : merge_keys(members, weights);
    for (const std::size_t i : places) out.of_dataset[i] = merged;
    metadata[tag] = alone ? entry_of(*members.front()) : merged_entry(*members.front(), merged);
  }
  out.metadata_json = metadata.dump(1);
  return out;
}

}  // namespace troupe::data
