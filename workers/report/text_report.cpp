#include "workers/report/text_report.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string_view>

#include "placement/format.h"
#include "workers/report/text_layout.h"

namespace troupe::workers {

namespace {

std::string loss_text(double value) {
  if (!std::isfinite(value)) return std::isnan(value) ? "nan" : "inf";
  const double size = std::abs(value);
  return size != 0 && (size < 1e-3 || size >= 1e4) ? fmt::format("{:.3e}", value) : fmt::format("{:.4f}", value);
}

std::string utilisation(const char* name, const std::optional<double>& percent) {
  return percent ? fmt::format("{} {:.1f}%", name, *percent) : fmt::format("{} n/a", name);
}

std::string predicted_text(const std::optional<double>& seconds) {
  return seconds ? fmt::format(" (predicted {})", rate_text(*seconds)) : std::string();
}

/// What the policy's error is beside that of doing nothing, in words.
TextField against_baselines(const OpenLoopSummary& s) {
  const double better = std::min(s.hold_first_mse, s.mean_action_mse), share = s.mse / better;
  if (!std::isfinite(share)) return {"cannot be compared", text_color::kYellow};
  const std::string text = fmt::format("{:.2f} of the better of both", share);
  if (share < 1) return {text + ", so it has learnt", text_color::kGreen};
  return {text + ": doing nothing is better", text_color::kYellow};
}

}  // namespace

TextStyle text_style_of(int fd) {
  TextStyle style;
  if (::isatty(fd) == 0) return style;
  const char* no_color = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  const bool dumb = terminal != nullptr && std::string_view(terminal) == "dumb";
  style.is_terminal = !dumb;
  style.color = (no_color == nullptr || *no_color == 0) && !dumb;
  struct winsize window = {};
  if (::ioctl(fd, TIOCGWINSZ, &window) == 0) {
    style.width = window.ws_col;
    style.height = window.ws_row;
  }
  return style;
}

std::string duration_text(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "n/a";
  if (seconds < 10) return fmt::format("{:.1f}s", seconds);
  const auto s = static_cast<std::int64_t>(std::llround(seconds));
  if (s < 60) return fmt::format("{}s", s);
  if (s < 3600) return fmt::format("{}m{:02d}s", s / 60, s % 60);
  if (s < 86'400) return fmt::format("{}h{:02d}m{:02d}s", s / 3600, s / 60 % 60, s % 60);
  return fmt::format("{}d{:02d}h{:02d}m", s / 86'400, s / 3600 % 24, s / 60 % 60);
}

std::string remaining_text(double seconds) {
  if (!(seconds >= 3600 && seconds < 86'400)) return duration_text(seconds);
  const auto minutes = static_cast<std::int64_t>(seconds) / 60;
  return fmt::format("{}h{:02d}m", minutes / 60, minutes % 60);
}

std::string progress_text(const ProgressLine& p, const TextStyle& style) {
  const TextField head{fmt::format("[{}] ", p.name), text_color::kBold};
  const std::string total = fmt::format("{}", p.total_steps);
  const double share = p.total_steps > 0 ? 100.0 * static_cast<double>(p.step) / static_cast<double>(p.total_steps) : 0;
  const std::vector<TextField> first = {
      {fmt::format("step {:>{}}/{} {:.1f}%", p.step, total.size(), total, share)},
      {p.dynamics_loss && p.action_loss ? fmt::format("loss {} (dyn {} act {})", loss_text(p.loss),
                                                      loss_text(*p.dynamics_loss), loss_text(*p.action_loss))
                                        : fmt::format("loss {}", loss_text(p.loss)),
       std::isfinite(p.loss) ? nullptr : text_color::kRed},
      {fmt::format("gn {}", std::isfinite(p.gradient_norm) ? fmt::format("{:.2f}", p.gradient_norm)
                                                           : loss_text(p.gradient_norm))},
      {fmt::format("lr {:.1e}", p.learning_rate)}};
  std::vector<TextField> second = {
      {fmt::format("{} smp/s ({}/{})", rate_text(p.samples_per_second),
                   rate_text(p.samples_per_second / static_cast<double>(p.ranks > 0 ? p.ranks : 1)), p.rank_noun)},
      {fmt::format("{} s/step{}", rate_text(p.seconds_per_step), predicted_text(p.predicted_seconds))},
      {p.product_share_percent ? utilisation("product rate share", p.product_share_percent)
                               : utilisation("MFU", p.mfu_percent)},
      {fmt::format("stall {:.1f}%", p.stall_percent), p.stall_percent >= 10 ? text_color::kYellow : nullptr}};
  if (p.memory_used_gib && p.memory_total_gib)
    second.push_back({fmt::format("mem {:.1f}/{:.1f}G", *p.memory_used_gib, *p.memory_total_gib)});
  if (p.remaining_seconds) second.push_back({"ETA " + remaining_text(*p.remaining_seconds)});
  return layout_text(head, first, style) + layout_text({std::string(head.text.size(), ' ')}, second, style);
}

std::string run_report(const RunSummary& s, const TextStyle& style) {
  const bool complete = s.exit_code == 0, stopped = was_stopped(s.exit_code);
  const TextField verdict{complete  ? "RUN COMPLETE "
                          : stopped ? "RUN STOPPED "
                                    : "RUN FAILED ",
                          complete  ? text_color::kGreen
                          : stopped ? text_color::kYellow
                                    : text_color::kRed};
  TextStyle unbroken = style;
  unbroken.width = 0;  // the first line is the one that scripts look for
  std::string out = layout_text(verdict,
                                {{s.name, text_color::kBold},
                                 {format_grouped(s.steps) + " steps"},
                                 {format_grouped(s.samples) + " " + s.sample_noun},
                                 {duration_text(s.seconds)},
                                 {fmt::format("exit {}", s.exit_code)}},
                                unbroken, 3);
  const auto row = [&](const char* name, const std::vector<TextField>& fields, std::size_t gap) {
    out += layout_text({fmt::format("  {:<10}", name)}, fields, style, gap);
  };
  row(s.measure.c_str(),
      {{!s.is_measured ? "n/a"
                       : fmt::format("{} -> {} (best {} @ {})", loss_text(s.loss_first), loss_text(s.loss_last),
                                     loss_text(s.loss_best), format_grouped(s.loss_best_step))},
       {fmt::format("nan/inf {}", s.not_finite), s.not_finite > 0 ? text_color::kYellow : nullptr},
       {fmt::format("void batches {}", s.void_batches), s.void_batches > 0 ? text_color::kYellow : nullptr},
       {fmt::format("restarts {}", s.restarts)}},
      6);
  std::vector<TextField> speed = {
      {fmt::format("{} {}/s mean (p50 {}, p05 {})", rate_text(s.samples_per_second_mean), s.rate_noun,
                   rate_text(s.samples_per_second_p50), rate_text(s.samples_per_second_p05))}};
  if (s.product_share_percent) {
    speed.push_back({fmt::format("{} s/step{}", rate_text(s.seconds_per_step), predicted_text(s.predicted_seconds))});
    speed.push_back({utilisation("product rate share", s.product_share_percent)});
  } else {
    speed.push_back({utilisation("MFU", s.mfu_percent)});
    speed.push_back({utilisation("HFU", s.hfu_percent)});
  }
  row("speed", speed, s.product_share_percent ? 3 : 6);
  row("time",
      {{fmt::format("compute {:.1f}%", s.compute_percent)},
       {fmt::format("comm exposed {:.1f}%", s.exposed_comm_percent)},
       {fmt::format("data stall {:.1f}%", s.stall_percent)},
       {fmt::format("checkpoint {:.1f}%", s.checkpoint_percent)},
       {fmt::format("other {:.1f}%", s.other_percent)}},
      2);
  if (s.open_loop) {
    row("open loop",
        {{fmt::format("mse {:.4g} on {} held-out windows of {} episodes", s.open_loop->mse, s.open_loop->windows,
                      s.open_loop->episodes)},
         {fmt::format("holding still {:.4g}", s.open_loop->hold_first_mse)},
         {fmt::format("mean action {:.4g}", s.open_loop->mean_action_mse)},
         against_baselines(*s.open_loop)},
        3);
  }
  if (s.events.empty()) row("events", {{"none"}}, 2);
  for (std::size_t i = 0; i < s.events.size(); ++i) row(i == 0 ? "events" : "", {{s.events[i]}}, 2);
  if (s.checkpoint.empty()) {
    row("saved", {{"nothing", text_color::kYellow}}, 2);
  } else {
    const std::string leaf = s.checkpoint.substr(s.checkpoint.find_last_of('/') + 1);
    row("saved",
        {{fmt::format("{} ({}{})", s.checkpoint, format_bytes(s.checkpoint_bytes),
                      s.checkpoint_verified ? ", verified" : "")},
         {"latest -> " + leaf}},
        2);
    if (!s.best.empty()) row("", {{"checkpoints/best -> " + s.best}}, 2);
  }
  std::vector<TextField> next;
  for (const std::string& command : s.next) next.push_back({command});
  if (!next.empty()) row("next", next, 5);
  return out;
}

}  // namespace troupe::workers
