#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/page/html.h"
#include "base/page/svg_curves.h"
#include "data/health/html.h"

namespace troupe::data {

namespace {

constexpr std::size_t kFindingsShown = 200;
constexpr std::size_t kEpisodesShown = 500;
constexpr std::size_t kLabelsShown = 100;
constexpr std::size_t kJointsOfChart = 8, kJointsShown = 64;
// Of 8 MiB for the page: clips take at most 3.2 MiB as base64, curves about 2.
constexpr std::size_t kThumbnailBytes = std::size_t{3} << 19;

std::string number(double v) { return fmt::format("{:.6g}", v); }

std::string html_of_counts(const std::map<std::string, std::int64_t>& counts) {
  std::string out;
  for (const auto& [name, n] : counts) {
    out += out.empty() ? "" : ", ";
    out += counts.size() == 1 ? escape_html(name) : fmt::format("{} ({})", escape_html(name), n);
  }
  return out;
}

constexpr std::size_t kLinksOfFinding = 6;

std::string link_to(std::int64_t episode) { return fmt::format("<a href=\"#episode-{0}\">episode {0}</a>", episode); }

/// The episodes of a finding that it links to; none: it is about the dataset.
std::vector<std::int64_t> linked_episodes(const HealthFinding& f) {
  if (f.episode < 0) return {};
  std::vector<std::int64_t> linked{f.episode};
  const std::size_t more = std::min(f.others.size(), kLinksOfFinding - 1);
  linked.insert(linked.end(), f.others.begin(), f.others.begin() + static_cast<std::ptrdiff_t>(more));
  return linked;
}

/// Where a finding's episodes are on the page.
std::string links_of(const HealthFinding& f) {
  std::vector<std::string> links;
  for (const std::int64_t episode : linked_episodes(f)) links.push_back(link_to(episode));
  if (links.empty()) return "dataset";
  return fmt::format("{}{}", fmt::join(links, ", "), f.others.size() >= kLinksOfFinding ? ", ..." : "");
}

/// The findings that the page shows: problems first, then warnings, then notes.
std::vector<const HealthFinding*> shown_findings(const HealthReport& r) {
  std::vector<const HealthFinding*> order;
  for (const HealthFinding& f : r.findings) order.push_back(&f);
  const auto rank = [](const HealthFinding* f) {
    return f->level == FindingLevel::problem ? 0 : f->level == FindingLevel::warning ? 1 : 2;
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](const HealthFinding* a, const HealthFinding* b) { return rank(a) < rank(b); });
  order.resize(std::min(order.size(), kFindingsShown));
  return order;
}

std::string summary(const HealthReport& r) {
  const std::int64_t problems = r.count(FindingLevel::problem);
  return "<h1>" + escape_html(r.root) + "</h1>\n" +
         (problems == 0 ? "<p class=\"ok\">No bad files were found.</p>\n"
                        : fmt::format("<p class=\"problem\">{} problems were found.</p>\n", problems));
}

/// A finding's text without the dataset's folder, which the page names at its top.
std::string below_root(std::string text, const std::string& root) {
  if (text.starts_with(root + ": ")) text.erase(0, root.size() + 2);
  const std::string folder = root + "/";
  for (std::size_t at = 0; (at = text.find(folder, at)) != std::string::npos;) text.erase(at, folder.size());
  return text;
}

std::string html_of_findings(const HealthReport& r) {
  if (r.findings.empty()) return "<h2>Findings</h2>\n<p>None.</p>\n";
  std::vector<std::vector<std::string>> rows;
  for (const HealthFinding* f : shown_findings(r)) {
    const Defect* kind = find_defect(f->code);
    rows.push_back({escape_html(f->code), fmt::format("<span class=\"{0}\">{0}</span>", enum_name(f->level)),
                    links_of(*f), escape_html(below_root(f->sentence(), r.root)),
                    kind == nullptr ? "" : escape_html(kind->remedy)});
  }
  std::string out = "<h2>Findings</h2>\n" +
                    html_table({{"code"}, {"level"}, {"where"}, {"finding"}, {"what you can do"}}, rows, true);
  if (r.findings.size() > kFindingsShown)
    out += fmt::format("<p>{} more are in the JSON report.</p>\n", r.findings.size() - kFindingsShown);
  return out;
}

std::string overview(const HealthReport& r) {
  std::vector<double> lengths;
  for (const EpisodeReport& e : r.episodes) lengths.push_back(static_cast<double>(e.rows));
  const Spread rows = spread_of(lengths);
  return "<h2>Overview</h2>\n" +
         html_table({{}, {}}, {{"format", "LeRobot " + escape_html(r.version)},
                               {"robot", escape_html(r.robot_type)},
                               {"episodes", fmt::format("{} ({} usable)", r.episodes.size(), r.usable_episodes())},
                               {"frames", fmt::format("{} ({:.2f} h at {:.6g} frames/s)", r.frames, r.hours(), r.fps)},
                               {"rows an episode",
                                fmt::format("{:.0f} to {:.0f}, median {:.0f}", rows.min, rows.max, rows.median)},
                               {"tasks", std::to_string(r.tasks)},
                               {"checked", r.verify == "full" ? "files, tables, every frame" : "files and tables"}}) +
         "<figure>" + svg_histogram(histogram_of(lengths), "rows of episodes") +
         "<figcaption>rows of episodes</figcaption></figure>\n";
}

/// Everything that is looked for, with what was found.
std::string checks(const HealthReport& r) {
  std::map<std::string, std::int64_t> counts;
  for (const HealthFinding& f : r.findings) ++counts[f.code];
  std::vector<std::vector<std::string>> rows;
  for (const Defect& d : defects())
    rows.push_back({std::string(d.code), std::to_string(counts[std::string(d.code)]), escape_html(d.check),
                    escape_html(d.action), escape_html(d.remedy)});
  return "<h2>Checks</h2>\n" +
         html_table({{"code"}, {"found", true}, {"check"}, {"what is done"}, {"what you can do"}}, rows, true);
}

/// What the dimensions of a column do in an episode; those that keep their value are only named.
std::string traces(const ColumnTrace& t) {
  std::vector<std::size_t> moving, still;
  for (std::size_t d = 0; d < t.values.size(); ++d) {
    const auto& v = t.values[d];
    const bool stands = std::all_of(v.begin(), v.end(), [&](double value) { return value == v.front(); });
    (stands ? still : moving).push_back(d);
  }
  std::string out;
  for (std::size_t first = 0; first < std::min(moving.size(), kJointsShown); first += kJointsOfChart) {
    const std::size_t end = std::min(moving.size(), first + kJointsOfChart);
    SvgCurves chart{.title = moving.size() > kJointsOfChart
                                 ? fmt::format("{} {} to {}", t.column, moving[first], moving[end - 1])
                                 : t.column,
                    .x_title = "seconds"};
    for (std::size_t i = first; i < end; ++i)
      chart.series.push_back({.name = dimension_label(t.names, moving[i]), .x = t.seconds, .y = t.values[moving[i]]});
    out += svg_curves(chart);
  }
  if (moving.size() > kJointsShown)
    out += fmt::format("<p class=\"note\">{}: {} more dimensions.</p>\n", escape_html(t.column),
                       moving.size() - kJointsShown);
  if (!still.empty())
    out += fmt::format("<p class=\"note\">{} stays as it is in {}.</p>\n", escape_html(t.column),
                       escape_html(dimension_labels(t.names, still)));
  return out;
}

/// One episode: its clip beside what its joints do.
std::string closeup(const EpisodeCloseup& c) {
  std::string charts;
  for (const ColumnTrace& t : c.columns) charts += traces(t);
  const std::string clip =
      c.clip.empty() ? (c.no_clip.empty() ? "" : "<p class=\"note\">No clip: " + escape_html(c.no_clip) + "</p>")
                     : fmt::format("<video controls muted loop width=\"160\" src=\"{}\"></video><small>{}</small>",
                                   data_uri("video/mp4", c.clip), escape_html(c.camera));
  return fmt::format(
      "<h3 id=\"closeup-{0}\">Episode {0}</h3>\n<div class=\"pair\"><div>{1}</div><div "
      "class=\"charts\">{2}</div></div>\n",
      c.episode, clip, charts);
}

std::string closeups(const HealthReport& r) {
  if (r.closeups.empty()) return "";
  std::string out = "<h2>Episodes up close</h2>\n<p>Those with most findings, then others.</p>\n";
  for (const EpisodeCloseup& c : r.closeups) out += closeup(c);
  return out;
}

std::string cameras(const HealthReport& r) {
  std::vector<std::vector<std::string>> rows;
  for (const CameraReport& c : r.cameras) {
    const std::string gop = c.gop.max > 0 ? fmt::format("{:.0f} to {:.0f} (median {:.0f}){}", c.gop.min, c.gop.max,
                                                        c.gop.median, c.reordered ? ", B-frames" : "")
                                          : std::string();
    rows.push_back({escape_html(c.name), escape_html(c.feature), std::to_string(c.files), std::to_string(c.frames),
                    c.in_parquet ? "images in Parquet" : html_of_counts(c.codecs), html_of_counts(c.sizes),
                    html_of_counts(c.rates), gop});
  }
  std::string out = "<h2>Cameras</h2>\n" + html_table({{"camera"},
                                                       {"feature"},
                                                       {"files", true},
                                                       {"frames", true},
                                                       {"codec"},
                                                       {"size"},
                                                       {"rate"},
                                                       {"key frame every"}},
                                                      rows);
  std::size_t bytes = 0;
  std::int64_t left_out = 0;
  std::string camera;
  for (const Thumbnail& t : r.thumbnails) {
    bytes += t.png.size();
    if (bytes > kThumbnailBytes) {
      ++left_out;
      continue;
    }
    if (t.camera != camera) {
      out += (camera.empty() ? "" : "</div>\n") +
             fmt::format("<h3>{}</h3>\n<div class=\"sheet\">\n", escape_html(t.camera));
      camera = t.camera;
    }
    out += fmt::format(
        "<figure><img width=\"{}\" height=\"{}\" alt=\"\" src=\"{}\"><figcaption>episode {}, row "
        "{}</figcaption></figure>\n",
        t.width, t.height, data_uri("image/png", t.png), t.episode, t.frame);
  }
  out += camera.empty() ? "" : "</div>\n";
  return left_out == 0 ? out : out + fmt::format("<p>{} more pictures are left out for their size.</p>\n", left_out);
}

std::string html_of_decoding(const HealthReport& r) {
  if (r.verify != "full") return "";
  const double rate = r.decoded.seconds > 0 ? static_cast<double>(r.decoded.frames) / r.decoded.seconds : 0;
  std::string out =
      fmt::format("<h2>Every frame decoded</h2>\n<p>{} frames of {} files in {:.1f} s ({:.0f} a second).</p>\n",
                  r.decoded.frames, r.decoded.files.size(), r.decoded.seconds, rate);
  std::vector<std::vector<std::string>> bad;
  for (const DecodedFile& f : r.decoded.files) {
    if (!f.error.empty()) bad.push_back({escape_html(f.path), std::to_string(f.frames), escape_html(f.error)});
  }
  return out + html_table({{"file"}, {"decoded", true}, {"error"}}, bad);
}

std::string dimensions(const HealthReport& r) {
  std::string out = "<h2>Columns</h2>\n";
  for (const ColumnReport& c : r.columns) {
    out += fmt::format("<h3>{} <small>{}</small></h3>\n", escape_html(c.name), escape_html(c.dtype));
    if (!c.constant.empty())
      out += fmt::format("<p class=\"note\">constant dimensions: {}</p>\n",
                         escape_html(dimension_labels(c.names, c.constant)));
    if (!c.near_constant.empty())
      out += fmt::format("<p class=\"note\">nearly constant dimensions: {}</p>\n",
                         escape_html(dimension_labels(c.names, c.near_constant)));
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
    std::vector<std::vector<std::string>> rows;
    for (std::size_t d = 0; d < s.width(); ++d)
      rows.push_back({escape_html(dimension_label(names, d)), number(s.min[d]), number(s.q01[d]), number(s.mean[d]),
                      number(s.q99[d]), number(s.max[d]), number(s.std[d])});
    out += fmt::format("<h3>{} <small>relative, {} steps</small></h3>\n", escape_html(k.action.name), r.horizon);
    out += html_table({{""}, {"min", true}, {"q01", true}, {"mean", true}, {"q99", true}, {"max", true}, {"std", true}},
                      rows);
  }
  return out;
}

std::string labels(const HealthReport& r) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& [label, count] : r.label_rows) {
    if (rows.size() == kLabelsShown) break;
    const auto text = r.texts.find(label);
    rows.push_back(
        {std::to_string(label), std::to_string(count), text == r.texts.end() ? "" : escape_html(text->second)});
  }
  std::string out = "<h2>Labels</h2>\n" + html_table({{"label", true}, {"rows", true}, {"text"}}, rows);
  if (r.label_rows.size() > kLabelsShown) out += fmt::format("<p>{} labels in all.</p>\n", r.label_rows.size());
  return out + "<figure>" + svg_histogram(histogram_of(r.span_lengths), "rows of label spans") +
         "<figcaption>rows of label spans</figcaption></figure>\n";
}

