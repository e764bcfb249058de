#include <algorithm>
#include <nlohmann/json.hpp>

#include "actors/rights.h"
#include "base/metric_sinks.h"
#include "configs/loader.h"
#include "configs/overrides.h"
#include "placement/render.h"
#include "placement/roles.h"
#include "tests/simulation/sim_background.h"
#include "tests/simulation/world.h"
#include "workers/checkpoint/checkpoint_ledger.h"
#include "workers/checkpoint/commit.h"
#include "workers/controller/resume.h"

namespace troupe::testing {

std::string World::feeder() const {
  return schedule_.makers == Schedule::Makers::decoders   ? "decoder"
         : schedule_.makers == Schedule::Makers::encoders ? "encoder"
                                                          : "rollout";
}

std::vector<std::string> World::pools() const {
  if (schedule_.makers != Schedule::Makers::simulators) return {feeder()};
  return {"env", "rollout"};
}

JobController::Setup World::setup() {
  JobController::Setup setup;
  setup.config.job.name = "sim";
  if (schedule_.makers == Schedule::Makers::encoders) setup.config.data.features.encode = "encoder";
  if (has_evaluator()) {
    setup.config.job.kind = JobKind::rl;
    setup.config.eval.every = 6;
    setup.config.eval.timeout = Seconds(30);
  }
  setup.config.training.steps = schedule_.steps;
  setup.config.training.step_timeout = Seconds(step_timeout());
  setup.config.checkpoint.timeout = Seconds(15);
  setup.config.checkpoint.keep = kept_checkpoints();
  setup.config.cluster.start_timeout = Seconds(60);
  setup.config.cluster.num_nodes = static_cast<std::int64_t>(kNodes);
  setup.config.cluster.restart.budget = 20;
  setup.config.cluster.restart.component_budget = 60;
  for (const std::string& pool : pools()) setup.config.cluster.elastic[pool] = {.min = 1, .max = 16};
  setup.plan.job = "sim";
  for (std::size_t n = 0; n < kNodes; ++n)
    setup.plan.nodes.push_back({.name = n == 0 ? "local" : fmt::format("n{}", n), .cpus = 4, .memory_bytes = 1000});
  const auto add = [&](const std::string& role, std::int64_t rank, std::int64_t node) {
    setup.plan.actors.push_back({.name = fmt::format("{}/{}", role, rank),
                                 .role = role,
                                 .process_rank = rank,
                                 .node = node,
                                 .cpus = 1,
                                 .isolation = "thread",
                                 .memory_bytes = 100});
  };
  for (std::int64_t rank = 0; rank < kRanks; ++rank) add("learner", rank, 0);
  const auto of_each = 6 / static_cast<std::int64_t>(pools().size());
  for (const std::string& pool : pools()) {
    // a rollout worker takes weights from the learners, on their machine
    for (std::int64_t rank = 0; rank < of_each; ++rank)
      add(pool, rank, pool == "rollout" ? 0 : rank % static_cast<std::int64_t>(kNodes));
  }
  if (has_evaluator()) add("evaluator", 0, 0);
  add("checkpointer", 0, 0);
  setup.plan.collective = "gloo";
  setup.plan.batch = {.global = GroupJudge::kBatch, .micro = 2, .data_ranks = kRanks, .accumulation = 1};
  setup.run = run_;
  setup.runtime_dir = folder_;
  setup.term = db_->next_term().value();
  if (const auto plan = db_->newest_plan().value()) setup.plan.revision = plan->revision + 1;
  db_->add_plan(setup.plan.revision, to_json(setup.plan)).value();
  if (setup.term == 1) return setup;
  // A job that goes on does so as --resume says, where the run directory is whole.
  if (schedule_.is_on_disk) {
    LoadedConfig recorded = recorded_job();
    recorded.job.job.run_root = folder_;
    const ResumePoint point = resolve_resume(recorded, "auto").value();
    if (!point.run || point.run->root() != run_.root()) breach("another run goes on");
    setup.resume_step = point.step;
    setup.resume_checkpoint = point.checkpoint;
    setup.resume_voids = point.void_positions;
  } else if (const auto newest = newest_valid(run_.checkpoints())) {
    setup.resume_step = newest->step;
    setup.resume_checkpoint = newest->directory;
    setup.resume_voids = read_checkpoint_ledger(newest->directory).value().void_positions;
  }
  return setup;
}

void World::begin_controller() {
  term_began_ = clock_.now();
  controller_ = std::make_shared<SimProcess>(0, OrderedDelivery::Limits{.tries = 30});
  wire_.add(controller_);
  membership_ = std::make_unique<Membership>(NodeSnapshot{.name = "local", .cpus = 4, .memory_bytes = 1000}, 10s);
  peers_ = std::make_shared<PeerBook>();
  const auto process = controller_;
  JobController::Setup job = setup();
  const std::uint64_t term = job.term;
  const std::int64_t resume_step = job.resume_step;
  service_ = std::make_unique<ControllerService>(
      ControllerService::Setup{.job = std::move(job),
                               .config_yaml = "",
                               .lease = 10s,
                               .orphan = 60s,
                               .forget = [this, process](const std::string& name) { wire_.forget(process, name); },
                               .wall_seconds = [] { return 0.0; },
                               .peers = peers_},
      *membership_, *db_, sinks(),
      [this, process](const std::string& to, const Message& message) {
        judge_.sends(to, message);
        hold_message(process, "controller", message);
        if (to.starts_with("cli.")) return note("controller", to, message);
        wire_.send(process, "controller", to, message);
      },
      output_,
      std::make_unique<SimBackground>(
          clock_, wire_, process, [this] { return disk_takes(); }, schedule_.is_on_disk));
  judge_.begins(*service_, *membership_, term, resume_step, run_.checkpoints(), [this](std::uint64_t fence) {
    const auto epochs = db_->epochs().value();
    return !epochs.empty() && epochs.back().fence == fence;
  });
  controller_->names["controller"] = [this](const std::string& from, const Message& message) {
    note(from, "controller", message);
    if (is_started_) return controller_hears(from, message);
    waiting_.emplace_back(from, message);
  };
  own_agent_ = std::make_shared<SimNode>();
  own_agent_->host = 0;
  own_agent_->process = controller_;
  own_agent_->agent = own_agent_->address = "node/0#0";
  make_agent(*own_agent_);
  is_started_ = false;
  waiting_.clear();
  await_nodes(controller_);
}

std::vector<std::unique_ptr<MetricSink>> World::sinks() const {
  std::vector<std::unique_ptr<MetricSink>> sinks;
  if (schedule_.is_on_disk) sinks.push_back(make_jsonl_sink(run_.path("metrics.jsonl")).value());
  return sinks;
}

void World::await_nodes(const std::shared_ptr<SimProcess>& process) {
  if (process != controller_) return;
  std::set<std::string> names;
  for (const auto& [from, message] : waiting_) {
    if (const auto* join = std::get_if<Join>(&message)) names.insert(join->name);
  }
  if (names.size() + 1 < kNodes && clock_.now() - term_began_ < 100s) {
    clock_.after(500ms, [this, process] { wire_.run_in(process, [this, process] { await_nodes(process); }); });
    return;
  }
  is_started_ = true;
  for (const auto& [from, message] : waiting_) {
    const auto* join = std::get_if<Join>(&message);
    if (!join) continue;
    judge_.lets_in(from, *join, clock_.now());
    (void)membership_->join(*join, from, clock_.now());
  }
  judge_.starts(clock_.now());
  service_->start(clock_.now());
  judge_.settled();
  for (const auto& [from, message] : std::exchange(waiting_, {})) controller_hears(from, message);
  tick(process);
}

void World::tick(const std::shared_ptr<SimProcess>& process) {
  if (process != controller_) return;
  judge_.ticks(clock_.now());
  service_->tick(clock_.now());
  judge_.settled();
  look();
  if (const auto code = service_->exit_code()) {
    exit_code_ = code;
    return;
  }
  clock_.after(schedule_.tick, [this, process] { wire_.run_in(process, [this, process] { tick(process); }); });
}

void World::controller_hears(const std::string& from, const Message& message) {
  judge_.hears(from, message, clock_.now());
  service_->handle(from, message, clock_.now());
  judge_.settled();
  look();
}

void World::asks(const std::string& from, const Message& message) {
  wire_.run_in(controller_, [this, from, message] {
    if (!is_started_ || exit_code_) return;
    note(from, "controller", message);
    controller_hears(from, message);
  });
}

void World::note(const std::string& from, const std::string& to, const Message& message) {
  const auto party_of = [](const std::string& name) {
    return name.starts_with("cli.2") ? actors::Party::viewer : actors::party_named(name);
  };
  const actors::Party sender = party_of(from), addressee = party_of(to);
  if (!actors::may_send(sender, type_of(message), addressee) ||
      !actors::tells_of_itself(name_without_life(from), message))
    breach(fmt::format("{} may not send {} to {}", from, name_of(type_of(message)), to));
  bool has_passed = is_started_;
  for (std::size_t row = 0; row < actors::kActors.size(); ++row) {
    const actors::ActorRow& of = actors::kActors[row];
    const auto mark = [&](auto& seen, actors::MessageTypes types) {
      const auto place = std::find(types.begin(), types.end(), type_of(message)) - types.begin();
      if (place < static_cast<std::ptrdiff_t>(types.size())) seen[row][static_cast<std::size_t>(place)] = true;
    };
    if (of.party == sender) mark(outcome_.rights.sent, of.sends);
    // the controller has a row of its own until there is a plan
    if (of.party == addressee && (of.party != actors::Party::controller || std::exchange(has_passed, !has_passed)))
      mark(outcome_.rights.taken, of.takes);
  }
}

Millis World::disk_takes() {
  // One that hangs at a commit outlasts its timeout.
  if (hangs_disk_ && service_->job().checkpoints().newest_is_open() && !std::exchange(hangs_disk_, false)) return 40s;
  if (slow_disk_until_ > clock_.now()) return Millis(100 + in(2000));
  return Millis(in(100) == 0 ? 500 + in(3500) : 1 + in(20));
}

void World::look() {
  const std::int64_t step = service_->job().checkpoints().committed_step();
  if (step == committed_.second) return;
  const std::string directory = run_.checkpoints() + "/" + checkpoint_name(step);
  const auto manifest = read_manifest(directory);
  if (!manifest || manifest->step != step) return breach(fmt::format("step {} is committed and not on disk", step));
  const std::pair<std::uint64_t, std::int64_t> commit{manifest->fence, step};
  // The way back from a damaged checkpoint is no commit.
  if (std::exchange(damaged_step_, -1) == committed_.second && step < committed_.second) {
    committed_ = commit;
    return;
  }
  // A group that waited for the commit begins at its step.
  if (commit.first != judge_.fence() && service_->job().step() != step)
    breach(fmt::format("step {} of fence {:x} was committed while {:x} stood", step, commit.first, judge_.fence()));
  if (commit <= committed_)
    breach(fmt::format("step {} of fence {:x} was committed after step {} of {:x}", step, commit.first,
                       committed_.second, committed_.first));
  committed_ = commit;
}

const LoadedConfig& World::recorded_job() {
  static const LoadedConfig job = [] {
    const LoadOutcome loaded =
        load_job("quickstart:sft", {"job.name=sim", "training.steps=60", "training.global_batch_size=4"});
    if (!loaded.config) throw std::runtime_error(loaded.errors.empty() ? "no job" : loaded.errors.front());
    return *loaded.config;
  }();
  return job;
}

}  // namespace troupe::testing
