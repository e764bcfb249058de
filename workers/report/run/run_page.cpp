#include "workers/report/run/run_page.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "base/durable_file.h"
#include "base/file_io.h"
#include "base/page/html.h"
#include "configs/loader.h"
#include "placement/render.h"
#include "workers/report/metric_charts.h"
#include "workers/report/run/config_page.h"

namespace troupe::workers {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMediaBytes = std::int64_t{6} << 20;
constexpr std::size_t kEventsShown = 300;

std::string part(const std::string& title, const std::string& body) {
  return body.empty() ? "" : fmt::format("<h2>{}</h2>\n{}", title, body);
}

Result<MetricFile> metrics_of(const RunDirectory& run, const RunStatistics* statistics) {
  const std::string path = run.path("metrics.jsonl");
  if (fs::exists(path)) return read_metric_file(path);
  MetricFile metrics;
  if (statistics == nullptr) return metrics;
  for (const auto& [name, curve] : statistics->curves()) {
    for (const RunCurve::Point& p : curve.points()) metrics.curves[name][p.step] = p.value;
  }
  return metrics;
}

/// Files below RUN/eval, the newest step first, then by name.
std::vector<fs::path> evaluation_files(const RunDirectory& run) {
  std::vector<fs::path> files;
  std::error_code code;
  for (const auto& entry : fs::recursive_directory_iterator(run.path("eval"), code)) {
    if (entry.is_regular_file(code)) files.push_back(fs::relative(entry.path(), run.root()));
  }
  std::sort(files.begin(), files.end(), [](const fs::path& a, const fs::path& b) {
    const auto step = [](const fs::path& p) { return *std::next(p.begin()); };
    return step(a) != step(b) ? step(a) > step(b) : a < b;
  });
  return files;
}

/// Pictures and videos, as many as fit; the others by name.
Result<std::string> pictures(const RunDirectory& run) {
  std::string out, left_out;
  std::int64_t bytes = 0;
  for (const fs::path& file : evaluation_files(run)) {
    const bool is_video = file.extension() == ".mp4";
    if (!is_video && file.extension() != ".png") continue;
    const std::string name = escape_html(file.string());
    TROUPE_ASSIGN(const std::string content, read_file(run.path(file.string())));
    if (bytes + static_cast<std::int64_t>(content.size()) > kMediaBytes) {
      left_out += fmt::format("<li>{}</li>\n", name);
      continue;
    }
    bytes += static_cast<std::int64_t>(content.size());
    const std::string element =
        is_video ? fmt::format("<video controls muted src=\"{}\"></video>", data_uri("video/mp4", content))
                 : fmt::format("<img alt=\"{}\" src=\"{}\">", name, data_uri("image/png", content));
    out += fmt::format("<figure>{}<figcaption>{}</figcaption></figure>\n", element, name);
  }
  if (!left_out.empty()) out += "<p>Not in this page, for its size:</p>\n<ul>" + left_out + "</ul>\n";
  return out;
}

/// The numbers of a JSON value as rows "a.b  0.5"; longer lists and texts are left to the file.
void add_rows(const nlohmann::json& json, const std::string& name, std::vector<std::vector<std::string>>& rows) {
  if (json.is_object()) {
    for (const auto& [key, value] : json.items()) add_rows(value, name.empty() ? key : name + "." + key, rows);
  } else if (json.is_number_float()) {
    rows.push_back({escape_html(name), fmt::format("{:.6g}", json.get<double>())});
  } else if (json.is_number() || json.is_boolean()) {
    rows.push_back({escape_html(name), json.dump()});
  }
}

/// What `troupe eval` and the run's own last evaluation left.
Result<std::string> evaluations(const RunDirectory& run, const MetricFile& metrics) {
  std::string out;
  std::vector<std::vector<std::string>> rows;
  for (const auto& [name, values] : metrics.curves) {
    if (name.rfind("eval/", 0) != 0 || values.empty()) continue;
    rows.push_back({escape_html(name), fmt::format("{:.6g}", values.begin()->second),
                    fmt::format("{:.6g}", values.rbegin()->second), std::to_string(values.rbegin()->first)});
  }
  out += html_table({{"metric"}, {"first", true}, {"last", true}, {"at step", true}}, rows);
  for (const fs::path& file : evaluation_files(run)) {
    if (file.filename() != "eval.json") continue;
    TROUPE_ASSIGN(const std::string text, read_file(run.path(file.string())));
    const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
    rows.clear();
    if (json.is_object()) add_rows(json.contains("overall") ? json["overall"] : json, "", rows);
    out += fmt::format("<h3>{}</h3>\n", escape_html(file.string()));
    out += rows.empty() ? "<p class=\"warning\">It holds no JSON object with numbers.</p>\n"
                        : html_table({{"overall"}, {"value", true}}, rows);
  }
  return out;
}

std::string utc_text(double wall_seconds) {
  return fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::gmtime(static_cast<std::time_t>(wall_seconds)));
}

