#include "workers/inference/policy/action_decoder.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "workers/inference/policy/embodiment_table.h"

namespace troupe::workers {

Result<ActionDecoder> ActionDecoder::make(const PolicySpec& spec, bool sign_gripper) {
  ActionDecoder out;
  out.horizon_ = static_cast<std::size_t>(spec.window.action_horizon);
  out.stride_ = static_cast<std::size_t>(spec.model.dit.action_dim);
  out.width_ = static_cast<std::size_t>(spec.action_width());
  out.sign_gripper_ = sign_gripper;
  const EmbodimentDefaults* defaults = find_embodiment(spec.embodiment.tag);
  if (sign_gripper && (defaults == nullptr || !defaults->sign_gripper)) {
    return Error{Errc::invalid_argument,
                 fmt::format("the gripper's sign is sent for oxe_droid, libero_sim and franka_pnp; this is '{}'",
                             spec.embodiment.tag)};
  }
  for (const PolicyKey& key : spec.action) {
    if (key.mode == NormalizationMode::scale) {
      return Error{Errc::invalid_argument,
                   fmt::format("action.{} is normalised by 'scale', which has no inverse", key.name)};
    }
    Key made{.name = key.name,
             .width = static_cast<std::size_t>(key.width),
             .relative = key.relative,
             .normalizer = Normalizer<float>(key.mode, key.statistics.front())};
    if (key.statistics.size() > 1) made.normalizer = HorizonNormalizer<float>(key.mode, key.statistics);
    out.keys_.push_back(std::move(made));
  }
  return out;
}

ActionChunk ActionDecoder::decode(std::span<const float> rows,
                                  const std::map<std::string, std::vector<float>>& newest) const {
  TROUPE_CHECK(rows.size() == horizon_ * stride_, "the network gives horizon x action_dim values");
  ActionChunk out{
      .rows = static_cast<std::int64_t>(horizon_), .width = static_cast<std::int64_t>(width_), .values = {}};
  out.values.resize(horizon_ * width_);
  std::size_t at = 0;
  for (const Key& key : keys_) {
    std::vector<float> values;
    for (std::size_t r = 0; r < horizon_; ++r) {
      const auto row = rows.subspan(r * stride_ + at, key.width);
      values.insert(values.end(), row.begin(), row.end());
    }
    const auto undone = std::visit([&](const auto& normalizer) { return normalizer.inverse(values); }, key.normalizer);
    TROUPE_CHECK(undone.has_value(), "modes without an inverse were refused");
    const float* state = key.relative ? newest.at(key.name).data() : nullptr;
    for (std::size_t r = 0; r < horizon_; ++r) {
      for (std::size_t d = 0; d < key.width; ++d) {
        const float value = values[r * key.width + d];
        out.values[r * width_ + at + d] = state == nullptr ? value : value + state[d];
      }
    }
    at += key.width;
  }
  if (sign_gripper_) {
    for (std::size_t r = 0; r < horizon_; ++r) {
      float& gripper = out.values[(r + 1) * width_ - 1];
      gripper = gripper > 0 ? 1.0F : -1.0F;
    }
  }
  return out;
}

}  // namespace troupe::workers
