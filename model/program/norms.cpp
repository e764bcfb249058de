#include <ATen/ATen.h>

#include "base/check.h"
#include "kernels/dispatch.h"
#include "kernels/row_kernels.h"
#include "kernels/row_runs.h"
#include "kernels/threads.h"
#include "model/program/device_pass.h"
#include "model/program/gradient.h"
#include "model/program/operations.h"
#include "model/program/table_gradient.h"

namespace troupe::model {
namespace {

struct ModulatedNormValues {
  ValueId x, factor, shift, y, stats;
};

class ModulatedNormGradientOperation final : public Operation {
 public:
  ModulatedNormGradientOperation(const TableRuns& runs, const ModulatedNormValues& v, ValueId dy, ValueId dx,
                                 ValueId dfactor, ValueId dshift)
      : Operation({dy, v.x, v.factor, v.stats}, {dx, dfactor, dshift}),
        runs_(runs),
        v_(v),
        dy_(dy),
        dx_(dx),
        dfactor_(dfactor),
        dshift_(dshift) {}

  void run(ValueTensors values) const override {
    const auto &x = tensor_of(values, v_.x), &factor = tensor_of(values, v_.factor);
    const auto channels = x.size(-1);
    kernels::dispatch("modulated_layer_norm", x.scalar_type(), [&]<class T>(T) {
      using A = cpu::Acc<T>;
      cpu::modulated_norm_backward<T>(
          runs_.runs, channels, factor.numel() / channels, kernels::data<T>(tensor_of(values, dy_)),
          kernels::data<T>(x), {kernels::data<T>(factor), channels}, kernels::data<A>(tensor_of(values, v_.stats)),
          kernels::data<T>(tensor_of(values, dx_)), kernels::data<A>(tensor_of(values, dfactor_)),
          kernels::data<A>(tensor_of(values, dshift_)), num_threads());
    });
  }
  Result<void> launch(ValueTensors values, const DeviceCompute& on) const override {
    const auto& x = tensor_of(values, v_.x);
    return on.kernels.modulated_norm_gradient({.type = element_type(x),
                                               .runs = runs_.on_device(values),
                                               .channels = x.size(-1),
                                               .dy = tensor_of(values, dy_).const_data_ptr(),
                                               .x = x.const_data_ptr(),
                                               .factor = device_table(tensor_of(values, v_.factor)),
                                               .stats = floats_of(tensor_of(values, v_.stats)),
                                               .dx = tensor_of(values, dx_).data_ptr(),
                                               .dfactor = floats_of(tensor_of(values, dfactor_)),
                                               .dshift = floats_of(tensor_of(values, dshift_))},
                                              on.stream);
  }

 protected:
  KernelFamily family() const override { return KernelFamily::norm_gradient; }

 private:
  TableRuns runs_;
  ModulatedNormValues v_;
  ValueId dy_, dx_, dfactor_, dshift_;
};

class ModulatedNormOperation final : public Operation {
 public:
  ModulatedNormOperation(TableRuns runs, const ModulatedNormValues& v, double eps)
      : Operation({v.x, v.factor, v.shift}, {v.y, v.stats}), runs_(std::move(runs)), v_(v), eps_(eps) {}

  void run(ValueTensors values) const override {
    const auto& x = tensor_of(values, v_.x);
    const auto channels = x.size(-1);
    kernels::dispatch("modulated_layer_norm", x.scalar_type(), [&]<class T>(T) {
      cpu::modulated_norm_forward<T>(
          runs_.runs, channels, kernels::data<T>(x), {kernels::data<T>(tensor_of(values, v_.factor)), channels},
          {kernels::data<T>(tensor_of(values, v_.shift)), channels}, eps_, kernels::data<T>(tensor_of(values, v_.y)),
          kernels::data<cpu::Acc<T>>(tensor_of(values, v_.stats)), num_threads());
    });
  }
  Result<void> launch(ValueTensors values, const DeviceCompute& on) const override {
    const auto& x = tensor_of(values, v_.x);
    return on.kernels.modulated_norm({.type = element_type(x),
                                      .runs = runs_.on_device(values),
                                      .channels = x.size(-1),
                                      .x = x.const_data_ptr(),
                                      .factor = device_table(tensor_of(values, v_.factor)),
                                      .shift = device_table(tensor_of(values, v_.shift)),
                                      .eps = eps_,
                                      .y = tensor_of(values, v_.y).data_ptr(),
                                      .stats = floats_of(tensor_of(values, v_.stats))},
                                     on.stream);
  }

