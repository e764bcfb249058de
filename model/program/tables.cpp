#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "kernels/dispatch.h"
#include "kernels/linear.h"
#include "kernels/row_kernels.h"
#include "kernels/threads.h"
#include "model/program/device_pass.h"
#include "model/program/gradient.h"
#include "model/program/operations.h"
#include "model/program/table_gradient.h"

namespace troupe::model {
namespace {

struct GatedValues {
  ValueId x, y, gate, out;
};

class GatedResidualGradientOperation final : public Operation {
 public:
  GatedResidualGradientOperation(const TableRuns& runs, const GatedValues& v, ValueId dout, ValueId dy, ValueId dgate)
      : Operation({dout, v.y, v.gate}, {dy, dgate}), runs_(runs), v_(v), dout_(dout), dy_(dy), dgate_(dgate) {}

  void run(ValueTensors values) const override {
    const auto &y = tensor_of(values, v_.y), &gate = tensor_of(values, v_.gate);
    const auto channels = y.size(-1);
    kernels::dispatch("gated_residual", y.scalar_type(), [&]<class T>(T) {
      cpu::gated_residual_backward<T>(runs_.runs, channels, gate.numel() / channels,
                                      kernels::data<T>(tensor_of(values, dout_)), kernels::data<T>(y),
                                      {kernels::data<T>(gate), channels}, kernels::data<T>(tensor_of(values, dy_)),
                                      kernels::data<cpu::Acc<T>>(tensor_of(values, dgate_)), num_threads());
    });
  }
  Result<void> launch(ValueTensors values, const DeviceCompute& on) const override {
    const auto& y = tensor_of(values, v_.y);
    return on.kernels.gated_residual_gradient({.type = element_type(y),
                                               .runs = runs_.on_device(values),
                                               .channels = y.size(-1),
                                               .dout = tensor_of(values, dout_).const_data_ptr(),
                                               .y = y.const_data_ptr(),
                                               .gate = device_table(tensor_of(values, v_.gate)),
                                               .dy = tensor_of(values, dy_).data_ptr(),
                                               .dgate = floats_of(tensor_of(values, dgate_))},
                                              on.stream);
  }

 protected:
  KernelFamily family() const override { return KernelFamily::residual_gradient; }

 private:
  TableRuns runs_;
  GatedValues v_;
  ValueId dout_, dy_, dgate_;
};

class GatedResidualOperation final : public Operation {
 public:
  GatedResidualOperation(TableRuns runs, const GatedValues& v)
      : Operation({v.x, v.y, v.gate}, {v.out}), runs_(std::move(runs)), v_(v) {}

  void run(ValueTensors values) const override {
    const auto& x = tensor_of(values, v_.x);
    const auto channels = x.size(-1);
    kernels::dispatch("gated_residual", x.scalar_type(), [&]<class T>(T) {
      cpu::gated_residual_forward<T>(runs_.runs, channels, kernels::data<T>(x),
                                     kernels::data<T>(tensor_of(values, v_.y)),
                                     {kernels::data<T>(tensor_of(values, v_.gate)), channels},
                                     kernels::data<T>(tensor_of(values, v_.out)), num_threads());
    });
  }
  Result<void> launch(ValueTensors values, const DeviceCompute& on) const override {
    const auto& x = tensor_of(values, v_.x);
    return on.kernels.gated_residual({.type = element_type(x),
                                      .runs = runs_.on_device(values),
                                      .channels = x.size(-1),
                                      .x = x.const_data_ptr(),
                                      .y = tensor_of(values, v_.y).const_data_ptr(),
                                      .gate = device_table(tensor_of(values, v_.gate)),
                                      .out = tensor_of(values, v_.out).data_ptr()},
                                     on.stream);
  }

  void differentiate(GradientBuilder& gradients) const override {
    const auto dout = gradients.rounded_gradient(v_.out);
    const auto dy = gradients.like(v_.y, gradients.graph().value(v_.y).dtype);
    const auto dgate = begin_table_gradient(gradients, v_.gate);
    gradients.record(std::make_unique<GatedResidualGradientOperation>(runs_, v_, dout, dy, dgate));
    gradients.add(v_.x, dout);
    gradients.add(v_.y, dy);
    end_table_gradient(gradients, v_.gate, dgate);
  }

