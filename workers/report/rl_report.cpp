#include "workers/report/rl_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "placement/format.h"
#include "workers/report/text_layout.h"

namespace troupe::workers {

std::string rl_progress_text(const RlProgressLine& p, const TextStyle& style) {
  const TextField head{fmt::format("[{}] ", p.name), text_color::kBold};
  const std::string total = fmt::format("{}", p.total_steps);
  std::vector<TextField> first = {
      {fmt::format("iteration {:>{}}/{}", p.step, total.size(), total)},
      {fmt::format("env steps {} ({}/s)", format_grouped(p.env_steps), rate_text(p.env_steps_per_second))}};
  if (p.mean_return) first.push_back({fmt::format("return {}", number_text(*p.mean_return))});
  if (p.mean_length) first.push_back({fmt::format("len {:.1f}", *p.mean_length)});
  if (p.success_once) first.push_back({fmt::format("success {:.1f}%", 100 * *p.success_once)});
  std::vector<TextField> second;
  if (p.loss)
    second.push_back(
        {fmt::format("loss {}", number_text(*p.loss)), std::isfinite(*p.loss) ? nullptr : text_color::kRed});
  if (p.approx_kl) second.push_back({fmt::format("kl {:.2g}", *p.approx_kl)});
  if (p.entropy) second.push_back({fmt::format("entropy {:.3g}", *p.entropy)});
  if (p.alpha) second.push_back({fmt::format("alpha {:.3g}", *p.alpha)});
  second.push_back({fmt::format("{} s/iteration", rate_text(p.seconds_per_step))});
  second.push_back({fmt::format("waiting for rollouts {:.0f}%", p.stall_percent)});
  if (!p.bottleneck.empty()) second.push_back({fmt::format("bottleneck: {}", p.bottleneck), text_color::kYellow});
  if (p.remaining_seconds) second.push_back({"ETA " + duration_text(*p.remaining_seconds)});
  const TextField indent{std::string(head.text.size(), ' ')};
  std::string text = layout_text(head, first, style) + layout_text(indent, second, style);
  if (p.phases.empty()) return text;
  std::vector<TextField> third;
  for (const std::string& phases : p.phases) third.push_back({phases});
  return text + layout_text(indent, third, style);
}

Interval wilson_interval(std::int64_t successes, std::int64_t trials) {
  if (trials <= 0) return {};
  constexpr double z = 1.959963984540054;
  const double n = static_cast<double>(trials), p = static_cast<double>(successes) / n;
  const double scale = 1 / (1 + z * z / n), centre = (p + z * z / (2 * n)) * scale;
  const double half = z * scale * std::sqrt(p * (1 - p) / n + z * z / (4 * n * n));
  // at the ends the bound is the end itself, which rounding would miss
  return {successes == 0 ? 0.0 : centre - half, successes == trials ? 1.0 : centre + half};
}

std::string results_table(const EpisodeResults& r) {
  std::string out = fmt::format("  evaluated {} episodes of {}, deterministic policy, limit {} steps, K {}\n",
                                format_grouped(r.episodes), r.env, format_grouped(r.max_steps), r.chunk);
  if (r.lost > 0) {
    out += fmt::format("  lost      {}/{} episodes: the environment failed twice; no number below counts them\n",
                       r.lost, r.episodes + r.lost);
  }
  if (r.episodes == 0) return out + "  no episode was played, so there are no numbers\n";
  if (r.successes) {
    const Interval interval = wilson_interval(*r.successes, r.episodes);
    out += fmt::format(
        "  success   {}/{} = {:.1f}%   95% interval {:.1f}% to {:.1f}% (Wilson)\n", *r.successes, r.episodes,
        r.episodes > 0 ? 100.0 * static_cast<double>(*r.successes) / static_cast<double>(r.episodes) : 0.0,
        100 * interval.low, 100 * interval.high);
  }
  out += fmt::format("  returns   mean {} +- {}   min {}   max {}   length {:.1f}\n", number_text(r.mean_return),
                     number_text(r.std_return), number_text(r.min_return), number_text(r.max_return), r.mean_length);
  if (r.threshold) {
    out +=
        fmt::format("  solved    {} (mean return {} {} {})\n", r.mean_return > *r.threshold ? "yes" : "no",
                    number_text(r.mean_return), r.mean_return > *r.threshold ? ">" : "<=", number_text(*r.threshold));
  }
  return out;
}

}  // namespace troupe::workers
