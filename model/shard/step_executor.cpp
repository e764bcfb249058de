#include "model/shard/step_executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/trace.h"
#include "kernels/threads.h"
#include "model/optim/adamw.h"
#include "model/optim/moving_average.h"
#include "model/optim/sophia.h"

namespace troupe::model {
namespace {

std::size_t index(int i) { return static_cast<std::size_t>(i); }

/// To gather a team of threads costs more than it saves where a network has fewer parameters: its pieces of work are
/// too short to be shared.
constexpr std::int64_t kTeamParameters = 1 << 18;

bool has_team_parameters(const EngineMemory& core) {
  std::int64_t count = 0;
  for (const auto& layout : core.layouts) count += layout.numel;
  return count >= kTeamParameters;
}

/// The first line: LibTorch appends its call stack.
Error network_error(const std::exception& e) {
  const std::string what = e.what();
  return {Errc::internal, fmt::format("the network failed: {}", what.substr(0, what.find('\n')))};
}

}  // namespace

StepExecutor::StepExecutor(EngineMemory& core, StepGroups groups, device::Device& device)
    : core_(core), groups_(groups), device_(device), shares_pieces_(device.is_host() && has_team_parameters(core)) {
  for (const auto stream : {OpStream::optimizer, OpStream::copy})
    streams_[static_cast<std::size_t>(stream)] = device.make_stream(device::StreamUse::compute);
  // one collective, hence one stream for both gathers and exchanges: all ranks call it in one order
  if (core_.memory->plan.shape().offloads())
    streams_[static_cast<std::size_t>(OpStream::offload)] = device.make_stream(device::StreamUse::transfer);
  auto& transfers = streams_[static_cast<std::size_t>(OpStream::gather)];
  if (groups.all.world() == 1) {
    transfers = device.make_stream(device::StreamUse::compute);
    return;
  }
  transfers = device.make_stream(device::StreamUse::transfer);
  // the other cores are the computation's
  if (device.is_host()) transfers->enqueue([] { return kernels::set_num_threads(1), Result<void>(); });
}

StepExecutor::~StepExecutor() {
  // the other streams wait in their own ends; what fails now is of no use to anyone
  (void)core_.compute->synchronize();
}

device::Stream& StepExecutor::stream_of(OpStream stream) {
  if (stream == OpStream::compute) return *core_.compute;
  return *streams_[static_cast<std::size_t>(stream == OpStream::reduce ? OpStream::gather : stream)];
}

device::Event& StepExecutor::event_of(int operation) {
  while (events_.size() <= index(operation)) events_.push_back(device_.make_event());
  return *events_[index(operation)];
}

template <class Body>
void StepExecutor::each_other_stream(const Body& body) {
  for (const auto& stream : streams_)
    if (stream) body(*stream);
}

Result<void> StepExecutor::start(std::span<const Op> operations, StepCall& call) {
  if (is_under_way_) join_streams();
  const auto enqueue = [&] {
    is_under_way_ = true;
    const auto enqueued = enqueue_all(operations, call);
    return !device_.is_host() && enqueued ? enqueued : finish();
  };
  // only a micro-batch's units have many pieces of work
  if (call.plan == nullptr || call.manual != nullptr || !shares_pieces_) return enqueue();
  Result<void> done;
  kernels::with_team(kernels::num_threads(), [&] { done = enqueue(); });
  return done;
}

Result<void> StepExecutor::run(std::span<const Op> operations, StepCall& call) {
  TROUPE_TRY(start(operations, call));
  return finish();
}

void StepExecutor::join_streams() {
  std::size_t next = 0;
  const auto join = [&](device::Stream& from, const auto& to) {
    if (joins_.size() == next) joins_.push_back(device_.make_event());
    device::Event& event = *joins_[next++];
    from.record(event);
    to(event);
  };
  device::Stream& compute = *core_.compute;
  each_other_stream([&](device::Stream& other) { join(other, [&](device::Event& event) { compute.wait(event); }); });
  join(compute, [&](device::Event& event) { each_other_stream([&](device::Stream& other) { other.wait(event); }); });
}

Result<void> StepExecutor::finish() {
  if (!is_under_way_) return {};
  Result<void> result;
  const auto synchronize = [&](device::Stream& stream) {
    auto done = stream.synchronize();
    if (done || !result) return;
    // before the next stream is waited for, so that it need not wait for peers
    result = std::move(done);
    groups_.all.abort(result.error().message());
  };
  synchronize(*core_.compute);
  each_other_stream(synchronize);
  is_under_way_ = false;
  core_.unit_memory.settle(/*succeeded=*/result.has_value());
  return result;
}

void StepExecutor::run_alone(const std::function<void(device::Stream&)>& work) {
  finish().value();  // an update, in which nothing can fail
  std::exception_ptr thrown;
  device::Stream& stream = stream_of(OpStream::compute);
  stream.enqueue([&] {
    try {
      work(stream);
    } catch (...) {
      thrown = std::current_exception();
    }
    return Result<void>();
  });
  stream.synchronize().value();  // nothing in it can fail
  if (thrown) std::rethrow_exception(thrown);
}

Result<void> StepExecutor::enqueue_all(std::span<const Op> operations, StepCall& call) {
  Result<void> enqueued;
  for (std::size_t i = 0; i < operations.size() && enqueued;) {
    const auto shared = operations.subspan(i, shared_from(operations, i));
    device::Stream& stream = stream_of(shared.front().stream);
    for (const Op& op : shared) {
      for (const int wait : op.waits) wait_for(operations[index(wait)], event_of(wait), stream);
    }
    stream.enqueue([this, shared, &call, &enqueued] {
      auto done = perform_all(shared, call);
      // the streams of cores do it when its turn comes
      if (!done && !device_.is_host()) enqueued = done;
      return done;
    });
    for (const Op& op : shared) {
      if (op.is_awaited) stream.record(event_of(static_cast<int>(i)));
      ++i;
    }
  }
  return enqueued;
}

std::size_t StepExecutor::shared_from(std::span<const Op> operations, std::size_t first) const {
  const Op& op = operations[first];
  const bool is_shared = op.kind == OpKind::square || (op.kind == OpKind::update && !core_.options.sophia);
  std::size_t end = first + 1;
  if (!is_shared || !kernels::has_team()) return 1;
  const auto follows = [&](const Op& next) {
    return next.kind == op.kind && next.stream == op.stream &&
           std::all_of(next.waits.begin(), next.waits.end(), [&](int wait) { return index(wait) < first; });
  };
  while (end < operations.size() && follows(operations[end])) ++end;
  return end - first;
}

Result<void> StepExecutor::perform_all(std::span<const Op> operations, StepCall& call) {
  if (operations.size() == 1) return perform(operations.front(), call);
  std::vector<Result<void>> done(operations.size());
  kernels::each_part(static_cast<std::int64_t>(operations.size()), kernels::num_threads(), [&](std::int64_t part) {
    done[static_cast<std::size_t>(part)] = perform(operations[static_cast<std::size_t>(part)], call);
  });
  const auto failed = std::find_if(done.begin(), done.end(), [](const auto& result) { return !result; });
  return failed == done.end() ? Result<void>() : *failed;
}

void StepExecutor::wait_for(const Op& awaited, device::Event& event, device::Stream& stream) {
  // a stream of transfers waits on its own thread, and its operations' spans are there
  for (const auto transfers : {OpStream::gather, OpStream::offload})
    if (&stream == streams_[static_cast<std::size_t>(transfers)].get()) return stream.wait(event);
  const Span span(enum_name(awaited.kind), name_of(awaited), SpanKind::wait);
  stream.wait(event);
}

const std::string& StepExecutor::name_of(const Op& op) const {
  static const std::string none;
  return op.unit < 0 ? none : core_.units[index(op.unit)].name;
}

Result<void> StepExecutor::perform(const Op& op, StepCall& call) {
  const Span span(enum_name(op.kind), name_of(op));
  const auto done = [&]() -> Result<void> {
    try {
      return do_operation(op, call);
    } catch (const std::exception& e) {
      return network_error(e);
    }
  }();
  return done || op.unit < 0 ? done : done.error().with(fmt::format("unit {}", name_of(op)));
}

Result<void> StepExecutor::do_operation(const Op& op, StepCall& call) {
  ShardStore& store = rank().store;
  switch (op.kind) {
    case OpKind::input:
      return take_input(call), Result<void>();
    case OpKind::gather:
      return gather(op);
    case OpKind::forward:
      return forward(op, call);
    case OpKind::backward:
      return backward(op, call);
    case OpKind::network:
      return run_network(op, call);
    case OpKind::stash_out:
      return core_.unit_memory.stash_out(op.unit);
    case OpKind::stash_in:
      return core_.unit_memory.stash_in(op.unit);
    case OpKind::exchange:
      return exchange(op);
    case OpKind::reduce_scatter:
      return reduce_scatter(op);
    case OpKind::replicate:
      return groups_.replicas.enqueue_all_gather(rank().arenas.bytes(op.accesses.back().range),
                                                 rank().arenas.bytes(op.accesses.front().range), stream_of(op.stream));
    case OpKind::sum:
      return sum(op);
    case OpKind::add:
      return add(op);
    case OpKind::square:
      return square(op);
    case OpKind::agree:
      return agree(op, call);
    case OpKind::clip:
      return clip(op, call);
    case OpKind::curvature:
      return curvature(op, call), Result<void>();
    case OpKind::fetch:
      return copy(op, rank().plan.offloaded(op.unit), rank().plan.state_slot(op.unit, op.state_slot));
    case OpKind::update:
      return update(op, call);
    case OpKind::store:
      return copy(op, rank().plan.state_slot(op.unit, op.state_slot), rank().plan.offloaded(op.unit));
    case OpKind::average: {
      const auto target = store.state(StateKind::master, index(op.unit));
      move_average(target, store.state(StateKind::master, *core_.source_of[index(op.unit)]), call.tau);
      return store.refresh(index(op.unit), target, *core_.kernels, stream_of(op.stream));
    }
    case OpKind::snapshot:
      return copy_out(op, call);
    case OpKind::publish:
      return core_.kernels->copy(call.published.at(op.unit), rank().arenas.bytes(op.accesses.front().range),
                                 stream_of(op.stream));
  }
  return {};
}

Result<void> StepExecutor::copy(const Op& op, const ArenaRange& from, const ArenaRange& to) {
  return core_.kernels->copy(rank().arenas.bytes(to), rank().arenas.bytes(from), stream_of(op.stream));
}

Result<void> StepExecutor::copy_out(const Op& op, const StepCall& call) {
  for (const StateKind kind : rank().plan.kinds(op.unit)) {
    const ArenaRange range = rank().plan.snapshot(kind, op.unit);
    const auto from = rank().arenas.bytes(rank().plan.state(kind, op.unit));
    const auto to = call.snapshot.subspan(static_cast<std::size_t>(range.begin), from.size());
    TROUPE_TRY(core_.kernels->copy(to, from, stream_of(op.stream)));
  }
  return {};
}

void StepExecutor::take_input(StepCall& call) {
  // the batch lies where the units read it
  if (call.manual == nullptr) {
    call.tape.emplace(call.plan->network(), *call.batch, call.weight, call.levels, &core_.unit_memory);
  }
}

Result<void> StepExecutor::gather(const Op& op) {
  const auto full = rank().arenas.bytes(rank().plan.parameters(op.unit));
  if (full.empty()) return {};  // a unit without parameters
  return groups_.sharing.enqueue_all_gather(full, rank().arenas.bytes(rank().plan.gathered(op.unit)),
                                            stream_of(op.stream));
}

Result<void> StepExecutor::clear_gaps(const Op& op, int unit, const ArenaRange& gradient) {
  for (const auto gap : gaps_of(core_.layouts[index(unit)], rank().arenas.floats(gradient)))
    TROUPE_TRY(core_.kernels->clear(gap, stream_of(op.stream)));
  return {};
}

Result<void> StepExecutor::forward(const Op& op, StepCall& call) {
  call.tape->forward(op.unit, rank().views.parameters()[index(op.unit)]);
  const bool is_last = op.unit + 1 == rank().plan.shape().chain;
  if (!core_.device_vote || !is_last || call.levels.empty()) return {};
  bool is_first = call.is_first;
  for (const at::Tensor& loss : call.tape->losses())
    TROUPE_TRY(core_.device_vote->add_loss(loss.const_data_ptr<float>(), std::exchange(is_first, false),
                                           stream_of(op.stream)));
  return {};
}

Result<void> StepExecutor::backward(const Op& op, StepCall& call) {
  if (op.in_place) TROUPE_TRY(clear_gaps(op, op.unit, rank().plan.gradient(op.unit)));
  if (op.is_whole) TROUPE_TRY(clear_gaps(op, op.unit, rank().plan.whole_gradient(op.unit)));
  if (op.grad_slot >= 0) TROUPE_TRY(clear_gaps(op, op.unit, rank().plan.gradient_slot(op.grad_slot, op.unit)));
  call.tape->backward(op.unit, rank().views.parameters()[index(op.unit)], rank().views.gradients(op));
  return {};
}

Result<void> StepExecutor::run_network(const Op& op, StepCall& call) {
  const auto& trains = call.plan->trains();
  int next = 0;
  for (int u = 0; u < static_cast<int>(trains.size()); ++u) {
    if (!trains[index(u)]) continue;
    TROUPE_TRY(clear_gaps(op, u, op.in_place ? rank().plan.gradient(u) : rank().plan.gradient_slot(next++, u)));
  }
  call.result =
      call.manual->run(rank().views.parameters(), *call.batch, call.weight, rank().views.gradients(op, trains));
  return {};
}

Result<void> StepExecutor::exchange(const Op& op) {
  const auto sent = rank().arenas.bytes(op.accesses.front().range);
  if (sent.empty()) return {};
  return groups_.sharing.enqueue_all_to_all(rank().arenas.bytes(rank().plan.staging(op.unit)), sent,
                                            stream_of(op.stream));
}

Result<void> StepExecutor::reduce_scatter(const Op& op) {
  const auto sent = rank().arenas.floats(op.accesses.front().range);
  if (sent.empty()) return {};
  return groups_.sharing.enqueue_reduce_scatter(rank().arenas.floats(rank().plan.staging(op.unit)), sent,
                                                stream_of(op.stream));
}

Result<void> StepExecutor::add(const Op& op) {
  const auto whole = rank().arenas.floats(rank().plan.whole_gradient(op.unit));
  const auto part = rank().arenas.floats(rank().plan.gradient_slot(op.grad_slot, op.unit));
  return core_.kernels->add_parts(whole, part, /*ranks=*/1, /*add=*/true, stream_of(op.stream));
}

Result<void> StepExecutor::sum(const Op& op) {
  const auto total = rank().store.accumulator(index(op.unit));
  const auto parts = rank().arenas.floats(op.accesses.front().range);
  return core_.kernels->add_parts(total, parts, op.parts, op.adds, stream_of(op.stream));
}

template <class Body>
void StepExecutor::each_interval(std::size_t unit, const StepCall& call, const Body& body) {
  const std::int64_t elements = rank().store.elements(unit), shard = core_.rank * elements;
  const double lr = call.rates.at(core_.groups.group_of(unit));
  for (const UpdateInterval& interval : rank().intervals[unit]) {
    // its part of this rank's shard
    const std::int64_t begin = std::max<std::int64_t>(0, interval.begin - shard);
    const std::int64_t end = std::min(elements, interval.end - shard);
    if (begin < end)
      body(static_cast<std::size_t>(begin), static_cast<std::size_t>(end), interval.decays, lr * interval.rate);
  }
}

template <class T>
std::span<T> StepExecutor::working_state(StateKind kind, const Op& op) {
  const auto bytes = rank().arenas.bytes(rank().plan.working_state(kind, op.unit, op.state_slot));
  return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
}

Result<void> StepExecutor::adamw(const Op& op, const StepCall& call) {
  const std::size_t unit = index(op.unit), group = core_.groups.group_of(unit);
  const auto bytes = [&](StateKind kind) {
    return rank().arenas.bytes(rank().plan.working_state(kind, op.unit, op.state_slot));
  };
  const AdamWShard shard{.unit = unit,
                         .param = working_state(StateKind::master, op),
                         .m = bytes(StateKind::m),
                         .v = bytes(StateKind::v),
                         .has_bf16_moments = rank().store.has_bf16_moments(),
                         .gradient = rank().store.accumulator(unit),
                         .gradient_scale = core_.device_vote ? 1.0F : call.clip[group],
                         .group = group,
                         .published = rank().store.bf16_copy(unit)};
  std::vector<AdamWInterval> intervals;
  each_interval(unit, call, [&](std::size_t begin, std::size_t end, bool decays, double lr) {
    AdamWOptions own = core_.groups.adamw(group);
    if (!decays) own.weight_decay = 0;
    intervals.push_back({begin, end, adamw_update(lr, core_.groups.updates(group), own)});
  });
  return core_.kernels->adamw(shard, intervals, stream_of(op.stream));
}

void StepExecutor::sophia(const Op& op, const StepCall& call) {
  const std::size_t unit = index(op.unit), group = core_.groups.group_of(unit);
  const auto gradient = rank().store.accumulator(unit), master = working_state(StateKind::master, op),
             m = working_state(StateKind::m, op), h = working_state(StateKind::v, op);
  each_interval(unit, call, [&](std::size_t begin, std::size_t end, bool decays, double lr) {
    SophiaOptions own = *core_.options.sophia;
    if (!decays) own.weight_decay = 0;
    const auto part = [&](auto values) { return values.subspan(begin, end - begin); };
    const std::int64_t whole = sophia_step(part(master), part(m), part(h), part(gradient), call.clip[group], lr, own);
    core_.counts.whole_steps += static_cast<double>(whole);
  });
}

void StepExecutor::curvature(const Op& op, const StepCall& call) {
  const auto gradient = rank().store.accumulator(index(op.unit));
  if (!op.adds) std::fill(gradient.begin(), gradient.end(), 0.0f);
  core_.counts.curvature +=
      refresh_curvature(working_state(StateKind::v, op), gradient, call.curvature_factor, core_.options.sophia->beta2);
}

Result<void> StepExecutor::update(const Op& op, const StepCall& call) {
  device::Stream& stream = stream_of(op.stream);
  const auto gradient = rank().store.accumulator(index(op.unit)), master = working_state(StateKind::master, op);
  if (!op.adds) TROUPE_TRY(core_.kernels->clear(gradient, stream));
  if (core_.options.sophia) {
    sophia(op, call);
    TROUPE_TRY(rank().store.refresh(index(op.unit), master, *core_.kernels, stream));
  } else {
    TROUPE_TRY(adamw(op, call));
  }
  const double decay = core_.options.ema_decay;
  if (decay == 0) return {};
  return core_.kernels->average(working_state(StateKind::ema, op), master, 1.0 - decay, stream);
}

}  // namespace troupe::model
