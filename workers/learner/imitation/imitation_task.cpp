#include "workers/learner/imitation/imitation_task.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "model/loss/rl_keys.h"
#include "model/policy/flow_imitation.h"
#include "workers/learner/imitation/demonstrations.h"

namespace troupe::workers {

Result<std::unique_ptr<ImitationTask>> ImitationTask::make(const JobConfig& job, const EnvSpec& env) {
  TROUPE_ASSIGN(const Agent agent, make_agent(job, env));
  return std::unique_ptr<ImitationTask>(new ImitationTask(job, agent));
}

ImitationTask::ImitationTask(const JobConfig& job, const Agent& agent)
    : seed_(static_cast<std::uint64_t>(job.job.seed)),
      layout_(demonstration_layout(job.policy, agent.shape)),
      images_(demonstrated_images(job.policy, agent.shape)),
      texts_(agent.shape.texts),
      network_(agent.policy->objective("sft")) {}

Batch ImitationTask::make_batch(const std::vector<Feed::Sample>& samples, std::size_t real, bool held_out) const {
  const auto count = static_cast<std::int64_t>(samples.size());
  const TensorField &state = layout_.field("state"), &action = layout_.field("action"),
                    &counts = layout_.field("counts");
  const std::int64_t width = action.bytes / 4;
  at::Tensor states = at::zeros({count, state.bytes / 4}), actions = at::zeros({count, width}),
             counted = at::zeros({count, counts.bytes}, at::kBool);
  std::vector<at::Tensor> pictures, texts;
  for (const PolicyShape::Image& image : images_)
    pictures.push_back(at::zeros({count, image.height, image.width, image.channels}, at::kByte));
  for (const PolicyShape::Text& text : texts_) texts.push_back(at::zeros({count, text.bytes}, at::kByte));
  std::vector<std::uint64_t> positions;
  for (std::int64_t row = 0; row < count; ++row) {
    const Feed::Sample& sample = samples[static_cast<std::size_t>(row)];
    positions.push_back(static_cast<std::uint64_t>(sample.position));
    // stays zero and counts for nothing
    if (!sample.void_reason.empty()) continue;
    std::ranges::copy(field_values<float>(sample.bytes, state),
                      states.mutable_data_ptr<float>() + row * states.size(1));
    std::ranges::copy(field_values<float>(sample.bytes, action), actions.mutable_data_ptr<float>() + row * width);
    for (std::size_t i = 0; i < images_.size(); ++i) {
      std::ranges::copy(
          field_values<std::uint8_t>(sample.bytes, layout_.field(rl_keys::kImagePrefix + images_[i].name)),
          pictures[i].mutable_data_ptr<std::uint8_t>() + row * images_[i].bytes());
    }
    for (std::size_t i = 0; i < texts_.size(); ++i) {
      std::ranges::copy(field_values<std::uint8_t>(sample.bytes, layout_.field(rl_keys::kTextPrefix + texts_[i].name)),
                        texts[i].mutable_data_ptr<std::uint8_t>() + row * texts_[i].bytes);
    }
    if (static_cast<std::size_t>(row) >= real) continue;
    std::ranges::transform(field_values<std::uint8_t>(sample.bytes, counts),
                           counted.mutable_data_ptr<bool>() + row * counts.bytes,
                           [](std::uint8_t c) { return c != 0; });
  }
  Batch batch{{rl_keys::kState, states}, {rl_keys::kAction, actions}, {rl_keys::kMask, counted}};
  for (std::size_t i = 0; i < images_.size(); ++i) batch[rl_keys::kImagePrefix + images_[i].name] = pictures[i];
  for (std::size_t i = 0; i < texts_.size(); ++i) batch[rl_keys::kTextPrefix + texts_[i].name] = texts[i];
  draw_flow_targets(seed_, positions, width, held_out, batch);
  return batch;
}

Result<Batch> ImitationTask::train_batch(const std::vector<Feed::Sample>& samples) {
  return make_batch(samples, samples.size(), /*held_out=*/false);
}

Result<Batch> ImitationTask::eval_batch(const std::vector<Feed::Sample>& samples, std::size_t real) {
  return make_batch(samples, real, /*held_out=*/true);
}

}  // namespace troupe::workers
