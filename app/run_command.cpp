// `troupe run`: load, check, plan, start the controller and the local node, see the job through, report.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "actors/actor_process.h"
#include "actors/controller_actor.h"
#include "actors/join_queue.h"
#include "actors/node_agent.h"
#include "actors/peer_judges.h"
#include "actors/run_keys.h"
#include "actors/signals.h"
#include "app/commands.h"
#include "app/console.h"
#include "app/env_isolation.h"
#include "app/exit_code.h"
#include "app/expected_step.h"
#include "app/job_setup.h"
#include "app/preflight.h"
#include "app/product_rates.h"
#include "app/profile.h"
#include "app/run_sinks.h"
#include "app/step_times.h"
#include "base/clock.h"
#include "base/descriptor_limit.h"
#include "base/durable_file.h"
#include "base/file_io.h"
#include "base/ids.h"
#include "base/log.h"
#include "comm/channel/arena_desk.h"
#include "comm/control/curve_keys.h"
#include "comm/control/endpoint.h"
#include "env/env_spec_json.h"
#include "placement/render.h"
#include "placement/roles.h"
#include "workers/controller/resume.h"
#include "workers/controller/run_lock.h"
#include "workers/learner/device_support.h"
#include "workers/node/inventory.h"
#include "workers/node/runtime_directory.h"
#include "workers/node/sandbox.h"
#include "workers/pipeline/model_cost.h"
#include "workers/pipeline/pipeline.h"
#include "workers/report/run/final_report.h"
#include "workers/report/run/tensorboard_pages.h"

