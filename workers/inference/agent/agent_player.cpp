#include "workers/inference/agent/agent_player.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "env/episode_seed.h"
#include "model/loss/rl_keys.h"
#include "model/policy/flow_step.h"
#include "model/policy/image_dtype.h"

namespace troupe::workers {

AgentPlayer::AgentPlayer(const Agent& agent, const JobConfig& job, const PublishedWeights& weights)
    : agent_(agent),
      weights_(weights),
      parts_(observation_parts(agent.spec())),
      scale_(weights.normaliser.observed, job.rollout.clip_obs, parts_.normalised),
      chunk_(job.env.chunk),
      exec_steps_(job.env.executed()),
      noise_level_(flow_noise_level(job.policy.flow, weights.version)),
      seed_(static_cast<std::uint64_t>(job.job.seed)) {}

const std::byte* AgentPlayer::field(const EpisodeSeat& seat, std::int64_t agent, std::size_t index) {
  const std::int64_t bytes = agent_.spec().observation[index].bytes();
  if (seat.seen != nullptr) return seat.field(index) + agent * bytes;
  blank_.resize(std::max(blank_.size(), static_cast<std::size_t>(bytes)));
  return blank_.data();
}

void AgentPlayer::remember(std::span<const EpisodeSeat> seats, Batch& observation) {
  const auto num_seats = static_cast<std::int64_t>(seats.size());
  for (const MemoryField& field : agent_.policy->memory()) {
    at::Tensor& memory = memory_[field.name];
    if (!memory.defined()) memory = at::zeros({num_seats * agent_.spec().agents, field.width}, at::kFloat);
    for (std::int64_t i = 0; i < num_seats; ++i) {
      const EpisodeSeat& seat = seats[static_cast<std::size_t>(i)];
      if (seat.is_playing && seat.length == 0) memory.view({num_seats, -1})[i].zero_();
    }
    observation[rl_keys::kMemoryPrefix + field.name] = memory;
  }
}

Result<at::Tensor> AgentPlayer::act(std::span<const EpisodeSeat> seats) {
  const std::int64_t agents = agent_.spec().agents, rows = static_cast<std::int64_t>(seats.size()) * agents;
  const auto seat_of = [&](std::int64_t row) -> const EpisodeSeat& {
    return seats[static_cast<std::size_t>(row / agents)];
  };
  ActRequest request{.observation = {},
                     .seed = seed_,
                     .keys = {},
                     .deterministic = true,
                     .noise_level = noise_level_,
                     .version = weights_.which()};
  if (const std::int64_t width = agent_.shape.state_dim; width > 0) {
    at::Tensor state = at::empty({rows, width}, at::kFloat);
    for (std::int64_t row = 0; row < rows; ++row) {
      for (const ObservationParts::Vector& part : parts_.vectors)
        part.write(field(seat_of(row), row % agents, part.field), state.mutable_data_ptr<float>() + row * width);
    }
    if (weights_.normaliser.observed.dim() > 0)
      scale_.apply({state.mutable_data_ptr<float>(), static_cast<std::size_t>(state.numel())});
    request.observation[rl_keys::kState] = state;
  }
  for (std::size_t i = 0; i < parts_.images.size(); ++i) {
    const PolicyShape::Image& image = agent_.shape.images[i];
    const ObservationParts::Image& part = parts_.images[i];
    at::Tensor pixels = at::empty({rows, image.height, image.width, image.channels}, image_dtype(image));
    auto* to = static_cast<std::byte*>(pixels.mutable_data_ptr());
    for (std::int64_t row = 0; row < rows; ++row)
      to = std::copy_n(field(seat_of(row), row % agents, part.field), part.bytes, to);
    request.observation[rl_keys::kImagePrefix + image.name] = pixels;
  }
  for (std::size_t i = 0; i < agent_.shape.texts.size(); ++i) {
    const PolicyShape::Text& text = agent_.shape.texts[i];
    at::Tensor told = at::empty({rows, text.bytes}, at::kByte);
    auto* to = static_cast<std::byte*>(told.mutable_data_ptr());
    for (std::int64_t row = 0; row < rows; ++row)
      to = std::copy_n(field(seat_of(row), row % agents, parts_.texts[i].field), text.bytes, to);
    request.observation[rl_keys::kTextPrefix + text.name] = told;
  }
  std::vector<std::uint64_t> keys;
  for (std::int64_t row = 0; row < rows; ++row) {
    const EpisodeSeat& seat = seat_of(row);
    keys.push_back(episode_seed(static_cast<std::uint64_t>(seat.seed), 1 + row % agents, seat.length));
  }
  request.keys = keys;
  remember(seats, request.observation);
  ActResult result = agent_.policy->act(weights_.views, request);
  for (auto& [name, memory] : result.memory) memory_[name] = memory.contiguous();
  return result.action.contiguous();
}

}  // namespace troupe::workers
