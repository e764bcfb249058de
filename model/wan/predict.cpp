#include "model/wan/predict.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "model/loss/flow_matching.h"
#include "model/wan/batch_keys.h"

namespace troupe::model {
namespace {

namespace key = batch_keys;

Result<at::Tensor> prediction_like(const Outputs& outputs, const char* name, const at::Tensor& sample) {
  const auto it = outputs.predictions.find(name);
  if (it == outputs.predictions.end()) {
    return Error{Errc::invalid_argument, fmt::format("predict: the forward returned no prediction \"{}\"", name)};
  }
  if (it->second.sizes() != sample.sizes()) {
    return Error{
        Errc::invalid_argument,
        fmt::format("predict: prediction \"{}\" has another shape than the sample it denoises; latents need even "
                    "rows and columns (model.target_height and target_width multiples of twice the stride)",
                    name)};
  }
  return it->second.to(sample.scalar_type());
}

}  // namespace

Result<Prediction> predict(const Batch& conditioning, const at::Tensor& video_noise, const at::Tensor& action_noise,
                           std::int64_t steps, const ForwardFn& forward) {
  if (steps < 1 || steps > kScheduleSize) {
    return Error{Errc::invalid_argument, fmt::format("predict: {} steps, want 1 to {}", steps, kScheduleSize)};
  }
  const auto clean = conditioning.find(key::kCleanLatents);
  if (clean == conditioning.end() || clean->second.sizes() != video_noise.sizes() || action_noise.dim() != 3) {
    return Error{Errc::invalid_argument,
                 "predict: video_noise must have the shape of the batch's clean_latents, "
                 "and action_noise three axes"};
  }
  const auto sigmas = make_flow_schedule().sigmas;
  const auto ids_like = [](const at::Tensor& x, std::int64_t tokens, std::int64_t id) {
    return at::full({x.size(0), tokens}, id, x.options().dtype(at::kLong));
  };
  Prediction sample{video_noise, action_noise};
  Batch batch = conditioning;
  batch.erase(key::kVideoTarget);
  batch.erase(key::kActionTarget);
  for (std::int64_t i = 0; i < steps; ++i) {
    const auto id = i * kScheduleSize / steps, next = (i + 1) * kScheduleSize / steps;
    const double sigma = sigmas[id].item<double>();
    const double sigma_next = i + 1 == steps ? 0.0 : sigmas[next].item<double>();
    batch[key::kNoisyLatents] = sample.video;
    batch[key::kNoisyActions] = sample.actions;
    batch[key::kVideoIds] = ids_like(video_noise, video_noise.size(2), id);
    batch[key::kActionIds] = ids_like(action_noise, action_noise.size(1), id);
    TROUPE_ASSIGN(const Outputs outputs, forward(batch));
    TROUPE_ASSIGN(const at::Tensor video, prediction_like(outputs, key::kVideoVelocity, sample.video));
    TROUPE_ASSIGN(const at::Tensor actions, prediction_like(outputs, key::kActionVelocity, sample.actions));
    sample.video = sample.video + (sigma_next - sigma) * video;
    sample.actions = sample.actions + (sigma_next - sigma) * actions;
  }
  return sample;
}

}  // namespace troupe::model
