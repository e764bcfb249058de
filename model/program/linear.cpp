#include "kernels/linear.h"

#include <ATen/ATen.h>

#include "kernels/dispatch.h"
#include "kernels/product.h"
#include "model/program/gradient.h"
#include "model/program/operations.h"

namespace troupe::model {
namespace {

/// Rows of the last axis.
at::Tensor as_matrix(const at::Tensor& x) { return x.view({-1, x.size(-1)}); }

/// Scratch for a product of `operand`s whose result is `out`; none where they have one dtype.
ValueId product_scratch(Graph& graph, ValueId operand, ValueId out) {
  const auto dtype = graph.value(operand).dtype;
  return graph.value(out).dtype == dtype ? kNoValue : graph.add_intermediate(graph.value(out).sizes, dtype);
}

std::int64_t rows_of(const Value& x) { return x.numel() / x.sizes.back(); }

/// The pass over a product that rounds it or adds the bias.
KernelWork pass_over(const Value& product, const Value& y) {
  return {.family = KernelFamily::elementwise,
          .is_bf16 = y.dtype == at::kBFloat16,
          .bytes = static_cast<double>(product.bytes() + y.bytes())};
}

/// out = a b, or a^T b with `transposed`, rounded to out's dtype.
class ProductOperation final : public Operation {
 public:
  ProductOperation(ValueId a, ValueId b, bool transposed, ValueId scratch, ValueId out)
      : Operation({a, b}, {scratch, out}), a_(a), b_(b), transposed_(transposed), scratch_(scratch), out_(out) {}

  void run(ValueTensors values) const override {
    const auto a = as_matrix(tensor_of(values, a_)), b = as_matrix(tensor_of(values, b_));
    const auto out = as_matrix(tensor_of(values, out_));
    const auto product = scratch_ == kNoValue ? out : as_matrix(tensor_of(values, scratch_));
    product_out(product, transposed_ ? a.t() : a, b);
    if (scratch_ != kNoValue) convert_out(out, product);
  }
  void add_work(const Graph& graph, std::vector<KernelWork>& work) const override {
    const Value &a = graph.value(a_), &b = graph.value(b_), &out = graph.value(out_);
    work.push_back({.family = transposed_ ? KernelFamily::product_tn : KernelFamily::product_nn,
                    .is_bf16 = a.dtype == at::kBFloat16,
                    .m = rows_of(out),
                    .n = out.sizes.back(),
                    .k = rows_of(b)});
    if (scratch_ != kNoValue) work.push_back(pass_over(graph.value(scratch_), out));
  }

 private:
  ValueId a_, b_;
  bool transposed_;
  ValueId scratch_, out_;
};

class SumRowsOperation final : public Operation {
 public:
  SumRowsOperation(ValueId x, ValueId sum) : Operation({x}, {sum}), x_(x), sum_(sum) {}
  void run(ValueTensors values) const override {
    sum_rows_out(tensor_of(values, sum_), as_matrix(tensor_of(values, x_)));
  }

 protected:
  KernelFamily family() const override { return KernelFamily::row_sum; }

 private:
  ValueId x_, sum_;
};

struct LinearValues {
  ValueId x, weight, bias, x_operand, weight_operand, scratch, y;
};

class LinearOperation final : public Operation {
 public:
  explicit LinearOperation(const LinearValues& v)
      : Operation({v.x_operand, v.weight_operand, v.bias}, {v.scratch, v.y}), v_(v) {}
  OperationCost cost() const override { return OperationCost::product; }

  void run(ValueTensors values) const override {
    const auto y = as_matrix(tensor_of(values, v_.y));
    const auto product = v_.scratch == kNoValue ? y : as_matrix(tensor_of(values, v_.scratch));
    product_out(product, as_matrix(tensor_of(values, v_.x_operand)), tensor_of(values, v_.weight_operand).t());
    if (v_.bias != kNoValue) {
      add_bias_out(y, product, tensor_of(values, v_.bias));
    } else if (v_.scratch != kNoValue) {
      convert_out(y, product);
    }
  }

  void add_work(const Graph& graph, std::vector<KernelWork>& work) const override {
    const Value &x = graph.value(v_.x_operand), &y = graph.value(v_.y);
    work.push_back({.family = KernelFamily::product_nt,
                    .is_bf16 = x.dtype == at::kBFloat16,
                    .m = rows_of(x),
                    .n = y.sizes.back(),
                    .k = x.sizes.back()});
    const Value& product = graph.value(v_.scratch == kNoValue ? v_.y : v_.scratch);
    if (v_.bias != kNoValue || v_.scratch != kNoValue) work.push_back(pass_over(product, y));
  }

  void differentiate(GradientBuilder& gradients) const override {
    auto& graph = gradients.graph();
    const auto dy = gradients.gradient(v_.y);
    const auto operand = graph.converted(dy, product_dtype(graph.value(v_.y).dtype));
    if (gradients.needs(v_.weight)) {
      const auto target = gradients.parameter_gradient(v_.weight), x = graph.operand(v_.x);
      record_product(gradients, operand, x, true, target);
    }
    if (gradients.needs(v_.bias)) {
      gradients.record(std::make_unique<SumRowsOperation>(dy, gradients.parameter_gradient(v_.bias)));
    }
    if (gradients.needs(v_.x)) {
      // sums over units are f32: so is what is added to them
      const bool shared = graph.value(v_.x).role == ValueRole::conditioning;
      const auto weight = graph.operand(v_.weight);
      const auto dtype = graph.value(v_.x).dtype;
      const auto dx = gradients.like(v_.x, shared ? accumulate_dtype(dtype) : dtype);
      record_product(gradients, operand, weight, false, dx);
      gradients.add(v_.x, dx);
    }
  }

 private:
  static void record_product(GradientBuilder& gradients, ValueId a, ValueId b, bool transposed, ValueId out) {
    const auto scratch = product_scratch(gradients.graph(), a, out);
    gradients.record(std::make_unique<ProductOperation>(a, b, transposed, scratch, out));
  }

  LinearValues v_;
};

}  // namespace

ValueId record_linear(Graph& graph, ValueId x, ValueId weight, ValueId bias) {
  LinearValues v{x, weight, bias, graph.operand(x), graph.operand(weight), kNoValue, kNoValue};
  auto sizes = graph.value(x).sizes;
  sizes.back() = graph.value(weight).sizes[0];
  v.y = graph.add_intermediate(sizes, graph.value(x).dtype);
  v.scratch = product_scratch(graph, v.x_operand, v.y);
  graph.add(std::make_unique<LinearOperation>(v));
  return v.y;
}

}  // namespace troupe::model
