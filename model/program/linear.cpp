#include "kernels/linear.h"

#include <ATen/ATen.h>

#include <array>

#include "kernels/dispatch.h"
#include "kernels/product.h"
#include "model/program/device_pass.h"
#include "model/program/gradient.h"
#include "model/program/operations.h"

namespace troupe::model {
namespace {

/// Rows of the last axis.
at::Tensor as_matrix(const at::Tensor& x) { return x.view({-1, x.size(-1)}); }

/// A value, read as a matrix.
struct Matrix {
  ValueId id = kNoValue;
  std::array<std::int64_t, 2> sizes = {};
  at::Tensor of(ValueTensors values) const { return tensor_of(values, id).view(sizes); }
};

Matrix rows_matrix(const Graph& graph, ValueId id) {
  const Value& value = graph.value(id);
  return {id, {value.numel() / value.sizes.back(), value.sizes.back()}};
}

/// Of a weight or its gradient.
Matrix weight_matrix(const Graph& graph, ValueId id, LinearLayout layout) {
  const Value& value = graph.value(id);
  const auto edge = layout == LinearLayout::out_in ? value.sizes.front() : value.numel() / value.sizes.back();
  return {id, {edge, value.numel() / edge}};
}

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

kernels::ProductLayout layout_of(KernelFamily form) {
  return form == KernelFamily::product_nt   ? kernels::ProductLayout::nt
         : form == KernelFamily::product_tn ? kernels::ProductLayout::tn
                                            : kernels::ProductLayout::nn;
}

/// out = a b, a b^T or a^T b, as `form` says, rounded to out's dtype.
class ProductOperation final : public Operation {
 public:
  ProductOperation(const Matrix& a, const Matrix& b, KernelFamily form, ValueId scratch, const Matrix& out)
      : Operation({a.id, b.id}, {scratch, out.id}),
        a_(a),
        b_(b),
        form_(form),
        scratch_{scratch, out.sizes},
        out_(out) {}

  void run(ValueTensors values) const override {
    const auto a = a_.of(values), b = b_.of(values), out = out_.of(values);
    const auto product = scratch_.id == kNoValue ? out : scratch_.of(values);
    product_out(product, form_ == KernelFamily::product_tn ? a.t() : a, form_ == KernelFamily::product_nt ? b.t() : b);
    if (scratch_.id != kNoValue) convert_out(out, product);
  }
  Result<void> launch(ValueTensors values, const DeviceCompute& on) const override {
    const auto &a = tensor_of(values, a_.id), &out = tensor_of(values, out_.id);
    return on.kernels.product({.layout = layout_of(form_),
                               .m = out_.sizes[0],
                               .n = out_.sizes[1],
                               .k = a_.sizes[form_ == KernelFamily::product_tn ? 0 : 1],
                               .operand_type = element_type(a),
                               .out_type = element_type(out),
                               .a = a.const_data_ptr(),
                               .b = tensor_of(values, b_.id).const_data_ptr(),
                               .out = out.data_ptr()},
                              on.stream);
  }
  void add_work(const Graph& graph, std::vector<KernelWork>& work) const override {
    const Value& out = graph.value(out_.id);
    work.push_back({.family = form_,
                    .is_bf16 = graph.value(a_.id).dtype == at::kBFloat16,
                    .m = out_.sizes[0],
                    .n = out_.sizes[1],
                    .k = b_.sizes[form_ == KernelFamily::product_nt ? 1 : 0]});
    if (scratch_.id != kNoValue) work.push_back(pass_over(graph.value(scratch_.id), out));
  }

 private:
  Matrix a_, b_;
  KernelFamily form_;
  Matrix scratch_, out_;
};

class SumRowsOperation final : public Operation {
 public:
  SumRowsOperation(ValueId x, ValueId sum) : Operation({x}, {sum}), x_(x), sum_(sum) {}
  void run(ValueTensors values) const override {
    sum_rows_out(tensor_of(values, sum_).view(-1), as_matrix(tensor_of(values, x_)));
  }
  Result<void> launch(ValueTensors values, const DeviceCompute& on) const override {
    const auto& x = tensor_of(values, x_);
    return on.kernels.row_sum(element_type(x), x.numel() / x.size(-1), x.size(-1), x.const_data_ptr(),
                              floats_of(tensor_of(values, sum_)), on.stream);
  }

 protected:
  KernelFamily family() const override { return KernelFamily::row_sum; }

