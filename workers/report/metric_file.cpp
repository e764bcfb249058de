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
    for (const auto& [name, value] : json["m"].items()) {
      if (const auto number = number_of(value)) out.curves[name][step] = *number;
    }
  }
  return out;
}

}  // namespace troupe::workers
