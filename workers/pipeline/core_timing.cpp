#include "workers/pipeline/core_timing.h"

#include <span>

namespace troupe::workers {
namespace {

constexpr std::int64_t kF32 = 4;

/// Adds up kernels of one operation.
class Sum {
 public:
  Sum(const CoreStep& step, const CoreRates& rates) : step_(step), rates_(rates) {}

  Sum& add(const KernelWork& work) {
    const double seconds = seconds_of(work, rates_, step_.threads);
    (is_product(work.family)     ? seconds_.products
     : is_attention(work.family) ? seconds_.attention
     : is_transfer(work.family)  ? seconds_.sending
                                 : seconds_.moving) += seconds;
    return *this;
  }
  Sum& add(std::span<const KernelWork> all) {
    for (const KernelWork& work : all) add(work);
    return *this;
  }
  OpSeconds take() const { return seconds_; }

 private:
  const CoreStep& step_;
  const CoreRates& rates_;
  OpSeconds seconds_;
};

/// One pass of an optimizer over elements of which it reads and writes so many bytes each.
KernelWork optimizer_work(std::int64_t elements, std::int64_t bytes_each) {
  return {.family = KernelFamily::adamw, .bytes = static_cast<double>(elements * bytes_each)};
}

/// Masters as they are gathered, where that is bf16.
KernelWork refresh_work(std::int64_t elements) {
  return {.family = KernelFamily::elementwise, .is_bf16 = true, .bytes = 6.0 * static_cast<double>(elements)};
}

}  // namespace

OpSeconds seconds_on_cores(const Op& op, const ArenaPlan& plan, const CoreStep& step, const CoreRates& rates) {
  const StepShape& shape = plan.shape();
  const auto elements = [&] { return plan.elements(op.unit); };
  Sum sum(step, rates);
  switch (op.kind) {
    case OpKind::input:
      return sum.add({.family = KernelFamily::serial}).take();
    case OpKind::gather:
    case OpKind::exchange:
    case OpKind::reduce_scatter:
    case OpKind::replicate:
      return sum.add({.family = step.transfer, .bytes = op.work.sent_bytes}).take();
    case OpKind::forward:
      return sum.add(step.units.at(static_cast<std::size_t>(op.unit)).forward).take();
    case OpKind::backward:
      return sum.add(step.units.at(static_cast<std::size_t>(op.unit)).backward).take();
    case OpKind::network:
      for (const UnitKernels& unit : step.units) sum.add(unit.forward).add(unit.backward);
      return sum.take();
    case OpKind::sum:
      return sum.add(rank_sum_work(op.parts, elements(), op.adds)).take();
    case OpKind::add:
      return sum.add(rank_sum_work(1, op.accesses.front().range.bytes / kF32, /*adds=*/true)).take();
    case OpKind::square:
      return sum.add(squares_work(elements())).take();
    case OpKind::agree:
      // two all-reduces of a few numbers
      return sum.add({.family = step.transfer, .calls = shape.is_alone() ? 0.0 : 2.0})
          .add({.family = KernelFamily::serial})
          .take();
    case OpKind::stash_out:
    case OpKind::stash_in:
    case OpKind::fetch:
    case OpKind::store:
      // read and written
      return sum.add({.family = KernelFamily::serial, .bytes = 2 * op.work.offloaded_bytes}).take();
    case OpKind::curvature:
      // reads the gradient and moves the estimate
      return sum.add(optimizer_work(elements(), kF32 + 2 * shape.moment_bytes)).take();
    case OpKind::clip:
      return sum.add({.family = KernelFamily::serial}).take();
    case OpKind::update:
      // reads parameter, both moments and gradient, writes all but the gradient; with an average, that too
      sum.add(optimizer_work(elements(), 3 * kF32 + 4 * shape.moment_bytes + (shape.keeps_average ? 2 * kF32 : 0)));
      if (shape.param_bytes != kF32) sum.add(refresh_work(elements()));
      return sum.take();
    case OpKind::average:
      sum.add({.family = KernelFamily::elementwise, .bytes = 3.0 * kF32 * static_cast<double>(elements())});
      if (shape.param_bytes != kF32) sum.add(refresh_work(elements()));
      return sum.take();
    case OpKind::snapshot:
    case OpKind::publish:
      return sum.add({.family = KernelFamily::serial, .bytes = op.work.moved_bytes}).take();
  }
  return {};
}

}  // namespace troupe::workers
