#include "comm/collective/combine.h"

#include <algorithm>
#include <cmath>

namespace troupe::comm {

void sum_in_rank_order(std::span<double> out, std::span<const double* const> inputs) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = inputs[0][i];
    for (const double* next : inputs.subspan(1)) out[i] += next[i];
  }
}

void max_over_ranks(std::span<double> out, std::span<const double* const> inputs) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = inputs[0][i];
    for (const double* next : inputs.subspan(1)) {
      if (std::isnan(next[i]) || next[i] > out[i]) out[i] = next[i];
    }
  }
}

}  // namespace troupe::comm
