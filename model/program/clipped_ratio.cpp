// The clipped objective of policy gradients as operations of a program.
#include "kernels/clipped_ratio.h"

#include <ATen/ATen.h>

#include <memory>

#include "kernels/dispatch.h"
#include "kernels/threads.h"
#include "model/program/device_pass.h"
#include "model/program/gradient.h"
#include "model/program/operations.h"

namespace troupe::model {
namespace {

struct Ratio {
  ValueId v;
  RatioValues terms;
  kernels::RatioShape shape;
  kernels::RatioClip clip;
};

std::vector<ValueId> reads_of(const Ratio& r) {
  const auto& t = r.terms;
  return {r.v, t.block, t.scale, t.offset, t.base, t.advantage, t.weight};
}

template <class A>
kernels::RatioTerms<A> terms_of(ValueTensors values, const RatioValues& t) {
  const auto at = [&](ValueId id) { return tensor_of(values, id).const_data_ptr<A>(); };
  return {tensor_of(values, t.block).const_data_ptr<std::int64_t>(),
          at(t.scale),
          at(t.offset),
          at(t.base),
          at(t.advantage),
          at(t.weight)};
}

kernels::DeviceClippedRatio device_ratio(ValueTensors values, const Ratio& r) {
  const auto& v = tensor_of(values, r.v);
  return {element_type(v), r.shape, r.clip, v.const_data_ptr(), terms_of<float>(values, r.terms)};
}

class ClippedRatioGradientOperation final : public Operation {
 public:
  ClippedRatioGradientOperation(const Ratio& r, std::vector<ValueId> reads, ValueId dloss, ValueId dv)
      : Operation(std::move(reads), {dv}), r_(r), dloss_(dloss), dv_(dv) {}

  void run(ValueTensors values) const override {
    const auto& v = tensor_of(values, r_.v);
    kernels::dispatch("clipped_ratio", v.scalar_type(), [&]<class T>(T) {
      using A = cpu::Acc<T>;
      cpu::clipped_ratio_backward<T>(r_.shape, r_.clip, kernels::data<T>(v), terms_of<A>(values, r_.terms),
                                     static_cast<A>(tensor_of(values, dloss_).item<double>()),
                                     kernels::data<T>(tensor_of(values, dv_)), num_threads());
    });
  }
  Result<void> launch(ValueTensors values, const DeviceCompute& on) const override {
    return on.kernels.clipped_ratio_gradient(device_ratio(values, r_), floats_of(tensor_of(values, dloss_)),
                                             tensor_of(values, dv_).data_ptr(), on.stream);
  }

 private:
  Ratio r_;
  ValueId dloss_, dv_;
};

class ClippedRatioOperation final : public Operation {
 public:
  ClippedRatioOperation(const Ratio& r, ValueId losses, ValueId loss)
      : Operation(reads_of(r), {losses, loss}), r_(r), losses_(losses), loss_(loss) {}

  void run(ValueTensors values) const override {
    const auto &v = tensor_of(values, r_.v), &losses = tensor_of(values, losses_);
    kernels::dispatch("clipped_ratio", v.scalar_type(), [&]<class T>(T) {
      using A = cpu::Acc<T>;
      auto* parts = kernels::data<A>(losses);
      cpu::clipped_ratio_forward<T>(r_.shape, r_.clip, kernels::data<T>(v), terms_of<A>(values, r_.terms), parts,
                                    num_threads());
      double total = 0;
      for (std::int64_t i = 0; i < losses.numel(); ++i) total += static_cast<double>(parts[i]);
      *kernels::data<A>(tensor_of(values, loss_)) = static_cast<A>(total);
    });
  }
  Result<void> launch(ValueTensors values, const DeviceCompute& on) const override {
    return on.kernels.clipped_ratio(device_ratio(values, r_), floats_of(tensor_of(values, losses_)),
                                    floats_of(tensor_of(values, loss_)), on.stream);
  }

  void differentiate(GradientBuilder& gradients) const override {
    const auto dloss = gradients.gradient(loss_);
    const auto dv = gradients.like(r_.v, gradients.graph().value(r_.v).dtype);
    auto reads = reads_of(r_);
    reads.push_back(dloss);
    gradients.record(std::make_unique<ClippedRatioGradientOperation>(r_, std::move(reads), dloss, dv));
    gradients.add(r_.v, dv);
  }

 private:
  Ratio r_;
  ValueId losses_, loss_;
};

}  // namespace

ValueId record_clipped_ratio(Graph& graph, ValueId v, const RatioValues& terms, std::int64_t actions,
                             std::int64_t width, const kernels::RatioClip& clip) {
  const auto sizes = graph.value(v).sizes;
  const auto &scale = graph.value(terms.scale).sizes, &base = graph.value(terms.base).sizes;
  const auto dtype = accumulate_dtype(graph.value(v).dtype);
  const kernels::RatioShape shape{.rows = scale.at(0),
                                  .numbers = scale.at(1),
                                  .per_entry = scale.at(1) / base.at(1),
                                  .width = width,
                                  .blocks = sizes.at(0) * sizes.at(1) / actions,
                                  .actions = actions,
                                  .channels = sizes.at(2)};
  const auto losses = graph.add_intermediate(base, dtype), loss = graph.add_intermediate({}, dtype);
  graph.add(std::make_unique<ClippedRatioOperation>(Ratio{v, terms, shape, clip}, losses, loss));
  return loss;
}

}  // namespace troupe::model
