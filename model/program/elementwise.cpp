#include <ATen/ATen.h>

#include "kernels/dispatch.h"
#include "kernels/row_kernels.h"
#include "model/program/device_pass.h"
#include "model/program/gradient.h"
#include "model/program/operations.h"
#include "model/program/slices.h"

namespace troupe::model {
namespace {

/// out = a + b, or a + round(b * scale).
class AddOperation final : public Operation {
 public:
  AddOperation(ValueId a, ValueId b, double scale, ValueId out)
      : Operation({a, b}, {out}),
        a_(a),
        b_(b),
        out_(out),
        scale_(scale),
        factor_(at::scalar_tensor(scale, at::kDouble)) {}

  void run(ValueTensors values) const override;
  Result<void> launch(ValueTensors values, const DeviceCompute& on) const override {
    const auto& out = tensor_of(values, out_);
    return on.kernels.add(element_type(out), out.numel(), tensor_of(values, a_).const_data_ptr(),
                          tensor_of(values, b_).const_data_ptr(), scale_, out.data_ptr(), on.stream);
  }
  void differentiate(GradientBuilder& gradients) const override;

 private:
  ValueId a_, b_, out_;
  double scale_;
  at::Tensor factor_;
};

class ScaleOperation final : public Operation {
 public:
  ScaleOperation(ValueId x, double scale, ValueId out)
      : Operation({x}, {out}), x_(x), out_(out), scale_(scale), factor_(at::scalar_tensor(scale, at::kDouble)) {}
  void run(ValueTensors values) const override {
    each_slice(tensor_of(values, out_).numel(), [&](const auto& slice) {
      auto out = slice(tensor_of(values, out_));
      at::mul_out(out, slice(tensor_of(values, x_)), factor_);
    });
  }
  Result<void> launch(ValueTensors values, const DeviceCompute& on) const override {
    const auto& out = tensor_of(values, out_);
    return on.kernels.scale(element_type(out), out.numel(), tensor_of(values, x_).const_data_ptr(), scale_,
                            out.data_ptr(), on.stream);
  }

 private:
  ValueId x_, out_;
  double scale_;
  at::Tensor factor_;
};

class AddToOperation final : public Operation {
 public:
  AddToOperation(ValueId sum, ValueId part) : Operation({sum, part}, {sum}), sum_(sum), part_(part) {}
  void run(ValueTensors values) const override {
    each_slice(tensor_of(values, sum_).numel(),
               [&](const auto& slice) { slice(tensor_of(values, sum_)).add_(slice(tensor_of(values, part_))); });
  }
  Result<void> launch(ValueTensors values, const DeviceCompute& on) const override {
    const auto& sum = tensor_of(values, sum_);
    return on.kernels.add_to(element_type(sum), sum.numel(), sum.data_ptr(), tensor_of(values, part_).const_data_ptr(),
                             on.stream);
  }

 private:
  ValueId sum_, part_;
};

/// y of a thread's part of u.
void activate(at::Tensor y, const at::Tensor& u, Activation activation) {
  switch (activation) {
    case Activation::gelu_tanh:
      return kernels::dispatch("gelu_tanh", u.scalar_type(), [&]<class T>(T) {
        cpu::gelu_tanh_forward<T>(u.numel(), kernels::data<T>(u), kernels::data<T>(y), /*threads=*/1);
      });
    case Activation::gelu_erf:
      at::gelu_out(y, u, "none");
      return;
    case Activation::silu:
      at::silu_out(y, u);
      return;
    case Activation::relu:
      at::clamp_min_out(y, u, 0);  // at::relu_out makes a tensor and copies it
      return;
  }
}

void activate_backward(at::Tensor du, const at::Tensor& dy, const at::Tensor& u, Activation activation) {
  switch (activation) {
    case Activation::gelu_tanh:
      return kernels::dispatch("gelu_tanh", u.scalar_type(), [&]<class T>(T) {
        cpu::gelu_tanh_backward<T>(u.numel(), kernels::data<T>(dy), kernels::data<T>(u), kernels::data<T>(du),
                                   /*threads=*/1);
      });
    case Activation::gelu_erf:
      at::gelu_backward_out(du, dy, u, "none");
      return;
    case Activation::silu:
      at::silu_backward_out(du, dy, u);
      return;
    case Activation::relu:
      at::threshold_backward_out(du, dy, u, 0);
      return;
  }
}

class ActivationGradientOperation final : public Operation {
 public:
  ActivationGradientOperation(Activation activation, ValueId dy, ValueId u, ValueId du)
      : Operation({dy, u}, {du}), activation_(activation), dy_(dy), u_(u), du_(du) {}
  void run(ValueTensors values) const override {
    each_slice(tensor_of(values, du_).numel(), [&](const auto& slice) {
      activate_backward(slice(tensor_of(values, du_)), slice(tensor_of(values, dy_)), slice(tensor_of(values, u_)),
                        activation_);
    });
  }
  Result<void> launch(ValueTensors values, const DeviceCompute& on) const override {
    const auto& du = tensor_of(values, du_);
    return on.kernels.activation_gradient(element_type(du), activation_, du.numel(),
                                          tensor_of(values, dy_).const_data_ptr(),
                                          tensor_of(values, u_).const_data_ptr(), du.data_ptr(), on.stream);
  }

