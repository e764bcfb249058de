#include <algorithm>

#include "kernels/rank_sum.h"
#include "kernels/threads.h"

namespace troupe::kernels {

void sum_in_rank_order(float* out, const float* parts, std::int64_t ranks, std::int64_t count, bool add) {
  // partial sums stay in the first-level cache
  constexpr std::int64_t kBlock = 2048;
  parallel_blocks(count, kBlock, threads_for(count * ranks), [&](std::int64_t first, std::int64_t last) {
    float sum[kBlock];
    for (std::int64_t begin = first; begin < last; begin += kBlock) {
      const std::int64_t n = std::min(kBlock, last - begin);
      std::copy_n(parts + begin, n, sum);
      for (std::int64_t r = 1; r < ranks; ++r) {
        const float* next = parts + r * count + begin;
        for (std::int64_t i = 0; i < n; ++i) sum[i] += next[i];
      }
      float* const result = out + begin;
      if (!add) {
        std::copy_n(sum, n, result);
        continue;
      }
      for (std::int64_t i = 0; i < n; ++i) result[i] += sum[i];
    }
  });
}

}  // namespace troupe::kernels
