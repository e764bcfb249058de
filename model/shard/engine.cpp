#include "model/shard/engine.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/check.h"
#include "base/stopwatch.h"
#include "base/trace.h"
#include "model/shard/step_executor.h"

namespace troupe::model {
namespace {

/// On the host, of memory of their own: a program's results lie in its memory until its next run.
Outputs copied(const Outputs& outputs) {
  Outputs copies;
  if (outputs.loss.defined()) copies.loss = outputs.loss.clone();
  for (const auto& [name, metric] : outputs.metrics) copies.metrics[name] = metric.clone();
  for (const auto& [name, prediction] : outputs.predictions) copies.predictions[name] = prediction.clone();
  return copies;
}

}  // namespace

struct Engine::MicroBatch {
  Batch batch;
  StepCall call = {};
};

Engine::Engine(std::shared_ptr<const Network> network, EngineOptions options, device::Device& device,
               kernels::DeviceKernels* device_kernels)
    : device_(device), core_(std::move(network), std::move(options), device, device_kernels) {}

Engine::~Engine() = default;

Result<void> Engine::attach(Collective& collective) {
  if (executor_) run_postponed();
  executor_.reset();
  collective_ = nullptr;
  TROUPE_TRY(split(collective));
  const Collective& sharing = shard_group_ ? *shard_group_ : collective;
  if (!core_.memory || sharing.rank() != core_.rank || sharing.world() != core_.world ||
      core_.memory->plan.shape().replicas != core_.replicas) {
    has_state_ = false;
    parts_.clear();
    plans_.clear();
    core_.memory.reset();
    core_.rank = sharing.rank();
    core_.world = sharing.world();
    TROUPE_ASSIGN(core_.memory, core_.allocate(device_));
  }
  core_.step = StepState::empty(core_.memory->plan.shape());
  discard();
  const StepGroups groups{.all = collective,
                          .sharing = shard_group_ ? *shard_group_ : collective,
                          .replicas = replica_group_ ? *replica_group_ : collective};
  TROUPE_TRY(register_memory(groups));
  executor_ = std::make_unique<StepExecutor>(core_, groups, device_);
  collective_ = &collective;
  return {};
}

Result<void> Engine::split(Collective& collective) {
  replica_group_.reset();
  shard_group_.reset();
  core_.replica = 0;
  const int sharing = core_.options.sharing_ranks == 0 ? collective.world() : core_.options.sharing_ranks;
  if (collective.world() % sharing != 0)
    return Error{Errc::invalid_argument, fmt::format("{} ranks are no multiple of {}", collective.world(), sharing)};
  core_.replicas = collective.world() / sharing;
  if (core_.replicas == 1) return {};
  core_.replica = collective.rank() / sharing;
  TROUPE_ASSIGN(shard_group_, collective.split(core_.replica));
  TROUPE_ASSIGN(replica_group_, collective.split(collective.rank() % sharing));
  return {};
}

Result<void> Engine::register_memory(const StepGroups& groups) {
  if (device_.is_host() || groups.all.world() == 1) return {};
  const Arenas& arenas = core_.memory->arenas;
  for (std::size_t i = 0; i <= static_cast<std::size_t>(ArenaKind::replicated_gradients); ++i) {
    const auto kind = static_cast<ArenaKind>(i);
    const auto memory = arenas.bytes({kind, 0, arenas.size(kind)});
    TROUPE_TRY(groups.sharing.register_memory(memory));
    if (core_.replicas > 1) TROUPE_TRY(groups.replicas.register_memory(memory));
  }
  return {};
}

ObjectivePlan& Engine::plan_of(const Network* objective) {
  const Network& wanted = objective ? *objective : *core_.network;
  for (const auto& plan : plans_) {
    if (&plan->network() == &wanted) return *plan;
  }
  const StepShape& shape = core_.memory->plan.shape();
  return *plans_.emplace_back(
      std::make_unique<ObjectivePlan>(core_.network->units(), wanted, shape.param_slots, shape.grad_slots));
}

Result<void> Engine::check_ready(const char* what) const {
  if (!collective_.load())
    return Error{Errc::failed_precondition, fmt::format("{} without a group: attach one first", what)};
  if (!has_state_)
    return Error{Errc::failed_precondition, fmt::format("{} without state: initialise or load first", what)};
  return {};
}

Result<void> Engine::check_open(const char* what) const {
  TROUPE_TRY(check_ready(what));
  if (is_open_) return {};
  return Error{Errc::failed_precondition,
               fmt::format("{}: no micro-batch has been accumulated since the last step", what)};
}

Error Engine::give_up(Error error) {
  // peers that wait for this rank need not wait for their deadline
  if (auto* group = collective_.exchange(nullptr)) group->abort(error.message());
  // some of it may have run
  if (has_postponed()) has_state_ = false;
  core_.step = StepState::empty(core_.memory->plan.shape());
  discard();
  return error;
}

Result<void> Engine::start(const ObjectivePlan* plan, PartKind kind, const std::vector<bool>& units,
                           const std::function<void(StepBuilder&)>& build, StepCall& call) {
  PartKey key(plan, kind, units, core_.step);
  auto known = parts_.find(key);
  if (known == parts_.end()) {
    StepBuilder builder(core_.memory->plan, core_.step);
    build(builder);
    known = parts_.emplace(std::move(key), Part{builder.operations(), builder.state()}).first;
  }
  if (has_postponed()) std::tie(call.vote, call.rates) = last_commit_;
  TROUPE_TRY(executor_->start(known->second.operations, call));
  core_.step = known->second.after;
  return {};
}

Result<void> Engine::enqueue(const Batch& batch, double weight, bool first, const Network* objective) {
  TROUPE_TRY(check_ready("a micro-batch"));
  if (!first && !is_open_) return Error{Errc::failed_precondition, "the first micro-batch of a step must say so"};
  if (first) discard();
  ObjectivePlan& plan = plan_of(objective);
  const bool is_f32 = core_.options.param_dtype == at::kFloat;
  MicroBatch& micro = *enqueued_.emplace_back(std::make_unique<MicroBatch>());
  micro.batch = batch;
  StepCall& call = micro.call;
  call.plan = &plan;
  call.batch = &micro.batch;
  call.weight = weight;
  call.is_first = first;
  call.levels = core_.options.recompute;
  call.manual = plan.manual_backward(core_.options.explicit_backward && is_f32 && !core_.options.whole_gradients);
  const auto way = call.manual ? Differentiation::manual : Differentiation::units;
  const auto build = [&](StepBuilder& builder) { builder.micro_batch(plan.trains(), way); };
  if (auto done = start(&plan, PartKind::micro_batch, {}, build, call); !done) return give_up(done.error());
  is_open_ = true;
  // what cores kept of it is not needed longer
  return device_.is_host() ? take_results() : Result<void>();
}

Result<void> Engine::finish() {
  TROUPE_TRY(executor_->finish());
  return collective_.load()->status();
}

Result<void> Engine::take_results() {
  if (enqueued_.empty()) return {};
  if (auto done = finish(); !done) return give_up(done.error());
  for (const auto& micro : enqueued_) {
    StepCall& call = micro->call;
    if (call.tape) executor_->run_alone([&](device::Stream&) { call.result = call.tape->result(); });
    core_.saw_non_finite_loss = core_.saw_non_finite_loss || !std::isfinite(call.result.loss);
    results_.push_back(std::move(call.result));
  }
  enqueued_.clear();
  return {};
}

Result<std::vector<MicroResult>> Engine::results() {
  TROUPE_TRY(check_ready("results"));
  TROUPE_TRY(take_results());
  return results_;
}

Result<MicroResult> Engine::accumulate(const Batch& batch, double weight, bool first, const Network* objective) {
  TROUPE_TRY(enqueue(batch, weight, first, objective));
  TROUPE_TRY(take_results());
  return results_.back();
}

Result<Outputs> Engine::forward(const Batch& batch, const Network* objective) {
  TROUPE_TRY(check_ready("forward"));
  ObjectivePlan& plan = plan_of(objective);
  StepCall call{.plan = &plan, .batch = &batch};
  const auto build = [](StepBuilder& builder) { builder.forward_only(); };
  auto done = start(&plan, PartKind::forward, {}, build, call);
  if (done) done = finish();
  if (!done) return give_up(done.error());
  Outputs outputs;
  executor_->run_alone([&](device::Stream&) { outputs = copied(call.tape->outputs()); });
  return outputs;
}

Result<void> Engine::start_vote(StepCall& call) {
  const auto build = [](StepBuilder& builder) { builder.vote(); };
  return start(nullptr, PartKind::vote, {}, build, call);
}

Result<StepVote> Engine::vote(std::vector<double> sums, std::vector<double> maxima) {
  TROUPE_TRY(check_open("vote"));
  TROUPE_TRY(take_results());
  const Span span("vote", SpanKind::wait);
  const auto begin = std::chrono::steady_clock::now();
  StepCall call{.sums = std::move(sums), .maxima = std::move(maxima)};
  auto done = start_vote(call);
  if (done) done = executor_->finish();
  if (done) done = executor_->take_vote(call);
  if (!done) return give_up(done.error().with("vote"));
  call.vote.seconds = seconds_since(begin);
  return std::move(call.vote);
}

Result<StepVote> Engine::finish_step(double lr, const StepNumbersOf& numbers) {
  return end_step(rates_of(lr), numbers);
}

Result<StepVote> Engine::finish_step(const GroupRates& rates, const StepNumbersOf& numbers) {
  return end_step(rates_of(rates), numbers);
}

Result<StepVote> Engine::end_step(const std::map<std::size_t, double>& rates, const StepNumbersOf& numbers) {
  TROUPE_TRY(check_open("finish_step"));
  if (!core_.device_vote) {
    TROUPE_TRY(take_results());
    StepNumbers own = numbers(results_);
    TROUPE_ASSIGN(StepVote vote, this->vote(std::move(own.sums), std::move(own.maxima)));
    vote.finite ? update(rates, vote) : discard();
    return vote;
  }
  StepCall call;
  const auto run = [&]() -> Result<void> {
    TROUPE_TRY(start_vote(call));
    TROUPE_TRY(start_update(rates, {}));
    TROUPE_TRY(finish());
    TROUPE_TRY(take_results());
    const Span span("vote", SpanKind::wait);
    StepNumbers own = numbers(results_);
    call.sums = std::move(own.sums), call.maxima = std::move(own.maxima);
    const auto begin = std::chrono::steady_clock::now();
    TROUPE_TRY(executor_->take_vote(call));
    call.vote.seconds = seconds_since(begin);
    return {};
  };
  if (const auto done = run(); !done) {
    has_state_ = false;  // the update may have run
    return give_up(done.error().with("finish_step"));
  }
  if (!call.vote.finite) take_back_update(rates);
  discard();
  return std::move(call.vote);
}

void Engine::commit(double lr, const StepVote& vote) { update(rates_of(lr), vote); }

void Engine::commit(const GroupRates& rates, const StepVote& vote) { update(rates_of(rates), vote); }

std::map<std::size_t, double> Engine::rates_of(double lr) const {
  std::map<std::size_t, double> rates;
  for (std::size_t g = 0; g < core_.groups.size(); ++g) rates[g] = lr;
  return rates;
}

std::map<std::size_t, double> Engine::rates_of(const GroupRates& rates) const {
  std::map<std::size_t, double> by_group;
  for (const auto& [name, lr] : rates) {
    const std::size_t group = core_.groups.find(name);
    TROUPE_CHECK(group != UnitGroups::kNone,
                 fmt::format("an update of group '{}', which no trainable unit names", name));
    by_group[group] = lr;
  }
  return by_group;
}

void Engine::update(const std::map<std::size_t, double>& rates, const StepVote& vote) {
  TROUPE_CHECK(vote.finite, "a step with a gradient that is not finite is discarded");
  TROUPE_CHECK(is_open_, "a step has gradients");
  TROUPE_CHECK(vote.group_squares.size() == core_.groups.size(), "the vote is this engine's");
  start_update(rates, vote).value();  // nothing in it can fail
  discard();
}

Result<void> Engine::start_update(const std::map<std::size_t, double>& rates, const StepVote& vote) {
  const Span span("optimizer");
  std::vector<bool> units(core_.units.size(), false);
  ++core_.updates;
  core_.counts.whole_steps = 0;
  for (const auto& [group, lr] : rates) {
    core_.groups.set_updates(group, core_.groups.updates(group) + 1);
    for (const std::size_t u : core_.groups.units_of(group)) units[u] = true;
  }
  StepCall call{.vote = vote, .rates = rates};
  const auto build = [&](StepBuilder& builder) {
    core_.options.lazy_optimizer ? builder.postpone_update(units) : builder.update(units);
  };
  TROUPE_TRY(start(nullptr, PartKind::update, units, build, call));
  if (has_postponed()) last_commit_ = {vote, rates};
  return {};
}

void Engine::take_back_update(const std::map<std::size_t, double>& rates) {
  --core_.updates;
  for (const auto& [group, lr] : rates) core_.groups.set_updates(group, core_.groups.updates(group) - 1);
  core_.step.postponed.assign(core_.units.size(), false);
}

void Engine::estimate_curvature(double factor, const StepVote& vote) {
  const Span span("optimizer");
  TROUPE_CHECK(core_.options.sophia.has_value(), "AdamW knows no curvature");
  TROUPE_CHECK(vote.finite, "a gradient that is not finite is discarded");
  TROUPE_CHECK(is_open_, "there are gradients of sampled labels");
  std::vector<bool> units;
  for (const UnitSpec& unit : core_.units) units.push_back(unit.trainable);
  StepCall call{.curvature_factor = factor};
  core_.counts.curvature = 0;
  const auto build = [&](StepBuilder& builder) { builder.curvature(units); };
  start(nullptr, PartKind::curvature, units, build, call).value();  // nothing in it can fail
  discard();
}

bool Engine::has_postponed() const {
  return std::find(core_.step.postponed.begin(), core_.step.postponed.end(), true) != core_.step.postponed.end();
}

void Engine::run_postponed() {
  if (!has_postponed()) return;
  StepCall call;
  start(
      nullptr, PartKind::postponed, {}, [](StepBuilder& builder) { builder.run_postponed(); }, call)
      .value();  // nothing in it can fail
}

void Engine::average(double tau, const std::vector<std::string>& targets) {
  TROUPE_CHECK(has_state_ && !is_open_, "target networks move between steps");
  std::vector<bool> units(core_.units.size(), false);
  for (std::size_t u = 0; u < units.size(); ++u) {
    const bool is_target = core_.source_of[u].has_value();
    const bool is_named = std::find(targets.begin(), targets.end(), core_.units[u].name) != targets.end();
    TROUPE_CHECK(is_target || !is_named, fmt::format("'{}' is no target network", core_.units[u].name));
    units[u] = is_target && (targets.empty() || is_named);
  }
  StepCall call{.tau = tau};
  const auto build = [&](StepBuilder& builder) { builder.average(units); };
  start(nullptr, PartKind::average, units, build, call).value();  // nothing in it can fail
}

void Engine::discard() {
  is_open_ = false;
  enqueued_.clear();
  results_.clear();
  core_.saw_non_finite_loss = false;
  core_.step.accumulated.assign(core_.units.size(), false);
  core_.step.whole.assign(core_.units.size(), false);
}

std::size_t Engine::unit_index(std::string_view name) const {
  for (std::size_t u = 0; u < core_.units.size(); ++u) {
    if (core_.units[u].name == name) return u;
  }
  TROUPE_CHECK(false, fmt::format("no unit is called '{}'", name));
}

std::map<std::string, std::int64_t> Engine::bytes() const {
  std::map<std::string, std::int64_t> bytes = {{"shards", 0}, {"offloaded", 0}, {"slots", 0}, {"gradients", 0}};
  if (!core_.memory) return bytes;
  const auto size = [&](ArenaKind arena) { return core_.memory->arenas.size(arena); };
  for (auto arena = ArenaKind::master; arena <= ArenaKind::state_slots;
       arena = static_cast<ArenaKind>(static_cast<int>(arena) + 1))
    bytes["shards"] += size(arena);
  bytes["offloaded"] = size(ArenaKind::offloaded);
  bytes["slots"] = size(ArenaKind::slots) + size(ArenaKind::replicated);
  bytes["gradients"] =
      size(ArenaKind::gradient_slots) + size(ArenaKind::replicated_gradients) + size(ArenaKind::staging);
  return bytes;
}

void Engine::abort(const std::string& why) {
  if (auto* group = collective_.load()) group->abort(why);
}

}  // namespace troupe::model
