#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cstdint>

#include "kernels/threads.h"

namespace troupe::model {

// Elementwise operators of LibTorch on all threads. Where threads meet depends on the shape alone, so that their number
// changes no bit.

/// Elements that are not worth sharing.
inline constexpr std::int64_t kSliceBlock = 4096;

/// body(slice) over [0, n) on num_threads() threads, where slice(x) is one thread's part of a dense x of n elements.
template <class F>
void each_slice(std::int64_t n, const F& body) {
  parallel_blocks(n, kSliceBlock, num_threads(), [&](std::int64_t begin, std::int64_t end) {
    const at::NoGradGuard no_grad;
    body([&](const at::Tensor& x) { return x.view(-1).narrow(0, begin, end - begin); });
  });
}

/// body(slice) where slice(x) is one thread's rows of one sample of x [B, n, ...], for all samples and rows. Rows may
/// lie apart: those of columns do.
template <class F>
void each_row_slice(const at::Tensor& like, const F& body) {
  if (like.numel() == 0) return;
  const std::int64_t rows = like.size(1), block = std::max<std::int64_t>(1, kSliceBlock * rows / like[0].numel());
  for (std::int64_t b = 0; b < like.size(0); ++b) {
    parallel_blocks(rows, block, num_threads(), [&](std::int64_t begin, std::int64_t end) {
      const at::NoGradGuard no_grad;
      body([&](const at::Tensor& x) { return x[b].narrow(0, begin, end - begin); });
    });
  }
}

/// to = from, to += from, and rows = 0, of such tensors.
inline void copy_rows(const at::Tensor& to, const at::Tensor& from) {
  each_row_slice(to, [&](const auto& slice) { slice(to).copy_(slice(from)); });
}
inline void add_rows(const at::Tensor& to, const at::Tensor& from) {
  each_row_slice(to, [&](const auto& slice) { slice(to).add_(slice(from)); });
}
inline void clear_rows(const at::Tensor& rows) {
  each_row_slice(rows, [&](const auto& slice) { slice(rows).zero_(); });
}

}  // namespace troupe::model
