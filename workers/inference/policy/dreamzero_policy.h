#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "data/language/tokenizer.h"
#include "kernels/device_module.h"
#include "model/shard/network.h"
#include "model/wan/features.h"
#include "model/wan/infer/wan_inference.h"
#include "workers/inference/policy/action_decoder.h"
#include "workers/inference/policy/observation_reader.h"
#include "workers/inference/policy/policy.h"
#include "workers/inference/policy/policy_options.h"
#include "workers/inference/policy/policy_spec.h"

namespace troupe::workers {

/// DreamZero as a policy: observation -> canvases, normalised state and prompt -> WanInference -> actions in the
/// robot's units. One session per episode, opened by its first call; it lives until reset(). Several robots in one call
/// share the network's passes, and each gets what it would get alone. Not thread-safe: one thread at a time.
class DreamZeroPolicy final : public Policy {
 public:
  /// What the policy runs on.
  struct Parts {
    /// Every tensor of dit_units(spec.model), in one dtype.
    ParamView dit;
    std::unique_ptr<FeatureEncoder> features;
    std::unique_ptr<Tokenizer> tokenizer;
    /// of the transformer; none: cores
    std::optional<kernels::ComputeDevice> device = std::nullopt;
  };
  /// Errors: invalid_argument: options that mean nothing, a model that cannot be run (WanInference::check), an
  /// embodiment whose actions cannot be de-normalised, an unknown prompt template.
  static Result<std::unique_ptr<DreamZeroPolicy>> make(PolicySpec spec, Parts parts, const PolicyOptions& options);

  const PolicyInfo& info() const override { return info_; }
  /// Opens the session of an episode that has none. A refused observation changes no session; when the networks fail,
  /// every observation of the call gets that error and its session starts anew
  /// (docs/inference.md#sessions-and-batches).
  std::vector<Result<ActionChunk>> act(std::span<const Observation> observations) override;
  void reset(const std::string& episode) override { sessions_.erase(episode); }

  const PolicySpec& spec() const { return spec_; }
  /// Episodes that hold a session.
  std::size_t open_episodes() const { return sessions_.size(); }

 private:
  /// One observation on its way through a call.
  struct Turn {
    std::size_t index = 0;
    PreparedObservation seen;
    InferenceInput input;
  };
  DreamZeroPolicy(PolicySpec spec, Parts parts, ObservationReader reader, ActionDecoder decoder,
                  const InferOptions& options, bool cuda_graphs, const TokenizedText& negative,
                  std::vector<std::int64_t> frames_per_call);
  Result<Turn> prepare(const Observation& observation, std::size_t index);

  PolicySpec spec_;
  PolicyInfo info_;
  std::unique_ptr<FeatureEncoder> features_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::optional<kernels::ComputeDevice> device_;
  ObservationReader reader_;
  ActionDecoder decoder_;
  WanInference policy_;  // after features_ and device_, which it uses
  std::map<std::string, std::shared_ptr<InferenceSession>> sessions_;
  /// 0: LibTorch's own number.
  int threads_ = 0;
};

}  // namespace troupe::workers
