#include "model/policy/cnn.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <array>
#include <numbers>

namespace troupe::model {
namespace {

struct Kernel {
  std::int64_t size, stride;
};
constexpr std::array<Kernel, 3> kKernels{{{8, 4}, {4, 2}, {3, 1}}};

}  // namespace

Result<Cnn> Cnn::make(std::string prefix, const PolicyShape::Image& image, const std::vector<std::int64_t>& channels) {
  if (channels.empty() || channels.size() > kKernels.size()) {
    return Error{Errc::invalid_argument,
                 fmt::format("policy.cnn_channels has {} numbers; one to {} are wanted, one per convolution",
                             channels.size(), kKernels.size())};
  }
  Cnn cnn;
  std::int64_t height = image.height, width = image.width, inputs = image.channels;
  for (std::size_t i = 0; i < channels.size(); ++i) {
    const auto [size, stride] = kKernels[i];
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
  cnn.features_ = inputs * height * width;
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
  at::Tensor h = images.permute({0, 3, 1, 2}).to(view[convolutions_.front().weight].scalar_type());
  if (images.scalar_type() == at::kByte) h = h.div(255.0);
  for (const auto& c : convolutions_) h = at::conv2d(h, view[c.weight], view[c.bias], c.stride).relu();
  return h.flatten(1);
}

}  // namespace troupe::model
