#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::model {

/// What a policy sees and does, taken from an environment's spec and env.chunk: everything its networks' sizes depend
/// on.
struct PolicyShape {
  struct Image {
    /// "rgb.front", "depth.front": the key of the observation
    std::string name;
    std::int64_t height = 0, width = 0, channels = 3;
    /// f32, metres, 0 for no hit, one channel; else u8
    bool is_depth = false;
    /// critics alone see it
    bool is_for_critic = false;

    std::int64_t bytes() const { return height * width * channels * (is_depth ? 4 : 1); }
  };
  struct Text {
    /// "instruction": the key of the observation
    std::string name;
    /// room for the longest
    std::int64_t bytes = 0;
  };
  /// D, width of the state: the vectors that the actor reads, those that critics read too, and the action mask
  std::int64_t state_dim = 0;
  /// columns of it that critics alone read
  std::int64_t critic_dim = 0;
  /// C, the last columns: 1 for each choice that is allowed, else 0; 0: all are
  std::int64_t mask_dim = 0;
  /// cameras in the order of the environment's spec, each [H,W,C]
  std::vector<Image> images;
  /// what actor and critics are told, in the same order, each u8 [bytes]: UTF-8, zeros behind it; the same at every
  /// observation of an episode
  std::vector<Text> texts = {};
  /// number of discrete actions; 0: actions are continuous
  std::int64_t choices = 0;
  /// A, numbers of one action; 1 for discrete actions
  std::int64_t action_dim = 1;
  /// K, actions that one policy call returns
  std::int64_t chunk = 1;
  /// bounds of each dimension [A], in the environment's units; empty for discrete actions
  std::vector<float> action_low, action_high;
  /// control steps of the longest episode, which aggregation trajectory needs; 0: unknown
  std::int64_t max_episode_steps = 0;
};

/// What of it an actor's network sees: the first columns of the state, and its images.
inline PolicyShape seen_by_actor(PolicyShape shape) {
  shape.state_dim -= shape.critic_dim + shape.mask_dim;
  shape.critic_dim = shape.mask_dim = 0;
  std::erase_if(shape.images, [](const PolicyShape::Image& image) { return image.is_for_critic; });
  return shape;
}
/// The same of a critic's: all but the mask.
inline PolicyShape seen_by_critic(PolicyShape shape) {
  shape.state_dim -= shape.mask_dim;
  shape.critic_dim = shape.mask_dim = 0;
  return shape;
}

}  // namespace troupe::model
