#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "kernels/dispatch.h"
#include "kernels/row_kernels.h"
#include "kernels/threads.h"
#include "model/program/device_pass.h"
#include "model/program/gradient.h"
#include "model/program/operations.h"

namespace troupe::model {
namespace {

/// A scalar of accumulate_dtype.
double number_of(ValueTensors values, ValueId id) { return tensor_of(values, id).item<double>(); }

struct SquaredErrorValues {
  ValueId x, target, coefficients, row_sums, loss;
  bool of_elements;
};

kernels::DeviceSquaredError device_error(ValueTensors values, const SquaredErrorValues& v) {
  const auto& x = tensor_of(values, v.x);
  return {element_type(x),
          x.numel() / x.size(-1),
          x.size(-1),
          x.const_data_ptr(),
          floats_of(tensor_of(values, v.target)),
          floats_of(tensor_of(values, v.coefficients)),
          v.of_elements};
}

class SquaredErrorGradientOperation final : public Operation {
 public:
  SquaredErrorGradientOperation(const SquaredErrorValues& v, ValueId dloss, ValueId dx)
      : Operation({dloss, v.x, v.target, v.coefficients}, {dx}), v_(v), dloss_(dloss), dx_(dx) {}

  void run(ValueTensors values) const override {
    const auto& x = tensor_of(values, v_.x);
    const auto channels = x.size(-1);
    kernels::dispatch("squared_error", x.scalar_type(), [&]<class T>(T) {
      using A = cpu::Acc<T>;
      cpu::squared_error_backward<T>(
          x.numel() / channels, channels, kernels::data<T>(x), kernels::data<A>(tensor_of(values, v_.target)),
          kernels::data<A>(tensor_of(values, v_.coefficients)), v_.of_elements,
          static_cast<A>(number_of(values, dloss_)), kernels::data<T>(tensor_of(values, dx_)), num_threads());
    });
  }
  Result<void> launch(ValueTensors values, const DeviceCompute& on) const override {
    return on.kernels.squared_error_gradient(device_error(values, v_), floats_of(tensor_of(values, dloss_)),
                                             tensor_of(values, dx_).data_ptr(), on.stream);
  }

 private:
  SquaredErrorValues v_;
  ValueId dloss_, dx_;
};

class SquaredErrorOperation final : public Operation {
 public:
  explicit SquaredErrorOperation(const SquaredErrorValues& v)
      : Operation({v.x, v.target, v.coefficients}, {v.row_sums, v.loss}), v_(v) {}

  void run(ValueTensors values) const override {
    const auto &x = tensor_of(values, v_.x), &row_sums = tensor_of(values, v_.row_sums);
    const auto channels = x.size(-1);
    kernels::dispatch("squared_error", x.scalar_type(), [&]<class T>(T) {
      using A = cpu::Acc<T>;
      const auto* sums = kernels::data<A>(row_sums);
      cpu::squared_error_forward<T>(row_sums.numel(), channels, kernels::data<T>(x),
                                    kernels::data<A>(tensor_of(values, v_.target)),
                                    kernels::data<A>(tensor_of(values, v_.coefficients)), v_.of_elements,
                                    kernels::data<A>(row_sums), num_threads());
      double total = 0;
      for (std::int64_t row = 0; row < row_sums.numel(); ++row) total += static_cast<double>(sums[row]);
      *kernels::data<A>(tensor_of(values, v_.loss)) = static_cast<A>(total);
    });
  }
  Result<void> launch(ValueTensors values, const DeviceCompute& on) const override {
    return on.kernels.squared_error(device_error(values, v_), floats_of(tensor_of(values, v_.row_sums)),
                                    floats_of(tensor_of(values, v_.loss)), on.stream);
  }

  void differentiate(GradientBuilder& gradients) const override {
    const auto dx = gradients.like(v_.x, gradients.graph().value(v_.x).dtype);
    gradients.record(std::make_unique<SquaredErrorGradientOperation>(v_, gradients.gradient(v_.loss), dx));
    gradients.add(v_.x, dx);
  }

 private:
  SquaredErrorValues v_;
};

class WeightedSumGradientOperation final : public Operation {
 public:
  WeightedSumGradientOperation(ValueId dsum, ValueId coefficients, ValueId dx)
      : Operation({dsum, coefficients}, {dx}), dsum_(dsum), coefficients_(coefficients), dx_(dx) {}
  void run(ValueTensors values) const override {
    const at::NoGradGuard no_grad;
    auto dx = tensor_of(values, dx_);
    at::mul_out(dx, tensor_of(values, coefficients_), tensor_of(values, dsum_));
  }
  Result<void> launch(ValueTensors values, const DeviceCompute& on) const override {
    const auto& dx = tensor_of(values, dx_);
    return on.kernels.weighted_sum_gradient(dx.numel(), floats_of(tensor_of(values, coefficients_)),
                                            floats_of(tensor_of(values, dsum_)), floats_of(dx), on.stream);
  }

 private:
  ValueId dsum_, coefficients_, dx_;
};

class WeightedSumOperation final : public Operation {
 public:
  WeightedSumOperation(ValueId x, ValueId coefficients, ValueId product, ValueId sum)
      : Operation({x, coefficients}, {product, sum}),
        x_(x),
        coefficients_(coefficients),
        product_(product),
        sum_(sum) {}
  void run(ValueTensors values) const override {
    const at::NoGradGuard no_grad;
    auto product = tensor_of(values, product_), sum = tensor_of(values, sum_);
    at::mul_out(product, tensor_of(values, coefficients_), tensor_of(values, x_));
    at::sum_out(sum, product);
  }
  Result<void> launch(ValueTensors values, const DeviceCompute& on) const override {
    const auto& x = tensor_of(values, x_);
    return on.kernels.weighted_sum(x.numel(), floats_of(x), floats_of(tensor_of(values, coefficients_)),
                                   floats_of(tensor_of(values, sum_)), on.stream);
  }
  void differentiate(GradientBuilder& gradients) const override {
    const auto dx = gradients.like(x_, gradients.graph().value(product_).dtype);
    gradients.record(std::make_unique<WeightedSumGradientOperation>(gradients.gradient(sum_), coefficients_, dx));
    gradients.add(x_, dx);
  }

 private:
  ValueId x_, coefficients_, product_, sum_;
};

ValueId add_scalar(Graph& graph, at::ScalarType dtype) { return graph.add_intermediate({}, dtype); }

}  // namespace

ValueId record_squared_error(Graph& graph, ValueId x, ValueId target, ValueId coefficients) {
  const auto sizes = graph.value(x).sizes;
  const auto dtype = accumulate_dtype(graph.value(x).dtype);
  const SquaredErrorValues v{x,
                             target,
                             coefficients,
                             graph.add_intermediate({graph.value(x).numel() / sizes.back()}, dtype),
                             add_scalar(graph, dtype),
                             graph.value(coefficients).sizes.size() == sizes.size()};
  graph.add(std::make_unique<SquaredErrorOperation>(v));
  return v.loss;
}

ValueId record_weighted_sum(Graph& graph, ValueId x, ValueId coefficients) {
  const auto dtype = graph.value(coefficients).dtype;
  const auto product = graph.add_intermediate(graph.value(x).sizes, dtype), sum = add_scalar(graph, dtype);
  graph.add(std::make_unique<WeightedSumOperation>(x, coefficients, product, sum));
  return sum;
}

}  // namespace troupe::model
