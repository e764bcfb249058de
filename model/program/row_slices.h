#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cstdint>

#include "kernels/threads.h"

namespace troupe::model {

/// body(slice) on the kernels' threads for every part of tensors [B, n, ...] whose samples lie dense each, such as rows
/// of dense ones; slice(x) is the part of x, one axis. Parts do not overlap.
template <class F>
void each_row_slice(std::int64_t samples, std::int64_t elements_of_sample, const F& body) {
  constexpr std::int64_t kBlock = 32768;
  const std::int64_t blocks = (elements_of_sample + kBlock - 1) / kBlock;
  parallel(samples * blocks, num_threads(), [&](std::int64_t first, std::int64_t last) {
    const at::NoGradGuard no_grad;
    for (std::int64_t i = first; i < last; ++i) {
      const std::int64_t begin = i % blocks * kBlock, count = std::min(kBlock, elements_of_sample - begin);
      body([&](const at::Tensor& x) { return x[i / blocks].view(-1).narrow(0, begin, count); });
    }
  });
}

/// to = from, and to += from: of one shape.
inline void copy_rows(const at::Tensor& to, const at::Tensor& from) {
  if (to.numel() == 0) return;
  each_row_slice(to.size(0), to.numel() / to.size(0), [&](const auto& slice) { slice(to).copy_(slice(from)); });
}
inline void add_rows(const at::Tensor& to, const at::Tensor& from) {
  if (to.numel() == 0) return;
  each_row_slice(to.size(0), to.numel() / to.size(0), [&](const auto& slice) { slice(to).add_(slice(from)); });
}
inline void clear_rows(const at::Tensor& rows) {
  if (rows.numel() == 0) return;
  each_row_slice(rows.size(0), rows.numel() / rows.size(0), [&](const auto& slice) { slice(rows).zero_(); });
}

}  // namespace troupe::model
