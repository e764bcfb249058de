#include "data/health/episode_stats_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "data/lerobot/episodes_table.h"
#include "data/lerobot/json_lines.h"
#include "data/lerobot/json_text.h"

namespace troupe::data {

namespace {

/// How far a stated number may be off, as a share of max - min: an episode is short, and some writers divide by n - 1.
constexpr double kTolerance = 0.02;
/// The same as a share of the largest value: sums of float32.
constexpr double kRounding = 1e-5;

constexpr std::array kStatistics = {"min", "max", "mean", "std"};

/// A list of numbers; what is no number is a NaN, which equals nothing.
std::vector<double> numbers_of(const nlohmann::json& json) {
  std::vector<double> out;
  for (const nlohmann::json& value : json)
    out.push_back(value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN());
  return out;
}

std::string name_of(const char* statistic, const std::string& column) {
  return fmt::format("{} of '{}'", statistic, column);
}

}  // namespace

EpisodeStatsCheck::EpisodeStatsCheck(const LerobotDataset& dataset, std::vector<std::string> columns)
    : columns_(std::move(columns)) {
  if (dataset.info().is_v3()) {
    path_ = dataset.root() + "/meta/episodes";
    read_tables(dataset);
    return;
  }
  path_ = dataset.root() + "/meta/episodes_stats.jsonl";
  std::error_code absent;
  if (std::filesystem::exists(path_, absent)) read_lines();
}

void EpisodeStatsCheck::read_lines() {
  const auto read = each_json_line(path_, [&](const JsonLine& line) -> Result<void> {
    const auto json = parse_json<nlohmann::json>(line.text);
    if (!json || !json->is_object() || !json->contains("stats") || !(*json)["stats"].is_object() ||
        !json->contains("episode_index") || !(*json)["episode_index"].is_number_integer()) {
      if (unreadable_.empty())
        unreadable_ = fmt::format("{} line {}: {}", path_, line.number,
                                  json ? "it has no episode_index and stats" : json.error().message());
      return {};
    }
    Stated& stated = episodes_[(*json)["episode_index"].get<std::int64_t>()].stated;
    for (const std::string& column : columns_) {
      const nlohmann::json statistics = (*json)["stats"].value(column, nlohmann::json::object());
      for (const char* name : kStatistics) {
        if (statistics.contains(name)) stated[name_of(name, column)] = numbers_of(statistics[name]);
      }
    }
    return {};
  });
  if (!read) unreadable_ = read.error().message();
}

void EpisodeStatsCheck::read_tables(const LerobotDataset& dataset) {
  TableColumns wanted;
  wanted.integers = {"episode_index"};
  for (const std::string& column : columns_) {
    for (const char* name : kStatistics) wanted.optional_vectors.push_back(fmt::format("stats/{}/{}", column, name));
  }
  for (const std::string& file : episode_table_files(dataset.root())) {
    const auto table = read_parquet(file, wanted);
    if (!table) {
      unreadable_ = table.error().message();
      continue;
    }
    const std::vector<std::int64_t>& index = table->integers.at("episode_index");
    for (std::size_t row = 0; row < index.size(); ++row) {
      for (const std::string& column : columns_) {
        for (const char* name : kStatistics) {
          const auto it = table->vectors.find(fmt::format("stats/{}/{}", column, name));
          if (it == table->vectors.end()) continue;
          const auto values = it->second.row(static_cast<std::int64_t>(row));
          episodes_[index[row]].stated[name_of(name, column)] = {values.begin(), values.end()};
        }
      }
    }
  }
}

void EpisodeStatsCheck::compare(std::int64_t episode, const EpisodeTable& table) {
  const auto it = episodes_.find(episode);
  if (it == episodes_.end() || table.rows == 0) return;
  for (const std::string& column : columns_) {
    const auto values = table.vectors.find(column);
    if (values == table.vectors.end()) continue;
    for (std::size_t d = 0; d < values->second.width && it->second.differs.empty(); ++d)
      compare_dimension(episode, it->second, column, values->second, d);
  }
}

void EpisodeStatsCheck::compare_dimension(std::int64_t episode, Entry& entry, const std::string& column,
                                          const VectorColumn& values, std::size_t d) const {
  const std::size_t count = values.values.size() / values.width;
  double low = values.values[d], high = low, sum = 0, squares = 0;
  for (std::size_t r = 0; r < count; ++r) {
    const double x = values.values[r * values.width + d];
    low = std::min(low, x);
    high = std::max(high, x);
    sum += x;
  }
  const double mean = sum / static_cast<double>(count);
  for (std::size_t r = 0; r < count; ++r) squares += std::pow(values.values[r * values.width + d] - mean, 2);
  const std::array found = {low, high, mean, std::sqrt(squares / static_cast<double>(count))};
  const double slack = kTolerance * (high - low) + kRounding * std::max({1.0, std::abs(low), std::abs(high)});
  for (std::size_t s = 0; s < kStatistics.size(); ++s) {
    const std::string name = name_of(kStatistics[s], column);
    const auto stated = entry.stated.find(name);
    if (stated == entry.stated.end()) continue;
    const std::vector<double>& numbers = stated->second;
    if (numbers.size() == values.width && std::abs(numbers[d] - found[s]) <= slack) continue;
    entry.differs = numbers.size() == values.width
                        ? fmt::format("{}[{}] of episode {} is {:.6g}; its table gives {:.6g}", name, d, episode,
                                      numbers[d], found[s])
                        : fmt::format("{} of episode {} has {} numbers; its table has {}", name, episode,
                                      numbers.size(), values.width);
    return;
  }
}

void EpisodeStatsCheck::report(std::vector<HealthFinding>& findings) const {
  const auto warn = [&](std::string text) {
    findings.push_back({"D12", FindingLevel::warning, path_, std::move(text), -1});
  };
  if (!unreadable_.empty()) warn(unreadable_ + " (training does not use statistics of episodes)");
  std::vector<const Entry*> differing;
  for (const auto& [index, entry] : episodes_) {
    if (!entry.differs.empty()) differing.push_back(&entry);
  }
  if (differing.empty()) return;
  const std::string more = differing.size() > 1 ? fmt::format(" (and {} more differ)", differing.size() - 1) : "";
  warn(
      fmt::format("{}: {}{}. It was made of other data; training does not use it, but other programs and a "
                  "conversion do",
                  path_, differing.front()->differs, more));
}

}  // namespace troupe::data
