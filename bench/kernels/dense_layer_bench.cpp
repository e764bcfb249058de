// Dense layers of policies on one thread, ours and LibTorch's: the layer with tanh, and both gradients. Expect ours to
// lead where a call is short, since LibTorch's checks and allocations cost some microseconds a call, and to be level
// with the library at 376 x 256 and 256 x 256, where both come near the processor's rate. Layers from few inputs are
// bound by tanh, and layers to few outputs by transposing their inputs.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <benchmark/benchmark.h>

#include "kernels/dense_layer.h"

namespace troupe::bench {
namespace {

/// Operands and results of one layer.
struct Layer {
  explicit Layer(const benchmark::State& state) : shape{state.range(0), state.range(1), state.range(2)} {
    at::set_num_threads(1);
    x = at::randn({shape.rows, shape.inputs}).tanh();
    w = at::randn({shape.outputs, shape.inputs});
    b = at::randn({shape.outputs});
    d = at::randn({shape.rows, shape.outputs});
    y = at::empty_like(d);
    dx = at::empty_like(x);
    dw = at::empty_like(w);
    db = at::empty_like(b);
  }
  /// Ends a benchmark of `products` matrix products an iteration.
  void count(benchmark::State& state, double products) const {
    const double work = 2.0 * static_cast<double>(shape.rows * shape.inputs * shape.outputs) * products;
    state.counters["FLOP/s"] = benchmark::Counter(work, benchmark::Counter::kIsIterationInvariantRate);
  }

  const at::NoGradGuard no_grad;
  kernels::DenseShape shape;
  at::Tensor x, w, b, d, y, dx, dw, db;
};

void BM_DenseForward(benchmark::State& state) {
  Layer layer(state);
  kernels::DenseWorkspace workspace;
  for (auto _ : state) {
    kernels::dense_forward(layer.shape, layer.x.const_data_ptr<float>(), layer.shape.inputs,
                           layer.w.const_data_ptr<float>(), layer.b.const_data_ptr<float>(),
                           kernels::DenseActivation::tanh, layer.y.data_ptr<float>(), workspace, 1);
    benchmark::ClobberMemory();
  }
  layer.count(state, 1);
}

void BM_LibraryForward(benchmark::State& state) {
  Layer layer(state);
  for (auto _ : state) {
    at::addmm_out(layer.y, layer.b, layer.x, layer.w.t());
    at::tanh_(layer.y);
    benchmark::ClobberMemory();
  }
  layer.count(state, 1);
}

void BM_DenseBackward(benchmark::State& state) {
  Layer layer(state);
  kernels::DenseWorkspace workspace;
  const float* const x = layer.x.const_data_ptr<float>();
  const float* const d = layer.d.const_data_ptr<float>();
  for (auto _ : state) {
    kernels::dense_backward_params(layer.shape, d, x, layer.shape.inputs, layer.dw.data_ptr<float>(),
                                   layer.db.data_ptr<float>(), workspace, 1);
    kernels::dense_backward_input(layer.shape, d, layer.w.const_data_ptr<float>(), kernels::DenseActivation::tanh, x,
                                  layer.dx.data_ptr<float>(), workspace, 1);
    benchmark::ClobberMemory();
  }
  layer.count(state, 2);
}

void BM_LibraryBackward(benchmark::State& state) {
  Layer layer(state);
  for (auto _ : state) {
    at::mm_out(layer.dw, layer.d.t(), layer.x);
    at::sum_out(layer.db, layer.d, at::IntArrayRef({0}));
    at::mm_out(layer.dx, layer.d, layer.w);
    at::tanh_backward_out(layer.dx, layer.dx, layer.x);
    benchmark::ClobberMemory();
  }
  layer.count(state, 2);
}

void policy_layers(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"rows", "in", "out"});
  constexpr std::int64_t kLayers[][2] = {{4, 64}, {64, 64}, {64, 2}, {376, 256}, {256, 256}};
  for (const auto& [inputs, outputs] : kLayers) {
    for (const std::int64_t rows : {8, 16, 64, 256, 512}) benchmark->Args({rows, inputs, outputs});
  }
}

BENCHMARK(BM_DenseForward)->Apply(policy_layers);
BENCHMARK(BM_LibraryForward)->Apply(policy_layers);
BENCHMARK(BM_DenseBackward)->Apply(policy_layers);
BENCHMARK(BM_LibraryBackward)->Apply(policy_layers);

}  // namespace
}  // namespace troupe::bench
