#include "workers/controller/service.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/log.h"
#include "data/video/bad_clip.h"
#include "placement/render.h"
#include "placement/rl_shape.h"
#include "workers/report/rl_report.h"
#include "workers/report/text_report.h"

namespace troupe::workers {

namespace {
constexpr std::size_t kNotableEvents = 20;

/// The printer ends the line.
std::string without_last_newline(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

std::string_view name_of(Severity severity) {
  return severity == Severity::info ? "info" : severity == Severity::warn ? "warn" : "error";
}
}  // namespace

ControllerService::ControllerService(Setup setup, Membership& membership, StateDb& db,
                                     std::vector<std::unique_ptr<MetricSink>> sinks, Outbox outbox, Print print)
    : setup_(std::move(setup)),
      membership_(membership),
      db_(db),
      sinks_(std::move(sinks)),
      outbox_(std::move(outbox)),
      print_(std::move(print)),
      events_(setup_.job.run.events(), std::ios::app),
      statistics_(samples_at(1), setup_.job.config.job.kind == "rl" ? "env/steps" : ""),
      job_(setup_.job, db, *this) {}

ControllerService::~ControllerService() = default;

void ControllerService::start(TimePoint now) {
  started_ = last_tick_ = now;
  job_.start(now);
}

void ControllerService::handle(const std::string& from, const Message& message, TimePoint now) {
  if (const auto* request = std::get_if<Join>(&message)) {
    join(from, *request, now);
  } else if (const auto* beat = std::get_if<Heartbeat>(&message)) {
    if (membership_.heard(beat->node, now))
      send(from, HeartbeatAck{.sequence = beat->sequence, .term = setup_.job.term});
  } else if (const auto* scale = std::get_if<Scale>(&message)) {
    send(from, job_.scale(*scale, now));
  } else if (std::holds_alternative<StatusQuery>(message)) {
    send(from, Reply{.code = 0, .text = job_.status_json(now)});
  } else if (const auto* stop = std::get_if<StopJob>(&message)) {
    interrupt(stop->now ? "troupe status --stop --now" : "troupe status --stop", now);
    if (stop->now) job_.interrupt("troupe status --stop --now", now);
    send(from, Reply{.code = 0, .text = "stopping"});
  } else {
    job_.handle(from, message, now);
  }
}

void ControllerService::join(const std::string& from, const Join& request, TimePoint now) {
  const auto known = membership_.members().find(request.name);
  const bool lived = known != membership_.members().end() && known->second.alive;
  const std::int64_t replaced = lived && known->second.incarnation != request.incarnation ? known->second.rank : 0;
  // A node repeats its request until it hears the answer; only the first is news.
  const auto introduced = introduced_.find(request.name);
  const bool repeated = lived && introduced != introduced_.end() && introduced->second == request.incarnation;
  const auto rank = membership_.join(request, from, now);
  if (!rank) {
    send(from, Reply{.code = 2, .text = rank.error().message()});
    return;
  }
  // Another agent under a living node's name: the one before has ended, and what it hosted with it.
  if (replaced != 0) job_.node_lost(replaced, now);
  NodeSnapshot node{.name = request.name, .cpus = request.cpus, .memory_bytes = request.memory_bytes, .devices = {}};
  send(from, Joined{.term = setup_.job.term,
                    .node_rank = *rank,
                    .lease_ms = setup_.lease.count(),
                    .config = setup_.config_yaml,
                    .run_dir = setup_.job.run.root(),
                    .plan = to_json(job_.plan())});
  introduced_[request.name] = request.incarnation;
  if (!repeated) job_.node_joined(node, *rank);
}

void ControllerService::tick(TimePoint now) {
  last_tick_ = now;
  for (const std::int64_t rank : membership_.expire(now)) job_.node_lost(rank, now);
  job_.tick(now);
  if (job_.exit_code()) {
    for (const auto& [name, member] : membership_.members()) {
      if (member.rank != 0 && member.alive) outbox_(member.address, Finish{.reason = "the job has ended"});
    }
    for (const auto& sink : sinks_) {
      if (auto flushed = sink->flush(); !flushed) log::error("metrics: {}", flushed.error().message());
    }
  }
}

void ControllerService::interrupt(const std::string& why, TimePoint now) { job_.interrupt(why, now); }

void ControllerService::send(const std::string& to, const Message& message) {
  // Node agents elsewhere are reached by the name they joined with.
  if (to.starts_with("node/")) {
    for (const auto& [name, member] : membership_.members()) {
      if (to == fmt::format("node/{}", member.rank)) {
        outbox_(member.address, message);
        return;
      }
    }
  }
  outbox_(to, message);
}

void ControllerService::event(Severity severity, const std::string& kind, const std::string& text) {
  const double wall = setup_.wall_seconds();
  const nlohmann::json line = {
      {"wall", wall}, {"severity", name_of(severity)}, {"kind", kind}, {"step", newest_step_}, {"text", text}};
  events_ << line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << '\n' << std::flush;
  if (auto written = db_.add_event(wall, kind, text); !written) log::error("{}", written.error().message());
  if (severity != Severity::info && notable_.size() < kNotableEvents)
    notable_.push_back(fmt::format("{}: {}", kind, text));
  list_bad_clip(text, wall);
  print_(severity, text);
}

void ControllerService::list_bad_clip(const std::string& text, double wall) {
  const auto clip = find_bad_clip(text);
  if (!clip || !listed_clips_.emplace(clip->file, clip->group).second) return;
  if (!bad_clips_.is_open()) bad_clips_.open(setup_.job.run.bad_clips(), std::ios::app);
  const nlohmann::json line = {
      {"wall", wall}, {"step", newest_step_}, {"file", clip->file}, {"group", clip->group}, {"text", text}};
  bad_clips_ << line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << '\n' << std::flush;
}

void ControllerService::producer_times(const std::string& role, double idle_seconds, double busy_seconds) {
  producers_[role].idle += idle_seconds;
  producers_[role].busy += busy_seconds;
}

void ControllerService::add_producer_shares(std::map<std::string, double>& metrics) {
  for (auto& [role, times] : producers_) {
    if (times.idle + times.busy <= 0) continue;
    // the other end of time/stall: 1 when the learners set the pace, 0 when the producers do
    const double idle = times.idle / (times.idle + times.busy);
    metrics[setup_.job.config.job.kind == "rl" ? fmt::format("time/{}/idle", role) : "data/producer_idle"] = idle;
    busy_share_[role] = 1 - idle;
    times = {};
  }
}

std::int64_t ControllerService::samples_at(std::int64_t step) const {
  const JobConfig& job = setup_.job.config;
  return step * (job.job.kind == "rl" ? rl_shape(job).env_steps_per_step() : setup_.job.plan.batch.global);
}

void ControllerService::write_metrics(std::int64_t step, const std::map<std::string, double>& values) {
  const std::int64_t samples = samples_at(step);
  for (const auto& sink : sinks_) {
    auto written = sink->write(step, setup_.wall_seconds(), samples, values);
    if (written || metrics_failed_) continue;
    metrics_failed_ = true;  // training goes on without its curves; said once
    event(Severity::error, "metrics", fmt::format("metrics can no longer be written: {}", written.error().message()));
  }
}

void ControllerService::step(const StepReport& report) {
  if (report.step <= newest_step_) statistics_.roll_back(report.step - 1);
  newest_step_ = report.step;
  statistics_.add_step(report);
  std::map<std::string, double> metrics = report.metrics;
  add_producer_shares(metrics);
  write_metrics(report.step, metrics);
  const std::int64_t every = setup_.job.config.metrics.every;
  const bool first = statistics_.steps() == 1;
  if (first || report.step % every == 0 || report.step == setup_.job.config.training.steps) {
    print_(Severity::info, setup_.job.config.job.kind == "rl" ? rl_progress(report) : progress(report));
  }
}

std::string ControllerService::bottleneck() const {
  if (statistics_.stall_percent() < 50) return "learner";
  std::string slowest = "rollout";
  double most = -1;
  for (const auto& [role, share] : busy_share_) {
    if (share > most) slowest = role, most = share;
  }
  return slowest;
}

std::string ControllerService::rl_progress(const StepReport& report) const {
  const auto value = [&](const char* name) -> std::optional<double> {
    const auto found = report.metrics.find(name);
    return found == report.metrics.end() ? std::nullopt : std::optional<double>(found->second);
  };
  const std::int64_t total = setup_.job.config.training.steps;
  const double rate = statistics_.samples_per_second();
  RlProgressLine line{.name = setup_.job.config.job.name,
                      .step = report.step,
                      .total_steps = total,
                      .env_steps = static_cast<std::int64_t>(value("env/total_steps").value_or(0)),
                      .env_steps_per_second = rate,
                      .mean_return = value("env/return"),
                      .mean_length = value("env/episode_len"),
                      .success_once = value("env/success_once"),
                      .loss = value("train/loss"),
                      .approx_kl = value("train/actor/approx_kl"),
                      .entropy = value("train/actor/entropy_loss"),
                      .alpha = value("train/sac/alpha"),
                      .seconds_per_step = value("time/step").value_or(0),
                      .stall_percent = statistics_.stall_percent(),
                      .bottleneck = bottleneck(),
                      .remaining_seconds = {}};
  line.remaining_seconds = statistics_.seconds_per_step() * static_cast<double>(total - report.step);
  return without_last_newline(rl_progress_text(line));
}

std::string ControllerService::progress(const StepReport& report) const {
  const auto known = [&](const char* name) {
    const auto found = report.metrics.find(name);
    return found == report.metrics.end() ? std::nullopt : std::optional(found->second);
  };
  const auto value = [&](const char* name) { return known(name).value_or(0.0); };
  const std::int64_t total = setup_.job.config.training.steps;
  const double rate = statistics_.samples_per_second();
  const auto samples_left = static_cast<double>((total - report.step) * setup_.job.plan.batch.global);
  ProgressLine line{.name = setup_.job.config.job.name,
                    .step = report.step,
                    .total_steps = total,
                    .loss = value("train/loss"),
                    .dynamics_loss = known("train/dynamics_loss"),
                    .action_loss = known("train/action_loss"),
                    .gradient_norm = value("train/grad_norm"),
                    .learning_rate = value("train/lr"),
                    .samples_per_second = rate,
                    .seconds_per_step = value("time/step"),
                    .stall_percent = statistics_.stall_percent(),
                    .ranks = setup_.job.plan.batch.data_ranks,
                    .rank_noun = "rank",
                    .mfu_percent = {},
                    .memory_used_gib = {},
                    .memory_total_gib = {},
                    .remaining_seconds = {}};
  if (rate > 0) line.remaining_seconds = samples_left / rate;
  return without_last_newline(progress_text(line));
}

void ControllerService::evaluated(const EvalReport& report) {
  statistics_.add_eval(report);
  write_metrics(report.step, report.metrics);
  const auto value = [&](const char* name) { return report.metrics.count(name) ? report.metrics.at(name) : 0.0; };
  if (setup_.job.config.job.kind == "rl") {
    print_(Severity::info,
           fmt::format("[{}] iteration {}: evaluation of {:.0f} episodes: return {:.4g}, length {:.1f}{}",
                       setup_.job.config.job.name, report.step, value("eval/num_trajectories"), value("eval/return"),
                       value("eval/episode_len"),
                       report.metrics.count("eval/success_once")
                           ? fmt::format(", success {:.1f}%", 100 * value("eval/success_once"))
                           : ""));
    return;
  }
  const std::string parts =
      report.metrics.count("eval/dynamics_loss")
          ? fmt::format(" (dyn {:.4f} act {:.4f})", value("eval/dynamics_loss"), value("eval/action_loss"))
          : std::string();
  print_(Severity::info,
         fmt::format("[{}] step {} held-out loss {:.4f}{} on {:.0f} samples", setup_.job.config.job.name, report.step,
                     value("eval/loss"), parts, value("eval/samples")));
}

}  // namespace troupe::workers
