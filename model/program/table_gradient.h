#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "kernels/device_runs.h"
#include "model/program/gradient.h"
#include "model/program/graph.h"

namespace troupe::model {

// What the operations that read a row of a small table for each token share. A table is [B, R, d], or a parameter [d]
// that serves all rows.

/// Runs of rows that read one row of a table (kernels/row_runs.h), and for a device the same as constants of the graph.
struct TableRuns {
  std::vector<RowRun> runs;
  /// what kernels::DeviceRuns names
  ValueId sorted = kNoValue, first = kNoValue;

  kernels::DeviceRuns on_device(ValueTensors values) const;
};

/// Of the rows of x [B, N, d]; table [B, R, d] or [d]; table_row: i32 [N], or undefined.
TableRuns table_runs(Graph& graph, const std::vector<std::int64_t>& x, const std::vector<std::int64_t>& table,
                     const at::Tensor& table_row);

/// Where to write the gradient of a table, f32 (f64 for f64), and, once that is recorded, its use.
ValueId begin_table_gradient(GradientBuilder& gradients, ValueId table);
void end_table_gradient(GradientBuilder& gradients, ValueId table, ValueId gradient);

}  // namespace troupe::model
