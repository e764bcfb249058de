#include "data/health/report_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace troupe::data {

namespace {

constexpr std::size_t kShownPerCode = 3;
constexpr std::size_t kDimensionsShown = 16;

std::string text_of_counts(const std::map<std::string, std::int64_t>& counts) {
  std::string out;
  for (const auto& [name, n] : counts) {
    if (!out.empty()) out += ", ";
    out += counts.size() == 1 ? name : fmt::format("{} ({} files)", name, n);
  }
  return out.empty() ? "unknown" : out;
}

std::string head(const HealthReport& r) {
  std::vector<double> lengths;
  double idle = 0;
  for (const EpisodeReport& e : r.episodes) {
    lengths.push_back(static_cast<double>(e.rows));
    idle += static_cast<double>(e.idle_rows);
  }
  const Spread rows = spread_of(lengths);
  std::string out = fmt::format("{}\n", r.root);
  out += fmt::format("  format     LeRobot {}{}\n", r.version, r.robot_type.empty() ? "" : ", robot " + r.robot_type);
  out += fmt::format("  episodes   {}{}, {:.0f} to {:.0f} rows (median {:.0f})\n", r.episodes.size(),
                     r.usable_episodes() == static_cast<std::int64_t>(r.episodes.size())
                         ? std::string()
                         : fmt::format(" ({} usable)", r.usable_episodes()),
                     rows.min, rows.max, rows.median);
  out += fmt::format("  frames     {} ({:.2f} h at {:.6g} frames/s), {:.1f}% idle\n", r.frames, r.hours(), r.fps,
                     r.table_rows > 0 ? 100 * idle / static_cast<double>(r.table_rows) : 0.0);
  const Spread spans = spread_of(r.span_lengths);
  out += fmt::format("  tasks      {}, {} in use, {} label spans (median {:.0f} rows)\n", r.tasks, r.label_rows.size(),
                     r.span_lengths.size(), spans.median);
  return out;
}

std::string camera_lines(const HealthReport& r) {
  std::string out;
  for (const CameraReport& c : r.cameras) {
    out += fmt::format("  camera     {}: ", c.feature);
    if (c.in_parquet) {
      out += fmt::format("images in Parquet{}\n", c.sizes.empty() ? "" : ", " + text_of_counts(c.sizes));
      continue;
    }
    out += fmt::format("{}, {}, {} frames/s, {} frames in {} files", text_of_counts(c.codecs), text_of_counts(c.sizes),
                       text_of_counts(c.rates), c.frames, c.files);
    if (c.gop.max > 0) {
      out += c.gop.min == c.gop.max
                 ? fmt::format(", GOP {:.0f}", c.gop.max)
                 : fmt::format(", GOP {:.0f} to {:.0f} (median {:.0f})", c.gop.min, c.gop.max, c.gop.median);
    }
    out += c.reordered ? ", B-frames\n" : "\n";
  }
  return out;
}

/// `labels`: how the dimensions are called, as dimension_label.
std::string dimension_lines(const std::string& name, const std::vector<std::string>& labels,
                            const FeatureStatistics& s) {
  std::string out;
  for (std::size_t d = 0; d < std::min(s.width(), kDimensionsShown); ++d) {
    out += fmt::format("  {:<36} {:>11.5g} {:>11.5g} {:>11.5g} {:>11.5g} {:>11.5g} {:>11.5g}{}\n",
                       name + dimension_label(labels, d), s.min[d], s.q01[d], s.mean[d], s.q99[d], s.max[d], s.std[d],
                       s.q01[d] == s.q99[d] ? "  constant" : "");
  }
  if (s.width() > kDimensionsShown)
    out += fmt::format("  {} more dimensions of {} are in the JSON and HTML reports\n", s.width() - kDimensionsShown,
                       name);
  return out;
}

std::string ranges(const HealthReport& r) {
  if (r.columns.empty()) return "";
  std::string out = fmt::format("\n  {:<36} {:>11} {:>11} {:>11} {:>11} {:>11} {:>11}\n", "column", "min", "q01",
                                "mean", "q99", "max", "std");
  for (const ColumnReport& c : r.columns) out += dimension_lines(c.name, c.names, c.statistics);
  for (const RelativeReport& k : r.relative)
    out += dimension_lines("relative " + k.action.name, r.names_of(k.action), k.statistics.pooled);
  const char* columns = r.columns_kept ? "values kept" : "columns by refinement";
  const char* relative = r.relative_kept ? "" : ", relative actions by refinement";
  return out + fmt::format("  quantiles  exact; {}{}, {} over the tables\n", columns, relative,
                           r.passes == 1 ? std::string("one pass") : fmt::format("{} passes", r.passes));
}

std::string text_of_decoding(const HealthReport& r) {
  if (r.verify != "full") return "";
  const auto bad = std::count_if(r.decoded.files.begin(), r.decoded.files.end(),
                                 [](const DecodedFile& f) { return !f.error.empty(); });
  const double rate = r.decoded.seconds > 0 ? static_cast<double>(r.decoded.frames) / r.decoded.seconds : 0;
  return fmt::format("\n  decoded    {} frames of {} files in {:.1f} s, {:.0f} frames/s, {} files with errors\n",
                     r.decoded.frames, r.decoded.files.size(), r.decoded.seconds, rate, bad);
}

std::string text_of_findings(const HealthReport& r) {
  std::string out = "\n";
  if (r.findings.empty()) return out + "  findings   none\n";
  std::map<std::string, std::vector<const HealthFinding*>> by_code;
  for (const HealthFinding& f : r.findings) by_code[f.code].push_back(&f);
  for (const auto& [code, list] : by_code) {
    const Defect* kind = find_defect(code);
    out += fmt::format("  {}  {} x  {}: {}\n", code, list.size(), kind != nullptr ? kind->check : "",
                       kind != nullptr ? kind->action : "");
    for (std::size_t i = 0; i < std::min(list.size(), kShownPerCode); ++i)
      out += fmt::format("       {:<8} {}\n", enum_name(list[i]->level), list[i]->sentence());
    if (list.size() > kShownPerCode) out += fmt::format("       and {} more\n", list.size() - kShownPerCode);
    if (kind != nullptr) out += fmt::format("       remedy   {}\n", kind->remedy);
  }
  return out;
}

}  // namespace

std::string stats_text(const HealthReport& r) {
  return head(r) + camera_lines(r) + ranges(r) + text_of_decoding(r) + text_of_findings(r) +
         fmt::format("\n{}: {} problems, {} warnings, {} notes\n",
                     r.count(FindingLevel::problem) == 0 ? "OK" : "PROBLEMS FOUND", r.count(FindingLevel::problem),
                     r.count(FindingLevel::warning), r.count(FindingLevel::note));
}

}  // namespace troupe::data