/// The first episodes, and all that a finding on the page links to.
std::string episodes(const HealthReport& r) {
  std::set<std::int64_t> close, linked;
  for (const EpisodeCloseup& c : r.closeups) close.insert(c.episode);
  for (const HealthFinding* f : shown_findings(r)) {
    const auto episodes = linked_episodes(*f);
    linked.insert(episodes.begin(), episodes.end());
  }
  std::vector<std::vector<std::string>> rows;
  std::set<std::int64_t> there;
  for (std::size_t i = 0; i < r.episodes.size(); ++i) {
    const EpisodeReport& e = r.episodes[i];
    there.insert(e.index);
    if (i >= kEpisodesShown && linked.count(e.index) == 0) continue;
    const double idle = e.rows > 0 ? 100.0 * static_cast<double>(e.idle_rows) / static_cast<double>(e.rows) : 0;
    rows.push_back({fmt::format("<span id=\"episode-{0}\">{0}</span>", e.index),
                    close.count(e.index) == 0 ? "" : fmt::format("<a href=\"#closeup-{}\">up close</a>", e.index),
                    std::to_string(e.rows), std::to_string(e.spans), fmt::format("{:.1f}%", idle),
                    std::to_string(e.longest_idle), std::to_string(e.outliers), std::to_string(e.jumps),
                    std::to_string(e.problems), std::to_string(e.warnings)});
  }
  const std::size_t more = r.episodes.size() - rows.size();
  // Findings may name episodes that only the metadata lists.
  for (const std::int64_t index : linked) {
    if (there.count(index) == 0)
      rows.push_back({fmt::format("<span id=\"episode-{0}\">{0}</span>", index), "not read"});
  }
  std::string out = "<h2>Episodes</h2>\n" + html_table({{"episode", true},
                                                        {""},
                                                        {"rows", true},
                                                        {"spans", true},
                                                        {"idle", true},
                                                        {"longest idle", true},
                                                        {"outliers", true},
                                                        {"jumps", true},
                                                        {"problems", true},
                                                        {"warnings", true}},
                                                       rows);
  return more == 0 ? out : out + fmt::format("<p>{} more are in the JSON report.</p>\n", more);
}

}  // namespace

std::string report_html(const HealthReport& r) {
  return html_page(r.root, summary(r) + html_of_findings(r) + closeups(r) + overview(r) + cameras(r) +
                               html_of_decoding(r) + dimensions(r) + labels(r) + episodes(r) + checks(r));
}

}  // namespace troupe::data