 protected:
  KernelFamily family() const override { return KernelFamily::residual; }

 private:
  TableRuns runs_;
  GatedValues v_;
};

/// rows[:, :, i] of a table for each modulation, or the one table of all.
at::Tensor table_of(const at::Tensor& rows, std::int64_t i) { return rows.dim() == 4 ? rows.select(2, i) : rows; }

/// `calls` of LibTorch, each on its share of a table.
KernelWork table_work(const Value& rows, double calls) {
  const double tables = rows.sizes.size() == 4 ? static_cast<double>(rows.sizes[2]) : 1;
  return {.family = KernelFamily::serial,
          .is_bf16 = rows.dtype == at::kBFloat16,
          .bytes = 3 * static_cast<double>(rows.bytes()) / tables,
          .calls = calls};
}

class ModulationGradientOperation final : public Operation {
 public:
  /// `tables`: gradients [B, R, d] or kNoValue; `base` and `rows`: where to write and to add, or kNoValue
  ModulationGradientOperation(std::vector<ValueId> tables, ValueId base, ValueId rows)
      : Operation(reads_of(tables, rows), {base, rows}), tables_(std::move(tables)), base_(base), rows_(rows) {}

  void run(ValueTensors values) const override {
    const at::NoGradGuard no_grad;
    for (std::size_t i = 0; i < tables_.size(); ++i) {
      const auto column = static_cast<std::int64_t>(i);
      const at::Tensor table = tables_[i] == kNoValue ? at::Tensor() : tensor_of(values, tables_[i]);
      if (base_ != kNoValue) {
        const auto sum = tensor_of(values, base_).select(1, column).view(-1);
        if (table.defined())
          sum_rows_out(sum, table.view({-1, table.size(-1)}));
        else
          sum.zero_();
      }
      if (rows_ != kNoValue && table.defined()) table_of(tensor_of(values, rows_), column).add_(table);
    }
  }
  Result<void> launch(ValueTensors values, const DeviceCompute& on) const override {
    for (std::size_t i = 0; i < tables_.size(); ++i) {
      const auto column = static_cast<std::int64_t>(i);
      kernels::DeviceModulationGradient gradient;
      if (tables_[i] != kNoValue) {
        const auto& table = tensor_of(values, tables_[i]);
        gradient.d_table = floats_of(table);
        gradient.table_rows = table.numel() / table.size(-1), gradient.channels = table.size(-1);
      }
      if (base_ != kNoValue) {
        const auto sum = tensor_of(values, base_).select(1, column);
        gradient.d_base = floats_of(sum), gradient.channels = sum.size(-1);
      }
      if (rows_ != kNoValue) {
        const auto rows = table_of(tensor_of(values, rows_), column);
        gradient.d_rows = floats_of(rows), gradient.d_rows_stride = rows.stride(1);
      }
      TROUPE_TRY(on.kernels.modulation_gradient(gradient, on.stream));
    }
    return {};
  }

  void add_work(const Graph& graph, std::vector<KernelWork>& work) const override {
    if (rows_ != kNoValue) work.push_back(table_work(graph.value(rows_), 2 * static_cast<double>(tables_.size())));
  }

 private:
  static std::vector<ValueId> reads_of(std::vector<ValueId> tables, ValueId rows) {
    tables.push_back(rows);
    return tables;
  }

  std::vector<ValueId> tables_;
  ValueId base_, rows_;
};

class ModulationOperation final : public Operation {
 public:
  ModulationOperation(ValueId base, ValueId rows, std::vector<ValueId> tables, std::vector<bool> plus_one)
      : Operation({base, rows}, std::move(tables)), base_(base), rows_(rows), plus_one_(std::move(plus_one)) {}