 protected:
  KernelFamily family() const override { return KernelFamily::gelu_gradient; }

 private:
  Activation activation_;
  ValueId dy_, u_, du_;
};

class ActivationOperation final : public Operation {
 public:
  ActivationOperation(Activation activation, ValueId u, ValueId y)
      : Operation({u}, {y}), activation_(activation), u_(u), y_(y) {}
  void run(ValueTensors values) const override {
    each_slice(tensor_of(values, y_).numel(), [&](const auto& slice) {
      activate(slice(tensor_of(values, y_)), slice(tensor_of(values, u_)), activation_);
    });
  }
  Result<void> launch(ValueTensors values, const DeviceCompute& on) const override {
    const auto& y = tensor_of(values, y_);
    return on.kernels.activation(element_type(y), activation_, y.numel(), tensor_of(values, u_).const_data_ptr(),
                                 y.data_ptr(), on.stream);
  }
  void differentiate(GradientBuilder& gradients) const override {
    const auto dy = gradients.rounded_gradient(y_);
    const auto du = gradients.like(u_, gradients.graph().value(u_).dtype);
    gradients.record(std::make_unique<ActivationGradientOperation>(activation_, dy, u_, du));
    gradients.add(u_, du);
  }

 protected:
  KernelFamily family() const override { return KernelFamily::gelu; }

 private:
  Activation activation_;
  ValueId u_, y_;
};

void AddOperation::run(ValueTensors values) const {
  each_slice(tensor_of(values, out_).numel(), [&](const auto& slice) {
    auto out = slice(tensor_of(values, out_));
    if (scale_ == 1.0) {
      at::add_out(out, slice(tensor_of(values, a_)), slice(tensor_of(values, b_)));
      return;
    }
    at::mul_out(out, slice(tensor_of(values, b_)), factor_);
    at::add_out(out, slice(tensor_of(values, a_)), out);
  });
}

void AddOperation::differentiate(GradientBuilder& gradients) const {
  const auto dy = gradients.gradient(out_);
  gradients.add(a_, dy);
  if (!gradients.needs(b_)) return;
  if (scale_ == 1.0) return gradients.add(b_, dy);
  const auto scaled = gradients.like(b_, gradients.graph().value(dy).dtype);
  gradients.record(std::make_unique<ScaleOperation>(dy, scale_, scaled));
  gradients.add(b_, scaled);
}

}  // namespace

ValueId record_add_scaled(Graph& graph, ValueId a, ValueId b, double scale) {
  const auto out = graph.add_intermediate(graph.value(a).sizes, graph.value(a).dtype);
  graph.add(std::make_unique<AddOperation>(a, b, scale, out));
  return out;
}

ValueId record_add(Graph& graph, ValueId a, ValueId b) { return record_add_scaled(graph, a, b, 1.0); }

void record_add_to(Graph& graph, ValueId sum, ValueId part) { graph.add(std::make_unique<AddToOperation>(sum, part)); }

ValueId record_activation(Graph& graph, ValueId u, Activation activation) {
  const auto y = graph.add_intermediate(graph.value(u).sizes, graph.value(u).dtype);
  graph.add(std::make_unique<ActivationOperation>(activation, u, y));
  return y;
}

}  // namespace troupe::model
