#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/simulation/sim_background.h"
#include "tests/simulation/world.h"
#include "workers/checkpoint/commit.h"

namespace troupe::testing {

JobController::Setup World::setup() {
  JobController::Setup setup;
  setup.config.job.name = "sim";
  setup.config.training.steps = kSteps;
  setup.config.training.step_timeout = Seconds(20);
  setup.config.checkpoint.timeout = Seconds(15);
  setup.config.cluster.start_timeout = Seconds(60);
  setup.config.cluster.num_nodes = static_cast<std::int64_t>(kNodes);
  setup.config.cluster.restart.budget = 20;
  setup.config.cluster.restart.component_budget = 60;
  setup.config.cluster.elastic["decoder"] = {.min = 1, .max = 16};
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
  for (std::int64_t rank = 0; rank < 6; ++rank) add("decoder", rank, rank % static_cast<std::int64_t>(kNodes));
  add("checkpointer", 0, 0);
  setup.plan.collective = "gloo";
  setup.plan.batch = {.global = 4, .micro = 2, .data_ranks = kRanks, .accumulation = 1};
  setup.run = run_;
  setup.runtime_dir = folder_;
  setup.term = db_->next_term().value();
  if (const auto newest = newest_valid(run_.checkpoints(), CheckpointCheck::sizes)) {
    setup.resume_step = newest->step;
    setup.resume_checkpoint = newest->directory;
  }
  return setup;
}

void World::begin_controller() {
  term_began_ = clock_.now();
  controller_ = std::make_shared<SimProcess>(0, OrderedDelivery::Limits{.tries = 30});
  membership_ = std::make_unique<Membership>(NodeSnapshot{.name = "local", .cpus = 4, .memory_bytes = 1000}, 10s);
  const auto process = controller_;
  service_ = std::make_unique<ControllerService>(
      ControllerService::Setup{.job = setup(),
                               .config_yaml = "",
                               .lease = 10s,
                               .orphan = 60s,
                               .forget = [process](const std::string& name) { process->delivery.forget(name); },
                               .wall_seconds = [] { return 0.0; }},
      *membership_, *db_, std::vector<std::unique_ptr<MetricSink>>{},
      [this, process](const std::string& to, const Message& message) {
        wire_.send(process, "controller", to, message);
      },
      output_, std::make_unique<SimBackground>(clock_, wire_, process, [this] {
        return Millis(in(100) == 0 ? 500 + in(3500) : 1 + in(20));
      }));
  controller_->names["controller"] = [this](const std::string& from, const Message& message) {
    if (!is_started_) {
      waiting_.emplace_back(from, message);
      return;
    }
    service_->handle(from, message, clock_.now());
    look();
  };
  own_agent_ = std::make_unique<SimNode>();
  own_agent_->host = 0;
  own_agent_->process = controller_;
  own_agent_->agent = "node/0#0";
  make_agent(*own_agent_);
  wire_.add(controller_);
  is_started_ = false;
  waiting_.clear();
  await_nodes(controller_);
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
    if (const auto* join = std::get_if<Join>(&message)) (void)membership_->join(*join, from, clock_.now());
  }
  service_->start(clock_.now());
  for (const auto& [from, message] : std::exchange(waiting_, {})) service_->handle(from, message, clock_.now());
  tick(process);
}

void World::tick(const std::shared_ptr<SimProcess>& process) {
  if (process != controller_) return;
  service_->tick(clock_.now());
  look();
  if (const auto code = service_->exit_code()) {
    exit_code_ = code;
    return;
  }
  clock_.after(250ms, [this, process] { wire_.run_in(process, [this, process] { tick(process); }); });
}

void World::look() {
  const std::int64_t step = service_->job().checkpoints().committed_step();
  if (step == committed_.second) return;
  const auto entries = list_checkpoints(run_.checkpoints());
  const auto entry = std::find_if(entries.begin(), entries.end(), [&](const auto& e) { return e.step == step; });
  if (entry == entries.end()) return breach(fmt::format("step {} is committed and not on disk", step));
  const auto status = nlohmann::json::parse(service_->job().status_json(clock_.now()));
  const auto stands = status["fence"].get<std::uint64_t>();
  const std::pair<std::uint64_t, std::int64_t> commit{entry->manifest.fence, step};
  // A group that waited for the commit begins at its step.
  if (commit.first != stands && status["step"] != step)
    breach(fmt::format("step {} of fence {:x} was committed while {:x} stood", step, commit.first, stands));
  if (commit <= committed_)
    breach(fmt::format("step {} of fence {:x} was committed after step {} of {:x}", step, commit.first,
                       committed_.second, committed_.first));
  committed_ = commit;
}

}  // namespace troupe::testing
