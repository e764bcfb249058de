#include "workers/report/prediction_sheet.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "workers/report/axes.h"

namespace troupe::workers {

namespace {

constexpr std::size_t kMaxColumns = 10;
constexpr double kMargin = 24, kRowLabel = 92, kSheetGap = 8, kCurveHeight = 170, kSheetTop = 78;
constexpr InkColor kTrueInk{0.16, 0.17, 0.20}, kPredictedInk{0.86, 0.36, 0.08}, kMutedInk{0.38, 0.38, 0.42};

std::vector<std::size_t> evenly_spaced(std::size_t count) {
  std::vector<std::size_t> chosen;
  const std::size_t columns = std::min(count, kMaxColumns);
  for (std::size_t i = 0; i < columns; ++i)
    chosen.push_back(columns == 1 ? 0 : (i * (count - 1) + (columns - 1) / 2) / (columns - 1));
  return chosen;
}

struct SheetLayout {
  double width = 0, cell_width = 0, cell_height = 0, frames_bottom = kSheetTop, height = 0;
  std::int64_t panels_per_row = 1, panel_rows = 0;
};

SheetLayout layout_of(const PredictionSheet& sheet) {
  SheetLayout l;
  const auto columns = static_cast<double>(std::min(sheet.true_frames.size(), kMaxColumns));
  if (columns > 0) {
    const auto w = static_cast<double>(sheet.true_frames[0].width),
               h = static_cast<double>(sheet.true_frames[0].height);
    l.cell_width = std::clamp(1240 / columns - kSheetGap, 96.0, 260.0);
    l.cell_height = l.cell_width * h / w;
    l.frames_bottom = kSheetTop + 20 + 2 * l.cell_height + kSheetGap + 30;
  }
  l.width = std::max(1100.0,  // room for a panel's name beside its error
                     2 * kMargin + kRowLabel + columns * (l.cell_width + kSheetGap));
  const auto dims = static_cast<std::int64_t>(sheet.action_names.size());
  l.panels_per_row = std::clamp<std::int64_t>(dims, 1, 4);
  l.panel_rows = (dims + l.panels_per_row - 1) / l.panels_per_row;
  l.height = l.frames_bottom + (dims > 0 ? 34 : 0) + static_cast<double>(l.panel_rows) * (kCurveHeight + 24) + 16;
  return l;
}

Result<void> check(const std::string& path, const PredictionSheet& s) {
  const auto refuse = [&](const std::string& what) { return Error{Errc::invalid_argument, path + ": " + what}; };
  if (s.true_frames.empty() && s.action_names.empty()) return refuse("a prediction sheet without frames and actions");
  if (s.true_frames.size() != s.predicted_frames.size()) {
    return refuse(fmt::format("{} true and {} predicted frames", s.true_frames.size(), s.predicted_frames.size()));
  }
  for (std::size_t i = 0; i < s.true_frames.size(); ++i) {
    const Rgb8View &a = s.true_frames[i], &b = s.predicted_frames[i], &first = s.true_frames[0];
    if (a.width < 1 || a.height < 1 || a.width != b.width || a.height != b.height || a.width != first.width ||
        a.height != first.height) {
      return refuse(fmt::format("frame {} is {}x{}, predicted as {}x{}; one size is wanted for all", i, a.height,
                                a.width, b.height, b.width));
    }
  }
  if (!s.frame_labels.empty() && s.frame_labels.size() != s.true_frames.size()) {
    return refuse(fmt::format("{} labels for {} frames", s.frame_labels.size(), s.true_frames.size()));
  }
  const auto wanted = static_cast<std::size_t>(s.action_steps) * s.action_names.size();
  if (s.true_actions.size() != wanted || s.predicted_actions.size() != wanted ||
      (!s.action_names.empty() && s.action_steps < 1)) {
    return refuse(fmt::format("{} true and {} predicted action values; wanted {} steps x {} dimensions",
                              s.true_actions.size(), s.predicted_actions.size(), s.action_steps,
                              s.action_names.size()));
  }
  return {};
}

void draw_frames(Chart& chart, const PredictionSheet& sheet, const SheetLayout& l) {
  if (sheet.true_frames.empty()) return;
  const double left = kMargin + kRowLabel, first = kSheetTop + 20, second = first + l.cell_height + kSheetGap;
  chart.text({kMargin, first + l.cell_height / 2 + 5}, "true", {.size = 15, .color = kTrueInk, .bold = true});
  chart.text({kMargin, second + l.cell_height / 2 + 5}, "predicted",
             {.size = 15, .color = kPredictedInk, .bold = true});
  double x = left;
  for (const std::size_t i : evenly_spaced(sheet.true_frames.size())) {
    const std::string label = sheet.frame_labels.empty() ? fmt::format("{}", i) : sheet.frame_labels[i];
    const ChartRect above{x, first, l.cell_width, l.cell_height}, below{x, second, l.cell_width, l.cell_height};
    const TextInk ink{.size = 12, .color = kMutedInk, .align = TextAlign::centre};
    chart.text({x + l.cell_width / 2, first - 6}, label, ink);
    chart.image(sheet.true_frames[i], above);
    chart.image(sheet.predicted_frames[i], below);
    const double ratio = peak_signal_to_noise(sheet.true_frames[i], sheet.predicted_frames[i]);
    chart.text({x + l.cell_width / 2, below.bottom() + 17},
               std::isinf(ratio) ? "identical" : fmt::format("{:.1f} dB", ratio), ink);
    x += l.cell_width + kSheetGap;
  }
}

void draw_curve(Chart& chart, const Axes& axes, const PredictionSheet& sheet, const std::vector<float>& values,
                std::size_t dim, const LineInk& ink) {
  std::vector<ChartPoint> path;
  for (std::int64_t t = 0; t < sheet.action_steps; ++t) {
    const auto value = static_cast<double>(values[static_cast<std::size_t>(t) * sheet.action_names.size() + dim]);
    if (std::isfinite(value)) path.push_back(axes.at(static_cast<double>(t), value));
  }
  chart.polyline(path, ink);
  if (path.size() == 1) chart.disc(path[0], 3, ink.color);
}

void draw_panel(Chart& chart, const PredictionSheet& sheet, std::size_t dim, const ChartRect& panel) {
  Axes axes{.area = {panel.x + 46, panel.y + 24, panel.width - 62, panel.height - 46},
            .x_low = 0,
            .x_high = static_cast<double>(sheet.action_steps - 1),
            .y_low = std::numeric_limits<double>::infinity(),
            .y_high = -std::numeric_limits<double>::infinity()};
  double apart = 0;
  for (std::size_t i = dim; i < sheet.true_actions.size(); i += sheet.action_names.size()) {
    const auto a = static_cast<double>(sheet.true_actions[i]), b = static_cast<double>(sheet.predicted_actions[i]);
    apart += std::abs(a - b) / static_cast<double>(sheet.action_steps);
    for (const double v : {a, b}) {
      if (!std::isfinite(v)) continue;
      axes.y_low = std::min(axes.y_low, v);
      axes.y_high = std::max(axes.y_high, v);
    }
  }
  if (!(axes.y_low <= axes.y_high)) axes.y_low = axes.y_high = 0;
  axes.settle();
  const std::string error = fmt::format("mean error {:.3g}", apart);
  const TextInk muted{.size = 12, .color = kMutedInk, .align = TextAlign::right};
  chart.text({axes.area.right(), panel.y + 14}, error, muted);
  chart.fitted_text({axes.area.x, panel.y + 14}, sheet.action_names[dim], {.size = 13, .bold = true},
                    axes.area.width - chart.text_width(error, muted) - 12);
  axes.draw(chart, "", "", 11, 4, 4);
  draw_curve(chart, axes, sheet, sheet.true_actions, dim, {.width = 2, .color = kTrueInk});
  draw_curve(chart, axes, sheet, sheet.predicted_actions, dim, {.width = 2, .color = kPredictedInk, .dashed = true});
}

void draw_actions(Chart& chart, const PredictionSheet& sheet, const SheetLayout& l) {
  if (sheet.action_names.empty()) return;
  const double top = l.frames_bottom + 14;
  chart.text({kMargin, top}, "actions", {.size = 15, .bold = true});
  chart.line({kMargin + 76, top - 5}, {kMargin + 106, top - 5}, {.width = 2, .color = kTrueInk});
  chart.text({kMargin + 112, top}, "true", {});
  chart.line({kMargin + 156, top - 5}, {kMargin + 186, top - 5}, {.width = 2, .color = kPredictedInk, .dashed = true});
  chart.text({kMargin + 192, top}, "predicted, over steps of the horizon", {});
  const double panel_width = (l.width - 2 * kMargin) / static_cast<double>(l.panels_per_row);
  for (std::size_t dim = 0; dim < sheet.action_names.size(); ++dim) {
    const auto place = static_cast<std::int64_t>(dim);
    const std::int64_t column = place % l.panels_per_row, row = place / l.panels_per_row;
    draw_panel(chart, sheet, dim,
               {kMargin + static_cast<double>(column) * panel_width,
                top + 12 + static_cast<double>(row) * (kCurveHeight + 24), panel_width, kCurveHeight});
  }
}

}  // namespace

double peak_signal_to_noise(const Rgb8View& a, const Rgb8View& b) {
  std::int64_t squares = 0;
  for (std::int64_t y = 0; y < a.height; ++y) {
    const std::uint8_t *p = a.row(y), *q = b.row(y);
    for (std::int64_t i = 0; i < 3 * a.width; ++i) {
      const std::int64_t apart = std::int64_t{p[i]} - q[i];
      squares += apart * apart;
    }
  }
  if (squares == 0) return std::numeric_limits<double>::infinity();
  const double mean = static_cast<double>(squares) / static_cast<double>(3 * a.height * a.width);
  return 10 * std::log10(255.0 * 255.0 / mean);
}

Result<void> draw_prediction(const std::string& path, const PredictionSheet& sheet) {
  TROUPE_TRY(check(path, sheet));
  const SheetLayout l = layout_of(sheet);
  Chart chart(static_cast<std::int64_t>(std::ceil(l.width)), static_cast<std::int64_t>(std::ceil(l.height)));
  chart.fitted_text({kMargin, 34}, sheet.title, {.size = 19, .bold = true}, l.width - 2 * kMargin);
  chart.fitted_text({kMargin, 58}, sheet.caption, {.size = 14, .color = kMutedInk}, l.width - 2 * kMargin);
  draw_frames(chart, sheet, l);
  draw_actions(chart, sheet, l);
  return chart.save(path);
}

}  // namespace troupe::workers
