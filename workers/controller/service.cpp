#include "workers/controller/service.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/log.h"
#include "placement/render.h"
#include "workers/report/metric_file.h"

namespace troupe::workers {

namespace {
constexpr std::size_t kNotableEvents = 20;

}  // namespace

ControllerService::ControllerService(Setup setup, Membership& membership, StateDb& db,
                                     std::vector<std::unique_ptr<MetricSink>> sinks, Outbox outbox, RunOutput& output)
    : setup_(std::move(setup)),
      reporter_(ProgressReporter::make(setup_.job.config, setup_.job.plan)),
      membership_(membership),
      db_(db),
      sinks_(std::move(sinks)),
      outbox_(std::move(outbox)),
      output_(output),
      events_(setup_.job.run.events(), std::ios::app),
      statistics_(reporter_->samples_per_step(), reporter_->samples_metric()),
      job_(setup_.job, db, *this) {
  if (setup_.job.resume_step == 0) return;
  const auto recorded = read_metric_file(setup_.job.run.path("metrics.jsonl"));
  if (recorded) statistics_.go_on_from(recorded->curves, setup_.job.resume_step);  // absent without that sink
}

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
    send(from, Reply{.code = 0, .text = status_json(now)});
  } else if (const auto* stop = std::get_if<StopJob>(&message)) {
    interrupt(stop->now ? "troupe status --stop --now" : "troupe status --stop", now);
    if (stop->now) job_.interrupt("troupe status --stop --now", now);
    send(from, Reply{.code = 0, .text = "stopping"});
  } else if (const auto* exit = std::get_if<ActorExited>(&message); exit && !is_placed_there(from, *exit)) {
    log::warn("{} tells of {}#{}, which was never placed there; dropped", from, exit->actor, exit->incarnation);
  } else {
    job_.handle(from, message, now);
  }
}

bool ControllerService::is_placed_there(const std::string& from, const ActorExited& exit) const {
  const auto rank = setup_.peers->node_of(exit.actor, exit.incarnation);
  return rank && from == fmt::format("node/{}", *rank);
}

std::string ControllerService::status_json(TimePoint now) const {
  auto status = nlohmann::json::parse(job_.status_json(now));
  if (live_) {
    auto& live = status["live"] = {{"measure", live_->measure},
                                   {"per_second", live_->per_second},
                                   {"rate_noun", live_->rate_noun},
                                   {"stall_percent", live_->stall_percent},
                                   {"text", live_fields(*live_)}};
    if (live_->value) live["value"] = *live_->value;
    if (live_->success) live["success"] = *live_->success;
    if (live_->remaining_seconds) live["remaining_seconds"] = *live_->remaining_seconds;
  }
  return status.dump(2);
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
  setup_.peers->joined(request.name, *rank);
  NodeSnapshot node{.name = request.name, .cpus = request.cpus, .memory_bytes = request.memory_bytes};
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
  if (const auto* spawn = std::get_if<Spawn>(&message); spawn && to.starts_with("node/"))
    setup_.peers->placed(spawn->actor, spawn->incarnation, std::stoll(to.substr(to.find('/') + 1)));
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
      {"wall", wall}, {"severity", enum_name(severity)}, {"kind", kind}, {"step", newest_step_}, {"text", text}};
  events_ << line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << '\n' << std::flush;
  if (auto written = db_.add_event(wall, kind, text); !written) log::error("{}", written.error().message());
  if (severity != Severity::info && notable_.size() < kNotableEvents)
    notable_.push_back(fmt::format("{}: {}", kind, text));
  output_.line(severity, text);
}

void ControllerService::bad_clip(const BadClip& clip, const std::string& text) {
  if (!listed_clips_.emplace(clip.file, clip.group).second) return;
  if (!bad_clips_.is_open()) bad_clips_.open(setup_.job.run.bad_clips(), std::ios::app);
  const nlohmann::json line = {{"wall", setup_.wall_seconds()},
                               {"step", newest_step_},
                               {"file", clip.file},
                               {"group", clip.group},
                               {"text", text}};
  bad_clips_ << line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << '\n' << std::flush;
}

void ControllerService::producer_times(const std::string& role, const ProducerTimes& times) {
  producers_[role].idle_seconds += times.idle_seconds;
  producers_[role].busy_seconds += times.busy_seconds;
}

void ControllerService::add_producer_shares(std::map<std::string, double>& metrics) {
  for (auto& [role, times] : producers_) {
    const double seconds = times.idle_seconds + times.busy_seconds;
    if (seconds <= 0) continue;
    // the other end of time/stall: 1 when the learners set the pace, 0 when the producers do
    const double idle = times.idle_seconds / seconds;
    metrics[reporter_->idle_metric(role)] = idle;
    busy_share_[role] = 1 - idle;
    times = {};
  }
}

void ControllerService::write_metrics(std::int64_t step, const std::map<std::string, double>& values) {
  const std::int64_t samples = step * reporter_->samples_per_step();
  for (const auto& sink : sinks_) {
    auto written = sink->write(step, setup_.wall_seconds(), samples, values);
    if (written) written = sink->flush();  // others follow the files; a killed controller loses no step
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
    output_.progress(reporter_->step(report, statistics_, busy_share_));
  }
  live_ = reporter_->live(report, statistics_);
  live_->restarts = job_.restarts();
  output_.live(*live_);
}

void ControllerService::evaluated(const EvalReport& report) {
  statistics_.add_eval(report);
  write_metrics(report.step, report.metrics);
  output_.line(Severity::info, reporter_->evaluation(report));
}

}  // namespace troupe::workers
