#include "base/metric_sinks.h"

#include <fmt/format.h>

#include <cmath>
#include <string_view>

#include "base/append_file.h"

namespace troupe::base {

namespace {

std::string_view non_finite_name(double value) {
  if (std::isnan(value)) return "NaN";
  return value > 0 ? "Infinity" : "-Infinity";
}

std::string json_number(double value) {
  return std::isfinite(value) ? fmt::format("{}", value) : fmt::format("\"{}\"", non_finite_name(value));
}

std::string json_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      out += fmt::format("\\{}", c);
    else if (static_cast<unsigned char>(c) < 0x20)
      out += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
    else
      out += c;
  }
  return out + '"';
}

std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + '"';
}

class JsonlSink final : public MetricSink {
 public:
  explicit JsonlSink(AppendFile file) : file_(std::move(file)) {}

  Result<void> write(std::int64_t step, double wall, std::int64_t samples,
                     const std::map<std::string, double>& values) override {
    std::string line =
        fmt::format("{{\"step\":{},\"wall\":{},\"samples\":{},\"m\":{{", step, json_number(wall), samples);
    const char* separator = "";
    for (const auto& [name, value] : values) {
      line += fmt::format("{}{}:{}", separator, json_string(name), json_number(value));
      separator = ",";
    }
    return file_.append(line + "}}\n");
  }
  Result<void> flush() override { return file_.flush(); }

 private:
  AppendFile file_;
};

class CsvSink final : public MetricSink {
 public:
  explicit CsvSink(AppendFile file) : file_(std::move(file)) {}

  Result<void> write(std::int64_t step, double wall, std::int64_t samples,
                     const std::map<std::string, double>& values) override {
    std::string lines;
    for (const auto& [name, value] : values) {
      const std::string number = std::isfinite(value) ? fmt::format("{}", value) : std::string(non_finite_name(value));
      lines += fmt::format("{},{},{},{},{}\n", step, wall, samples, csv_cell(name), number);
    }
    return file_.append(lines);
  }
  Result<void> flush() override { return file_.flush(); }

 private:
  AppendFile file_;
};

}  // namespace

Result<std::unique_ptr<MetricSink>> make_jsonl_sink(const std::string& path) {
  TROUPE_ASSIGN(AppendFile file, AppendFile::open(path, AppendFile::Open::resume));
  return std::unique_ptr<MetricSink>(std::make_unique<JsonlSink>(std::move(file)));
}

Result<std::unique_ptr<MetricSink>> make_csv_sink(const std::string& path) {
  TROUPE_ASSIGN(AppendFile file, AppendFile::open(path, AppendFile::Open::resume));
  if (file.size() == 0) TROUPE_TRY(file.append("step,wall,samples,name,value\n"));
  return std::unique_ptr<MetricSink>(std::make_unique<CsvSink>(std::move(file)));
}

}  // namespace troupe::base
