#include "workers/controller/service.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/log.h"
#include "comm/control/actor_identity.h"
#include "comm/control/message_codec.h"
#include "placement/render.h"
#include "workers/controller/join_rules.h"
#include "workers/report/metric_file.h"

namespace troupe::workers {

namespace {
constexpr std::size_t kNotableEvents = 20;
/// Pieces of work behind which steps are left out of the metric files: the memory of a controller whose disk hangs.
constexpr std::size_t kMostWaiting = 10'000;
constexpr std::chrono::seconds kRecordAgain{5};

std::string to_text(const nlohmann::json& line) {
  return line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

ControllerService::ControllerService(Setup setup, Membership& membership, StateDb& db,
                                     std::vector<std::unique_ptr<MetricSink>> sinks, Outbox outbox, RunOutput& output,
                                     std::unique_ptr<Background> background)
    : setup_(std::move(setup)),
      reporter_(ProgressReporter::make(setup_.job.config, setup_.job.plan, setup_.expected)),
      membership_(membership),
      db_(db),
      sinks_(std::move(sinks)),
      outbox_(std::move(outbox)),
      output_(output),
      events_(setup_.job.run.events()),
      bad_clips_(setup_.job.run.bad_clips()),
      quarantine_(setup_.job.run.quarantine()),
      statistics_(reporter_->samples_per_step(), reporter_->samples_metric()),
      job_(setup_.job, db, *this),
      background_(std::move(background)) {
  if (setup_.job.resume_step == 0) return;
  const auto recorded = read_metric_file(setup_.job.run.path("metrics.jsonl"));
  if (recorded) statistics_.go_on_from(recorded->curves, setup_.job.resume_step);  // absent without that sink
}

ControllerService::~ControllerService() = default;

void ControllerService::start(TimePoint now) {
  started_ = last_tick_ = now;
  for (const auto& [name, member] : membership_.members()) {
    if (member.rank != 0) job_.node_joined(member.snapshot, member.rank, {}, /*is_new_process=*/true, clock_.at(now));
  }
  job_.start(clock_.at(now));
}

std::optional<std::string> ControllerService::speaker_of(const std::string& from, const Message& message) const {
  const std::string name = name_without_life(from);
  if (const auto* exited = std::get_if<ActorExited>(&message)) {
    const auto rank = setup_.peers->node_of(exited->actor, exited->incarnation);
    const Membership::Member* host = rank ? membership_.of_rank(*rank) : nullptr;
    return host && from == agent_of(*host) ? std::optional(name) : std::nullopt;
  }
  if (from == "controller") return from;  // of its own process: another's would not have come so far
  const ActorRecord* actor = job_.actor(name);
  return actor && from == actor->instance() ? std::optional(name) : std::nullopt;
}

std::string ControllerService::agent_of(const Membership::Member& member) {
  return fmt::format("node/{}#{}", member.rank, member.incarnation);
}

void ControllerService::forget(const std::string& name) {
  if (setup_.forget) setup_.forget(name);
}

void ControllerService::in_background(Background::Work work, Background::Then then) {
  background_->run(std::move(work), std::move(then));
}

void ControllerService::record(Background::Work work, std::function<void()> then) {
  records_.push_back({std::move(work), std::move(then)});
  if (records_.size() == 1) write_record();
}

void ControllerService::write_record() {
  record_at_.reset();
  background_->run(records_.front().work, [this](const Result<void>& written) {
    if (written) {
      records_failed_ = false;
      const auto then = std::move(records_.front().then);
      records_.pop_front();
      if (!records_.empty()) write_record();
      if (then) then();
      return;
    }
    record_at_ = last_tick_ + kRecordAgain;
    if (std::exchange(records_failed_, true)) return;
    event(Severity::error, "state",
          fmt::format("{}; it is tried again every 5 s, and no learner group forms meanwhile",
                      written.error().message()));
  });
}

bool ControllerService::wait_until_written(std::chrono::milliseconds deadline) {
  const TimePoint end = std::chrono::steady_clock::now() + deadline;
  do {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    if (!background_->wait_idle(std::max(left, std::chrono::milliseconds(0)))) return false;
    background_->collect();
  } while (background_->waiting() > 0);
  return records_.empty();
}

void ControllerService::handle(const std::string& from, const Message& message, TimePoint real_now) {
  const TimePoint now = clock_.at(real_now);
  if (const auto* request = std::get_if<Join>(&message)) {
    join(from, *request, now);
  } else if (const auto* beat = std::get_if<Heartbeat>(&message)) {
    send(from,
         HeartbeatAck{.sequence = beat->sequence, .term = setup_.job.term, .is_member = membership_.heard(from, now)});
  } else if (const auto* scale = std::get_if<Scale>(&message)) {
    send(from, job_.scale(*scale, now));
  } else if (std::holds_alternative<StatusQuery>(message)) {
    send(from, Reply{.code = 0, .text = status_json(now)});
  } else if (const auto* stop = std::get_if<StopJob>(&message)) {
    job_.interrupt({.why = "troupe status --stop"}, now);
    if (stop->now) job_.interrupt({.why = "troupe status --stop --now"}, now);
    send(from, Reply{.code = 0, .text = "stopping"});
  } else if (const auto speaker = speaker_of(from, message)) {
    job_.handle(*speaker, message, now);
  } else {
    log::info("{} of {} came too late and does not count", name_of(type_of(message)), from);
  }
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
    if (!live_->bottleneck.empty()) live["bottleneck"] = live_->bottleneck;
    if (live_->phases) {
      for (const auto& [name, share] : named_shares(*live_->phases))
        live["phases"][nlohmann::json::json_pointer("/" + name)] = share;
      live["phase_texts"] = phase_texts(*live_->phases);
    }
  }
  return status.dump(2);
}

void ControllerService::join(const std::string& from, const Join& request, TimePoint now) {
  const auto joined = membership_.join(request, from, now);
  if (!joined) {
    send(from, Reply{.code = 2, .text = joined.error().message()});
    return;
  }
  const std::int64_t rank = joined->rank;
  if (!joined->replaced.empty()) {
    send(joined->replaced, Reply{.code = 2, .text = taken_over(request.name)});
    if (!joined->was_lost) job_.node_lost(rank, now);
  }
  setup_.peers->joined(request.name, rank);
  send(from, Joined{.term = setup_.job.term,
                    .node_rank = rank,
                    .lease_ms = setup_.lease.count(),
                    .config = setup_.config_yaml,
                    .run_dir = setup_.job.run.root(),
                    .plan = to_json(job_.plan()),
                    .orphan_ms = setup_.orphan.count(),
                    .env_spec = setup_.env_spec});
  const bool is_new_process = !joined->replaced.empty();
  if (joined->is_news)
    job_.node_joined(membership_.of_rank(rank)->snapshot, rank, request.running, is_new_process, now);
}

void ControllerService::tick(TimePoint real_now) {
  last_tick_ = real_now;
  const TimePoint now = clock_.at(real_now);
  background_->collect();
  if (record_at_ && real_now >= *record_at_) write_record();
  const auto changes = membership_.judge(now);
  // Suspicions first: what a lost node hosted is not to move to a suspect one.
  for (const auto& [rank, presence] : changes) {
    if (presence != NodePresence::lost) job_.node_suspected(rank, presence == NodePresence::suspect);
  }
  for (const auto& [rank, presence] : changes) {
    if (presence == NodePresence::lost) job_.node_lost(rank, now);
  }
  job_.tick(now);
  if (!job_.exit_code()) return;
  for (const auto& [name, member] : membership_.members()) {
    if (member.rank != 0) outbox_(member.address, Finish{.reason = "the job has ended"});
  }
}

void ControllerService::interrupt(const Interrupt& interrupt, TimePoint now) {
  job_.interrupt(interrupt, clock_.at(now));
}

void ControllerService::send(const std::string& to, const Message& message) {
  if (const auto* spawn = std::get_if<Spawn>(&message); spawn && to.starts_with("node/"))
    setup_.peers->placed(spawn->actor, spawn->incarnation, std::stoll(to.substr(to.find('/') + 1)));
  if (const ActorRecord* actor = job_.actor(to)) {
    outbox_(actor->instance(), message);
  } else if (to.starts_with("node/") && to.find('#') == std::string::npos) {
    // Node agents elsewhere are reached by the name they joined with.
    const Membership::Member* member = membership_.of_rank(std::stoll(to.substr(5)));
    if (member) outbox_(member->address, message);
  } else {
    outbox_(to, message);
  }
}

nlohmann::json ControllerService::line() const { return {{"wall", setup_.wall_seconds()}, {"step", newest_step_}}; }

void ControllerService::append(LineFile& file, const nlohmann::json& line) {
  background_->run(
      [&file, line]() -> Result<void> {
        file.write(to_text(line), [&](std::int64_t lines) {
          return to_text({{"wall", line["wall"]},
                          {"step", line["step"]},
                          {"severity", enum_name(Severity::error)},
                          {"kind", "lines_lost"},
                          {"text", fmt::format("{} lines are missing here: the file could not be written", lines)}});
        });
        return {};
      },
      {});
}

void ControllerService::event(Severity severity, const std::string& kind, const std::string& text) {
  nlohmann::json event = line();
  event.update({{"severity", enum_name(severity)}, {"kind", kind}, {"text", text}});
  append(events_, event);
  background_->run(
      [&db = db_, wall = event["wall"].get<double>(), kind, text] { return db.add_event(wall, kind, text); },
      [](const Result<void>& written) {
        if (!written) log::error("{}", written.error().message());
      });
  if (severity != Severity::info && notable_.size() < kNotableEvents)
    notable_.push_back(fmt::format("{}: {}", kind, text));
  output_.line(severity, text);
}

void ControllerService::bad_clip(const BadClip& clip, const std::string& text) {
  if (!listed_clips_.emplace(clip.file, clip.group).second) return;
  nlohmann::json listed = line();
  listed.update({{"file", clip.file}, {"group", clip.group}, {"text", text}});
  append(bad_clips_, listed);
}

void ControllerService::quarantined(const Quarantined& sample) {
  if (!listed_samples_.emplace(sample.held_out, sample.position).second) return;
  nlohmann::json listed = line();
  listed.update({{"position", sample.position},
                 {"held_out", sample.held_out},
                 {"producers", sample.producers},
                 {"text", sample.text}});
  append(quarantine_, listed);
}

void ControllerService::producer_times(const std::string& role, const ProducerTimes& times) {
  producers_[role] += times;
  window_.add(role, times);
  item_steps_ += times.item_steps;
  item_seconds_ += times.item_seconds;
  env_steps_ += times.env_steps;
  env_seconds_ += times.env_step_seconds;
}

std::optional<double> ControllerService::policy_step_seconds() const {
  if (item_steps_ == 0) return std::nullopt;
  return item_seconds_ / static_cast<double>(item_steps_);
}

std::optional<double> ControllerService::env_step_seconds() const {
  if (env_steps_ == 0) return std::nullopt;
  return env_seconds_ / static_cast<double>(env_steps_);
}

void ControllerService::add_producer_shares(std::map<std::string, double>& metrics) {
  for (auto& [role, times] : producers_) {
    const double seconds = times.idle_seconds + times.busy_seconds;
    if (seconds <= 0) continue;
    // the other end of time/stall: 1 when the learners set the pace, 0 when the producers do
    metrics[reporter_->idle_metric(role)] = times.idle_seconds / seconds;
    if (times.item_steps > 0) {
      metrics[fmt::format("time/{}/policy_step", role)] = times.item_seconds / static_cast<double>(times.item_steps);
    }
    times = {};
  }
  const auto phases = window_.end_step(metrics);
  if (!phases) return;
  phases_ = phases;
  for (const auto& [name, share] : named_shares(*phases)) metrics["phase/" + name] = share;
}

void ControllerService::write_metrics(std::int64_t step, const std::map<std::string, double>& values,
                                      std::function<void()> then) {
  const auto done = [this, then = std::move(then)](const Result<void>& written) {
    if (!written && !std::exchange(metrics_failed_, true))
      event(Severity::error, "metrics", fmt::format("metrics can no longer be written: {}", written.error().message()));
    if (then) then();
  };
  if (background_->waiting() > kMostWaiting)
    return done(Error{Errc::resource_exhausted, "the disk of the run directory does not keep up; steps are left out"});
  const std::int64_t samples = step * reporter_->samples_per_step();
  background_->run(
      [this, step, samples, wall = setup_.wall_seconds(), values]() -> Result<void> {
        Result<void> all;
        for (const auto& sink : sinks_) {
          auto written = sink->write(step, wall, samples, values);
          if (written) written = sink->flush();  // others follow the files; a killed controller loses no step
          if (!written) all = written;
        }
        return all;
      },
      done);
}

void ControllerService::step(const StepReport& report) {
  if (report.step <= newest_step_) statistics_.roll_back(report.step - 1);
  newest_step_ = report.step;
  statistics_.add_step(report);
  std::map<std::string, double> metrics = report.metrics;
  add_producer_shares(metrics);
  const std::int64_t every = setup_.job.config.metrics.every;
  const bool first = statistics_.steps() == 1;
  std::function<void()> print;
  if (first || report.step % every == 0 || report.step == setup_.job.config.training.steps)
    print = [this, text = reporter_->step(report, statistics_, phases_)] { output_.progress(text); };
  write_metrics(report.step, metrics, std::move(print));
  live_ = reporter_->live(report, statistics_, phases_);
  live_->restarts = job_.restarts();
  output_.live(*live_);
}

void ControllerService::evaluated(const EvalReport& ended) {
  EvalReport report = ended;
  // The curve has those of earlier attempts, and loses those that a rollback makes due again.
  const auto& recorded = statistics_.curve(kSkippedEvaluations).points();
  if (const auto skipped = report.metrics.find(kSkippedEvaluations);
      skipped != report.metrics.end() && !recorded.empty())
    skipped->second += recorded.back().value;
  statistics_.add_eval(report);
  write_metrics(report.step, report.metrics,
                [this, text = reporter_->evaluation(report)] { output_.line(Severity::info, text); });
}

}  // namespace troupe::workers
