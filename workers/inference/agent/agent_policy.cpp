#include "workers/inference/agent/agent_policy.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <set>

#include "model/loss/rl_keys.h"
#include "model/policy/flow_step.h"
#include "model/policy/image_dtype.h"

namespace troupe::workers {

namespace {

constexpr std::int64_t kLongestSide = 16'384;  ///< of a frame; checked before anything is multiplied

Error refuse(std::string text) { return {Errc::invalid_argument, std::move(text)}; }

std::string shape_text(const NdArray& array) {
  return fmt::format("{} [{}]", array.dtype, fmt::join(array.shape, ", "));
}

PolicyInfo make_info(const LoadedAgent& loaded, const ObservationParts& parts, const std::string& name) {
  PolicyInfo info;
  const PolicyShape& shape = loaded.agent.shape;
  info.name = name;
  info.embodiment = loaded.job.env.id;
  for (const PolicyShape::Image& image : seen_by_actor(shape).images) info.views.push_back(image.name);
  for (const ObservationParts::Vector& part : parts.vectors) {
    if (part.reader == EnvReader::critic) continue;
    info.state.push_back({loaded.agent.spec().observation[part.field].name, part.numel});
  }
  info.action = {{"action", shape.action_dim}};
  info.horizon = shape.chunk;
  if (!shape.images.empty()) {
    info.image_height = shape.images.front().height;
    info.image_width = shape.images.front().width;
  }
  info.frames_per_call = {1};
  info.takes_prompt = !shape.texts.empty();
  return info;
}

/// Values of one state vector, finite, into `out`.
Result<void> read_vector(const std::string& name, const NdArray& array, std::span<float> out) {
  const bool is_f32 = array.dtype == "<f4";
  const std::size_t item = is_f32 ? sizeof(float) : sizeof(double);
  const auto width = static_cast<std::int64_t>(out.size());
  if ((!is_f32 && array.dtype != "<f8") || array.shape != std::vector<std::int64_t>{width} ||
      array.data.size() != out.size() * item) {
    return refuse(fmt::format("state '{}' is {} of {} bytes; wanted <f4 or <f8 [{}]", name, shape_text(array),
                              array.data.size(), width));
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    double wide = 0;
    std::memcpy(is_f32 ? static_cast<void*>(&out[i]) : &wide, array.data.data() + i * item, item);
    if (!is_f32) out[i] = static_cast<float>(wide);
    if (!std::isfinite(out[i]))
      return refuse(fmt::format("state '{}' holds a value that is not finite at {}", name, i));
  }
  return {};
}

/// The newest frame of a view in the size that the network takes, u8 [H,W,3].
Result<at::Tensor> read_image(const PolicyShape::Image& image, const NdArray& array) {
  const std::size_t dims = array.shape.size();
  const auto wrong = [&] {
    return refuse(fmt::format("image '{}' is {} of {} bytes; wanted |u1 [H, W, 3] or [T, H, W, 3]", image.name,
                              shape_text(array), array.data.size()));
  };
  if (array.dtype != "|u1" || (dims != 3 && dims != 4) || array.shape.back() != 3) return wrong();
  const std::int64_t frames = dims == 4 ? array.shape[0] : 1, height = array.shape[dims - 3],
                     width = array.shape[dims - 2];
  for (const std::int64_t side : {frames, height, width}) {
    if (side < 1 || side > kLongestSide) return wrong();
  }
  const std::int64_t bytes = height * width * 3;
  if (static_cast<std::int64_t>(array.data.size()) != frames * bytes) return wrong();
  at::Tensor pixels = at::empty({height, width, 3}, at::kByte);
  std::memcpy(pixels.mutable_data_ptr<std::uint8_t>(), array.data.data() + (frames - 1) * bytes,
              static_cast<std::size_t>(bytes));
  if (height == image.height && width == image.width) return pixels;
  const at::Tensor planes = pixels.permute({2, 0, 1}).unsqueeze(0).to(at::kFloat).contiguous();
  const at::Tensor resized = at::_upsample_bilinear2d_aa(planes, {image.height, image.width}, /*align_corners=*/false);
  return resized.squeeze(0).permute({1, 2, 0}).round().clamp(0, 255).to(at::kByte).contiguous();
}

/// f32 [H,W,1], finite and not negative.
Result<at::Tensor> read_depth(const PolicyShape::Image& image, const NdArray& array) {
  std::vector<std::int64_t> shape = array.shape;
  if (shape.size() == 3 && shape.back() == 1) shape.pop_back();
  if (array.dtype != "<f4" || shape != std::vector{image.height, image.width} ||
      static_cast<std::int64_t>(array.data.size()) != image.bytes()) {
    return refuse(fmt::format("depth '{}' is {} of {} bytes; wanted <f4 [{}, {}]", image.name, shape_text(array),
                              array.data.size(), image.height, image.width));
  }
  at::Tensor depth = at::empty({image.height, image.width, 1}, at::kFloat);
  auto* const metres = depth.mutable_data_ptr<float>();
  std::memcpy(metres, array.data.data(), array.data.size());
  const auto is_wrong = [](float d) { return !std::isfinite(d) || d < 0; };
  if (std::any_of(metres, metres + depth.numel(), is_wrong))
    return refuse(fmt::format("depth '{}' holds a value that is negative or not finite", image.name));
  return depth;
}

}  // namespace

Result<std::unique_ptr<AgentPolicy>> AgentPolicy::make(LoadedAgent loaded, const std::string& name) {
  for (const PolicyShape::Image& image : loaded.agent.shape.images) {
    if (image.channels == 3 || image.is_depth || image.is_for_critic) continue;
    return refuse(fmt::format("{} observes the image '{}' with {} channels; a server takes three", loaded.job.env.id,
                              image.name, image.channels));
  }
  const auto& texts = loaded.agent.shape.texts;
  if (texts.size() > 1) {
    return refuse(fmt::format("{} tells its policy '{}' and {} more texts; a request to a server brings one",
                              loaded.job.env.id, texts.front().name, texts.size() - 1));
  }
  return std::unique_ptr<AgentPolicy>(new AgentPolicy(std::move(loaded), name));
}

AgentPolicy::AgentPolicy(LoadedAgent loaded, const std::string& name)
    : loaded_(std::move(loaded)),
      parts_(observation_parts(loaded_.agent.spec())),
      scale_(loaded_.weights.normaliser.observed, loaded_.job.rollout.clip_obs, parts_.normalised),
      noise_level_(flow_noise_level(loaded_.job.policy.flow, loaded_.weights.version)),
      info_(make_info(loaded_, parts_, name)) {}

Result<AgentPolicy::Row> AgentPolicy::read(const Observation& observation) const {
  if (observation.episode.empty()) return refuse("the observation names no episode");
  Row row;
  row.episode = observation.episode;
  row.state.resize(static_cast<std::size_t>(loaded_.agent.shape.state_dim));
  for (const ObservationParts::Vector& part : parts_.vectors) {
    if (part.reader == EnvReader::critic) continue;
    const std::string& name = loaded_.agent.spec().observation[part.field].name;
    const auto found = observation.state.find(name);
    if (found == observation.state.end()) return refuse(fmt::format("the state '{}' is missing", name));
    const auto columns =
        std::span(row.state).subspan(static_cast<std::size_t>(part.column), static_cast<std::size_t>(part.numel));
    TROUPE_TRY(read_vector(name, found->second, columns));
    if (part.reader != EnvReader::action_mask) continue;
    std::ranges::transform(columns, columns.begin(), [](float allowed) { return allowed != 0 ? 1.0F : 0.0F; });
    if (std::ranges::find(columns, 1.0F) == columns.end())
      return refuse(fmt::format("the state '{}' allows no action", name));
  }
  for (const PolicyShape::Image& image : loaded_.agent.shape.images) {
    if (image.is_for_critic) {
      row.images.push_back(at::zeros({image.height, image.width, image.channels}, image_dtype(image)));
      continue;
    }
    const auto found = observation.images.find(image.name);
    if (found == observation.images.end()) return refuse(fmt::format("the image '{}' is missing", image.name));
    TROUPE_ASSIGN(at::Tensor pixels,
                  image.is_depth ? read_depth(image, found->second) : read_image(image, found->second));
    row.images.push_back(std::move(pixels));
  }
  for (const PolicyShape::Text& text : loaded_.agent.shape.texts) {
    row.text = observation.prompt;
    if (static_cast<std::int64_t>(row.text.size()) > text.bytes) {
      return refuse(fmt::format("the instruction has {} bytes; the policy's '{}' has room for {}", row.text.size(),
                                text.name, text.bytes));
    }
    row.text.resize(static_cast<std::size_t>(text.bytes));
  }
  return row;
}

at::Tensor AgentPolicy::answer(const std::vector<Row>& rows) {
  const auto count = static_cast<std::int64_t>(rows.size());
  const std::int64_t width = loaded_.agent.shape.state_dim;
  // Every row has the same key: what a policy draws, such as a flow's first noise, does not depend on who asks.
  const std::vector<std::uint64_t> keys(rows.size(), 0);
  ActRequest request{.observation = {},
                     .seed = static_cast<std::uint64_t>(loaded_.job.job.seed),
                     .keys = keys,
                     .deterministic = true,
                     .noise_level = noise_level_};
  if (width > 0) {
    at::Tensor state = at::empty({count, width}, at::kFloat);
    auto* to = state.mutable_data_ptr<float>();
    for (const Row& row : rows) to = std::copy(row.state.begin(), row.state.end(), to);
    if (loaded_.weights.normaliser.observed.dim() > 0)
      scale_.apply({state.mutable_data_ptr<float>(), static_cast<std::size_t>(state.numel())});
    request.observation[rl_keys::kState] = state;
  }
  for (std::size_t i = 0; i < loaded_.agent.shape.images.size(); ++i) {
    std::vector<at::Tensor> images;
    for (const Row& row : rows) images.push_back(row.images[i]);
    request.observation[rl_keys::kImagePrefix + loaded_.agent.shape.images[i].name] = at::stack(images);
  }
  for (const PolicyShape::Text& text : loaded_.agent.shape.texts) {
    at::Tensor told = at::empty({count, text.bytes}, at::kByte);
    auto* to = told.mutable_data_ptr<std::uint8_t>();
    for (const Row& row : rows) to = std::copy(row.text.begin(), row.text.end(), to);
    request.observation[rl_keys::kTextPrefix + text.name] = told;
  }
  for (const MemoryField& memory : loaded_.agent.policy->memory()) {
    std::vector<at::Tensor> remembered;
    for (const Row& row : rows) {
      const auto known = memories_.find(row.episode);
      remembered.push_back(known == memories_.end() ? at::zeros({1, memory.width}, at::kFloat)
                                                    : known->second.at(memory.name));
    }
    request.observation[rl_keys::kMemoryPrefix + memory.name] = at::cat(remembered);
  }
  const ActResult result = loaded_.agent.policy->act(loaded_.weights.views, request);
  for (const auto& [name, memory] : result.memory) {
    for (std::int64_t i = 0; i < count; ++i)
      memories_[rows[static_cast<std::size_t>(i)].episode][name] = memory.narrow(0, i, 1).clone();
  }
  return result.action.contiguous();
}

Result<ActionChunk> AgentPolicy::chunk_of(const float* actions) const {
  const ActionSpace& space = loaded_.agent.spec().action;
  ActionChunk chunk{.rows = info_.horizon, .width = info_.action_width(), .values = {}};
  const auto width = static_cast<std::size_t>(chunk.width);
  for (std::size_t i = 0; i < static_cast<std::size_t>(chunk.rows) * width; ++i) {
    const float wanted = actions[i];
    if (!std::isfinite(wanted))
      return Error{Errc::internal, fmt::format("{} gave an action that is not finite", info_.name)};
    chunk.values.push_back(space.is_discrete() ? wanted
                                               : std::clamp(wanted, space.low[i % width], space.high[i % width]));
  }
  return chunk;
}

std::vector<Result<ActionChunk>> AgentPolicy::act(std::span<const Observation> observations) {
  std::vector<std::optional<Result<ActionChunk>>> results(observations.size());
  std::vector<std::size_t> places;
  std::vector<Row> rows;
  std::set<std::string> named;
  for (std::size_t i = 0; i < observations.size(); ++i) {
    auto row = read(observations[i]);
    if (!row) {
      results[i].emplace(row.error());
    } else if (!named.insert(observations[i].episode).second) {
      results[i].emplace(refuse(fmt::format("episode '{}' stands twice in one call", observations[i].episode)));
    } else {
      places.push_back(i);
      rows.push_back(std::move(*row));
    }
  }
  if (!rows.empty()) {
    const at::Tensor actions = answer(std::move(rows));
    for (std::size_t i = 0; i < places.size(); ++i) {
      results[places[i]].emplace(
          chunk_of(actions.const_data_ptr<float>() + static_cast<std::int64_t>(i) * actions.size(1)));
    }
  }
  std::vector<Result<ActionChunk>> out;
  for (auto& result : results) out.push_back(std::move(*result));
  return out;
}

}  // namespace troupe::workers
