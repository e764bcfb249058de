#include "base/page/svg_curves.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/page/html.h"
#include "base/page/svg_frame.h"

namespace troupe::base {

namespace {

constexpr std::size_t kColors = 8;

/// The points [begin, end) as one: see SvgCurves::max_points.
void append_mean(const SvgSeries& in, std::size_t begin, std::size_t end, SvgSeries& out) {
  const bool has_band = !in.low.empty();
  double y = 0, low = 0, high = 0;
  double least = std::numeric_limits<double>::infinity(), greatest = -least;
  std::size_t n = 0;
  for (std::size_t i = begin; i < end; ++i) {
    if (!std::isfinite(in.y[i])) continue;
    ++n;
    y += in.y[i];
    least = std::min(least, in.y[i]);
    greatest = std::max(greatest, in.y[i]);
    if (has_band) low += in.low[i], high += in.high[i];
  }
  const double count = n == 0 ? std::numeric_limits<double>::quiet_NaN() : static_cast<double>(n);
  out.x.push_back(in.x[begin + (end - begin) / 2]);
  out.y.push_back(y / count);
  out.low.push_back(has_band ? low / count : n == 0 ? count : least);
  out.high.push_back(has_band ? high / count : n == 0 ? count : greatest);
}

SvgSeries reduced(const SvgSeries& in, std::size_t parts) {
  if (in.x.size() <= parts) return in;
  SvgSeries out{.name = in.name, .has_marks = false};
  for (std::size_t i = 0; i < parts; ++i) append_mean(in, i * in.x.size() / parts, (i + 1) * in.x.size() / parts, out);
  return out;
}

/// The x, y and band of every point, for the script.
std::string points_attribute(const SvgSeries& s) {
  std::string out;
  for (std::size_t i = 0; i < s.x.size(); ++i) {
    out += fmt::format("{}{:.7g} {:.6g}", i == 0 ? "" : ";", s.x[i], s.y[i]);
    if (!s.low.empty()) out += fmt::format(" {:.6g} {:.6g}", s.low[i], s.high[i]);
  }
  return out;
}

/// A path through the values, broken where one is not finite; a value alone between two gaps is a short dash.
std::string line_of(const SvgFrame& frame, const SvgSeries& s) {
  const auto is_there = [&](std::size_t i) { return i < s.y.size() && std::isfinite(s.y[i]); };
  std::string out;
  for (std::size_t i = 0; i < s.y.size(); ++i) {
    if (!is_there(i)) continue;
    const bool begins = i == 0 || !is_there(i - 1), is_alone = begins && !is_there(i + 1);
    out += fmt::format("{}{:.1f} {:.1f}{}", begins ? "M" : "L", frame.x(s.x[i]), frame.y(s.y[i]),
                       is_alone ? "m-2 0h4" : "");
  }
  return out;
}

std::string marks_of(const SvgFrame& frame, const SvgSeries& s) {
  std::string out;
  for (std::size_t i = 0; i < s.y.size(); ++i) {
    if (std::isfinite(s.y[i])) out += fmt::format("M{:.1f} {:.1f}h0", frame.x(s.x[i]), frame.y(s.y[i]));
  }
  return out;
}

/// One closed polygon for every run of finite bounds.
std::string band_of(const SvgFrame& frame, const SvgSeries& s) {
  std::string out;
  for (std::size_t begin = 0; begin < s.low.size();) {
    std::size_t end = begin;
    std::string forth, back;
    for (; end < s.low.size() && std::isfinite(s.low[end]) && std::isfinite(s.high[end]); ++end) {
      forth += fmt::format("{}{:.1f} {:.1f}", end == begin ? "M" : "L", frame.x(s.x[end]), frame.y(s.high[end]));
      back = fmt::format("L{:.1f} {:.1f}", frame.x(s.x[end]), frame.y(s.low[end])) + back;
    }
    if (end > begin) out += forth + back + "Z";
    begin = end + 1;
  }
  return out;
}

std::string class_of(std::size_t i) { return fmt::format("c{}{}", i % kColors, i >= kColors ? " dash" : ""); }

std::string drawn(const SvgFrame& frame, const SvgSeries& s, std::size_t place) {
  std::string out = fmt::format("<g class=\"series {}\" data-points=\"{}\">", class_of(place), points_attribute(s));
  if (!s.low.empty()) out += fmt::format("<path class=\"band\" d=\"{}\"/>", band_of(frame, s));
  out += fmt::format("<path class=\"line\" d=\"{}\"/>", line_of(frame, s));
  // A line of one point shows nothing.
  if (s.has_marks || s.x.size() < 3) out += fmt::format("<path class=\"marks\" d=\"{}\"/>", marks_of(frame, s));
  return out + "</g>\n";
}

/// The legend's entry: the name, the last finite value, and how many values are not finite.
std::string key_of(const SvgSeries& s, std::size_t place) {
  const auto last = std::find_if(s.y.rbegin(), s.y.rend(), [](double v) { return std::isfinite(v); });
  const auto gaps = std::count_if(s.y.begin(), s.y.end(), [](double v) { return !std::isfinite(v); });
  return fmt::format(
      "<button type=\"button\" class=\"key {}\" aria-pressed=\"true\"><span>{}{} <output>{}</output></span></button>\n",
      class_of(place), escape_html(s.name), gaps > 0 ? fmt::format(" ({} not finite)", gaps) : "",
      last == s.y.rend() ? std::string("no value") : fmt::format("{:.4g}", *last));
}

/// The ranges of everything that is drawn; false where there is nothing.
bool span(const std::vector<SvgSeries>& series, SvgFrame& frame) {
  bool is_empty = true;
  const auto take = [&](double x, double y) {
    if (!std::isfinite(x) || !std::isfinite(y)) return;
    frame.x_low = is_empty ? x : std::min(frame.x_low, x);
    frame.x_high = is_empty ? x : std::max(frame.x_high, x);
    frame.y_low = is_empty ? y : std::min(frame.y_low, y);
    frame.y_high = is_empty ? y : std::max(frame.y_high, y);
    is_empty = false;
  };
  for (const SvgSeries& s : series) {
    for (std::size_t i = 0; i < s.x.size(); ++i) {
      take(s.x[i], s.y[i]);
      if (s.low.empty()) continue;
      take(s.x[i], s.low[i]);
      take(s.x[i], s.high[i]);
    }
  }
  return !is_empty;
}

}  // namespace

std::string svg_curves(const SvgCurves& curves) {
  std::vector<SvgSeries> series;
  for (const SvgSeries& s : curves.series)
    series.push_back(reduced(s, static_cast<std::size_t>(std::max<std::int64_t>(2, curves.max_points))));
  SvgFrame frame;
  const auto counts = [](const SvgSeries& s) {
    return std::all_of(s.x.begin(), s.x.end(), [](double x) { return x == std::floor(x); });
  };
  frame.has_whole_x = std::all_of(curves.series.begin(), curves.series.end(), counts);
  if (!span(series, frame)) return fmt::format("<p class=\"note\">{}: no value yet.</p>\n", escape_html(curves.title));
  frame.settle();
  std::string lines, keys;
  for (std::size_t i = 0; i < series.size(); ++i) {
    if (series[i].x.empty()) continue;
    lines += drawn(frame, series[i], i);
    keys += key_of(curves.series[i], i);
  }
  return fmt::format(
      "<figure class=\"curves\"><figcaption>{0}</figcaption>\n<svg class=\"curves\" role=\"img\" "
      "{1}><title>{0}</title>\n"
      "{2}{3}</svg>\n<div class=\"keys\">{4}<button type=\"button\" class=\"scale\" aria-pressed=\"false\" hidden>log "
      "scale</button></div></figure>\n",
      escape_html(curves.title), frame.attributes(), frame.axes(curves.x_title), lines, keys);
}

}  // namespace troupe::base
