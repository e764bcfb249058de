#include "workers/pipeline/device_timing.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"

namespace troupe::workers {
namespace {

double seconds_of(double work, double rate, const char* what) {
  if (work == 0) return 0;
  TROUPE_CHECK(rate > 0, fmt::format("a step with {} needs a rate for it", what));
  return work / rate;
}

OpSeconds operator+(const OpSeconds& a, const OpSeconds& b) {
  return {.launch = a.launch + b.launch,
          .products = a.products + b.products,
          .attention = a.attention + b.attention,
          .moving = a.moving + b.moving,
          .sending = a.sending + b.sending,
          .offloading = a.offloading + b.offloading};
}

}  // namespace

OpSeconds seconds_of_program(std::span<const KernelWork> kernels, bool graphs, const DeviceRates& rates) {
  OpSeconds seconds;
  double count = 0;
  for (const KernelWork& work : kernels) {
    // what the host prepares of a micro-batch
    if (work.family == KernelFamily::serial && work.bytes == 0) continue;
    count += work.calls;
    if (is_product(work.family))
      seconds.products += seconds_of(work.product_flops(), rates.products, "products");
    else if (is_attention(work.family))
      seconds.attention += seconds_of(work.product_flops(), rates.attention, "attention");
    else
      seconds.moving += seconds_of(work.calls * work.bytes, rates.memory, "bytes to move");
  }
  const double gaps = count * rates.kernel_gap;
  seconds.launch = graphs ? rates.graph_launch + gaps
                          : std::max(gaps, count * rates.kernel_launch - (seconds.sum() - seconds.launch));
  return seconds;
}

OpSeconds seconds_on_device(const Op& op, const ArenaPlan& plan, const DeviceStep& step, const DeviceRates& rates) {
  const auto pass = [&](std::span<const KernelWork> kernels) {
    return seconds_of_program(kernels, step.graphs, rates);
  };
  const auto collective = [&](int ranks) {
    return OpSeconds{.launch = ranks > 1 ? rates.collective + (ranks - 1) * rates.hop : 0,
                     .sending = seconds_of(op.work.sent_bytes, rates.link, "bytes to send")};
  };
  const StepShape& shape = plan.shape();
  switch (op.kind) {
    case OpKind::forward:
      return pass(step.units.at(static_cast<std::size_t>(op.unit)).forward);
    case OpKind::backward:
      return pass(step.units.at(static_cast<std::size_t>(op.unit)).backward);
    case OpKind::network: {
      OpSeconds sum;
      for (const UnitKernels& unit : step.units) sum = sum + pass(unit.forward) + pass(unit.backward);
      return sum;
    }
    case OpKind::gather:
    case OpKind::exchange:
    case OpKind::reduce_scatter:
      return collective(shape.world);
    case OpKind::replicate:
      return collective(shape.replicas);
    case OpKind::agree:
      // one gather of a few numbers, behind the losses' kernel
      return collective(shape.world * shape.replicas) + OpSeconds{.launch = rates.kernel_launch};
    case OpKind::stash_out:
    case OpKind::stash_in:
    case OpKind::fetch:
    case OpKind::store:
      return {.launch = rates.kernel_launch,
              .offloading = seconds_of(op.work.offloaded_bytes, rates.offload, "offloaded bytes")};
    case OpKind::snapshot:
    case OpKind::publish:
      return {.launch = rates.kernel_launch,
              .offloading = seconds_of(op.work.moved_bytes, rates.offload, "bytes to the host")};
    case OpKind::input:
    case OpKind::sum:
    case OpKind::add:
    case OpKind::square:
    case OpKind::clip:
    case OpKind::curvature:
    case OpKind::update:
    case OpKind::average:
      return {.launch = rates.kernel_launch, .moving = seconds_of(op.work.moved_bytes, rates.memory, "bytes to move")};
  }
  return {};
}

}  // namespace troupe::workers