  void run(ValueTensors values) const override {
    const at::NoGradGuard no_grad;
    for (std::size_t i = 0; i < writes().size(); ++i) {
      const auto column = static_cast<std::int64_t>(i);
      auto out = tensor_of(values, writes()[i]);
      at::add_out(out, table_of(tensor_of(values, rows_), column), tensor_of(values, base_).select(1, column));
      if (plus_one_[i]) out.add_(1.0);
    }
  }
  Result<void> launch(ValueTensors values, const DeviceCompute& on) const override {
    for (std::size_t i = 0; i < writes().size(); ++i) {
      const auto column = static_cast<std::int64_t>(i);
      const auto rows = table_of(tensor_of(values, rows_), column);
      TROUPE_TRY(on.kernels.modulation({.type = element_type(rows),
                                        .table_rows = rows.numel() / rows.size(-1),
                                        .channels = rows.size(-1),
                                        .base = tensor_of(values, base_).select(1, column).const_data_ptr(),
                                        .rows = rows.const_data_ptr(),
                                        .row_stride = rows.stride(1),
                                        .plus_one = plus_one_[i],
                                        .out = tensor_of(values, writes()[i]).data_ptr()},
                                       on.stream));
    }
    return {};
  }
  void add_work(const Graph& graph, std::vector<KernelWork>& work) const override {
    work.push_back(table_work(graph.value(rows_), static_cast<double>(plus_one_.size())));
  }

  void differentiate(GradientBuilder& gradients) const override {
    auto& graph = gradients.graph();
    const auto dtype = accumulate_dtype(graph.value(rows_).dtype);
    std::vector<ValueId> tables;
    for (const auto id : writes()) {
      const auto gradient = gradients.gradient(id);
      tables.push_back(gradient == kNoValue ? kNoValue : graph.converted(gradient, dtype));
    }
    const auto base = gradients.needs(base_) ? gradients.parameter_gradient(base_) : kNoValue;
    const auto rows = gradients.needs(rows_) ? gradients.conditioning_sum(rows_) : kNoValue;
    if (base != kNoValue || rows != kNoValue)
      gradients.record(std::make_unique<ModulationGradientOperation>(tables, base, rows));
  }

 private:
  ValueId base_, rows_;
  std::vector<bool> plus_one_;
};

}  // namespace

kernels::DeviceRuns TableRuns::on_device(ValueTensors values) const {
  const auto& table_rows = tensor_of(values, first);
  return {array_of<kernels::DeviceRun>(tensor_of(values, sorted)), static_cast<std::int64_t>(runs.size()),
          array_of<std::int32_t>(table_rows), table_rows.size(0) - 1};
}

TableRuns table_runs(Graph& graph, const std::vector<std::int64_t>& x, const std::vector<std::int64_t>& table,
                     const at::Tensor& table_row) {
  const bool one_row = table.size() == 1;
  TableRuns made;
  made.runs = row_runs(x[0], x[1], table_row.defined() ? kernels::data<std::int32_t>(table_row) : nullptr,
                       one_row ? 1 : table[1], !one_row && table[0] > 1);
  const auto sorted = kernels::sort_runs(made.runs, one_row ? 1 : table[0] * table[1]);
  made.sorted = graph.add_constant(words_of(sorted.runs));
  made.first = graph.add_constant(words_of(sorted.first));
  return made;
}

ValueId begin_table_gradient(GradientBuilder& gradients, ValueId table) {
  const auto& value = gradients.graph().value(table);
  if (value.role == ValueRole::parameter) return gradients.parameter_gradient(table);
  return gradients.like(table, accumulate_dtype(value.dtype));
}

void end_table_gradient(GradientBuilder& gradients, ValueId table, ValueId gradient) {
  if (gradients.graph().value(table).role != ValueRole::parameter) gradients.add(table, gradient);
}

ValueId record_gated_residual(Graph& graph, ValueId x, ValueId y, ValueId gate, const at::Tensor& table_row) {
  const auto sizes = graph.value(x).sizes;
  const GatedValues v{x, y, gate, graph.add_intermediate(sizes, graph.value(x).dtype)};
  graph.add(std::make_unique<GatedResidualOperation>(table_runs(graph, sizes, graph.value(gate).sizes, table_row), v));
  return v.out;
}

std::vector<ValueId> record_modulation(Graph& graph, ValueId base, ValueId rows, const std::vector<bool>& plus_one) {
  const auto sizes = graph.value(rows).sizes;
  std::vector<ValueId> tables;
  for (std::size_t i = 0; i < plus_one.size(); ++i) {
    tables.push_back(graph.add_intermediate({sizes[0], sizes[1], sizes.back()}, graph.value(rows).dtype));
  }
  graph.add(std::make_unique<ModulationOperation>(base, rows, tables, plus_one));
  return tables;
}

}  // namespace troupe::model
