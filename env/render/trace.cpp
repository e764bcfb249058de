#include "env/render/trace.h"

#include "base/simd.h"

namespace troupe::env {
namespace {

constexpr TraceCode kPlain{"plain", trace_plain};
#if defined(__x86_64__)
constexpr TraceCode kAvx2{"avx2", trace_avx2};
constexpr TraceCode kAvx512{"avx512", trace_avx512};
constexpr const TraceCode* kTraceCodes[] = {&kAvx512, &kAvx2, &kPlain};
#else
constexpr const TraceCode* kTraceCodes[] = {&kPlain};
#endif

}  // namespace

std::span<const TraceCode* const> trace_codes() { return runnable(kTraceCodes); }

}  // namespace troupe::env
