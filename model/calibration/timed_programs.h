#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "model/calibration/kernel_times.h"
#include "model/program/unit_program.h"

namespace troupe::model {

/// A block of every operation that programs have, made up for measuring.
struct MeasuredBlock {
  std::int64_t tokens = 0, width = 0, hidden = 0, heads = 1;
};

/// An operation of a program and what it took.
struct TimedOperation {
  std::vector<KernelWork> work;
  double seconds = 0;
};

/// Runs a program forward and backward as the engine does, in planned memory, and times each operation: the median
/// of at most `runs`, fewer where they take long. What callers bind has random values. On num_threads().
/// `conditioning`: those that are defined are bound instead, by their place.
std::vector<TimedOperation> time_program(const UnitProgram& program, int runs,
                                         const std::vector<at::Tensor>& conditioning = {});
/// Of such a block, products in this process' form.
std::vector<TimedOperation> time_block(const MeasuredBlock& block, at::ScalarType dtype, int runs);

}  // namespace troupe::model
