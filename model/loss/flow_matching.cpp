#include "model/loss/flow_matching.h"

#include <ATen/ATen.h>

#include "base/random.h"
#include "model/loss/beta_distribution.h"

namespace troupe::model {
namespace {

/// i64 [B, count], uniform in 0..999.
at::Tensor uniform_ids(std::uint64_t seed, std::uint64_t stream, std::span<const std::uint64_t> positions,
                       std::int64_t count) {
  auto ids = at::empty({static_cast<std::int64_t>(positions.size()), count}, at::TensorOptions().dtype(at::kLong));
  auto* out = ids.data_ptr<std::int64_t>();
  for (const auto position : positions) {
    CounterRng rng(seed, stream, position);
    for (std::int64_t i = 0; i < count; ++i) *out++ = rng.below(static_cast<std::uint32_t>(kScheduleSize));
  }
  return ids;
}

/// Losses are f32 whatever the network's dtype, f64 when a test runs in f64.
at::ScalarType loss_dtype(const at::Tensor& velocity) {
  return velocity.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

at::Tensor squared_error(const at::Tensor& velocity, const at::Tensor& target) {
  const auto dtype = loss_dtype(velocity);
  return (velocity.to(dtype) - target.to(velocity.device(), dtype)).square();
}

}  // namespace

FlowSchedule make_flow_schedule() {
  const auto options = at::TensorOptions().dtype(at::kFloat);
  const auto s = at::linspace(1.0, 0.0, kScheduleSize + 1, options).narrow(0, 0, kScheduleSize);
  const auto sigmas = (5.0 * s / (1.0 + 4.0 * s)).contiguous();
  const auto timesteps = sigmas * 1000.0;
  const auto y = at::exp(-2.0 * ((timesteps - 500.0) / 1000.0).square());
  const auto shifted = y - y.min();
  return {sigmas, timesteps, shifted * (1000.0 / shifted.sum())};
}

void draw_keyed_noise(std::uint64_t seed, std::uint64_t stream, std::span<const std::uint64_t> positions,
                      std::span<float> out) {
  if (positions.empty()) return;
  const std::size_t count = out.size() / positions.size();
  for (std::size_t p = 0; p < positions.size(); ++p) {
    CounterRng rng(seed, stream, positions[p]);
    for (float& number : out.subspan(p * count, count)) number = rng.normal();
  }
}

at::Tensor keyed_noise(std::uint64_t seed, std::uint64_t stream, std::span<const std::uint64_t> positions,
                       const std::vector<std::int64_t>& sample_shape) {
  auto shape = sample_shape;
  shape.insert(shape.begin(), static_cast<std::int64_t>(positions.size()));
  auto noise = at::empty(shape, at::TensorOptions().dtype(at::kFloat));
  draw_keyed_noise(seed, stream, positions, {noise.data_ptr<float>(), static_cast<std::size_t>(noise.numel())});
  return noise;
}

at::Tensor draw_video_ids(std::uint64_t seed, std::uint64_t stream, std::span<const std::uint64_t> positions,
                          std::int64_t frames, std::int64_t frames_per_block) {
  return tie_video_ids(uniform_ids(seed, stream, positions, frames), frames_per_block);
}

at::Tensor draw_beta_video_ids(std::uint64_t seed, std::uint64_t stream, std::span<const std::uint64_t> positions,
                               std::int64_t frames, std::int64_t frames_per_block, double a, double b) {
  auto draws = at::empty({static_cast<std::int64_t>(positions.size()), frames}, at::TensorOptions().dtype(at::kFloat));
  float* out = draws.data_ptr<float>();
  for (const auto position : positions) {
    CounterRng rng(seed, stream, position);
    for (std::int64_t f = 0; f < frames; ++f) {
      const double u = (static_cast<double>(rng.next_u32()) + 0.5) * 0x1.0p-32;
      *out++ = static_cast<float>(beta_quantile(u, a, b));
    }
  }
  return tie_video_ids(ids_from_beta_draws(draws), frames_per_block);
}

at::Tensor draw_action_ids(std::uint64_t seed, std::uint64_t stream, std::span<const std::uint64_t> positions,
                           std::int64_t actions) {
  return uniform_ids(seed, stream, positions, actions);
}

at::Tensor tie_video_ids(const at::Tensor& ids_BF, std::int64_t frames_per_block) {
  const auto batch = ids_BF.size(0), frames = ids_BF.size(1);
  TORCH_CHECK((frames - 1) % frames_per_block == 0, "tie_video_ids: ", frames, " frames are not 1 plus a multiple of ",
              frames_per_block);
  const auto blocks = ids_BF.narrow(1, 1, frames - 1).reshape({batch, -1, frames_per_block});
  const auto tied = blocks.narrow(2, 0, 1).expand_as(blocks).reshape({batch, frames - 1});
  return at::cat({ids_BF.narrow(1, 0, 1), tied}, 1);
}

at::Tensor coupled_action_ids(const at::Tensor& video_ids_BF, std::int64_t frames_per_block,
                              std::int64_t actions_per_block) {
  const auto batch = video_ids_BF.size(0), frames = video_ids_BF.size(1);
  const auto blocks = video_ids_BF.narrow(1, 1, frames - 1).reshape({batch, -1, frames_per_block});
  return blocks.narrow(2, 0, 1).expand({batch, blocks.size(1), actions_per_block}).reshape({batch, -1});
}

at::Tensor ids_from_beta_draws(const at::Tensor& draws) {
  return ((1.0 - draws.to(at::kFloat)) * 1000.0).trunc().clamp(0, kScheduleSize - 1).to(at::kLong);
}

FlowMix mix_noise(const at::Tensor& clean, const at::Tensor& noise, const at::Tensor& sigma) {
  const auto dtype = clean.scalar_type();
  const auto eps = noise.to(clean.device(), dtype), s = sigma.to(clean.device(), dtype);
  return {(1.0 - s) * clean + s * eps, eps - clean};
}

at::Tensor video_flow_loss(const at::Tensor& velocity, const at::Tensor& target, const at::Tensor& weights) {
  TORCH_CHECK(velocity.dim() == 5 && target.dim() == 5 && target.size(3) >= velocity.size(3) &&
                  target.size(4) >= velocity.size(4),
              "video_flow_loss: velocity ", velocity.sizes(), " does not fit into target ", target.sizes());
  const auto cropped = target.narrow(3, 0, velocity.size(3)).narrow(4, 0, velocity.size(4));
  TORCH_CHECK(cropped.sizes() == velocity.sizes() && weights.dim() == 2 && weights.size(0) == velocity.size(0) &&
                  weights.size(1) == velocity.size(2),
              "video_flow_loss: velocity ", velocity.sizes(), ", target ", target.sizes(), ", weights ",
              weights.sizes());
  return (squared_error(velocity, cropped).mean({1, 3, 4}) * weights).mean();
}

at::Tensor action_flow_loss(const at::Tensor& velocity, const at::Tensor& target, const at::Tensor& mask,
                            const at::Tensor& real, const at::Tensor& weights) {
  TORCH_CHECK(velocity.dim() == 3 && velocity.sizes() == target.sizes() && velocity.sizes() == mask.sizes() &&
                  real.dim() == 1 && real.size(0) == velocity.size(0) && weights.dim() == 2 &&
                  weights.size(0) == velocity.size(0) && weights.size(1) == velocity.size(1),
              "action_flow_loss: velocity ", velocity.sizes(), ", target ", target.sizes(), ", mask ", mask.sizes(),
              ", real ", real.sizes(), ", weights ", weights.sizes());
  const auto error = squared_error(velocity, target);
  const auto counted =
      mask.to(error.device(), error.scalar_type()) * real.to(error.device(), error.scalar_type()).view({-1, 1, 1});
  return ((error * counted).mean(2) * weights).mean();
}

at::Tensor video_flow_coefficients(const at::Tensor& velocity, const at::Tensor& weights) {
  TORCH_CHECK(velocity.dim() == 5 && weights.dim() == 2 && weights.size(0) == velocity.size(0) &&
                  weights.size(1) == velocity.size(2),
              "video_flow_coefficients: velocity ", velocity.sizes(), ", weights ", weights.sizes());
  return weights.to(velocity.device(), loss_dtype(velocity)).view({weights.size(0), 1, weights.size(1), 1, 1}) /
         static_cast<double>(velocity.numel());
}

at::Tensor action_flow_coefficients(const at::Tensor& velocity, const at::Tensor& mask, const at::Tensor& real,
                                    const at::Tensor& weights) {
  TORCH_CHECK(velocity.dim() == 3 && velocity.sizes() == mask.sizes() && real.dim() == 1 &&
                  real.size(0) == velocity.size(0) && weights.dim() == 2 && weights.size(0) == velocity.size(0) &&
                  weights.size(1) == velocity.size(1),
              "action_flow_coefficients: velocity ", velocity.sizes(), ", mask ", mask.sizes(), ", real ", real.sizes(),
              ", weights ", weights.sizes());
  const auto on = [&](const at::Tensor& t) { return t.to(velocity.device(), loss_dtype(velocity)); };
  return on(mask) * on(real).view({-1, 1, 1}) * on(weights).unsqueeze(2) / static_cast<double>(velocity.numel());
}

}  // namespace troupe::model