/// The newest events.
Result<std::string> events(const RunDirectory& run) {
  if (!fs::exists(run.events())) return std::string();
  TROUPE_ASSIGN(const std::string text, read_file(run.events()));
  std::vector<std::vector<std::string>> rows;
  std::int64_t damaged = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object() || !json.contains("text")) {
      ++damaged;
      continue;
    }
    const std::string severity = escape_html(json.value("severity", std::string()));
    rows.push_back({utc_text(json.value("wall", 0.0)), fmt::format("<span class=\"{0}\">{0}</span>", severity),
                    std::to_string(json.value("step", std::int64_t{0})), escape_html(json.value("kind", std::string())),
                    escape_html(json.value("text", std::string()))});
  }
  std::string note;
  if (rows.size() > kEventsShown) {
    note = fmt::format("<p>The newest {} of {}; all are in events.jsonl.</p>\n", kEventsShown, rows.size());
    rows.erase(rows.begin(), rows.end() - static_cast<std::ptrdiff_t>(kEventsShown));
  }
  if (damaged > 0) note += fmt::format("<p class=\"warning\">{} lines of events.jsonl hold no event.</p>\n", damaged);
  return note + html_table({{"UTC"}, {"severity"}, {"step", true}, {"kind"}, {"text"}}, rows, /*stacks=*/true);
}

/// Without one the run goes on, or was killed.
Result<std::string> closing_report(const RunDirectory& run) {
  const std::string path = run.path("report.txt");
  if (!fs::exists(path)) return std::string("<p class=\"note\">This run has no closing report.</p>\n");
  TROUPE_ASSIGN(const std::string text, read_file(path));
  return html_lines(text);
}

Result<std::string> plan_of(const RunDirectory& run, const JobConfig& job) {
  if (!fs::exists(run.plan())) return std::string();
  TROUPE_ASSIGN(const std::string text, read_file(run.plan()));
  TROUPE_ASSIGN(const Plan plan, plan_from_json(text));
  return html_lines(to_table(plan, job));
}

}  // namespace

Result<void> write_run_page(const RunDirectory& run, const RunStatistics* statistics) {
  TROUPE_ASSIGN(const std::string config, read_file(run.config()));
  const LoadOutcome loaded = load_job_text(run.config(), config, {});
  if (!loaded.config) {
    return Error{Errc::failed_precondition, fmt::format("{}: this version does not read the configuration:\n{}",
                                                        run.config(), fmt::join(loaded.errors, "\n"))};
  }
  const JobConfig& job = loaded.config->job;
  TROUPE_ASSIGN(const MetricFile metrics, metrics_of(run, statistics));
  TROUPE_ASSIGN(const std::string report, closing_report(run));
  TROUPE_ASSIGN(const std::string shown, pictures(run));
  TROUPE_ASSIGN(const std::string evaluated, evaluations(run, metrics));
  TROUPE_ASSIGN(const std::string happened, events(run));
  TROUPE_ASSIGN(const std::string plan, plan_of(run, job));
  std::string curves = metric_charts(metrics);
  if (metrics.damaged_lines > 0)
    curves +=
        fmt::format("<p class=\"warning\">{} lines of metrics.jsonl hold no record.</p>\n", metrics.damaged_lines);
  const std::string body =
      fmt::format("<h1>{} <small>{}</small></h1>\n", escape_html(job.job.name), escape_html(run.id())) + report +
      part("Curves", curves) + part("Predictions and videos", shown) + part("Evaluation", evaluated) +
      part("Events", happened) + part("Plan", plan) + part("Configuration", config_page(config));
  return write_file_durably(run.path("report.html"), html_page(job.job.name + ": report", body));
}

}  // namespace troupe::workers
