#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cstdint>

#include "kernels/threads.h"

namespace troupe::model {

// Elementwise operators of LibTorch on all threads. Where threads meet depends on the number of elements alone, at
// multiples of a vector, so that the number of threads changes no bit.

/// body(slice) over [0, n) on num_threads() threads, where slice(x) is one thread's part of a dense x of n elements.
template <class F>
void each_slice(std::int64_t n, const F& body) {
  constexpr std::int64_t kBlock = 4096;
  parallel_blocks(n, kBlock, num_threads(), [&](std::int64_t begin, std::int64_t end) {
    const at::NoGradGuard no_grad;
    body([&](const at::Tensor& x) { return x.view(-1).narrow(0, begin, end - begin); });
  });
}

/// each_slice for one sample after the other of tensors [B, n, ...] of these sizes, each of whose samples is dense:
/// rows of dense tensors.
template <class F>
void each_row_slice(const at::Tensor& like, const F& body) {
  for (std::int64_t b = 0; b < like.size(0); ++b) {
    each_slice(like.numel() / like.size(0),
               [&](const auto& slice) { body([&](const at::Tensor& x) { return slice(x[b]); }); });
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