  void differentiate(GradientBuilder& gradients) const override {
    const auto dy = gradients.rounded_gradient(v_.y);
    const auto dx = gradients.like(v_.x, gradients.graph().value(v_.x).dtype);
    const auto dfactor = begin_table_gradient(gradients, v_.factor);
    const auto dshift = begin_table_gradient(gradients, v_.shift);
    gradients.record(std::make_unique<ModulatedNormGradientOperation>(runs_, v_, dy, dx, dfactor, dshift));
    gradients.add(v_.x, dx);
    end_table_gradient(gradients, v_.factor, dfactor);
    end_table_gradient(gradients, v_.shift, dshift);
  }

 protected:
  KernelFamily family() const override { return KernelFamily::norm; }

 private:
  TableRuns runs_;
  ModulatedNormValues v_;
  double eps_;
};

struct RmsNormValues {
  ValueId x, gain, cos, sin, y, rstd;
};

template <class T>
Rotation<T> rotation_of(ValueTensors values, const RmsNormValues& v) {
  if (v.cos == kNoValue) return {};
  const auto& cos = tensor_of(values, v.cos);
  return {kernels::data<cpu::Acc<T>>(cos), kernels::data<cpu::Acc<T>>(tensor_of(values, v.sin)), cos.size(0),
          2 * cos.size(1)};
}

kernels::DeviceRotation device_rotation(ValueTensors values, const RmsNormValues& v) {
  if (v.cos == kNoValue) return {};
  const auto& cos = tensor_of(values, v.cos);
  return {floats_of(cos), floats_of(tensor_of(values, v.sin)), cos.size(0), 2 * cos.size(1)};
}

class RmsNormGradientOperation final : public Operation {
 public:
  RmsNormGradientOperation(const RmsNormValues& v, ValueId dy, ValueId dx, ValueId dgain)
      : Operation({dy, v.x, v.gain, v.cos, v.sin, v.rstd}, {dx, dgain}), v_(v), dy_(dy), dx_(dx), dgain_(dgain) {}

  void run(ValueTensors values) const override {
    const auto &x = tensor_of(values, v_.x), &dx = tensor_of(values, dx_);
    const auto channels = x.size(-1);
    kernels::dispatch("rms_norm", x.scalar_type(), [&]<class T>(T) {
      using A = cpu::Acc<T>;
      cpu::rms_norm_backward<T>(x.numel() / channels, channels, kernels::data<T>(tensor_of(values, dy_)),
                                kernels::data<T>(x), row_stride(x), kernels::data<T>(tensor_of(values, v_.gain)),
                                kernels::data<A>(tensor_of(values, v_.rstd)), rotation_of<T>(values, v_),
                                kernels::data<T>(dx), row_stride(dx), kernels::data<A>(tensor_of(values, dgain_)),
                                num_threads());
    });
  }
  Result<void> launch(ValueTensors values, const DeviceCompute& on) const override {
    const auto &x = tensor_of(values, v_.x), &dx = tensor_of(values, dx_);
    return on.kernels.rms_norm_gradient({.type = element_type(x),
                                         .rows = x.numel() / x.size(-1),
                                         .channels = x.size(-1),
                                         .dy = tensor_of(values, dy_).const_data_ptr(),
                                         .x = x.const_data_ptr(),
                                         .x_stride = row_stride(x),
                                         .gain = tensor_of(values, v_.gain).const_data_ptr(),
                                         .rstd = floats_of(tensor_of(values, v_.rstd)),
                                         .rotation = device_rotation(values, v_),
                                         .dx = dx.data_ptr(),
                                         .dx_stride = row_stride(dx),
                                         .dgain = floats_of(tensor_of(values, dgain_))},
                                        on.stream);
  }

