#pragma once

#include <cstdint>

#include "base/namespaces.h"

namespace troupe::kernels {

/// The sum over ranks of what each of them contributed, in rank order:
///     s[i] = ((parts[0][i] + parts[1][i]) + parts[2][i]) + ...
///     out[i] = add ? out[i] + s[i] : s[i]
///
/// Shapes: parts [ranks, count], dense, f32; out [count], f32, apart from `parts`. The same bits whatever moved the
/// parts and on any number of threads.
void sum_in_rank_order(float* out, const float* parts, std::int64_t ranks, std::int64_t count, bool add);

}  // namespace troupe::kernels
