#include "workers/report/metric_file.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "base/file_io.h"

namespace troupe::workers {

namespace {

/// A number, or one of the words for those that JSON has not.
std::optional<double> number_of(const nlohmann::json& value) {
  if (value.is_number()) return value.get<double>();
  if (!value.is_string()) return std::nullopt;
  const auto& word = value.get_ref<const std::string&>();
  if (word == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (word == "Infinity") return std::numeric_limits<double>::infinity();
  if (word == "-Infinity") return -std::numeric_limits<double>::infinity();
  return std::nullopt;
}

}  // namespace

Result<MetricFile> read_metric_file(const std::string& path) {
  TROUPE_ASSIGN(const std::string text, read_file(path));
  MetricFile out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    const bool is_record = json.is_object() && json.contains("step") && json["step"].is_number_integer() &&
                           json.contains("m") && json["m"].is_object();
    if (!is_record) {
      ++out.damaged_lines;
      continue;
    }
    const auto step = json["step"].get<std::int64_t>();
    if (json.contains("wall") && json["wall"].is_number()) out.walls[step] = json["wall"].get<double>();
    for (const auto& [name, value] : json["m"].items()) {
      if (const auto number = number_of(value)) out.curves[name][step] = *number;
    }
  }
  return out;
}

MetricCurve metric_curve(const MetricFile& metrics, const std::string& metric, bool over_env_steps) {
  MetricCurve curve;
  const auto found = metrics.curves.find(metric);
  if (found == metrics.curves.end()) return curve;
  const auto env_steps = over_env_steps ? metrics.curves.find(kEnvSteps) : metrics.curves.end();
  const bool counts = env_steps != metrics.curves.end();
  double executed = 0;
  for (const auto& [step, value] : found->second) {
    if (counts) {
      const auto at = env_steps->second.find(step);
      if (at != env_steps->second.end()) executed = at->second;
    }
    curve.x.push_back(counts ? executed : static_cast<double>(step));
    curve.y.push_back(value);
  }
  return curve;
}

}  // namespace troupe::workers
