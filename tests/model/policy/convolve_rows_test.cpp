// Convolutions in parts of the rows against LibTorch's over all of them.
#include "model/policy/convolve_rows.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <tuple>
#include <vector>

#include "kernels/threads.h"

namespace troupe::model {
namespace {

/// Three layers for pictures of 20x24 with 3 channels; relu behind all but maybe the last.
std::vector<ConvolutionLayer> make_layers(at::ScalarType dtype, bool last_has_relu) {
  const auto generator = at::detail::createCPUGenerator(7);
  std::vector<ConvolutionLayer> layers;
  std::int64_t inputs = 3;
  for (const auto& [outputs, size, stride] : {std::tuple{4, 5, 2}, std::tuple{6, 3, 2}, std::tuple{5, 2, 1}}) {
    layers.push_back({at::randn({outputs, inputs, size, size}, generator, dtype).requires_grad_(true),
                      at::randn({outputs}, generator, dtype).requires_grad_(true), stride, true});
    inputs = outputs;
  }
  layers.back().has_relu = last_has_relu;
  return layers;
}

at::Tensor make_pictures(std::int64_t rows, at::ScalarType dtype) {
  const auto generator = at::detail::createCPUGenerator(rows);
  return dtype == at::kByte ? at::randint(0, 256, {rows, 20, 24, 3}, generator, dtype)
                            : at::randn({rows, 20, 24, 3}, generator, dtype);
}

/// The maps, then the gradients of their weighted sum.
template <class F>
std::vector<at::Tensor> maps_and_gradients(const F& convolve, const std::vector<ConvolutionLayer>& layers) {
  const at::Tensor maps = convolve();
  const auto generator = at::detail::createCPUGenerator(9);
  (maps * at::randn(maps.sizes(), generator, maps.options())).sum().backward();
  std::vector<at::Tensor> all{maps.detach()};
  for (const ConvolutionLayer& layer : layers) {
    for (const at::Tensor& trained : {layer.weight, layer.bias}) {
      all.push_back(trained.grad().clone());
      trained.mutable_grad().reset();
    }
  }
  return all;
}

TEST(ConvolveRowsTest, MapsAndGradientsAreLibTorchs) {
  for (const std::int64_t rows : {1, 16, 17, 40}) {
    for (const bool last_has_relu : {true, false}) {
      for (const auto dtype : {at::kByte, at::kDouble}) {
        SCOPED_TRACE(::testing::Message() << rows << " rows of " << dtype << ", relu " << last_has_relu);
        const auto layers = make_layers(at::kDouble, last_has_relu);
        const at::Tensor pictures = make_pictures(rows, dtype);
        const auto ours = maps_and_gradients([&] { return convolve_rows(pictures, layers); }, layers);
        const auto theirs = maps_and_gradients(
            [&] {
              at::Tensor h = pictures.permute({0, 3, 1, 2}).to(at::kDouble) / (dtype == at::kByte ? 255.0 : 1.0);
              for (const ConvolutionLayer& layer : layers) {
                h = at::conv2d(h, layer.weight, layer.bias, layer.stride);
                if (layer.has_relu) h = h.relu();
              }
              return h;
            },
            layers);
        ASSERT_EQ(ours.size(), theirs.size());
        for (std::size_t i = 0; i < ours.size(); ++i)
          EXPECT_TRUE(ours[i].allclose(theirs[i], 1e-10, 1e-10)) << "number " << i;
      }
    }
  }
}

TEST(ConvolveRowsTest, BitsAreTheSameOnAnyNumberOfThreads) {
  const auto layers = make_layers(at::kFloat, true);
  const at::Tensor pictures = make_pictures(100, at::kByte);
  std::vector<at::Tensor> first;
  for (const int threads : {1, 2, 3, 7}) {
    kernels::set_num_threads(threads);
    const auto all = maps_and_gradients([&] { return convolve_rows(pictures, layers); }, layers);
    if (first.empty()) first = all;
    for (std::size_t i = 0; i < all.size(); ++i)
      EXPECT_TRUE(all[i].equal(first[i])) << threads << " threads, number " << i;
  }
  kernels::set_num_threads(0);
}

TEST(ConvolveRowsTest, NoRowsGiveNoMapsAndWithoutAGraphThereIsNone) {
  const auto layers = make_layers(at::kFloat, true);
  EXPECT_EQ(convolve_rows(make_pictures(0, at::kByte), layers).sizes(), (std::vector<std::int64_t>{0, 5, 2, 3}));
  EXPECT_TRUE(convolve_rows(make_pictures(2, at::kByte), layers).requires_grad());
  const at::NoGradGuard no_grad;
  EXPECT_FALSE(convolve_rows(make_pictures(2, at::kByte), layers).requires_grad());
}

}  // namespace
}  // namespace troupe::model