namespace troupe::app {

namespace {

constexpr std::size_t kDescriptors = 16'384;  // a node's connection takes three (docs/wire.md#the-front)
constexpr const char* kDidNotStart = "the job did not start: `troupe run` says why";

Signal signal_of(int signal) {
  return signal == SIGINT    ? Signal::interrupt
         : signal == SIGHUP  ? Signal::hangup
         : signal == SIGUSR1 ? Signal::warning
                             : Signal::terminate;
}

/// A job from its checked configuration to its end.
class RunSession {
 public:
  RunSession(const RunOptions& options, LoadedConfig config, EnvSpec env, ResumePoint point,
             std::shared_ptr<const Pipeline> pipeline, ModelCost cost, std::optional<TracedSteps> traced,
             std::vector<std::string> warned, std::optional<EnvIsolation> stepped)
      : options_(options),
        config_(std::move(config)),
        job_(config_.job),
        env_(std::move(env)),
        point_(std::move(point)),
        pipeline_(std::move(pipeline)),
        cost_(std::move(cost)),
        traced_(traced),
        warned_(std::move(warned)),
        stepped_(std::move(stepped)) {}

  /// A job that was refused or failed to start leaves no address and no token either.
  ~RunSession() {
    if (lock_) remove_session_files(run_);
  }
  RunSession(const RunSession&) = delete;
  RunSession& operator=(const RunSession&) = delete;

  int run() {
    if (auto prepared = prepare(); !prepared) return fail(prepared.error(), exit_code_of(prepared.error()));
    if (auto planned = plan(); planned != kOk) {
      join_queue_->turn_away(kDidNotStart);
      return planned;
    }
    if (auto started = start(); !started) {
      join_queue_->turn_away(kDidNotStart);
      return fail(started.error(), kFailed);
    }
    // The job ends by itself, by its deadlines, or by a signal; this wait only keeps the process alive meanwhile.
    while (!ended_.wait_for(std::chrono::hours(1))) continue;
    return finish();
  }

 private:
  /// Says what went wrong, and keeps it where there is a file for that already.
  int fail(const Error& error, int code) {
    if (!console_) return complain(error, code);
    console_->line(Severity::error, error.message());
    return code;
  }

  /// A new run directory is removed again when another run of its name was started at the same moment.
  Result<void> take_run() {
    if (point_.run) {
      run_ = *point_.run;
    } else {
      TROUPE_ASSIGN(run_, RunDirectory::create(job_.job.run_root, job_.job.name, new_run_id(SystemClock())));
    }
    auto lock = lock_run(run_);
    std::error_code ignored;  // what stays is an empty folder, and the error below matters more
    if (!lock && !point_.run) std::filesystem::remove_all(run_.root(), ignored);
    if (!lock) return lock.error();
    lock_ = std::make_unique<FileLock>(std::move(*lock));
    remove_leftovers(run_);
    return {};
  }

  Result<void> prepare() {
    TROUPE_TRY(take_run());
    TROUPE_TRY(prepare_profile());
    log::configure("controller", run_.log_of("controller"));
    TROUPE_ASSIGN(console_, Console::open(run_.log_of("console")));
    // What an earlier attempt reported is not true of this one.
    for (const char* report : {"report.txt", "report.html"}) ::unlink(run_.path(report).c_str());
    for (const std::string& text : warned_) console_->keep(text);
    TROUPE_ASSIGN(db_, StateDb::open(run_.state_db()));
    TROUPE_ASSIGN(term_, db_->next_term());
    TROUPE_TRY(write_file_durably(run_.config(), config_.resolved_yaml));
    if (!env_.id.empty()) TROUPE_TRY(write_file_durably(run_.env_spec(), env_spec_json(env_)));
    TROUPE_TRY(run_.make_latest(job_.job.run_root));
    TROUPE_ASSIGN(runtime_, RuntimeDirectory::take(run_.id()));
    runtime_dir_ = runtime_.path();
    if (!options_.listen.empty()) {
      TROUPE_TRY(hide_memory());
      TROUPE_ASSIGN(keys_, RunKeys::open(run_, job_.cluster.allow, runtime_dir_));
    }
    // Tries are 5 s apart: a node out of reach may be silent for so long and come back to what was sent meanwhile.
    const Seconds longest_silence = job_.cluster.lease + job_.cluster.orphan;
    TROUPE_ASSIGN(process_,
                  Process::start("controller", {.tries = 30 + static_cast<int>(longest_silence.count() / 5)}));
    join_queue_ = std::make_unique<JoinQueue>(*process_->system, *process_->bridge);
    TROUPE_TRY(bind_local());
    if (!options_.listen.empty()) TROUPE_TRY(bind_listen());
    watch_signals(*process_->loop, [this](int signal) { on_signal(signal); });
    return {};
  }

  /// Before the process has threads. A run that goes on without --profile records nothing for an earlier attempt's.
  Result<void> prepare_profile() {
    const std::string folder = run_.path("profile");
    if (!traced_) return end_tracing(folder);
    TROUPE_TRY(prepare_tracing(folder, *traced_));
    return start_tracing(folder, "controller");
  }

  Result<void> bind_local() {
    const std::string endpoint = fmt::format("ipc://{}/control", runtime_dir_);
    TROUPE_ASSIGN(
        const SocketId socket,
        process_->loop->bind_router(endpoint, process_->bridge->receiver(judge_hosts(hosts_, /*has_owner=*/true))));
    control_endpoint_ = process_->loop->bound_endpoint(socket);
    return write_file_durably(run_.endpoint(), control_endpoint_ + "\n", 0600);
  }

  Result<void> bind_listen() {
    raise_descriptor_limit(kDescriptors);
    TROUPE_ASSIGN(
        const SocketId socket,
        process_->loop->bind_router("tcp://" + options_.listen,
                                    process_->bridge->receiver(judge_keys(keys_->list(), peers_)), keys_->server()));
    const std::string endpoint = with_host(process_->loop->bound_endpoint(socket), job_.cluster.advertise);
    const std::string file = options_.token_file.empty() ? run_.path("token") : options_.token_file;
    TROUPE_TRY(write_token_file(file, keys_->token(endpoint)));
    // as a message to the controller, which alone writes events
    keys_->watch([bridge = process_->bridge.get()](const std::string& text) {
      bridge->send({"controller", "controller", Event{.actor = "controller", .kind = "allow_list", .text = text}});
    });
    console_->line(Severity::info,
                   fmt::format("further nodes join with: troupe node --controller {} --token-file {}", endpoint, file));
    return {};
  }

  void on_signal(int signal) {
    if (signal == SIGUSR2) return;
    if (reporting_) {
      // No learner runs and the last checkpoint is committed, so there is nothing to wait for.
      const char* text = "the job has ended; its closing report is cut short";
      fmt::print(stderr, "{}\n", text);
      log::warn("{}", text);
      log::flush();
      std::_Exit(kInterrupted);
    }
    std::lock_guard lock(mutex_);
    if (controller_) return caf::anon_send(controller_, signal_of(signal));
    // Before there is a controller it ends the wait for nodes; one that comes behind that wait is the controller's.
    if (!early_signal_) early_signal_ = signal;
    join_queue_->interrupt();
  }

  int plan() {
    NodeSnapshot own = read_inventory("local").snapshot;
    membership_ = std::make_unique<Membership>(own, to_milliseconds(job_.cluster.lease));
    auto joined = join_queue_->wait_for(static_cast<std::size_t>(job_.cluster.num_nodes - 1),
                                        to_milliseconds(job_.cluster.start_timeout));
    if (!joined) {
      const bool is_cancelled = joined.error().code() == Errc::cancelled;
      std::lock_guard lock(mutex_);
      const bool is_preempted = early_signal_ == SIGTERM || early_signal_ == SIGUSR1;
      return fail(joined.error(), !is_cancelled ? kFailed : is_preempted ? kPreempted : kInterrupted);
    }
    early_joins_ = std::move(*joined);
    for (const ControlMessage& control : early_joins_) {
      auto member = membership_->join(std::get<Join>(control.message), control.from, std::chrono::steady_clock::now());
      if (!member) return fail(member.error(), kFailed);
    }
    ClusterSnapshot cluster = membership_->cluster();
    add_product_rates(cluster, job_);
    const auto before = db_->newest_plan();
    if (!before) return fail(before.error(), kFailed);
    const auto began = *before ? plan_from_json((*before)->json) : Result<Plan>(Plan{});
    if (!began) return fail(began.error(), kFailed);
    JobConfig planned = job_;
    // another way to share the gradients would group their sums otherwise
    if (*before) planned.parallelism.mode = began->sharding;
    auto outcome = make_plan(cluster, planned, cost_);
    if (const auto* infeasible = std::get_if<Infeasible>(&outcome)) {
      return explain(*infeasible, config_);
    }
    plan_ = std::get<Plan>(std::move(outcome));
    for (const PlannedActor& actor : plan_.actors) {
      if ((is_elastic(actor.role) && actor.role != RoleKind::rollout) || actor.node == 0) continue;
      return fail(Error{Errc::failed_precondition,
                        fmt::format("{} is planned on node/{}; this build runs learners, rollout workers, the "
                                    "evaluator and the checkpointer on the machine of `troupe run`. Place "
                                    "them there: {{node_group: node, placement: \"0:...\"}}",
                                    actor.name, actor.node)},
                  kInfeasible);
    }
    if (auto can = check_device_support(config_.job, plan_); !can) return fail(can.error(), kInfeasible);
    if (*before) {
      plan_.revision = (*before)->revision + 1;
      // another form would round otherwise: a job ends in the one that it began with
      if (!began->products.empty()) plan_.products = began->products;
    }
    const std::string json = to_json(plan_);
    if (auto written = write_file_durably(run_.plan(), json); !written) return fail(written.error(), kFailed);
    if (auto written = db_->add_plan(plan_.revision, json); !written) return fail(written.error(), kFailed);
    for (const std::string& warning : plan_.warnings) console_->line(Severity::warn, warning);
    return kOk;
  }

  Result<void> start() {
    TROUPE_TRY(write_start_pages(job_, config_.resolved_yaml, plan_, run_, point_.step));
    TROUPE_ASSIGN(auto sinks, open_sinks(job_, run_));
    if (traced_) {
      auto profile = std::make_unique<Profile>(run_.path("profile"), *traced_, *console_);
      profile_ = profile.get();
      sinks.push_back(std::move(profile));
    }
    ControllerService::Setup setup{.job = {.config = job_,
                                           .plan = plan_,
                                           .run = run_,
                                           .runtime_dir = runtime_dir_,
                                           .term = term_,
                                           .resume_step = point_.step,
                                           .resume_checkpoint = point_.checkpoint,
                                           .resume_voids = point_.void_positions,
                                           .resume_bad = point_.bad_positions,
                                           .num_eval = pipeline_->num_eval()},
                                   .config_yaml = config_.resolved_yaml,
                                   .env_spec = env_.id.empty() ? "" : env_spec_json(env_),
                                   .expected = expected_step(job_, cost_, plan_),
                                   .lease = to_milliseconds(job_.cluster.lease),
                                   .orphan = to_milliseconds(job_.cluster.orphan),
                                   .forget = [this](const std::string& name) { process_->bridge->forget(name); },
                                   .wall_seconds = [] { return SystemClock().wall_seconds(); },
                                   .peers = peers_};
    Bridge& bridge = *process_->bridge;
    service_ = std::make_unique<ControllerService>(
        std::move(setup), *membership_, *db_, std::move(sinks),
        [&bridge](const std::string& to, const Message& message) {
          bridge.send({"controller", to, message});
        },
        *console_, std::make_unique<BackgroundThread>());
    describe_start();
    TROUPE_ASSIGN(desk_, ArenaDesk::open(runtime_dir_));
    start_node();
    const MailboxActor controller = process_->system->spawn<caf::detached>(
        controller_actor, service_.get(), [this](const std::string& failure) { end(failure); });
    bridge.add_local("controller", controller);
    caf::anon_send(controller, Signal::start);
    join_queue_->hand_over(controller, early_joins_);
    std::lock_guard lock(mutex_);
    controller_ = controller;
    if (early_signal_) caf::anon_send(controller_, signal_of(*early_signal_));
    return {};
  }

  void describe_start() {
    console_->line(Severity::info, fmt::format("run {}", run_.root()));
    if (!point_.checkpoint.empty())
      console_->line(Severity::info, fmt::format("resuming at step {} from {}", point_.step, point_.checkpoint));
    if (stepped_) console_->line(Severity::info, "environments " + to_text(*stepped_));
    for (const std::string& warning : pipeline_->warnings()) console_->line(Severity::warn, warning);
  }

  void start_node() {
    RoleContext context{.config = job_,
                        .plan = plan_,
                        .env_spec = env_,
                        .run_dir = run_.root(),
                        .runtime_dir = runtime_dir_,
                        .data_host = data_host()};
    node_ = std::make_unique<NodeAgent>(*process_, context, ActorIdentity{.actor = "node/0"}, control_endpoint_,
                                        run_.config(), hosts_, [this](const std::string& why) { end(why); });
  }

  /// Feeds listen for other hosts' decoders only where other hosts may join.
  std::string data_host() const { return options_.listen.substr(0, options_.listen.rfind(':')); }

  /// The job has ended (empty text), or an exception in the controller or its node has ended it. Any thread.
  void end(const std::string& failure) {
    if (!failure.empty()) {
      std::lock_guard lock(mutex_);
      failures_.push_back(failure);
    }
    ended_.set();
  }

  Progress evaluation_progress() {
    using Clock = std::chrono::steady_clock;
    return [this, begin = std::optional<Clock::time_point>()](std::int64_t done, std::int64_t of) mutable {
      if (!begin) begin = Clock::now();
      const double seconds = std::chrono::duration<double>(Clock::now() - *begin).count();
      console_->work({.name = job_.job.name,
                      .unit = "windows",
                      .done = done,
                      .of = of,
                      .per_second = seconds > 0 ? static_cast<double>(done) / seconds : 0});
    };
  }

  int finish() {
    reporting_ = true;
    // Nodes that are told of the end leave at once, others when they have heard nothing for cluster.lease_s and then
    // for cluster.orphan_s.
    if (!process_->bridge->wait_until_heard(std::chrono::seconds(2)))
      log::warn("a node has not acknowledged the end of the job; it leaves after cluster.lease_s and cluster.orphan_s");
    process_->bridge->remove_local("controller");
    caf::anon_send_exit(controller_, caf::exit_reason::user_shutdown);
    if (!wait_for_end(*process_->system, controller_, std::chrono::seconds(10)))
      log::error("the controller's actor did not end within 10 s");
    std::unique_lock lock(mutex_);
    controller_ = nullptr;
    // What broke cannot say so any more.
    for (const std::string& failure : failures_) service_->event(Severity::error, "failed", failure);
    const int code = failures_.empty() ? *service_->exit_code() : kFailed;
    lock.unlock();
    if (!service_->wait_until_written(std::chrono::seconds(60)))
      log::error("events, metrics or state.db of {} are not all written: its disk does not answer or is full",
                 run_.root());
    join_queue_.reset();
    keys_.reset();
    node_.reset();  // sources and workers are gone; this ends what a deadline left over
    remove_session_files(run_);
    if (profile_) profile_->finish();
    if (options_.listen.empty()) {  // no other machine took part
      keep_step_time(job_, service_->policy_step_seconds());
      keep_env_step_time(job_, service_->env_step_seconds());
    }
    const auto say = [this](const std::string& line) { console_->line(Severity::info, line); };
    FinalReport report = final_report(
        {.service = *service_, .job = job_, .directory = run_, .say = say, .progress = evaluation_progress()}, code,
        console_->style());
    for (std::string* text : {&report.styled, &report.plain}) text->pop_back();  // the console ends the line
    console_->styled(report.styled, report.plain);
    console_.reset();
    process_.reset();
    desk_.reset();
    runtime_.remove();
    return code;
  }

  const RunOptions options_;
  const LoadedConfig config_;
  const JobConfig& job_;
  const EnvSpec env_;  // nothing where the job has no environment
  const ResumePoint point_;
  const std::shared_ptr<const Pipeline> pipeline_;
  const ModelCost cost_;
  const std::optional<TracedSteps> traced_;
  const std::vector<std::string> warned_;  // before there was a console
  const std::optional<EnvIsolation> stepped_;
  RunDirectory run_;
  std::unique_ptr<FileLock> lock_;  // of run_, until everything has ended
  std::uint64_t term_ = 0;
  RuntimeDirectory runtime_;  // outlives process_, whose sockets are in it
  std::unique_ptr<ArenaDesk> desk_;
  std::string runtime_dir_, control_endpoint_;
  Plan plan_;
  Latch ended_;
  /// The job has ended: a signal ends the process.
  std::atomic<bool> reporting_ = false;
  std::mutex mutex_;
  std::vector<std::string> failures_;  // guarded by mutex_, as the next one and controller_ while signals may come
  std::optional<int> early_signal_;
  std::unique_ptr<Console> console_;
  std::unique_ptr<StateDb> db_;
  std::unique_ptr<Membership> membership_;
  std::unique_ptr<ControllerService> service_;
  Profile* profile_ = nullptr;  // one of the service's sinks
  const std::shared_ptr<HostBook> hosts_ = std::make_shared<HostBook>();
  const std::shared_ptr<PeerBook> peers_ = std::make_shared<PeerBook>();
  std::unique_ptr<Process> process_;
  std::unique_ptr<RunKeys> keys_;  // its thread uses the process's bridge
  std::unique_ptr<JoinQueue> join_queue_;
  std::vector<ControlMessage> early_joins_;
  std::unique_ptr<NodeAgent> node_;
  MailboxActor controller_;
};

/// The closing report of a run that is complete, which a process that was killed may not have come to write.
int repeat_report(const RunDirectory& run) {
  const auto report = read_file(run.path("report.txt"));
  fmt::print("{} is complete; more steps (training.steps) go on, --resume never trains anew\n{}", run.root(),
             report ? *report : std::string("It ended before its closing report was written.\n"));
  return kOk;
}

}  // namespace

int run_command(const RunOptions& options) {
  auto config = load_or_explain(options.job, options.overrides);
  if (!config) return kUsage;
  print_warnings(*config);
  if (const auto checked = check_listen(options.listen, config->job); !checked)
    return complain(checked.error(), kUsage);
  if (const auto none = no_live_run(config->job); !none) return explain(none.error(), *config);
  if (!options.dry_run) {
    if (auto made = make_quickstart_data(*config); !made) return complain(made.error(), kFailed);
  }
  auto point = resolve_resume(*config, options.resume);
  if (!point) return complain(point.error());
  if (point->is_complete) {
    if (!options.profile.empty()) fmt::print(stderr, "warning: --profile has nothing to trace\n");
    return repeat_report(*point->run);
  }
  std::optional<TracedSteps> traced;
  if (!options.profile.empty()) {
    const auto parsed = parse_traced_steps(options.profile, point->step, config->job.training.steps);
    if (!parsed) return complain(parsed.error());
    traced = *parsed;
  }
  auto env = env_of_run(config->job, *point);
  if (!env) return explain(env.error(), *config);
  auto stepped = settle_env_isolation(*config, *env, {.listens = !options.listen.empty(), .point = &*point});
  auto cost = model_cost(config->job, *env);
  if (!cost) return explain(cost.error(), *config);
  ClusterSnapshot cluster = own_cluster();
  add_product_rates(cluster, config->job);
  const auto outcome = make_plan(cluster, config->job, *cost);
  const auto* plan = std::get_if<Plan>(&outcome);
  // With further nodes to come only --dry-run can judge by this machine.
  if (!plan && (options.dry_run || config->job.cluster.num_nodes == 1)) {
    return explain(std::get<Infeasible>(outcome), *config);
  }
  Preflight found = preflight(*config, *env, *point, plan);
  if (plan) look_at_devices(config->job, *plan, found);
  if (const int refused = refuse(found, *config); refused != kOk) return refused;
  if (options.dry_run) {
    fmt::print("{}{}", to_table(*plan, config->job), stepped ? isolation_line(*stepped) : "");
    return kOk;
  }
  std::vector<std::string> warned = config->warnings;
  for (const Preflight::Finding& finding : found.findings) warned.push_back("warning: " + finding.error.message());
  return RunSession(options, std::move(*config), std::move(*env), std::move(*point), std::move(found.pipeline),
                    std::move(*cost), traced, std::move(warned), std::move(stepped))
      .run();
}

}  // namespace troupe::app
