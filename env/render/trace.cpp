#include "env/render/trace.h"

#include <vector>

namespace troupe::env {
namespace {

constexpr TraceCode kPlain{"plain", trace_plain};
#if defined(__x86_64__)
constexpr TraceCode kAvx2{"avx2", trace_avx2};
constexpr TraceCode kAvx512{"avx512", trace_avx512};
#endif

std::vector<const TraceCode*> find_trace_codes() {
  std::vector<const TraceCode*> found;
#if defined(__x86_64__)
  const bool has_avx2 = __builtin_cpu_supports("avx2") != 0;
  if (has_avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) {
    found.push_back(&kAvx512);
  }
  if (has_avx2) found.push_back(&kAvx2);
#endif
  found.push_back(&kPlain);
  return found;
}

}  // namespace

std::span<const TraceCode* const> trace_codes() {
  static const std::vector<const TraceCode*> found = find_trace_codes();
  return found;
}

}  // namespace troupe::env
