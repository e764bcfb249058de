#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/enum_names.h"

namespace troupe::configs {

/// A flow-matching action policy and its sampler: an action chunk is denoised from N(0, I) in denoise_steps Euler
/// steps. In reinforcement learning some steps draw, so that a log-probability exists (Flow-GRPO, arXiv:2505.05470).
struct FlowPolicyConfig {
  /// Steps, 1 to 1000. Read by model/policy, workers/inference/agent.
  std::int64_t denoise_steps = 4;
  /// Read by model/policy, workers/inference/agent.
  std::string sampler = "sde";
  /// 0 to 10.
  /// Flow-SDE: standard deviation of a step sqrt(dt) * a * sqrt(t / (1 - t)); Flow-CPS: an angle of pi a / 2.
  double noise_level = 0.5;
  /// 0 to 10. Read by model/policy.
  double noise_level_end = 0.5;
  /// Steps, 0 to 2^40. Read by model/policy.
  std::int64_t noise_anneal_steps = 0;
  /// Read by model/policy, workers/inference/agent.
  bool joint = false;
  /// Read by model/policy.
  std::string logprob_reduce = "mean";
  /// Steps, 0 to 999. Read by model/policy.
  std::int64_t ignore_first = 0;
  /// Read by model/policy.
  bool ignore_last = false;
  /// Read by model/policy.
  bool safe_logprob = false;

  /// Steps that may be the one that draws: [ignore_first, ignore_first + drawing_steps()).
  std::int64_t drawing_steps() const { return denoise_steps - ignore_first - (ignore_last ? 1 : 0); }

  template <class V>
  static void describe(V& v) {
    v.field("denoise_steps", &FlowPolicyConfig::denoise_steps, "N: steps from noise to actions", "steps", 1, 1000);
    v.choice("sampler", &FlowPolicyConfig::sampler,
             "how a step draws: ode, sde (Flow-SDE), cps (Flow-CPS), noise (Flow-Noise, a learned width)",
             {"ode", "sde", "cps", "noise"});
    v.field("noise_level", &FlowPolicyConfig::noise_level,
            "scale a of the noise that Flow-SDE adds to each step, at the start", "", 0, 10);
    v.field("noise_level_end", &FlowPolicyConfig::noise_level_end, "a after noise_anneal_steps", "", 0, 10);
    v.field("noise_anneal_steps", &FlowPolicyConfig::noise_anneal_steps,
            "iterations over which a moves to its end; 0: it stays", "steps", 0, 1LL << 40);
    v.field("joint", &FlowPolicyConfig::joint, "all steps draw; else one per environment, the others are ODE steps");
    v.choice("logprob_reduce", &FlowPolicyConfig::logprob_reduce, "joint: how the steps' log-probabilities become one",
             {"mean", "sum", "per_step"});
    v.field(
        "ignore_first", &FlowPolicyConfig::ignore_first,
        "how many of the first steps never draw; not with joint. Later steps of a policy that is sure of its actions "
        "undo what those would draw",
        "steps", 0, 999);
    v.field("ignore_last", &FlowPolicyConfig::ignore_last, "the last step never draws; Flow-CPS needs it");
    v.field("safe_logprob", &FlowPolicyConfig::safe_logprob, "the squared distance in place of the log-density");
  }
};

/// What the network that acts is made of: layers over vectors, a flow, or DreamZero's transformer (model, data), which
/// goes on from a checkpoint. cnn is the name that mlp with Vision::cnn had.
enum class PolicyKind { mlp, cnn, flow, dreamzero };
constexpr auto enum_names(PolicyKind) { return std::array{"mlp", "cnn", "flow", "dreamzero"}; }

/// What a policy carries from one call of an episode to the next: nothing, or the memory of a gated recurrent unit.
enum class PolicyMemory { none, gru };
constexpr auto enum_names(PolicyMemory) { return std::array{"none", "gru"}; }

/// What turns each camera's pictures into numbers, which stand beside the observation's vectors (model/policy/cnn.h).
enum class Vision { none, cnn, keypoints };
constexpr auto enum_names(Vision) { return std::array{"none", "cnn", "keypoints"}; }

/// What turns each text of an observation into numbers, which stand beside its vectors as well
/// (model/policy/bag_of_words.h).
enum class TextReader { none, words };
constexpr auto enum_names(TextReader) { return std::array{"none", "words"}; }

/// What follows every hidden layer.
enum class Activation { tanh, relu };
constexpr auto enum_names(Activation) { return std::array{"tanh", "relu"}; }

/// The network that acts and, beside it, its critics (docs/rl.md#algorithms).
struct PolicyConfig {
  /// Read by model/policy, workers/inference/agent.
  PolicyKind kind = PolicyKind::mlp;
  /// Read by model/policy through actor_vision(), workers/inference/agent, workers/learner/imitation.
  Vision vision = Vision::none;
  /// Read by model/policy through critic_vision().
  bool critic_sees = true;
  /// Read by model/policy; by workers through reads_text().
  TextReader text = TextReader::none;
  /// Rows, 2 to 2^20. Read by model/policy, workers/inference/agent.
  std::int64_t text_vocab = 1024;
  /// Numbers, 1 to 4096. Read by model/policy, workers/inference/agent.
  std::int64_t text_width = 32;
  /// Read by model/policy, workers/inference/agent.
  std::string distribution = "auto";
  /// Read by model/policy, workers/inference/agent.
  /// One number a layer.
  std::vector<std::int64_t> hidden = {64, 64};
  /// Read by model/policy.
  std::vector<std::int64_t> critic_hidden;
  /// Read by model/policy, workers/inference/agent.
  Activation activation = Activation::tanh;
  /// Read by model/policy.
  PolicyMemory memory = PolicyMemory::none;
  /// Numbers, 1 to 65536. Read by model/policy.
  std::int64_t memory_width = 64;
  /// Read by model/policy.
  bool critic_layer_norm = false;
  /// Read by model/policy, workers/inference/agent.
  std::vector<std::int64_t> cnn_channels = {32, 64, 64};
  /// -20 to 20. Read by model/policy.
  double init_log_std = 0;
  /// -40 to 20. Read by workers/inference/agent, model/policy.
  double log_std_min = -5, log_std_max = 2;
  FlowPolicyConfig flow;

