#include "bench/model/tensor_memory.h"

#include <ATen/record_function.h>
#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <algorithm>
#include <memory>
#include <string_view>

namespace troupe::bench {
namespace {

/// Whether this thread is inside an attention of LibTorch.
thread_local bool is_in_attention = false;

/// While it lives, every thread knows whether it is.
class AttentionWatch {
 public:
  AttentionWatch() : handle_(at::addGlobalCallback(at::RecordFunctionCallback(begin, end))) {}
  ~AttentionWatch() { at::removeCallback(handle_); }
  AttentionWatch(const AttentionWatch&) = delete;
  AttentionWatch& operator=(const AttentionWatch&) = delete;

 private:
  static bool is_attention(const at::RecordFunction& call) {
    return std::string_view(call.name()).find("_flash_attention_for_cpu") != std::string_view::npos;
  }
  static std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& call) {
    if (is_attention(call)) is_in_attention = true;
    return nullptr;
  }
  static void end(const at::RecordFunction& call, at::ObserverContext*) {
    if (is_attention(call)) is_in_attention = false;
  }

  at::CallbackHandle handle_;
};

struct PeakCounter final : c10::MemoryReportingInfoBase {
  std::int64_t now = 0;
  TensorUse use;
  bool memoryProfilingEnabled() const override { return true; }
  void reportMemoryUsage(void*, std::int64_t bytes, std::size_t, std::size_t, c10::Device) override {
    now += bytes;
    (is_in_attention ? use.attention_allocations : use.allocations) += bytes > 0;
    use.peak_bytes = std::max(use.peak_bytes, now);
  }
};

}  // namespace

TensorUse tensor_use(const std::function<void()>& program) {
  const auto counter = std::make_shared<PeakCounter>();
  const AttentionWatch watch;
  const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, counter);
  program();
  return counter->use;
}

}  // namespace troupe::bench
