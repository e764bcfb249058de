#include "bench/model/tensor_memory.h"

#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <algorithm>
#include <memory>

namespace troupe::bench {
namespace {

struct PeakCounter final : c10::MemoryReportingInfoBase {
  std::int64_t now = 0;
  TensorUse use;
  bool memoryProfilingEnabled() const override { return true; }
  void reportMemoryUsage(void*, std::int64_t bytes, std::size_t, std::size_t, c10::Device) override {
    now += bytes;
    use.allocations += bytes > 0;
    use.peak_bytes = std::max(use.peak_bytes, now);
  }
};

}  // namespace

TensorUse tensor_use(const std::function<void()>& program) {
  const auto counter = std::make_shared<PeakCounter>();
  const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, counter);
  program();
  return counter->use;
}

}  // namespace troupe::bench
