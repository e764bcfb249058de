#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace troupe::model {

/// The text features of a micro-batch, each prompt once.
struct TextRows {
  at::Tensor rows_1TC;
  /// i64, on the CPU: the rows [begin, end) of each sample, and how many equal rows the last of them stands for, as
  /// attention takes them (kernels/attention.h).
  at::Tensor of_sample_B3;
};

/// Text features [B, L, C] without what would be computed twice: samples whose features are equal share their rows,
/// and with `collapse_pads` the n rows of zeros that end a prompt become one that stands for n. Whatever is made of
/// each row by itself, and attention over the rows, is the same but for rounding.
///
/// T is the sum of the prompts' rows. With `collapse_pads` it is rounded up to a multiple of kTextRowStep, at most B L,
/// with rows of zeros that no sample sees, so that micro-batches have few shapes.
/// Features that are not on the CPU are taken as they are: to look at them would stall the stream.
/// Errors: throws c10::Error unless context has three axes and at least one row.
TextRows distinct_text_rows(const at::Tensor& context_BLC, bool collapse_pads);

inline constexpr std::int64_t kTextRowStep = 64;

}  // namespace troupe::model
