#include "model/shard/executor.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>

#include "base/trace.h"

namespace troupe::model {
namespace {

Buffer buffer_of(const at::Tensor& tensor) {
  return {tensor.data_ptr(), tensor.numel(), tensor.scalar_type() == at::kBFloat16 ? DType::bf16 : DType::f32};
}

std::size_t index(int i) { return static_cast<std::size_t>(i); }

}  // namespace

Engine::Executor::Executor(Engine& engine, Collective& collective)
    : engine_(engine),
      collective_(collective),
      gathers_(index(engine.params_->size())),
      reduces_(index(engine.gradients_->size())) {}

Engine::Executor::~Executor() {
  // only after a failure is anything still under way: its own error repeats the one already returned
  for (auto* pending : {&gathers_, &reduces_}) {
    for (auto& operation : *pending) {
      if (operation) (void)operation->wait();
    }
  }
}

Result<void> Engine::Executor::run(const Schedule& schedule, UnitTape& tape, ScheduleMode mode) {
  TROUPE_TRY(gather_replicated());
  for (const auto& op : schedule) {
    if (auto done = step(op, tape); !done) return done.error().with(fmt::format("unit {}", name_of(op)));
  }
  return mode == ScheduleMode::train ? reduce_replicated() : Result<void>();
}

Result<MicroResult> Engine::Executor::run(const ManualBackward& form, const ObjectivePlan& plan, const Batch& batch,
                                          double weight) {
  TROUPE_TRY(gather_replicated());
  std::vector<Op> gathered, trained;
  const int units = static_cast<int>(plan.trains().size());
  for (int u = 0; u < units; ++u) {
    const int slot = u % engine_.params_->size();
    if (plan.trains()[index(u)]) {
      trained.push_back(
          {.kind = OpKind::reduce, .unit = u, .slot = slot, .grad_slot = static_cast<int>(trained.size())});
    }
    if (engine_.params_->held(slot) == u) continue;
    gathered.push_back({.kind = OpKind::gather, .unit = u, .slot = slot});
    start_gather(gathered.back());
  }
  for (const Op& op : gathered) TROUPE_TRY(finish_gather(op));
  for (int u = 0; u < units; ++u) engine_.params_->begin_read(u, u);
  const auto is_in_place = [&](const Op& op) { return place_of(op) == engine_.in_place(); };
  slots_only_ = !std::all_of(trained.begin(), trained.end(), is_in_place);
  for (const Op& op : trained) begin_gradients(op);
  MicroResult result = [&] {
    const Span span("forward and backward");
    return form.run(engine_.views_, batch, weight, engine_.manual_gradients(plan, !slots_only_));
  }();
  for (int u = 0; u < units; ++u) engine_.params_->end_read(u, u);
  for (const Op& op : trained) {
    engine_.gradients_->end_write(op.grad_slot, op.unit);
    start_reduce(op);
  }
  for (const Op& op : trained) TROUPE_TRY(finish_reduce(op));
  TROUPE_TRY(reduce_replicated());
  return result;
}

const std::string& Engine::Executor::name_of(const Op& op) const {
  return engine_.network_->units()[index(op.unit)].name;
}

Result<void> Engine::Executor::gather_replicated() {
  if (!engine_.replicated_) return {};
  const Span span("gather replicated", SpanKind::wait);
  return engine_.replicated_->gather(collective_, engine_.store_->gather_source(engine_.resident_unit()));
}

Result<void> Engine::Executor::reduce_replicated() {
  if (!engine_.replicated_) return {};
  const Span span("reduce replicated", SpanKind::wait);
  const std::size_t unit = engine_.resident_unit();
  TROUPE_TRY(engine_.replicated_->reduce(collective_, engine_.store_->accumulator(unit), !engine_.accumulated_[unit]));
  engine_.accumulated_[unit] = true;
  return {};
}

Result<void> Engine::Executor::step(const Op& op, UnitTape& tape) {
  switch (op.kind) {
    case OpKind::gather:
      return start_gather(op), Result<void>();
    case OpKind::wait_gather:
      return finish_gather(op);
    case OpKind::forward:
      return forward(op, tape), Result<void>();
    case OpKind::backward:
      return backward(op, tape), Result<void>();
    case OpKind::reduce:
      return start_reduce(op), Result<void>();
    case OpKind::wait_reduce:
      return finish_reduce(op);
  }
  return {};
}

Buffer Engine::Executor::padded(const at::Tensor& buffer, int unit) const {
  Buffer part = buffer_of(buffer);
  part.count = engine_.layouts_[index(unit)].padded(engine_.world_);
  return part;
}

void Engine::Executor::start_gather(const Op& op) {
  engine_.params_->begin_write(op.slot, op.unit);
  if (engine_.is_alone()) return;
  const auto full = padded(engine_.params_->buffer(op.slot), op.unit);
  if (full.count == 0) return;  // a unit without parameters
  gathers_[index(op.slot)] = collective_.all_gather(full, buffer_of(engine_.store_->gather_source(index(op.unit))));
}

Result<void> Engine::Executor::finish_gather(const Op& op) {
  if (const auto pending = std::move(gathers_[index(op.slot)])) {
    const Span span("gather", name_of(op), SpanKind::wait);
    TROUPE_TRY(pending->wait());
  }
  engine_.params_->end_write(op.slot, op.unit);
  return {};
}

void Engine::Executor::forward(const Op& op, UnitTape& tape) {
  const Span span("forward", name_of(op));
  engine_.params_->begin_read(op.slot, op.unit);
  tape.forward(op.unit, engine_.views_[index(op.unit)]);
  engine_.params_->end_read(op.slot, op.unit);
}

int Engine::Executor::place_of(const Op& op) const {
  return slots_only_ ? op.grad_slot : engine_.gradient_place(index(op.unit), op.grad_slot);
}

void Engine::Executor::begin_gradients(const Op& op) {
  engine_.gradients_->begin_write(op.grad_slot, op.unit);
  const Buffer full = padded(engine_.gradient_buffer(index(op.unit), place_of(op)), op.unit);
  zero_gaps(engine_.layouts_[index(op.unit)], {static_cast<float*>(full.data), static_cast<std::size_t>(full.count)});
}

void Engine::Executor::backward(const Op& op, UnitTape& tape) {
  const Span span("backward", name_of(op));
  const bool trainable = op.grad_slot >= 0;
  engine_.params_->begin_read(op.slot, op.unit);
  if (trainable) begin_gradients(op);
  tape.backward(op.unit, engine_.views_[index(op.unit)], engine_.gradient_view(index(op.unit), place_of(op)));
  if (trainable) engine_.gradients_->end_write(op.grad_slot, op.unit);
  engine_.params_->end_read(op.slot, op.unit);
}

std::span<float> Engine::Executor::own_part(const Op& op) const {
  const std::int64_t n = engine_.store_->elements(index(op.unit));
  return {engine_.gradients_->buffer(op.grad_slot).data_ptr<float>() + engine_.rank_ * n, static_cast<std::size_t>(n)};
}

void Engine::Executor::start_reduce(const Op& op) {
  engine_.gradients_->begin_read(op.grad_slot, op.unit);
  if (engine_.is_alone()) return;
  const auto full = padded(engine_.gradients_->buffer(op.grad_slot), op.unit);
  if (full.count == 0) return;
  // the unit's first sum of a step is the accumulator; a later one lands in this rank's own part of the slot and is
  // added
  const auto target = engine_.accumulated_[index(op.unit)] ? own_part(op) : engine_.store_->accumulator(index(op.unit));
  reduces_[index(op.grad_slot)] =
      collective_.reduce_scatter({target.data(), static_cast<std::int64_t>(target.size()), DType::f32}, full);
}

Result<void> Engine::Executor::finish_reduce(const Op& op) {
  if (const auto pending = std::move(reduces_[index(op.grad_slot)])) {
    const Span span("reduce", name_of(op), SpanKind::wait);
    TROUPE_TRY(pending->wait());
  }
  const auto unit = index(op.unit);
  const auto accumulator = engine_.store_->accumulator(unit);
  if (engine_.accumulated_[unit])
    add_to(accumulator, own_part(op));
  else if (engine_.is_alone() && place_of(op) != engine_.in_place())
    std::copy_n(own_part(op).data(), accumulator.size(), accumulator.data());
  engine_.accumulated_[unit] = true;
  engine_.gradients_->end_read(op.grad_slot, op.unit);
  return {};
}

}  // namespace troupe::model
