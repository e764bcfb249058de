#include "workers/inference/evaluate/open_loop_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "workers/report/action_plot.h"

namespace troupe::workers {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kFormat = 1;
constexpr std::size_t kDrawnWindows = 3;
constexpr std::size_t kDrawnDimensions = 64;

Json error_json(const ActionError& e) {
  // nlohmann writes a double that is not finite as null.
  return {{"count", e.count},
          {"non_finite", e.non_finite},
          {"mse", e.mse},
          {"mae", e.mae},
          {"normalised_mse", e.normalised_mse},
          {"baselines",
           {{"hold_first", {{"mse", e.hold_mse}, {"normalised_mse", e.hold_normalised_mse}}},
            {"mean_action", {{"mse", e.mean_mse}, {"normalised_mse", e.mean_normalised_mse}}}}}};
}

Json with(Json head, const ActionError& e) {
  head.update(error_json(e));
  return head;
}

Json rows_json(const std::vector<float>& values, std::size_t width) {
  Json rows = Json::array();
  for (std::size_t i = 0; i < values.size(); i += width) {
    Json row = Json::array();
    for (std::size_t d = 0; d < width; ++d) row.push_back(values[i + d]);
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string number(double value) { return std::isfinite(value) ? fmt::format("{:.4g}", value) : std::string("-"); }

std::string line(const std::string& name, const ActionError& e, std::size_t name_width) {
  std::string out =
      fmt::format("  {:<{}}  {:>10}  {:>10}  {:>10}  {:>10}  {:>10}  {:>8}", name, name_width, number(e.mse),
                  number(e.mae), number(e.normalised_mse), number(e.hold_mse), number(e.mean_mse), e.count);
  if (e.non_finite > 0) out += fmt::format("  {} NOT FINITE", e.non_finite);
  return out + "\n";
}

}  // namespace

std::string open_loop_json(const OpenLoopResult& result, const OpenLoopSubject& subject) {
  const std::size_t width = result.dimensions.size();
  Json options = Json::object();
  for (const auto& [key, value] : subject.options)
    std::visit([&options, &key = key](const auto& typed) { options[key] = typed; }, value);
  Json dimensions = Json::array(), steps = Json::array(), windows = Json::array();
  for (std::size_t d = 0; d < width; ++d) {
    const OpenLoopDimension& dim = result.dimensions[d];
    Json about = {{"key", dim.key}, {"index", dim.index}, {"relative", dim.relative}};
    if (!dim.joint.empty()) about["joint"] = dim.joint;
    dimensions.push_back(with(std::move(about), result.by_dimension[d]));
  }
  for (std::size_t s = 0; s < result.by_step.size(); ++s) steps.push_back(with({{"step", s}}, result.by_step[s]));
  for (const OpenLoopWindow& w : result.windows) {
    windows.push_back({{"episode", w.episode},
                       {"row", w.row},
                       {"prompt", w.prompt},
                       {"recorded", rows_json(w.recorded, width)},
                       {"predicted", rows_json(w.predicted, width)}});
  }
  const Json root = {{"format", kFormat},
                     {"kind", "open_loop"},
                     {"checkpoint", subject.checkpoint},
                     {"dataset", subject.dataset},
                     {"embodiment", subject.embodiment},
                     {"options", options},
                     {"chunks", result.chunks},
                     {"horizon", result.horizon},
                     {"episodes", result.episodes},
                     {"windows_available", result.windows_available},
                     {"windows_evaluated", result.windows.size()},
                     {"overall", error_json(result.overall)},
                     {"dimensions", dimensions},
                     {"steps", steps},
                     {"windows", windows}};
  // Prompts come from a dataset: bytes that are not UTF-8 are replaced, not fatal.
  return root.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string open_loop_table(const OpenLoopResult& result) {
  std::size_t name_width = 9;
  for (const OpenLoopDimension& d : result.dimensions) name_width = std::max(name_width, d.name().size());
  std::string out =
      fmt::format("open loop: {} of {} windows of {} episodes, {} calls of {} actions each\n", result.windows.size(),
                  result.windows_available, result.episodes.size(), result.chunks, result.horizon);
  out += fmt::format("  {:<{}}  {:>10}  {:>10}  {:>10}  {:>10}  {:>10}  {:>8}\n", "dimension", name_width, "mse", "mae",
                     "norm mse", "hold mse", "mean mse", "values");
  for (std::size_t d = 0; d < result.dimensions.size(); ++d) {
    out += line(result.dimensions[d].name(), result.by_dimension[d], name_width);
  }
  out += line("overall", result.overall, name_width);
  if (!result.by_step.empty()) {
    out += fmt::format("  mse by step: first {}, middle {}, last {}\n", number(result.by_step.front().mse),
                       number(result.by_step[result.by_step.size() / 2].mse), number(result.by_step.back().mse));
  }
  return out;
}

Result<void> draw_open_loop(const std::string& path, const OpenLoopResult& result, const OpenLoopSubject& subject) {
  ActionPlot plot{.title = fmt::format("open loop: mse {}, {} windows, {}", number(result.overall.mse),
                                       result.windows.size(), subject.embodiment),
                  .block = result.horizon};
  const std::size_t width = result.dimensions.size(), drawn = std::min(width, kDrawnDimensions);
  for (std::size_t d = 0; d < drawn; ++d) plot.names.push_back(result.dimensions[d].name());
  const auto cut = [&](const std::vector<float>& values) {
    std::vector<float> out;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i % width < drawn) out.push_back(values[i]);
    }
    return out;
  };
  const std::size_t count = std::min(kDrawnWindows, result.windows.size());
  for (std::size_t i = 0; i < count; ++i) {
    const OpenLoopWindow& w = result.windows[(2 * i + 1) * result.windows.size() / (2 * count)];
    plot.windows.push_back({.title = fmt::format("episode {}, row {}: {}", w.episode, w.row, w.prompt.substr(0, 40)),
                            .recorded = cut(w.recorded),
                            .predicted = cut(w.predicted)});
  }
  return draw_actions(path, plot);
}

}  // namespace troupe::workers
