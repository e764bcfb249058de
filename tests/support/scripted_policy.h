#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "comm/serve/numpy_dtype.h"
#include "tests/support/visible.h"
#include "workers/inference/policy/policy.h"

namespace troupe::testing {

/// DROID's three cameras, state and actions.
inline PolicyInfo droid_info(std::int64_t horizon = 6) {
  PolicyInfo info;
  info.name = "scripted";
  info.embodiment = "oxe_droid";
  info.views = {"exterior_image_1_left", "exterior_image_2_left", "wrist_image_left"};
  info.state = {{"joint_position", 7}, {"gripper_position", 1}};
  info.action = {{"joint_position", 7}, {"gripper_position", 1}};
  info.horizon = horizon;
  info.image_height = 180;
  info.image_width = 320;
  info.frames_per_call = {1, 4, 8, 9};
  return info;
}

/// A policy whose actions say what it saw, in rows of 8:
///   0  the state: 7 joints, gripper
///   1  frames per view, the call's number in its episode, the newest frame's first byte of each view, the oldest
/// one's of the
///      first view, bytes of the prompt, observations in the call
///   r  r in every column
/// The prompts "fail", "throw" and "nan" do what they say. `on_act` runs first.
class ScriptedPolicy final : public Policy {
 public:
  explicit ScriptedPolicy(PolicyInfo info = droid_info()) : info_(std::move(info)) {}

  std::function<void(std::span<const Observation>)> on_act;
  std::vector<std::string> resets;  ///< episodes, in order

  const PolicyInfo& info() const override { return info_; }
  void reset(const std::string& episode) override {
    resets.push_back(episode);
    calls_.erase(episode);
  }
  std::vector<Result<ActionChunk>> act(std::span<const Observation> observations) override {
    if (on_act) on_act(observations);
    std::vector<Result<ActionChunk>> chunks;
    for (const Observation& observation : observations) {
      if (observation.prompt == "throw") throw std::runtime_error("out of memory");
      if (observation.prompt == "fail") {
        chunks.emplace_back(Error{Errc::invalid_argument, "prompt: this policy was told to fail"});
      } else {
        chunks.emplace_back(answer(observation, observations.size()));
      }
    }
    return chunks;
  }

 private:
  ActionChunk answer(const Observation& observation, std::size_t batch) {
    ActionChunk chunk{info_.horizon, info_.action_width(), {}};
    chunk.values.resize(static_cast<std::size_t>(chunk.rows * chunk.width));
    for (std::int64_t row = 0; row < chunk.rows; ++row) {
      std::fill_n(chunk.values.begin() + row * chunk.width, chunk.width, static_cast<float>(row));
    }
    std::vector<double> state;
    for (const PolicyVector& vector : info_.state) {
      const auto values = to_doubles(observation.state.at(vector.name)).value();
      state.insert(state.end(), values.begin(), values.end());
    }
    put(chunk, 0, state);
    const auto first_byte = [&](const std::string& view, bool newest) {
      const NdArray& images = observation.images.at(view);
      const std::size_t frame = images.data.size() / static_cast<std::size_t>(images.shape.front());
      return std::to_integer<int>(images.data[newest ? images.data.size() - frame : 0]);
    };
    std::vector<double> seen{static_cast<double>(observation.images.begin()->second.shape.front()),
                             static_cast<double>(++calls_[observation.episode])};
    for (const std::string& view : info_.views) seen.push_back(first_byte(view, true));
    seen.push_back(first_byte(info_.views.front(), false));
    seen.push_back(static_cast<double>(observation.prompt.size()));
    seen.push_back(static_cast<double>(batch));
    put(chunk, 1, seen);
    if (observation.prompt == "nan") chunk.values.back() = std::numeric_limits<float>::quiet_NaN();
    return chunk;
  }
  static void put(ActionChunk& chunk, std::int64_t row, const std::vector<double>& values) {
    if (row >= chunk.rows) return;
    for (std::size_t i = 0; i < values.size() && i < static_cast<std::size_t>(chunk.width); ++i)
      chunk.values[static_cast<std::size_t>(row * chunk.width) + i] = static_cast<float>(values[i]);
  }

  const PolicyInfo info_;
  std::map<std::string, std::int64_t> calls_;  // by episode
};

/// A frame u8 [4, 6, 3] of one colour.
inline NdArray flat_image(int value, std::vector<std::int64_t> shape = {4, 6, 3}) {
  NdArray array{"|u1", std::move(shape), {}};
  array.data.assign(static_cast<std::size_t>(array.numel()), static_cast<std::byte>(value));
  return array;
}

/// Numbers as f32 [n].
inline NdArray vector_of(const std::vector<float>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {"<f4", {static_cast<std::int64_t>(values.size())}, {bytes.begin(), bytes.end()}};
}

/// What droid_info wants to see.
inline Observation droid_observation(int colour, std::vector<float> joints = {0, 1, 2, 3, 4, 5, 6}) {
  Observation observation;
  observation.prompt = "pick up";
  int offset = 0;
  for (const std::string& view : droid_info().views) observation.images[view] = flat_image(colour + offset++);
  observation.state["joint_position"] = vector_of(joints);
  observation.state["gripper_position"] = vector_of({0.5F});
  return observation;
}

}  // namespace troupe::testing
