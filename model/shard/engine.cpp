#include "model/shard/engine.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "model/shard/executor.h"
#include "model/shard/init.h"

namespace troupe {
namespace {

/// The first line: LibTorch appends its call stack.
Error network_error(const std::exception& e) {
  const std::string what = e.what();
  return {Errc::internal, fmt::format("the network failed: {}", what.substr(0, what.find('\n')))};
}

}  // namespace

Engine::Engine(std::shared_ptr<const Network> network, EngineOptions options)
    : network_(std::move(network)), options_(options) {
  TROUPE_CHECK(network_->units().size() >= 2, "a network has a prologue and an epilogue");
  TROUPE_CHECK(options_.param_slots >= 1 && options_.grad_slots >= 1, "at least one slot of each kind");
  // a slot beyond the last unit would never be used
  options_.param_slots = std::min(options_.param_slots, static_cast<int>(network_->units().size()));
  for (const auto& unit : network_->units()) layouts_.push_back(make_flat_layout(unit.params));
  layout_hash_ = hash_of(layouts_);
}

Engine::~Engine() = default;

void Engine::attach(Collective& collective) {
  if (!store_ || collective.rank() != rank_ || collective.world() != world_) {
    rank_ = collective.rank();
    world_ = collective.world();
    has_state_ = false;
    store_ = std::make_unique<ShardStore>(layouts_, world_, options_.param_dtype);
    const auto elements = slot_elements(layouts_, world_);
    params_ = std::make_unique<SlotPool>(options_.param_slots, elements, options_.param_dtype);
    gradients_ = std::make_unique<SlotPool>(options_.grad_slots, elements, at::kFloat);
    views_.clear();
    for (std::size_t u = 0; u < layouts_.size(); ++u) {
      views_.push_back(
          views_of(layouts_[u], params_->buffer(static_cast<int>(u) % options_.param_slots), /*leaves=*/true));
    }
  }
  params_->clear();
  discard();
  collective_ = &collective;
}

void Engine::initialise(std::uint64_t seed) {
  TROUPE_CHECK(store_ != nullptr, "attach() comes before initialise()");
  for (std::size_t u = 0; u < layouts_.size(); ++u) {
    fill_initial(network_->units()[u], layouts_[u], seed, rank_ * store_->elements(u),
                 store_->state(StateKind::master, u));
    for (const auto kind : {StateKind::m, StateKind::v}) {
      const auto moment = store_->state(kind, u);
      std::fill(moment.begin(), moment.end(), 0.0f);
    }
    store_->refresh(u);
  }
  updates_ = 0;
  has_state_ = true;
  params_->clear();
  discard();
}

Result<void> Engine::load(const StateSource& source) {
  TROUPE_CHECK(store_ != nullptr, "attach() comes before load()");
  has_state_ = false;
  for (std::size_t u = 0; u < layouts_.size(); ++u) {
    const std::int64_t begin = rank_ * store_->elements(u);
    const std::int64_t count = std::clamp<std::int64_t>(layouts_[u].numel - begin, 0, store_->elements(u));
    for (const auto kind : {StateKind::master, StateKind::m, StateKind::v}) {
      const auto target = store_->state(kind, u);
      if (count > 0) TROUPE_TRY(source.read(u, kind, begin, count, target.data()));
      std::fill(target.begin() + count, target.end(), 0.0f);
    }
    store_->refresh(u);
  }
  updates_ = source.updates();
  has_state_ = true;
  params_->clear();
  discard();
  return {};
}

Result<void> Engine::check_ready(const char* what) const {
  if (!collective_.load())
    return Error{Errc::failed_precondition, fmt::format("{} without a group: attach one first", what)};
  if (!has_state_)
    return Error{Errc::failed_precondition, fmt::format("{} without state: initialise or load first", what)};
  return {};
}

Error Engine::give_up(Error error) {
  // peers that wait for this rank need not wait for their deadline
  if (auto* group = collective_.exchange(nullptr)) group->abort(error.message());
  params_->clear();
  discard();
  return error;
}

Result<void> Engine::run(UnitTape& tape, ScheduleMode mode, bool first) {
  ScheduleSpec spec{.num_units = static_cast<int>(layouts_.size()),
                    .param_slots = params_->size(),
                    .grad_slots = gradients_->size(),
                    .micro_batches = 1,
                    .mode = mode,
                    .held = params_->held()};
  Collective& group = *collective_.load();
  Executor executor(*this, group, tape, first);
  Result<void> result;
  try {
    result = executor.run(make_schedule(spec));
  } catch (const std::exception& e) {
    result = network_error(e);
  }
  // the group is aborted before the executor waits for what is under way, so that it need not wait for peers
  if (!result) return give_up(result.error());
  return result;
}

Result<MicroResult> Engine::accumulate(const Batch& batch, double weight, bool first) {
  TROUPE_TRY(check_ready("accumulate"));
  if (!first && !has_gradients_)
    return Error{Errc::failed_precondition, "accumulate: the first micro-batch of a step must say so"};
  if (first) discard();
  UnitTape tape(*network_, batch, weight, /*recorded=*/true);
  TROUPE_TRY(run(tape, ScheduleMode::train, first));
  has_gradients_ = true;
  try {
    auto result = tape.result();
    saw_non_finite_loss_ = saw_non_finite_loss_ || !std::isfinite(result.loss);
    return result;
  } catch (const std::exception& e) {
    return give_up(network_error(e));
  }
}

Result<Outputs> Engine::forward(const Batch& batch) {
  TROUPE_TRY(check_ready("forward"));
  UnitTape tape(*network_, batch, 0, /*recorded=*/false);
  TROUPE_TRY(run(tape, ScheduleMode::forward_only, false));
  return tape.outputs();
}

Result<StepVote> Engine::vote(std::vector<double> sums, std::vector<double> maxima) {
  TROUPE_TRY(check_ready("vote"));
  if (!has_gradients_)
    return Error{Errc::failed_precondition, "vote: no micro-batch has been accumulated since the last step"};
  double squares = 0;
  for (std::size_t u = 0; u < layouts_.size(); ++u) squares += sum_of_squares(store_->accumulator(u));
  const double mine[] = {squares, saw_non_finite_loss_ ? 1.0 : 0.0};
  sums.insert(sums.begin(), std::begin(mine), std::end(mine));

  // a value is the same on all ranks when its maximum and the maximum of its negative say so; halves of 32 bits are
  // exact
  const double identity[] = {static_cast<double>(layout_hash_ >> 32), static_cast<double>(layout_hash_ & 0xFFFFFFFFu),
                             static_cast<double>(updates_)};
  const std::size_t num_identity = std::size(identity);
  std::vector<double> largest;
  for (const double value : identity) largest.push_back(value);
  for (const double value : identity) largest.push_back(-value);
  largest.insert(largest.end(), maxima.begin(), maxima.end());

  Collective& group = *collective_.load();
  if (auto done = group.all_reduce_sum({sums.data(), static_cast<std::int64_t>(sums.size()), DType::f64}); !done) {
    return give_up(done.error().with("vote"));
  }
  if (auto done = group.all_reduce_max({largest.data(), static_cast<std::int64_t>(largest.size()), DType::f64});
      !done) {
    return give_up(done.error().with("vote"));
  }
  for (std::size_t i = 0; i < num_identity; ++i) {
    if (largest[i] == -largest[i + num_identity]) continue;
    const char* what = i == 2 ? "number of updates" : "layout of the network's units";
    return give_up(
        {Errc::failed_precondition, fmt::format("vote: ranks differ in the {}: {} here, {} to {} over the group", what,
                                                identity[i], -largest[i + num_identity], largest[i])});
  }
  StepVote vote;
  // double sums differ in their last bits with the number of ranks; as f32 they agree, and so does the clip factor
  vote.grad_norm = static_cast<double>(static_cast<float>(std::sqrt(sums[0])));
  vote.finite = std::isfinite(vote.grad_norm) && sums[1] == 0.0;
  vote.sums.assign(sums.begin() + 2, sums.end());
  vote.maxima.assign(largest.begin() + static_cast<std::ptrdiff_t>(2 * num_identity), largest.end());
  return vote;
}

void Engine::commit(double lr, const StepVote& vote) {
  TROUPE_CHECK(vote.finite, "a step with a gradient that is not finite is discarded");
  TROUPE_CHECK(has_gradients_, "a step has gradients");
  ++updates_;
  const float scale = clip_factor(vote.grad_norm, options_.clip_grad_norm);
  for (std::size_t u = 0; u < layouts_.size(); ++u) {
    adamw_step(store_->state(StateKind::master, u), store_->state(StateKind::m, u), store_->state(StateKind::v, u),
               store_->accumulator(u), scale, lr, updates_, options_.adamw);
    store_->refresh(u);
  }
  params_->clear();
  discard();
}

void Engine::discard() {
  if (gradients_) gradients_->clear();
  has_gradients_ = false;
  saw_non_finite_loss_ = false;
}

std::size_t Engine::snapshot_bytes() const {
  return store_ ? static_cast<std::size_t>(store_->total_elements()) * 3 * sizeof(float) : 0;
}

void Engine::snapshot(std::span<std::byte> out) const {
  TROUPE_CHECK(has_state_ && out.size() == snapshot_bytes(), "a snapshot goes into exactly snapshot_bytes()");
  std::byte* at = out.data();
  for (std::size_t u = 0; u < layouts_.size(); ++u) {
    for (const auto kind : {StateKind::master, StateKind::m, StateKind::v}) {
      const auto values = std::as_bytes(std::as_const(*store_).state(kind, u));
      std::memcpy(at, values.data(), values.size());
      at += values.size();
    }
  }
}

std::map<std::string, std::int64_t> Engine::bytes() const {
  if (!store_) return {{"shards", 0}, {"slots", 0}, {"gradients", 0}};
  return {{"shards", store_->bytes()}, {"slots", params_->bytes()}, {"gradients", gradients_->bytes()}};
}

void Engine::abort(const std::string& why) {
  if (auto* group = collective_.load()) group->abort(why);
}

}  // namespace troupe