 protected:
  KernelFamily family() const override { return KernelFamily::rotated_norm_gradient; }

 private:
  RmsNormValues v_;
  ValueId dy_, dx_, dgain_;
};

class RmsNormOperation final : public Operation {
 public:
  RmsNormOperation(const RmsNormValues& v, double eps)
      : Operation({v.x, v.gain, v.cos, v.sin}, {v.y, v.rstd}), v_(v), eps_(eps) {}

  void run(ValueTensors values) const override {
    const auto& x = tensor_of(values, v_.x);
    const auto channels = x.size(-1);
    kernels::dispatch("rms_norm", x.scalar_type(), [&]<class T>(T) {
      cpu::rms_norm_forward<T>(x.numel() / channels, channels, kernels::data<T>(x), row_stride(x),
                               kernels::data<T>(tensor_of(values, v_.gain)), eps_, rotation_of<T>(values, v_),
                               kernels::data<T>(tensor_of(values, v_.y)),
                               kernels::data<cpu::Acc<T>>(tensor_of(values, v_.rstd)), num_threads());
    });
  }
  Result<void> launch(ValueTensors values, const DeviceCompute& on) const override {
    const auto& x = tensor_of(values, v_.x);
    return on.kernels.rms_norm({.type = element_type(x),
                                .rows = x.numel() / x.size(-1),
                                .channels = x.size(-1),
                                .x = x.const_data_ptr(),
                                .x_stride = row_stride(x),
                                .gain = tensor_of(values, v_.gain).const_data_ptr(),
                                .eps = eps_,
                                .rotation = device_rotation(values, v_),
                                .y = tensor_of(values, v_.y).data_ptr(),
                                .rstd = floats_of(tensor_of(values, v_.rstd))},
                               on.stream);
  }

  void differentiate(GradientBuilder& gradients) const override {
    const auto dy = gradients.rounded_gradient(v_.y);
    const auto dx = gradients.like(v_.x, gradients.graph().value(v_.x).dtype);
    const auto dgain = gradients.parameter_gradient(v_.gain);
    gradients.record(std::make_unique<RmsNormGradientOperation>(v_, dy, dx, dgain));
    gradients.add(v_.x, dx);
  }

 protected:
  KernelFamily family() const override { return KernelFamily::rotated_norm; }

 private:
  RmsNormValues v_;
  double eps_;
};

}  // namespace

ValueId record_modulated_norm(Graph& graph, ValueId x, ValueId factor, ValueId shift, const at::Tensor& table_row,
                              double eps) {
  const auto sizes = graph.value(x).sizes, table = graph.value(factor).sizes;
  const auto dtype = graph.value(x).dtype;
  const ModulatedNormValues v{x, factor, shift, graph.add_intermediate(sizes, dtype),
                              graph.add_intermediate({sizes[0] * sizes[1], 2}, accumulate_dtype(dtype))};
  graph.add(std::make_unique<ModulatedNormOperation>(table_runs(graph, sizes, table, table_row), v, eps));
  return v.y;
}

ValueId record_rms_norm(Graph& graph, ValueId x, ValueId gain, double eps, ValueId cos, ValueId sin) {
  const auto sizes = graph.value(x).sizes;
  TROUPE_CHECK(sizes.size() == 3, "x has samples, rows and channels");
  const auto dtype = graph.value(x).dtype;
  const RmsNormValues v{x,
                        gain,
                        cos,
                        sin,
                        graph.add_intermediate(sizes, dtype),
                        graph.add_intermediate({sizes[0] * sizes[1]}, accumulate_dtype(dtype))};
  graph.add(std::make_unique<RmsNormOperation>(v, eps));
  return v.y;
}

}  // namespace troupe::model
