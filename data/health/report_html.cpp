#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "base/page/html.h"
#include "data/health/html.h"

namespace troupe::data {

namespace {

constexpr std::size_t kFindingsShown = 200;
constexpr std::size_t kEpisodesShown = 500;
constexpr std::size_t kLabelsShown = 100;

constexpr const char* kStyle =
    "body{font:14px/1.45 system-ui,sans-serif;margin:2em auto;max-width:1100px;padding:0 1em;color:#1b1f24}"
    "h1{font-size:1.5em}h2{font-size:1.15em;margin-top:2em;border-bottom:1px solid #d5dae0}"
    "table{border-collapse:collapse;margin:.6em 0}td,th{padding:.2em .7em;text-align:left;border-bottom:1px solid "
    "#e6e9ed;"
    "vertical-align:top}td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}"
    ".problem{color:#b3261e;font-weight:600}.warning{color:#8a5a00}.note{color:#4a5560}.ok{color:#1a7f37;font-weight:"
    "600}"
    ".dims{display:flex;flex-wrap:wrap;gap:10px 18px}.dims "
    "figure{margin:0;width:180px}figcaption{font-size:12px;color:#4a5560}"
    "svg.h{width:180px;height:56px;display:block}svg.h rect{fill:#4477aa}svg.h line{stroke:#9aa4af}svg.h "
    "text{font-size:9px;fill:#4a5560}"
    ".sheet{display:flex;flex-wrap:wrap;gap:6px}.sheet figure{margin:0}.sheet img{display:block;image-rendering:auto}"
    "code{background:#f1f3f5;padding:0 .25em}";

std::string row(std::initializer_list<std::string> cells) {
  std::string out = "<tr>";
  for (const std::string& cell : cells) out += "<td>" + cell + "</td>";
  return out + "</tr>\n";
}

std::string number(double v) { return fmt::format("{:.6g}", v); }

std::string html_of_counts(const std::map<std::string, std::int64_t>& counts) {
  std::string out;
  for (const auto& [name, n] : counts) {
    out += out.empty() ? "" : ", ";
    out += counts.size() == 1 ? escape_html(name) : fmt::format("{} ({})", escape_html(name), n);
  }
  return out;
}

std::string overview(const HealthReport& r) {
  std::vector<double> lengths;
  for (const EpisodeReport& e : r.episodes) lengths.push_back(static_cast<double>(e.rows));
  const Spread rows = spread_of(lengths);
  std::string out = "<h1>" + escape_html(r.root) + "</h1>\n";
  const std::int64_t problems = r.count(FindingLevel::problem);
  out += problems == 0 ? "<p class=\"ok\">No bad files were found.</p>\n"
                       : fmt::format("<p class=\"problem\">{} problems were found.</p>\n", problems);
  out += "<table>\n" + row({"format", "LeRobot " + escape_html(r.version)}) +
         row({"robot", escape_html(r.robot_type)}) +
         row({"episodes", fmt::format("{} ({} usable)", r.episodes.size(), r.usable_episodes())}) +
         row({"frames", fmt::format("{} ({:.2f} h at {:.6g} frames/s)", r.frames, r.hours(), r.fps)}) +
         row({"rows an episode", fmt::format("{:.0f} to {:.0f}, median {:.0f}", rows.min, rows.max, rows.median)}) +
         row({"tasks", std::to_string(r.tasks)}) +
         row({"checked", r.verify == "full" ? "files, tables, every frame" : "files and tables"}) + "</table>\n";
  out += "<figure>" + svg_histogram(histogram_of(lengths), "rows of episodes") +
         "<figcaption>rows of episodes</figcaption></figure>\n";
  return out;
}

std::string html_of_findings(const HealthReport& r) {
  std::map<std::string, std::int64_t> counts;
  for (const HealthFinding& f : r.findings) ++counts[f.code];
  std::string out =
      "<h2>Findings</h2>\n<table>\n<tr><th>code</th><th class=\"n\">found</th><th>check</th><th>what is "
      "done</th><th>what you can do</th></tr>\n";
  for (const Defect& d : defects()) {
    const std::int64_t n = counts.count(std::string(d.code)) != 0 ? counts.at(std::string(d.code)) : 0;
    out += fmt::format("<tr><td>{}</td><td class=\"n\">{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n", d.code, n,
                       escape_html(d.check), escape_html(d.action), escape_html(d.remedy));
  }
  out += "</table>\n";
  if (r.findings.empty()) return out;
  out += "<table>\n<tr><th>code</th><th></th><th>finding</th></tr>\n";
  for (std::size_t i = 0; i < std::min(r.findings.size(), kFindingsShown); ++i) {
    const HealthFinding& f = r.findings[i];
    out += fmt::format("<tr><td>{0}</td><td class=\"{1}\">{1}</td><td>{2}</td></tr>\n", escape_html(f.code),
                       enum_name(f.level), escape_html(f.sentence()));
  }
  out += "</table>\n";
  if (r.findings.size() > kFindingsShown)
    out += fmt::format("<p>{} more are in the JSON report.</p>\n", r.findings.size() - kFindingsShown);
  return out;
}

std::string cameras(const HealthReport& r) {
  std::string out =
      "<h2>Cameras</h2>\n<table>\n<tr><th>camera</th><th>feature</th><th class=\"n\">files</th><th "
      "class=\"n\">frames</th><th>codec</th><th>size</th><th>rate</th><th>key frame every</th></tr>\n";
  for (const CameraReport& c : r.cameras) {
    const std::string gop = c.gop.max > 0 ? fmt::format("{:.0f} to {:.0f} (median {:.0f}){}", c.gop.min, c.gop.max,
                                                        c.gop.median, c.reordered ? ", B-frames" : "")
                                          : std::string();
    out += fmt::format(
        "<tr><td>{}</td><td>{}</td><td class=\"n\">{}</td><td "
        "class=\"n\">{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
        escape_html(c.name), escape_html(c.feature), c.files, c.frames,
        c.in_parquet ? "images in Parquet" : html_of_counts(c.codecs), html_of_counts(c.sizes), html_of_counts(c.rates),
        gop);
  }
  out += "</table>\n";
  std::string camera;
  for (const Thumbnail& t : r.thumbnails) {
    if (t.camera != camera) {
      out += (camera.empty() ? "" : "</div>\n") +
             fmt::format("<h3>{}</h3>\n<div class=\"sheet\">\n", escape_html(t.camera));
      camera = t.camera;
    }
    out += fmt::format(
        "<figure><img width=\"{}\" height=\"{}\" alt=\"\" src=\"data:image/png;base64,{}\"><figcaption>episode {}, row "
        "{}</figcaption></figure>\n",
        t.width, t.height, base64(t.png), t.episode, t.frame);
  }
  return out + (camera.empty() ? "" : "</div>\n");
}

std::string html_of_decoding(const HealthReport& r) {
  if (r.verify != "full") return "";
  const double rate = r.decoded.seconds > 0 ? static_cast<double>(r.decoded.frames) / r.decoded.seconds : 0;
  std::string out =
      fmt::format("<h2>Every frame decoded</h2>\n<p>{} frames of {} files in {:.1f} s ({:.0f} a second).</p>\n",
                  r.decoded.frames, r.decoded.files.size(), r.decoded.seconds, rate);
  std::string bad;
  for (const DecodedFile& f : r.decoded.files) {
    if (!f.error.empty()) bad += row({escape_html(f.path), std::to_string(f.frames), escape_html(f.error)});
  }
  if (!bad.empty()) out += "<table>\n<tr><th>file</th><th>decoded</th><th>error</th></tr>\n" + bad + "</table>\n";
  return out;
}

std::string dimensions(const HealthReport& r) {
  std::string out = "<h2>Columns</h2>\n";
  for (const ColumnReport& c : r.columns) {
    out += fmt::format("<h3>{} <small>{}</small></h3>\n", escape_html(c.name), escape_html(c.dtype));
    if (!c.constant.empty())
      out += fmt::format("<p class=\"note\">constant dimensions: {}</p>\n", fmt::join(c.constant, ", "));
    if (!c.near_constant.empty())
      out += fmt::format("<p class=\"note\">nearly constant dimensions: {}</p>\n", fmt::join(c.near_constant, ", "));
    out += "<div class=\"dims\">\n";
    for (std::size_t d = 0; d < c.histograms.size(); ++d) {
      const FeatureStatistics& s = c.statistics;
      const std::string label = dimension_label(c.names, d);
      out += fmt::format("<figure>{}<figcaption>{} mean {}, std {}<br>q01 {}, q99 {}</figcaption></figure>\n",
                         svg_histogram(c.histograms[d], c.name + " " + label), escape_html(label), number(s.mean[d]),
                         number(s.std[d]), number(s.q01[d]), number(s.q99[d]));
    }
    out += "</div>\n";
  }
  for (const RelativeReport& k : r.relative) {
    const FeatureStatistics& s = k.statistics.pooled;
    if (s.width() == 0) continue;
    const std::vector<std::string> names = r.names_of(k.action);
    out += fmt::format(
        "<h3>{} <small>relative, {} steps</small></h3>\n<table>\n<tr><th></th><th class=\"n\">min</th><th "
        "class=\"n\">q01</th><th class=\"n\">mean</th><th class=\"n\">q99</th><th class=\"n\">max</th><th "
        "class=\"n\">std</th></tr>\n",
        escape_html(k.action.name), r.horizon);
    for (std::size_t d = 0; d < s.width(); ++d) {
      out += fmt::format(
          "<tr><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td "
          "class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>\n",
          escape_html(dimension_label(names, d)), number(s.min[d]), number(s.q01[d]), number(s.mean[d]),
          number(s.q99[d]), number(s.max[d]), number(s.std[d]));
    }
    out += "</table>\n";
  }
  return out;
}

std::string labels(const HealthReport& r) {
  std::string out =
      "<h2>Labels</h2>\n<table>\n<tr><th class=\"n\">label</th><th class=\"n\">rows</th><th>text</th></tr>\n";
  std::size_t shown = 0;
  for (const auto& [label, rows] : r.label_rows) {
    if (++shown > kLabelsShown) break;
    const auto text = r.texts.find(label);
    out += fmt::format("<tr><td class=\"n\">{}</td><td class=\"n\">{}</td><td>{}</td></tr>\n", label, rows,
                       text == r.texts.end() ? "" : escape_html(text->second));
  }
  out += "</table>\n";
  if (r.label_rows.size() > kLabelsShown) out += fmt::format("<p>{} labels in all.</p>\n", r.label_rows.size());
  return out + "<figure>" + svg_histogram(histogram_of(r.span_lengths), "rows of label spans") +
         "<figcaption>rows of label spans</figcaption></figure>\n";
}

std::string episodes(const HealthReport& r) {
  std::string out =
      "<h2>Episodes</h2>\n<table>\n<tr><th class=\"n\">episode</th><th class=\"n\">rows</th><th "
      "class=\"n\">spans</th><th class=\"n\">idle</th><th class=\"n\">longest idle</th><th "
      "class=\"n\">outliers</th><th class=\"n\">jumps</th><th class=\"n\">problems</th><th "
      "class=\"n\">warnings</th></tr>\n";
  for (std::size_t i = 0; i < std::min(r.episodes.size(), kEpisodesShown); ++i) {
    const EpisodeReport& e = r.episodes[i];
    const double idle = e.rows > 0 ? 100.0 * static_cast<double>(e.idle_rows) / static_cast<double>(e.rows) : 0;
    out += fmt::format(
        "<tr><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{:.1f}%</td><td "
        "class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td "
        "class=\"n\">{}</td></tr>\n",
        e.index, e.rows, e.spans, idle, e.longest_idle, e.outliers, e.jumps, e.problems, e.warnings);
  }
  out += "</table>\n";
  if (r.episodes.size() > kEpisodesShown)
    out += fmt::format("<p>{} more are in the JSON report.</p>\n", r.episodes.size() - kEpisodesShown);
  return out;
}

}  // namespace

std::string report_html(const HealthReport& r) {
  return "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>" + escape_html(r.root) +
         "</title>\n<style>" + kStyle + "</style></head><body>\n" + overview(r) + html_of_findings(r) + cameras(r) +
         html_of_decoding(r) + dimensions(r) + labels(r) + episodes(r) + "</body></html>\n";
}

}  // namespace troupe::data
