#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace troupe::model {

/// A low-rank update scale * B A of a matrix [out, in], in f32 (arXiv:2106.09685). Row-major.
struct LowRankUpdate {
  std::int64_t rank = 0, in = 0;
  std::vector<float> a;  ///< [rank, in]
  std::vector<float> b;  ///< [out, rank]
  double scale = 1.0;    ///< alpha / rank
};

/// Adds the update to elements [begin, begin + values.size()) of the matrix, so that a part of it can be merged alone.
/// Sums are double, rounded once; the same element gets the same bits however the matrix is cut. Thread-safe.
void add_low_rank(const LowRankUpdate& update, std::int64_t begin, std::span<float> values);

}  // namespace troupe::model
