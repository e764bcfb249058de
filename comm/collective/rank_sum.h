#pragma once

#include <span>

#include "comm/collective/collective.h"

namespace troupe::comm {

/// out[i] = ((in_0[i] + in_1[i]) + in_2[i]) + ...: the one sum that every backend uses, so that results do not depend
/// on it. f32 and bf16 are added in f32 (bf16 is rounded once, to nearest even), f64 in f64, integers with wrap-around.
/// `out` may be one of the inputs exactly; a partial overlap is not allowed. Needs at least one input.
void sum_in_rank_order(DType dtype, void* out, std::span<const void* const> inputs, std::int64_t count);

/// out[i] = max over ranks; a NaN on any rank gives NaN.
/// bf16 is compared in f32. `out` may be one of the inputs exactly.
void max_in_rank_order(DType dtype, void* out, std::span<const void* const> inputs, std::int64_t count);

/// Nearest bf16 with ties to even; NaN stays NaN. And back, exactly.
std::uint16_t to_bf16(float value) noexcept;
float from_bf16(std::uint16_t bits) noexcept;

}  // namespace troupe::comm
