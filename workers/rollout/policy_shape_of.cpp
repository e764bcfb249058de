#include "workers/rollout/policy_shape_of.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

namespace troupe::workers {

namespace {
bool is_vector(const EnvField& field) {
  return field.reader == EnvReader::action_mask || (field.dtype != EnvDType::u8 && field.shape.size() <= 1);
}
bool is_depth(const EnvField& field) { return field.dtype == EnvDType::f32 && field.shape.size() == 2; }
bool is_image(const EnvField& field) {
  return is_depth(field) || (field.dtype == EnvDType::u8 && field.shape.size() == 3);
}
}  // namespace

Result<PolicyShape> policy_shape_of(const EnvSpec& spec, const EnvConfig& env, const PolicyConfig& policy) {
  PolicyShape shape;
  for (const EnvField& field : spec.observation) {
    if (field.reader == EnvReader::text) {
      if (policy.reads_text()) shape.texts.push_back({.name = field.name, .bytes = field.bytes()});
    } else if (is_vector(field)) {
      shape.state_dim += field.numel();
      if (field.reader == EnvReader::critic) shape.critic_dim += field.numel();
      if (field.reader == EnvReader::action_mask) shape.mask_dim = field.numel();
    } else if (is_image(field)) {
      shape.images.push_back({.name = field.name,
                              .height = field.shape[0],
                              .width = field.shape[1],
                              .channels = is_depth(field) ? 1 : field.shape[2],
                              .is_depth = is_depth(field),
                              .is_for_critic = field.reader == EnvReader::critic});
    } else {
      return Error{
          Errc::invalid_argument,
          fmt::format(
              "{} observes '{}', {} [{}]; policies take f32 and f64 vectors, u8 images [H,W,C] and f32 depth [H,W]: "
              "choose another env.profile or env.options",
              spec.id, field.name, field.dtype == EnvDType::u8 ? "u8" : "f32 or f64", fmt::join(field.shape, ","))};
    }
  }
  shape.choices = spec.action.choices;
  shape.action_dim = spec.action.size;
  shape.chunk = env.chunk;
  if (!spec.action.is_discrete()) {
    shape.action_low = spec.action.low;
    shape.action_high = spec.action.high;
  }
  shape.max_episode_steps = env.max_episode_steps > 0 ? env.max_episode_steps : spec.max_steps;
  return shape;
}

void ObservationParts::Vector::write(const std::byte* row, float* state) const {
  float* const to = state + column;
  const auto put = [&]<class T>(const T* from) {
    for (std::int64_t i = 0; i < numel; ++i)
      to[i] = reader == EnvReader::action_mask ? static_cast<float>(from[i] != 0) : static_cast<float>(from[i]);
  };
  switch (dtype) {
    case EnvDType::u8:
      return put(reinterpret_cast<const std::uint8_t*>(row));
    case EnvDType::f32:
      return put(reinterpret_cast<const float*>(row));
    case EnvDType::f64:
      return put(reinterpret_cast<const double*>(row));
  }
}

ObservationParts observation_parts(const EnvSpec& spec) {
  ObservationParts parts;
  for (std::size_t index = 0; index < spec.observation.size(); ++index) {
    const EnvField& field = spec.observation[index];
    if (field.reader == EnvReader::text) {
      parts.texts.push_back({.field = index, .bytes = field.bytes()});
    } else if (is_vector(field)) {
      parts.vectors.push_back(
          {.field = index, .column = 0, .numel = field.numel(), .dtype = field.dtype, .reader = field.reader});
    } else if (is_image(field)) {
      parts.images.push_back({.field = index, .bytes = field.bytes()});
    }
  }
  std::int64_t column = 0;
  for (const EnvReader reader : {EnvReader::policy, EnvReader::critic, EnvReader::action_mask}) {
    for (ObservationParts::Vector& part : parts.vectors) {
      if (part.reader != reader) continue;
      part.column = std::exchange(column, column + part.numel);
      const bool normalised = reader != EnvReader::action_mask && spec.observation[part.field].normalise;
      parts.normalised.insert(parts.normalised.end(), static_cast<std::size_t>(part.numel), normalised ? 1 : 0);
    }
  }
  return parts;
}

}  // namespace troupe::workers
