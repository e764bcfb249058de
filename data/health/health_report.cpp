#include "data/health/health_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <tuple>

namespace troupe::data {

std::string HealthFinding::sentence() const {
  if (others.empty()) return text;
  constexpr std::size_t kListed = 8;
  std::string list;
  for (std::size_t i = 0; i < std::min(others.size(), kListed); ++i)
    list += fmt::format("{}{}", i == 0 ? "" : ", ", others[i]);
  return fmt::format("{} (episode {} and {} more: {}{})", text, episode, others.size(), list,
                     others.size() > kListed ? ", ..." : "");
}

void group_findings(std::vector<HealthFinding>& findings) {
  std::map<std::tuple<std::string, FindingLevel, std::string, std::string>, std::size_t> place_of;
  std::vector<HealthFinding> out;
  for (HealthFinding& f : findings) {
    // what is about the dataset as a whole stands alone
    if (f.episode < 0) {
      out.push_back(std::move(f));
      continue;
    }
    const auto [it, is_new] = place_of.try_emplace({f.code, f.level, f.path, cause_of(f.text)}, out.size());
    if (is_new) {
      out.push_back(std::move(f));
    } else {
      std::vector<std::int64_t>& others = out[it->second].others;
      if (f.episode != out[it->second].episode && (others.empty() || others.back() != f.episode))
        others.push_back(f.episode);
    }
  }
  findings = std::move(out);
}

Spread spread_of(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  return {.min = values.front(),
          .median = (values[(n - 1) / 2] + values[n / 2]) / 2,
          .max = values.back(),
          .mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(n)};
}

std::string dimension_label(const std::vector<std::string>& names, std::size_t d) {
  return d < names.size() ? fmt::format("[{}] {}", d, names[d]) : fmt::format("[{}]", d);
}

std::string dimension_labels(const std::vector<std::string>& names, const std::vector<std::size_t>& dims) {
  std::string out;
  for (const std::size_t d : dims) out += (out.empty() ? "" : ", ") + dimension_label(names, d);
  return out;
}

std::vector<std::string> HealthReport::names_of(const VectorKey& key) const {
  const ColumnReport* c = column(key.column);
  if (c == nullptr || key.end > static_cast<std::int64_t>(c->names.size())) return {};
  return {c->names.begin() + key.start, c->names.begin() + key.end};
}

std::int64_t HealthReport::usable_episodes() const {
  return std::count_if(episodes.begin(), episodes.end(), [](const EpisodeReport& e) { return e.problems == 0; });
}

std::int64_t HealthReport::count(FindingLevel level) const {
  return std::count_if(findings.begin(), findings.end(), [&](const HealthFinding& f) { return f.level == level; });
}

const ColumnReport* HealthReport::column(const std::string& name) const {
  const auto it = std::find_if(columns.begin(), columns.end(), [&](const ColumnReport& c) { return c.name == name; });
  return it == columns.end() ? nullptr : &*it;
}

}  // namespace troupe::data
