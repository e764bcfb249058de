#include "workers/inference/agent/episode_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <nlohmann/json.hpp>

#include "configs/scalar.h"

namespace troupe::workers {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kFormat = 1;
constexpr std::size_t kNamedFailures = 20;

EpisodeResults results_of(const EnvSpec& spec, const PlayedEpisodes& played) {
  const auto metrics = evaluation_metrics(played.records, spec.has_success);
  return episode_results(spec, played.chunk, [&](const std::string& name) {
    const auto metric = metrics.find(name);
    return metric == metrics.end() ? 0.0 : metric->second;
  });
}

std::string share(std::int64_t k, std::int64_t n) {
  return fmt::format("{}/{} = {:.1f}%", k, n, n > 0 ? 100 * static_cast<double>(k) / static_cast<double>(n) : 0.0);
}

/// What compares A and B, a line each, without indent.
std::vector<std::string> comparison_lines(const EvaluationReport& report) {
  const EpisodeComparison c = compare_episodes(report.spec, report.first.records, report.second->records);
  std::vector<std::string> lines;
  if (c.successes) {
    const PairedSuccesses& s = *c.successes;
    const double difference =
        s.pairs() > 0 ? 100 * static_cast<double>(s.first() - s.second()) / static_cast<double>(s.pairs()) : 0;
    lines.push_back(
        fmt::format("success   A {}   B {}   A - B {:+.1f} points, 95% interval {:+.1f} to {:+.1f} (Bonett-Price)",
                    share(s.first(), s.pairs()), share(s.second(), s.pairs()), difference,
                    100 * c.success_difference.low, 100 * c.success_difference.high));
    lines.push_back(
        fmt::format("test      McNemar's exact test: p = {:.3g} (only A {}, only B {}, both {}, neither {})",
                    c.mcnemar_p, s.only_first, s.only_second, s.both, s.neither));
  }
  lines.push_back(fmt::format("return    A - B {:+.4g}, 95% interval {:+.4g} to {:+.4g} (Student)",
                              c.return_difference.mean, c.return_difference.interval.low,
                              c.return_difference.interval.high));
  if (!c.successes) {
    lines.push_back(fmt::format("test      Wilcoxon's signed-rank test, {}: p = {:.3g} ({} of {} seeds differ)",
                                c.returns.exact ? "exact" : "normal approximation", c.returns.p, c.returns.pairs,
                                c.pairs));
  }
  return lines;
}

Json interval_json(const Interval& interval) { return Json::array({interval.low, interval.high}); }

Json results_json(const EnvSpec& spec, const PlayedEpisodes& played) {
  const EpisodeResults r = results_of(spec, played);
  Json json = {{"episodes", r.episodes}};
  if (r.successes) {
    json["successes"] = *r.successes;
    json["wilson_95"] = interval_json(wilson_interval(*r.successes, r.episodes));
  }
  for (const auto& [name, value] : evaluation_metrics(played.records, spec.has_success)) json[name] = value;
  if (r.threshold) {
    json["reward_threshold"] = *r.threshold;
    json["solved"] = r.mean_return > *r.threshold;
  }
  return json;
}

Json played_json(const EnvSpec& spec, const PlayedEpisodes& played) {
  Json episodes = Json::array();
  for (const EvaluationEpisode& e : played.records) {
    if (!e.lost.empty()) {
      episodes.push_back({{"seed", e.seed}, {"lost", e.lost}});
      continue;
    }
    Json json = {{"seed", e.seed}, {"return", e.total_return}, {"length", e.length}};
    if (spec.has_success) {
      json["success_once"] = e.success_once;
      json["success_at_end"] = e.success_at_end;
    }
    if (const auto video = played.videos.find(e.seed); video != played.videos.end()) json["video"] = video->second;
    episodes.push_back(std::move(json));
  }
  Json json = {{"checkpoint",
                {{"folder", played.checkpoint}, {"digest", played.digest}, {"job", played.job}, {"step", played.step}}},
               {"profile", played.profile},
               {"chunk", played.chunk},
               {"exec_steps", played.exec_steps}};
  for (const auto& [name, value] : played.options)
    std::visit([&, &name = name](const auto& typed) { json["options"][name] = typed; }, value);
  json["results"] = results_json(spec, played);
  json["episodes"] = std::move(episodes);
  return json;
}

Json comparison_json(const EvaluationReport& report) {
  const EpisodeComparison c = compare_episodes(report.spec, report.first.records, report.second->records);
  Json json = {{"pairs", c.pairs}};
  if (c.successes) {
    json["success_once"] = {{"both", c.successes->both},
                            {"only_first", c.successes->only_first},
                            {"only_second", c.successes->only_second},
                            {"neither", c.successes->neither},
                            {"test", "mcnemar_exact"},
                            {"p", c.mcnemar_p},
                            {"difference_95", interval_json(c.success_difference)}};
  }
  json["return"] = {{"difference", c.return_difference.mean},
                    {"difference_95", interval_json(c.return_difference.interval)},
                    {"test", c.returns.exact ? "wilcoxon_signed_rank_exact" : "wilcoxon_signed_rank_normal"},
                    {"differing", c.returns.pairs},
                    {"rank_sum", c.returns.rank_sum},
                    {"p", c.returns.p}};
  return json;
}

std::string markdown_of(const EnvSpec& spec, const PlayedEpisodes& played, const std::string& title) {
  std::string out = fmt::format("## {}\n\n- checkpoint `{}`, step {}, digest `{}`\n\n```\n{}```\n", title,
                                played.checkpoint, played.step, played.digest, results_table(results_of(spec, played)));
  if (!spec.has_success) return out;
  std::string seeds;
  std::size_t failures = 0;
  for (const EvaluationEpisode& e : played.records) {
    if (e.success_once || !e.lost.empty()) continue;
    if (++failures > kNamedFailures) continue;
    const auto video = played.videos.find(e.seed);
    seeds +=
        (seeds.empty() ? "" : ", ") +
        (video == played.videos.end() ? fmt::format("{}", e.seed) : fmt::format("[{}]({})", e.seed, video->second));
  }
  if (failures > kNamedFailures) seeds += fmt::format(" and {} more", failures - kNamedFailures);
  return out + fmt::format("\nSeeds without success: {}\n", failures == 0 ? "none" : seeds);
}

}  // namespace

