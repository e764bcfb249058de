#pragma once

#include <span>

#include "base/namespaces.h"

namespace troupe::comm {

/// out[i] = ((in_0[i] + in_1[i]) + in_2[i]) + ..., the ranks' values in rank order, each as long as `out`: what every
/// backend reduces by, so that results do not depend on it. `out` is none of the inputs.
void sum_in_rank_order(std::span<double> out, std::span<const double* const> inputs);
/// out[i] = maximum over ranks; a NaN on any rank gives NaN.
void max_over_ranks(std::span<double> out, std::span<const double* const> inputs);

}  // namespace troupe::comm