 private:
  ValueId x_, sum_;
};

struct LinearValues {
  ValueId x, weight, bias, x_operand, weight_operand, scratch, y;
  LinearLayout layout;
};

class LinearOperation final : public Operation {
 public:
  LinearOperation(const Graph& graph, const LinearValues& v)
      : Operation({v.x_operand, v.weight_operand, v.bias}, {v.scratch, v.y}),
        v_(v),
        weight_(weight_matrix(graph, v.weight_operand, v.layout)) {}
  OperationCost cost() const override { return OperationCost::product; }

  void run(ValueTensors values) const override {
    const auto y = as_matrix(tensor_of(values, v_.y));
    const auto product = v_.scratch == kNoValue ? y : as_matrix(tensor_of(values, v_.scratch));
    const auto weight = weight_.of(values);
    product_out(product, as_matrix(tensor_of(values, v_.x_operand)), has_out_rows() ? weight.t() : weight);
    if (v_.bias != kNoValue) {
      add_bias_out(y, product, tensor_of(values, v_.bias).view(-1));
    } else if (v_.scratch != kNoValue) {
      convert_out(y, product);
    }
  }
  /// The bias is added before the result is rounded.
  Result<void> launch(ValueTensors values, const DeviceCompute& on) const override {
    const auto &x = tensor_of(values, v_.x_operand), &y = tensor_of(values, v_.y);
    return on.kernels.product({.layout = has_out_rows() ? kernels::ProductLayout::nt : kernels::ProductLayout::nn,
                               .m = y.numel() / y.size(-1),
                               .n = y.size(-1),
                               .k = x.size(-1),
                               .operand_type = element_type(x),
                               .out_type = element_type(y),
                               .a = x.const_data_ptr(),
                               .b = tensor_of(values, v_.weight_operand).const_data_ptr(),
                               .out = y.data_ptr(),
                               .bias = v_.bias == kNoValue ? nullptr : tensor_of(values, v_.bias).const_data_ptr()},
                              on.stream);
  }

  void add_work(const Graph& graph, std::vector<KernelWork>& work) const override {
    const Value &x = graph.value(v_.x_operand), &y = graph.value(v_.y);
    work.push_back({.family = has_out_rows() ? KernelFamily::product_nt : KernelFamily::product_nn,
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
    const auto operand = rows_matrix(graph, graph.converted(dy, product_dtype(graph.value(v_.y).dtype)));
    if (gradients.needs(v_.weight)) {
      const auto target = weight_matrix(graph, gradients.parameter_gradient(v_.weight), v_.layout);
      const auto x = rows_matrix(graph, graph.operand(v_.x));
      record_product(gradients, has_out_rows() ? operand : x, has_out_rows() ? x : operand, KernelFamily::product_tn,
                     target);
    }
    if (gradients.needs(v_.bias)) {
      gradients.record(std::make_unique<SumRowsOperation>(dy, gradients.parameter_gradient(v_.bias)));
    }
    if (gradients.needs(v_.x)) {
      // sums over units are f32: so is what is added to them
      const bool shared = graph.value(v_.x).role == ValueRole::conditioning;
      const auto weight = weight_matrix(graph, graph.operand(v_.weight), v_.layout);
      const auto dtype = graph.value(v_.x).dtype;
      const auto dx = gradients.like(v_.x, shared ? accumulate_dtype(dtype) : dtype);
      record_product(gradients, operand, weight, has_out_rows() ? KernelFamily::product_nn : KernelFamily::product_nt,
                     rows_matrix(graph, dx));
      gradients.add(v_.x, dx);
    }
  }

 private:
  bool has_out_rows() const { return v_.layout == LinearLayout::out_in; }
  static void record_product(GradientBuilder& gradients, const Matrix& a, const Matrix& b, KernelFamily form,
                             const Matrix& out) {
    const auto scratch = product_scratch(gradients.graph(), a.id, out.id);
    gradients.record(std::make_unique<ProductOperation>(a, b, form, scratch, out));
  }

  LinearValues v_;
  Matrix weight_;
};

}  // namespace

ValueId record_linear(Graph& graph, ValueId x, ValueId weight, ValueId bias, LinearLayout layout) {
  LinearValues v{x, weight, bias, graph.operand(x), graph.operand(weight), kNoValue, kNoValue, layout};
  auto sizes = graph.value(x).sizes;
  sizes.back() = weight_matrix(graph, weight, layout).sizes[layout == LinearLayout::out_in ? 0 : 1];
  v.y = graph.add_intermediate(sizes, graph.value(x).dtype);
  v.scratch = product_scratch(graph, v.x_operand, v.y);
  graph.add(std::make_unique<LinearOperation>(graph, v));
  return v.y;
}

}  // namespace troupe::model
