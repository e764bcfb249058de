#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "configs/algorithm_config.h"
#include "configs/policy_config.h"
#include "model/policy/policy_shape.h"
#include "model/shard/network.h"

namespace troupe::model {

/// Parameters by unit name.
using UnitViews = std::map<std::string, ParamView>;

/// Which weights a policy is given.
struct WeightsVersion {
  /// of learners
  std::uint64_t group = 0;
  std::int64_t version = 0;
  bool operator==(const WeightsVersion&) const = default;
};

/// One call of a policy for N rows.
struct ActRequest {
  /// rl_keys::kState [N,D] f32, the images under kImagePrefix, texts under kTextPrefix, and memories [N,W] under
  /// kMemoryPrefix: zero where an episode begins
  Batch observation;
  /// job.seed: with a row's key it decides every draw of the row
  std::uint64_t seed = 0;
  /// [N]: draws of row i depend on (seed, keys[i]) alone, not on the other rows
  std::span<const std::uint64_t> keys;
  /// evaluation: mean, most likely action, or ODE
  bool deterministic = false;
  /// of flow policies: a of flow_weights
  double noise_level = 0;
  /// Of the views. A policy that acts on a device takes in those of another version than at its last call, and all of a
  /// request without one.
  std::optional<WeightsVersion> version = std::nullopt;
};

/// What it answers.
struct ActResult {
  /// [N,K*A], discrete: the index. Squashed actions lie inside the environment's bounds; those of a Gaussian are as
  /// drawn, since logp is theirs, and the environment clips them (action_head.h).
  at::Tensor action;
  /// [N,L], unreduced; undefined for policies of off-policy algorithms
  at::Tensor logp;
  /// [N,V], the critic's at these observations; undefined without a critic
  at::Tensor value;
  /// what extras() lists, by name, each [N,...]
  std::map<std::string, at::Tensor> extra;
  /// what memory() lists, by name, each [N,W] f32: for the rows' next call
  std::map<std::string, at::Tensor> memory = {};
};

/// One call for N rows in plain memory, of a policy that acts_on_rows(). f32; nothing is null but what is said.
struct RowsToAct {
  std::int64_t rows = 0;
  /// [N,D] of rl_keys::kState, and D.
  const float* state = nullptr;
  std::int64_t state_dim = 0;
  /// As in ActRequest.
  std::uint64_t seed = 0;
  std::span<const std::uint64_t> keys = {};
  bool deterministic = false;
  /// Where answers go: [N,K*A] and [N,L], null where values alone are asked for; [N,V], null without a critic.
  float *action = nullptr, *logp = nullptr, *value = nullptr;
};

/// A vector per row that a policy carries from call to call of an episode, f32; zero before its first.
struct MemoryField {
  std::string name;
  std::int64_t width = 0;
};

/// A tensor per row that a trajectory must keep so that the learner can compute log-probabilities again.
struct ExtraField {
  std::string name;
  /// of one row, without the leading N
  std::vector<std::int64_t> shape;
  /// stored as i64, else f32
  bool is_integer = false;
};

/// A policy and what is trained with it (critics, targets, temperature), as functions over parameters that somebody
/// else keeps: a rollout worker the published ones, the learner its shards. Stateless and thread-safe. f32, but for
/// parameters of another acting_dtype().
class PolicyNet {
 public:
  virtual ~PolicyNet() = default;
  /// Every unit, in the order of objective()'s chain. UnitSpec::group is "actor", "critic" or "temperature";
  /// UnitSpec::average_of names the unit that a target network follows.
  virtual const std::vector<UnitSpec>& units() const = 0;
  /// Names of the units (state_units of units()) that act() and value() read: what is published to rollout workers.
  /// A policy that holds frozen parameters itself leaves their units out.
  virtual const std::vector<std::string>& acting_units() const = 0;
  /// What they are published in, and given to act() and logp() in.
  virtual at::ScalarType acting_dtype() const { return at::kFloat; }
  /// Empty for policies whose log-probability follows from observation and action.
  virtual const std::vector<ExtraField>& extras() const = 0;
  /// Empty for policies that see the present observation alone.
  virtual const std::vector<MemoryField>& memory() const {
    static const std::vector<MemoryField> none;
    return none;
  }
  /// L: numbers of one row's log-probability. 0 when act() returns none.
  virtual std::int64_t logp_width() const = 0;
  /// V. 0 without a critic that rollout workers ask.
  virtual std::int64_t value_width() const = 0;

  /// Draws actions for N observations. Records no gradient. `views` has the acting units' parameters, whole.
  /// Errors: throws c10::Error on a missing tensor or a shape that does not fit.
  virtual ActResult act(const UnitViews& views, const ActRequest& request) const = 0;
  /// Whether act_on_rows() may be called: the policy sees the state alone, remembers nothing and adds no extras.
  virtual bool acts_on_rows() const { return false; }
  /// The same as act() and value(), to the bit, without a tensor: a call for a few rows costs little more than its
  /// arithmetic. Errors: as act().
  virtual void act_on_rows(const UnitViews& views, const RowsToAct& rows) const;
  /// The value path alone, such as of a final observation whose value is bootstrapped: [N,V]. Records no gradient. Only
  /// with value_width() > 0. `observation` as ActRequest's.
  virtual at::Tensor value(const UnitViews& views, const Batch& observation) const = 0;
  /// Log-probabilities [N,L], unreduced, of the actions in `batch` (rl_keys::kAction and extras) under these
  /// parameters; no gradient is recorded. Only with logp_width() > 0. `batch` holds rows as trajectories keep them.
  virtual at::Tensor logp(const UnitViews& views, const Batch& batch) const;
  /// What objective("policy") reads, from rows as trajectories keep them: the rows themselves, or, of policies that
  /// say needs_preparing(), such as those whose frozen encoders look at observations, what is made of them. Records no
  /// gradient. Errors: throws c10::Error, as act() does.
  virtual Batch prepare(Batch batch) const { return batch; }
  virtual bool needs_preparing() const { return false; }

  /// What the engine trains: the loss of one phase over the same units. On-policy policies have "policy"; soft
  /// actor-critic has "critic" and "actor" (which trains the temperature too). Units that a phase does not train get
  /// zero gradients. Outputs::metrics carry the diagnostics of docs/metrics.md#reinforcement-learning as means, without
  /// their prefix "train/".
  virtual std::shared_ptr<const Network> objective(const std::string& phase) const = 0;
};

/// Rules for every kind of policy. Errors: invalid_argument (a layer or a chunk of no width; rewards, log-probabilities
/// and weights of trajectories that do not fit the chunk and the environment), naming the key.
Result<void> check_policy_sizes(const PolicyConfig& policy, const AlgorithmConfig& algorithm, const PolicyShape& shape);

/// Errors: invalid_argument where the configuration and the shape do not fit (squashed gaussian over discrete actions,
/// a vision without images), naming the key.
Result<std::shared_ptr<const PolicyNet>> make_policy_net(const PolicyConfig& policy, const AlgorithmConfig& algorithm,
                                                         const PolicyShape& shape);

}  // namespace troupe::model
