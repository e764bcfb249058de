#include "model/shard/executor.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

namespace troupe {
namespace {

Buffer buffer_of(const at::Tensor& tensor) {
  return {tensor.data_ptr(), tensor.numel(), tensor.scalar_type() == at::kBFloat16 ? DType::bf16 : DType::f32};
}

std::size_t index(int i) { return static_cast<std::size_t>(i); }

}  // namespace

Engine::Executor::Executor(Engine& engine, Collective& collective, UnitTape& tape, ScheduleMode mode, bool first)
    : engine_(engine),
      collective_(collective),
      tape_(tape),
      mode_(mode),
      first_(first),
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

Result<void> Engine::Executor::run(const Schedule& schedule) {
  const std::size_t resident = engine_.resident_unit();
  if (engine_.resident_) {
    TROUPE_TRY(engine_.resident_->gather(collective_, engine_.store_->gather_source(resident)));
  }
  for (const auto& op : schedule) {
    if (auto done = step(op); !done)
      return done.error().with(fmt::format("unit {}", engine_.network_->units()[index(op.unit)].name));
  }
  if (!engine_.resident_ || mode_ == ScheduleMode::forward_only) return {};
  return engine_.resident_->reduce(collective_, engine_.store_->accumulator(resident), first_);
}

Result<void> Engine::Executor::step(const Op& op) {
  switch (op.kind) {
    case OpKind::gather: return start_gather(op), Result<void>();
    case OpKind::wait_gather: return finish_gather(op);
    case OpKind::forward: return forward(op), Result<void>();
    case OpKind::backward: return backward(op), Result<void>();
    case OpKind::reduce: return start_reduce(op), Result<void>();
    case OpKind::wait_reduce: return finish_reduce(op);
  }
  return {};
}

void Engine::Executor::start_gather(const Op& op) {
  engine_.params_->begin_write(op.slot, op.unit);
  const auto full =
      engine_.params_->buffer(op.slot).narrow(0, 0, engine_.layouts_[index(op.unit)].padded(engine_.world_));
  if (full.numel() == 0) return;  // a unit without parameters
  gathers_[index(op.slot)] =
      collective_.all_gather(buffer_of(full), buffer_of(engine_.store_->gather_source(index(op.unit))));
}

Result<void> Engine::Executor::finish_gather(const Op& op) {
  if (const auto pending = std::move(gathers_[index(op.slot)])) TROUPE_TRY(pending->wait());
  engine_.params_->end_write(op.slot, op.unit);
  return {};
}

void Engine::Executor::forward(const Op& op) {
  engine_.params_->begin_read(op.slot, op.unit);
  tape_.forward(op.unit, engine_.views_[index(op.unit)]);
  engine_.params_->end_read(op.slot, op.unit);
}

void Engine::Executor::backward(const Op& op) {
  const auto& layout = engine_.layouts_[index(op.unit)];
  const bool trainable = op.grad_slot >= 0;
  ParamView gradients;
  if (engine_.resident_) engine_.resident_->add_gradients(index(op.unit), gradients);
  engine_.params_->begin_read(op.slot, op.unit);
  if (trainable) {
    engine_.gradients_->begin_write(op.grad_slot, op.unit);
    const auto full = engine_.gradients_->buffer(op.grad_slot).narrow(0, 0, layout.padded(engine_.world_));
    zero_gaps(layout, full);
    add_views(gradients, layout.entries, full, /*leaves=*/false);
  }
  tape_.backward(op.unit, engine_.views_[index(op.unit)], gradients);
  if (trainable) engine_.gradients_->end_write(op.grad_slot, op.unit);
  engine_.params_->end_read(op.slot, op.unit);
}

std::span<float> Engine::Executor::own_part(const Op& op) const {
  const std::int64_t n = engine_.store_->elements(index(op.unit));
  return {engine_.gradients_->buffer(op.grad_slot).data_ptr<float>() + engine_.rank_ * n, static_cast<std::size_t>(n)};
}

void Engine::Executor::start_reduce(const Op& op) {
  engine_.gradients_->begin_read(op.grad_slot, op.unit);
  const auto full =
      engine_.gradients_->buffer(op.grad_slot).narrow(0, 0, engine_.layouts_[index(op.unit)].padded(engine_.world_));
  if (full.numel() == 0) return;
  // the first micro-batch's sum is the accumulator; a later one lands in this rank's own part of the slot and is added
  const auto target = first_ ? engine_.store_->accumulator(index(op.unit)) : own_part(op);
  reduces_[index(op.grad_slot)] = collective_.reduce_scatter(
      {target.data(), static_cast<std::int64_t>(target.size()), DType::f32}, buffer_of(full));
}

Result<void> Engine::Executor::finish_reduce(const Op& op) {
  if (const auto pending = std::move(reduces_[index(op.grad_slot)])) TROUPE_TRY(pending->wait());
  if (!first_) add_to(engine_.store_->accumulator(index(op.unit)), own_part(op));
  engine_.gradients_->end_read(op.grad_slot, op.unit);
  return {};
}

}  // namespace troupe
