#include "model/policy/cnn.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <array>
#include <numbers>

#include "model/policy/convolve_rows.h"

namespace troupe::model {
namespace {

struct Kernel {
  std::int64_t size, stride;
};
constexpr std::array<Kernel, 3> kFeatureKernels{{{8, 4}, {4, 2}, {3, 1}}}, kKeypointKernels{{{5, 2}, {3, 2}, {3, 1}}};

/// Where each of `count` columns is, evenly from -1 (the first) to 1 (the last); one alone is at 0.
at::Tensor places(std::int64_t count, const at::TensorOptions& options) {
  return count > 1 ? at::linspace(-1, 1, count, options) : at::zeros({1}, options);
}

/// Factor of the maps that keypoints are read from. Without it a fresh network's softmax is nearly uniform, and every
/// keypoint is near the middle of the picture.
constexpr double kKeypointGain = 10;

}  // namespace

Result<Cnn> Cnn::make(std::string prefix, Vision vision, const PolicyShape::Image& image,
                      const std::vector<std::int64_t>& channels) {
  const auto& kernels = vision == Vision::keypoints ? kKeypointKernels : kFeatureKernels;
  if (channels.empty() || channels.size() > kernels.size()) {
    return Error{Errc::invalid_argument,
                 fmt::format("policy.cnn_channels has {} numbers; one to {} are wanted, one per convolution",
                             channels.size(), kernels.size())};
  }
  Cnn cnn;
  cnn.finds_keypoints_ = vision == Vision::keypoints;
  std::int64_t height = image.height, width = image.width, inputs = image.channels;
  for (std::size_t i = 0; i < channels.size(); ++i) {
    const auto [size, stride] = kernels[i];
    if (channels[i] < 1) {
      return Error{Errc::invalid_argument,
                   fmt::format("policy.cnn_channels contains {}; at least 1 is wanted", channels[i])};
    }
    if (height < size || width < size) {
      return Error{
          Errc::invalid_argument,
          fmt::format(
              "the image {} of {}x{} is too small for {} convolutions: number {} is {}x{} and sees {}x{}; use larger "
              "images (env.*) or fewer policy.cnn_channels",
              image.name, image.height, image.width, channels.size(), i + 1, size, size, height, width)};
    }
    const auto name = fmt::format("{}.{}", prefix, i);
    cnn.convolutions_.push_back({name + ".weight", name + ".bias", inputs, channels[i], size, stride});
    height = (height - size) / stride + 1;
    width = (width - size) / stride + 1;
    inputs = channels[i];
  }
  if (cnn.finds_keypoints_ && (height < 2 || width < 2)) {
    return Error{Errc::invalid_argument,
                 fmt::format("the image {} of {}x{} is too small for policy.vision keypoints: the last convolution "
                             "leaves {}x{}, along one number of which a place is always 0; use larger images (env.*)",
                             image.name, image.height, image.width, height, width)};
  }
  cnn.features_ = cnn.finds_keypoints_ ? 2 * inputs : inputs * height * width;
  return cnn;
}

std::vector<ParamSpec> Cnn::params() const {
  std::vector<ParamSpec> list;
  for (const auto& c : convolutions_) {
    list.push_back({c.weight, {c.outputs, c.inputs, c.size, c.size}, {Init::Kind::orthogonal, std::numbers::sqrt2}});
    list.push_back({c.bias, {c.outputs}, {}});
  }
  return list;
}

at::Tensor Cnn::forward(const ParamView& view, const at::Tensor& images) const {
  std::vector<ConvolutionLayer> layers;
  // a softmax wants what lies below zero too
  for (const auto& c : convolutions_)
    layers.push_back({view[c.weight], view[c.bias], c.stride, !finds_keypoints_ || &c != &convolutions_.back()});
  const at::Tensor maps = convolve_rows(images, layers);
  return finds_keypoints_ ? spatial_keypoints(maps * kKeypointGain) : maps.flatten(1);
}

at::Tensor spatial_keypoints(const at::Tensor& maps) {
  const auto height = maps.size(2), width = maps.size(3);
  const auto share = maps.flatten(2).softmax(2).view({maps.size(0), maps.size(1), height, width});
  const auto x = at::matmul(share.sum(2), places(width, maps.options()));
  const auto y = at::matmul(share.sum(3), places(height, maps.options()));
  return at::cat({x, y}, 1);
}

}  // namespace troupe::model