  Vision actor_vision() const { return kind == PolicyKind::cnn ? Vision::cnn : vision; }
  Vision critic_vision() const { return critic_sees ? actor_vision() : Vision::none; }
  /// Whether the policy is told the environment's texts: trajectories and demonstrations then keep them.
  bool reads_text() const { return text != TextReader::none; }
  const std::vector<std::int64_t>& critic_layers() const { return critic_hidden.empty() ? hidden : critic_hidden; }

  template <class V>
  static void describe(V& v) {
    v.choice("kind", &PolicyConfig::kind,
             "mlp: layers from what is observed to the action; flow: actions are denoised; dreamzero: kind rl: the "
             "world-action model of model and data goes on from model.init.path; cnn: an earlier name of mlp with "
             "vision: cnn");
    v.choice("vision", &PolicyConfig::vision,
             "network that looks at pictures, one per camera; none: pictures are not read; cnn: convolutions, whose "
             "features are all read; keypoints: convolutions, of which one place in the picture per channel is read");
    v.field("critic_sees", &PolicyConfig::critic_sees,
            "critics look at pictures too, through convolutions of their own; false: they read no pictures");
    v.choice("text", &PolicyConfig::text,
             "what reads texts, such as an instruction; none: nothing, and trajectories do not keep them; words: each "
             "word and each pair of neighbouring words has a learned vector, and actor and critics read their mean");
    v.field("text_vocab", &PolicyConfig::text_vocab, "words: number of vectors; a word's hash says which is its own",
            "rows", 2, 1 << 20);
    v.field("text_width", &PolicyConfig::text_width, "words: numbers of a vector", "numbers", 1, 4096);
    v.choice("distribution", &PolicyConfig::distribution,
             "of actions; auto: categorical where they are discrete, squashed_gaussian with sac, else gaussian",
             {"auto", "categorical", "gaussian", "squashed_gaussian"});
    v.field("hidden", &PolicyConfig::hidden, "widths of the hidden layers");
    v.field("critic_hidden", &PolicyConfig::critic_hidden, "the same of critics; empty: as hidden");
    v.choice("activation", &PolicyConfig::activation, "after every hidden layer");
    v.choice("memory", &PolicyConfig::memory,
             "gru: a recurrent unit behind the hidden layers of actor and critic, zero when an episode begins");
    v.field("memory_width", &PolicyConfig::memory_width, "gru: numbers that each of them remembers", "numbers", 1,
            1 << 16);
    v.field("critic_layer_norm", &PolicyConfig::critic_layer_norm,
            "layer normalisation before the activations of Q networks");
    v.field("cnn_channels", &PolicyConfig::cnn_channels,
            "vision: channels of the convolutions: cnn 8x8 by 4, 4x4 by 2, 3x3 by 1; keypoints 5x5 by 2, 3x3 by 2, "
            "3x3 by 1");
    v.field("init_log_std", &PolicyConfig::init_log_std, "gaussian: logarithm of the standard deviation at the start",
            "", -20, 20);
    v.field("log_std_min", &PolicyConfig::log_std_min, "squashed_gaussian: least logarithm of the standard deviation",
            "", -40, 20);
    v.field("log_std_max", &PolicyConfig::log_std_max, "squashed_gaussian: largest", "", -40, 20);
    v.group("flow", &PolicyConfig::flow, "kind flow and dreamzero: the sampler");
  }
};

}  // namespace troupe::configs
