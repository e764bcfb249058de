#pragma once

#include <ATen/core/grad_mode.h>

#include <cstdint>

#include "kernels/threads.h"
#include "model/policy/mlp_pass.h"

namespace troupe::model {

/// Whether threads are better busy in each layer of a pass than in networks side by side: layers of four million
/// multiply-adds, and four threads or more.
inline bool shares_layers(const MlpPass& pass) {
  constexpr std::int64_t kSharedLayer = 1 << 22;
  return kernels::num_threads() >= 4 && pass.rows() * pass.largest_layer() >= kSharedLayer;
}

/// Calls f(part) for the independent parts 0 to parts - 1, without recording a graph: at the same time where threads
/// stand by (kernels::with_own_team) and `pass`, the largest of them, does not share its layers. The first
/// exception of a part is thrown again once all have ended.
template <class F>
void side_by_side(std::int64_t parts, const MlpPass& pass, const F& f) {
  const int threads = kernels::has_team() && !shares_layers(pass) ? kernels::num_threads() : 1;
  kernels::each_part(parts, threads, [&](std::int64_t part) {
    const at::NoGradGuard no_grad;
    f(part);
  });
}

}  // namespace troupe::model
