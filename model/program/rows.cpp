#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "kernels/dispatch.h"
#include "kernels/linear.h"
#include "kernels/row_kernels.h"
#include "kernels/threads.h"
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
  GatedResidualGradientOperation(const std::vector<RowRun>& runs, const GatedValues& v, ValueId dout, ValueId dy,
                                 ValueId dgate)
      : Operation({dout, v.y, v.gate}, {dy, dgate}), runs_(runs), v_(v), dout_(dout), dy_(dy), dgate_(dgate) {}

  void run(ValueTensors values) const override {
    const auto &y = tensor_of(values, v_.y), &gate = tensor_of(values, v_.gate);
    const auto channels = y.size(-1);
    kernels::dispatch("gated_residual", y.scalar_type(), [&]<class T>(T) {
      cpu::gated_residual_backward<T>(runs_, channels, gate.numel() / channels,
                                      kernels::data<T>(tensor_of(values, dout_)), kernels::data<T>(y),
                                      {kernels::data<T>(gate), channels}, kernels::data<T>(tensor_of(values, dy_)),
                                      kernels::data<cpu::Acc<T>>(tensor_of(values, dgate_)), num_threads());
    });
  }

 protected:
  KernelFamily family() const override { return KernelFamily::residual_gradient; }

 private:
  std::vector<RowRun> runs_;
  GatedValues v_;
  ValueId dout_, dy_, dgate_;
};

class GatedResidualOperation final : public Operation {
 public:
  GatedResidualOperation(std::vector<RowRun> runs, const GatedValues& v)
      : Operation({v.x, v.y, v.gate}, {v.out}), runs_(std::move(runs)), v_(v) {}

  void run(ValueTensors values) const override {
    const auto& x = tensor_of(values, v_.x);
    const auto channels = x.size(-1);
    kernels::dispatch("gated_residual", x.scalar_type(), [&]<class T>(T) {
      cpu::gated_residual_forward<T>(runs_, channels, kernels::data<T>(x), kernels::data<T>(tensor_of(values, v_.y)),
                                     {kernels::data<T>(tensor_of(values, v_.gate)), channels},
                                     kernels::data<T>(tensor_of(values, v_.out)), num_threads());
    });
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
  std::vector<RowRun> runs_;
  GatedValues v_;
};

/// `calls` of LibTorch, each on its share of a table.
KernelWork table_work(const Value& rows, double calls) {
  return {.family = KernelFamily::serial,
          .is_bf16 = rows.dtype == at::kBFloat16,
          .bytes = 3 * static_cast<double>(rows.bytes()) / static_cast<double>(rows.sizes[2]),
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
      if (rows_ != kNoValue && table.defined()) tensor_of(values, rows_).select(2, column).add_(table);
    }
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
      : Operation({base, rows}, tables), base_(base), rows_(rows), plus_one_(std::move(plus_one)) {}

  void run(ValueTensors values) const override {
    const at::NoGradGuard no_grad;
    for (std::size_t i = 0; i < writes().size(); ++i) {
      const auto column = static_cast<std::int64_t>(i);
      auto out = tensor_of(values, writes()[i]);
      at::add_out(out, tensor_of(values, rows_).select(2, column), tensor_of(values, base_).select(1, column));
      if (plus_one_[i]) out.add_(1.0);
    }
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
    gradients.record(std::make_unique<ModulationGradientOperation>(tables, base, gradients.conditioning_sum(rows_)));
  }

 private:
  ValueId base_, rows_;
  std::vector<bool> plus_one_;
};

/// Copies the ranges of `from` [B, N, d] one after the other into `to` [B, T, d], or back.
class TakeRowsOperation final : public Operation {
 public:
  TakeRowsOperation(std::vector<Range> ranges, ValueId all, ValueId taken, bool back)
      : Operation({back ? taken : all}, {back ? all : taken}),
        ranges_(std::move(ranges)),
        all_(all),
        taken_(taken),
        back_(back) {}

  void run(ValueTensors values) const override {
    const at::NoGradGuard no_grad;
    const auto &all = tensor_of(values, all_), &taken = tensor_of(values, taken_);
    // rows that were not taken have no gradient
    if (back_) all.zero_();
    std::int64_t row = 0;
    for (const auto& range : ranges_) {
      const auto count = range.end - range.begin;
      const auto there = all.narrow(1, range.begin, count), here = taken.narrow(1, row, count);
      if (back_)
        there.copy_(here);
      else
        here.copy_(there);
      row += count;
    }
  }

  void add_work(const Graph& graph, std::vector<KernelWork>& work) const override {
    const Value &all = graph.value(all_), &taken = graph.value(taken_);
    const auto ranges = static_cast<double>(ranges_.size());
    const bool is_bf16 = all.dtype == at::kBFloat16;
    work.push_back({.family = KernelFamily::serial,
                    .is_bf16 = is_bf16,
                    .bytes = 2 * static_cast<double>(taken.bytes()) / ranges,
                    .calls = ranges});
    if (back_)
      work.push_back({.family = KernelFamily::serial, .is_bf16 = is_bf16, .bytes = static_cast<double>(all.bytes())});
  }

  void differentiate(GradientBuilder& gradients) const override {
    const auto taken = gradients.rounded_gradient(taken_);
    const auto all = gradients.like(all_, gradients.graph().value(all_).dtype);
    gradients.record(std::make_unique<TakeRowsOperation>(ranges_, all, taken, true));
    gradients.add(all_, all);
  }

 private:
  std::vector<Range> ranges_;
  ValueId all_, taken_;
  bool back_;
};

}  // namespace

std::vector<RowRun> table_runs(const std::vector<std::int64_t>& x, const std::vector<std::int64_t>& table,
                               const at::Tensor& table_row) {
  const bool one_row = table.size() == 1;
  return row_runs(x[0], x[1], table_row.defined() ? kernels::data<std::int32_t>(table_row) : nullptr,
                  one_row ? 1 : table[1], !one_row && table[0] > 1);
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
  graph.add(std::make_unique<GatedResidualOperation>(table_runs(sizes, graph.value(gate).sizes, table_row), v));
  return v.out;
}

std::vector<ValueId> record_modulation(Graph& graph, ValueId base, ValueId rows, const std::vector<bool>& plus_one) {
  const auto sizes = graph.value(rows).sizes;
  std::vector<ValueId> tables;
  for (std::size_t i = 0; i < plus_one.size(); ++i) {
    tables.push_back(graph.add_intermediate({sizes[0], sizes[1], sizes[3]}, graph.value(rows).dtype));
  }
  graph.add(std::make_unique<ModulationOperation>(base, rows, tables, plus_one));
  return tables;
}

ValueId record_take_rows(Graph& graph, ValueId x, const std::vector<Range>& ranges) {
  auto sizes = graph.value(x).sizes;
  sizes[1] = 0;
  for (const auto& range : ranges) sizes[1] += range.end - range.begin;
  const auto taken = graph.add_intermediate(sizes, graph.value(x).dtype);
  graph.add(std::make_unique<TakeRowsOperation>(ranges, x, taken, false));
  return taken;
}

}  // namespace troupe::model
