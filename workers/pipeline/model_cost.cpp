#include "workers/pipeline/model_cost.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <array>

#include "data/sample/sample.h"
#include "env/block_layout.h"
#include "env/reward/reward_registry.h"
#include "model/shard/flat_layout.h"
#include "model/wan/dit_units.h"
#include "model/wan/encoder_cost.h"
#include "model/wan/lora.h"
#include "model/wan/model_cost.h"
#include "model/wan/unit_memory_cost.h"
#include "placement/rl_shape.h"
#include "workers/encoder/encoded_sample.h"
#include "workers/inference/agent/agent.h"
#include "workers/learner/imitation/demonstrations.h"
#include "workers/rollout/trajectory_layout.h"

namespace troupe::workers {

namespace {

UnitCost unit_cost(const UnitSpec& unit, bool replicated, double forward_flops) {
  UnitCost cost{.name = unit.name,
                .layout_class = unit.layout_class,
                .params = count_parameters(unit),
                .forward_flops_per_sample = forward_flops,
                .trainable = unit.trainable,
                .replicated = replicated};
  for (const ParamSpec& param : unit.params) {
    if (!param.follows) cost.numels.push_back(0);
    cost.numels.back() += count_parameters({"", "", {param}});
  }
  return cost;
}

/// What the learner's network is made of.
Result<std::vector<UnitSpec>> trained_chain(const ModelConfig& config) {
  try {
    return training_units(config);
  } catch (const c10::Error& e) {
    return Error{Errc::invalid_argument, e.what_without_backtrace()};
  }
}

/// Of the networks of a policy.
ModelCost policy_cost(const PolicyNet& policy) {
  ModelCost cost;
  for (const UnitSpec& unit : policy.units()) {
    cost.units.push_back(unit_cost(unit, /*replicated=*/false, 2.0 * static_cast<double>(count_parameters(unit))));
    cost.policy_bytes += count_parameters(unit) * 4;
  }
  return cost;
}

/// What the units keep and work in, and what a transformer block repeats, at each level of activation_checkpoint.
void add_levels(ModelCost& cost, const JobConfig& job, const DitCost& dit) {
  const bool is_bf16 = job.precision.param == "bf16";
  const std::int64_t samples = job.training.micro_batch_size;
  const UnitMemoryCost memory =
      unit_memory_cost(job.model, job.data.window, is_bf16 ? at::kBFloat16 : at::kFloat, samples);
  const DitUnitCost& block = dit.units.at(1);
  const auto all = static_cast<double>(samples) * block.executed_forward_flops;
  const auto attention = static_cast<double>(samples) * block.executed_attention_flops;
  const double cheap = 10.0 * static_cast<double>(samples) * dit.replayed_bytes_per_sample;
  const std::array<double, 4> work = {0, cheap, cheap + all - attention, cheap + all};
  cost.blocks = job.model.dit.num_layers;
  cost.level_samples = samples;
  cost.ends = {.kept_bytes = memory.ends_kept_bytes, .rerun_bytes = memory.ends_rerun_bytes};
  for (std::size_t level = 0; level < memory.blocks.size(); ++level) {
    const BlockMemory& of = memory.blocks[level];
    cost.levels[level] = {.kept_bytes = of.kept_bytes,
                          .last_kept_bytes = of.last_kept_bytes,
                          .workspace_bytes = of.workspace_bytes,
                          .replay_work = work[level]};
  }
}

/// The policy's units, and demonstrations in the memory of their readers.
Result<ModelCost> imitation_model_cost(const JobConfig& job, const EnvSpec& env) {
  TROUPE_ASSIGN(const Agent agent, make_agent(job, env));
  TROUPE_ASSIGN(const auto data, Demonstrations::open(job.data, agent.shape));
  ModelCost cost = policy_cost(*agent.policy);
  cost.sample_bytes = data->layout().bytes;
  cost.activation_bytes_per_sample = cost.sample_bytes + (std::int64_t{64} << 10);
  cost.decoder_bytes = (std::int64_t{128} << 20) + data->resident_bytes();
  return cost;
}

/// The policy's units, and what travels between simulators, rollout workers and learners.
Result<ModelCost> rl_model_cost(const JobConfig& job, const EnvSpec& env) {
  TROUPE_ASSIGN(const Agent agent, make_agent(job, env));
  // a reward that cannot be computed is told before anything starts
  TROUPE_TRY(make_reward_rules(job.env.reward, job.algorithm, agent.spec()));
  const TrajectoryLayout item = make_trajectory_layout(job, agent.spec(), *agent.policy);
  const RlShape shape = rl_shape(job);
  ModelCost cost = policy_cost(*agent.policy);
  // What a forward of one row keeps is of the order of the layers' widths; taken as the item's share and the widest
  // units.
  cost.activation_bytes_per_sample =
      item.bytes / std::max<std::int64_t>(1, item.calls * item.rows) + (std::int64_t{64} << 10);
  cost.sample_bytes = item.bytes;
  cost.block_bytes = make_block_layout(agent.spec(), shape.rows, shape.chunk).bytes;
  // Simulators hold their environments, rollout workers three versions of the weights and the slots; both LibTorch
  // and its heap.
  cost.decoder_bytes = (std::int64_t{128} << 20) + 3 * cost.policy_bytes + 2 * shape.blocks * cost.block_bytes;
  return cost;
}

}  // namespace

Result<ModelCost> model_cost(const JobConfig& job, const EnvSpec& env) {
  if (is_imitation(job)) return imitation_model_cost(job, env);
  if (job.job.kind == JobKind::rl) return rl_model_cost(job, env);
  const std::int64_t element_bytes = job.precision.param == "bf16" ? 2 : 4;
  const DitCost dit = dit_cost(job.model, job.data.window, element_bytes);
  ModelCost cost;
  TROUPE_ASSIGN(const std::vector<UnitSpec> chain, trained_chain(job.model));
  const std::vector<UnitSpec> units = state_units(chain);
  for (std::size_t u = 0; u < units.size(); ++u) {
    const bool replicated = u >= chain.size();
    cost.units.push_back(unit_cost(units[u], replicated, replicated ? 0 : dit.units[u].executed_forward_flops));
  }
  add_levels(cost, job, dit);
  const EncoderCost encoders = encoder_cost(job.model, job.data.window, job.precision.encoders == "bf16" ? 2 : 4);
  TROUPE_ASSIGN(const SampleLayout layout, sample_layout(job.data, job.model));
  TROUPE_ASSIGN(const SampleLayout item, item_layout(job));
  cost.sample_bytes = item.bytes;
  // A decoder holds one clip at source size per view beside the slot, and FFmpeg's reference frames: taken as 64 MiB
  // and four slots.
  cost.decoder_bytes = (std::int64_t{64} << 20) + 4 * layout.bytes;
  // The frozen networks are where samples are encoded; a learner that predicts frames loads the codec for it.
  cost.encoder_bytes = encoders.bytes;
  if (sends_features(job)) {
    const std::int64_t others = job.cluster.threads.encoder - 1;
    cost.decoder_bytes += encoders.bytes + item.bytes + others * (cost.decoder_bytes + item.bytes);
    cost.encoder_bytes = job.eval.every == 0 ? 0 : encoders.codec_bytes;
  }
  return cost;
}

}  // namespace troupe::workers