EpisodeResults episode_results(const EnvSpec& spec, std::int64_t chunk,
                               const std::function<double(const std::string&)>& metric) {
  const double episodes = metric("eval/num_trajectories");
  EpisodeResults results{.env = spec.id,
                         .episodes = static_cast<std::int64_t>(episodes),
                         .lost = static_cast<std::int64_t>(metric("eval/lost")),
                         .max_steps = spec.max_steps,
                         .chunk = chunk,
                         .mean_return = metric("eval/return"),
                         .std_return = metric("eval/return_std"),
                         .min_return = metric("eval/return_min"),
                         .max_return = metric("eval/return_max"),
                         .mean_length = metric("eval/episode_len")};
  if (spec.has_success) results.successes = std::llround(metric("eval/success_once") * episodes);
  if (std::isfinite(spec.reward_threshold) && results.episodes > 0) results.threshold = spec.reward_threshold;
  return results;
}

EpisodeComparison compare_episodes(const EnvSpec& spec, const std::vector<EvaluationEpisode>& first,
                                   const std::vector<EvaluationEpisode>& second) {
  EpisodeComparison out;
  std::vector<double> differences;
  PairedSuccesses counts;
  for (std::size_t i = 0; i < std::min(first.size(), second.size()); ++i) {
    if (!first[i].lost.empty() || !second[i].lost.empty()) continue;
    ++out.pairs;
    differences.push_back(first[i].total_return - second[i].total_return);
    const bool a = first[i].success_once, b = second[i].success_once;
    ++(a && b ? counts.both : a ? counts.only_first : b ? counts.only_second : counts.neither);
  }
  out.returns = signed_rank_test(differences);
  out.return_difference = mean_interval(differences);
  if (!spec.has_success) return out;
  out.mcnemar_p = mcnemar_exact(counts.only_first, counts.only_second);
  out.success_difference = paired_difference_interval(counts);
  out.successes = counts;
  return out;
}

std::string episodes_table(const EvaluationReport& report) {
  const auto table = [&](const PlayedEpisodes& played) { return results_table(results_of(report.spec, played)); };
  if (!report.second) return table(report.first);
  std::string out = fmt::format("A: {}, step {}\n{}B: {}, step {}\n{}A and B on the same {} seeds\n",
                                report.first.checkpoint, report.first.step, table(report.first),
                                report.second->checkpoint, report.second->step, table(*report.second),
                                compare_episodes(report.spec, report.first.records, report.second->records).pairs);
  for (const std::string& line : comparison_lines(report)) out += "  " + line + "\n";
  return out;
}

std::string episodes_markdown(const EvaluationReport& report) {
  const auto& records = report.first.records;
  std::string out = fmt::format(
      "# Evaluation: {}\n\n- Troupe {}; deterministic policy, each seed once, {} environments at a time, limit {} "
      "steps\n",
      report.spec.id, report.version, report.parallel, report.spec.max_steps);
  if (!records.empty()) out += fmt::format("- seeds {} to {}\n", records.front().seed, records.back().seed);
  for (const auto& [name, value] : report.options) out += fmt::format("- env.options.{}: {}\n", name, value);
  out += "\n" + markdown_of(report.spec, report.first, report.second ? "A" : "Result");
  if (!report.second) return out;
  out += "\n" + markdown_of(report.spec, *report.second, "B") + "\n## A and B on the same seeds\n\n```\n";
  for (const std::string& line : comparison_lines(report)) out += "  " + line + "\n";
  return out + "```\n";
}

namespace {

/// The environment's options are text in a job; a reader wants what the text says.
Json typed_options(const std::map<std::string, std::string>& options) {
  Json json = Json::object();
  for (const auto& [name, text] : options) {
    if (const auto flag = configs::parse_boolean(text)) {
      json[name] = *flag;
    } else if (const auto integer = configs::parse_integer(text)) {
      json[name] = *integer;
    } else if (const auto number = configs::parse_number(text)) {
      json[name] = *number;
    } else {
      json[name] = text;
    }
  }
  return json;
}

}  // namespace

std::string episodes_json(const EvaluationReport& report) {
  const EnvSpec& spec = report.spec;
  const auto& records = report.first.records;
  Json json = {{"format", kFormat},
               {"kind", "episodes"},
               {"troupe", report.version},
               {"env",
                {{"id", spec.id},
                 {"max_steps", spec.max_steps},
                 {"control_hz", spec.control_hz},
                 {"options", typed_options(report.options)}}},
               {"policy", "deterministic"},
               {"first_seed", records.empty() ? 0 : records.front().seed},
               {"parallel", report.parallel}};
  json.update(played_json(spec, report.first));
  if (report.second) {
    json["compare"] = played_json(spec, *report.second);
    json["compare"]["difference"] = comparison_json(report);
  }
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace troupe::workers
