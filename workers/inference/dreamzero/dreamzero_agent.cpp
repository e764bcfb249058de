#include "workers/inference/dreamzero/dreamzero_agent.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cstdint>
#include <utility>

#include "env/registry/expert.h"
#include "model/shard/precision.h"
#include "model/wan/lora.h"
#include "model/wan/policy/dreamzero_net.h"
#include "workers/inference/dreamzero/checkpoint_transformer.h"
#include "workers/inference/dreamzero/env_observer.h"
#include "workers/inference/dreamzero/starting_checkpoint.h"
#include "workers/inference/policy/read_spec.h"

namespace troupe::workers {

namespace {

/// Episodes whose instructions are compared.
constexpr std::uint64_t kEpisodes = 64;

/// Of a policy that is planned and never acts.
class NoObserver final : public DreamZeroObserver {
 public:
  Batch encode(const Batch&) const override { TORCH_CHECK(false, kNever); }
  Batch encode_later(const Batch&) const override { TORCH_CHECK(false, kNever); }
  at::Tensor actions(const at::Tensor&, const Batch&) const override { TORCH_CHECK(false, kNever); }

 private:
  static constexpr const char* kNever = "a policy that was made for a plan sees nothing";
};

Result<std::shared_ptr<const PolicyNet>> make_net(const JobConfig& job, const PolicyShape& shape,
                                                  std::shared_ptr<const DreamZeroObserver> observer,
                                                  std::shared_ptr<const FrozenTransformer> frozen,
                                                  std::shared_ptr<kernels::ComputeDevice> device) {
  // adapters and what is trained beside them are few: f32 whatever the frozen part is kept in
  const bool is_whole = job.model.train_architecture == "full";
  return DreamZeroNet::make(job.model, job.data.window, job.policy, job.algorithm, shape, std::move(observer),
                            {.frozen = std::move(frozen),
                             .dtype = is_whole ? dtype_of_precision(job.precision.param) : at::kFloat,
                             .device = std::move(device),
                             .graphs = job.training.cuda_graphs});
}

/// Nothing where all is trained.
Result<std::shared_ptr<const FrozenTransformer>> frozen_transformer(const JobConfig& job,
                                                                    const std::string& checkpoint) {
  if (job.model.train_architecture == "full") return std::shared_ptr<const FrozenTransformer>();
  return CheckpointTransformer::open(checkpoint, training_units(job.model), dtype_of_precision(job.precision.param));
}

/// What the policy is told in every episode: data.language.default_instruction with data.language.always_default, else
/// what the environment's controller says of each episode, if it says one thing of all.
/// Errors: invalid_argument for one that says different things, not_found for an environment without one, naming the
/// keys.
Result<std::string> fixed_instruction(const JobConfig& job, const std::string& env) {
  const LanguageConfig& language = job.data.language;
  if (language.always_default) return language.default_instruction;
  constexpr const char* kCure =
      "policy.kind dreamzero is told one thing in every episode: write data.language.always_default=true and "
      "data.language.default_instruction";
  const auto expert = make_expert(env);
  if (!expert) return expert.error().with(fmt::format("data.language.always_default: {}", kCure));
  const std::string first = (*expert)->instruction(0);
  for (std::uint64_t seed = 1; seed < kEpisodes; ++seed) {
    const std::string other = (*expert)->instruction(seed);
    if (other == first) continue;
    return invalid_argument(
        fmt::format("data.language.always_default: is false, and episodes of {} are told different things ('{}', "
                    "'{}'); {}",
                    env, first, other, kCure));
  }
  return first;
}

}  // namespace

Result<std::shared_ptr<const PolicyNet>> make_dreamzero_policy(const JobConfig& job, const std::string& checkpoint,
                                                               const EnvSpec& env, const PolicyShape& shape,
                                                               std::shared_ptr<kernels::ComputeDevice> device) {
  // the net first, so that a job it refuses is told so whatever the checkpoint holds
  TROUPE_TRY(plan_dreamzero_policy(job, shape));
  TROUPE_TRY(check_starting_checkpoint(job, checkpoint));
  TROUPE_ASSIGN(PolicySpec policy, policy_spec_of(job, checkpoint));
  TROUPE_ASSIGN(const std::string instruction, fixed_instruction(job, env.id));
  auto observer = EnvObserver::make(job, std::move(policy), env, shape, instruction);
  if (!observer) return observer.error().with(fmt::format("env.id: {} and checkpoint {}", env.id, checkpoint));
  TROUPE_ASSIGN(auto frozen, frozen_transformer(job, checkpoint));
  return make_net(job, shape, std::move(*observer), std::move(frozen), std::move(device));
}

Result<std::shared_ptr<const PolicyNet>> plan_dreamzero_policy(const JobConfig& job, const PolicyShape& shape) {
  return make_net(job, shape, std::make_shared<const NoObserver>(), nullptr, nullptr);
}

}  // namespace troupe::workers
