#include "workers/pipeline/model_cost.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <array>

#include "data/sample/sample.h"
#include "env/block_layout.h"
#include "env/reward/reward_registry.h"
#include "model/shard/flat_layout.h"
#include "model/shard/precision.h"
#include "model/wan/dit_units.h"
#include "model/wan/encoder_cost.h"
#include "model/wan/infer/call_kernels.h"
#include "model/wan/infer/episode_cost.h"
#include "model/wan/lora.h"
#include "model/wan/model_cost.h"
#include "model/wan/unit_memory_cost.h"
#include "placement/evaluation.h"
#include "placement/memory_model.h"
#include "placement/rl_shape.h"
#include "workers/encoder/encoded_sample.h"
#include "workers/inference/agent/agent.h"
#include "workers/learner/imitation/demonstration_builder.h"
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

/// Of one version of the weights that act.
std::int64_t published_bytes(const PolicyNet& policy) {
  const std::vector<std::string>& acting = policy.acting_units();
  const auto width = static_cast<std::int64_t>(c10::elementSize(policy.acting_dtype()));
  std::int64_t bytes = 0;
  for (const UnitSpec& unit : state_units(policy.units())) {
    if (std::find(acting.begin(), acting.end(), unit.name) != acting.end()) bytes += width * count_parameters(unit);
  }
  return bytes;
}

/// Of the networks of a policy.
ModelCost policy_cost(const PolicyNet& policy) {
  ModelCost cost;
  for (const UnitSpec& unit : policy.units()) {
    cost.units.push_back(unit_cost(unit, /*replicated=*/false, 2.0 * static_cast<double>(count_parameters(unit))));
  }
  cost.policy_bytes = published_bytes(policy);
  return cost;
}

/// Of the units that have state: a transformer's chain, and its adapters.
void add_transformer(ModelCost& cost, const std::vector<UnitSpec>& chain, const DitCost& dit) {
  const std::vector<UnitSpec> units = state_units(chain);
  for (std::size_t u = 0; u < units.size(); ++u) {
    const bool replicated = u >= chain.size();
    cost.units.push_back(unit_cost(units[u], replicated, replicated ? 0 : dit.units[u].executed_forward_flops));
  }
}

std::int64_t element_bytes(const std::string& precision) { return precision == "bf16" ? 2 : 4; }

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
  TROUPE_ASSIGN(const auto data, Demonstrations::open(job, agent.shape));
  ModelCost cost = policy_cost(*agent.policy);
  cost.sample_bytes = data->layout().bytes;
  cost.activation_bytes_per_sample = cost.sample_bytes + (std::int64_t{64} << 10);
  cost.decoder_bytes =
      (std::int64_t{128} << 20) + data->resident_bytes() + DemonstrationBuilder::kept_bytes(*data, job);
  return cost;
}

/// DreamZero's units, what they keep and work in, and the frozen networks that see for them.
ModelCost dreamzero_cost(const JobConfig& job, const PolicyNet& policy) {
  const DitCost dit = dit_cost(job.model, job.data.window, gathered_bytes_per_param(job));
  ModelCost cost;
  add_transformer(cost, policy.units(), dit);
  cost.policy_bytes = published_bytes(policy);
  add_levels(cost, job, dit);
  cost.encoder_bytes = encoder_cost(job.model, job.data.window, element_bytes(job.precision.encoders)).bytes;
  return cost;
}

/// What a process that acts holds beside versions of the weights, and for each row of a call.
struct ActingBytes {
  std::int64_t held = 0, row = 0;
};

/// What is not trained, whole, as a call reads it.
std::int64_t frozen_bytes(const JobConfig& job, const ModelCost& cost) {
  std::int64_t parameters = 0;
  for (const UnitCost& unit : cost.units) parameters += unit.trainable ? 0 : unit.params;
  return parameters * gathered_bytes_per_param(job);
}

/// Of DreamZero: the frozen transformer and encoders, one instruction, and an episode for each row.
ActingBytes dreamzero_acting(const JobConfig& job, const ModelCost& cost) {
  const EpisodeCost episode = episode_cost(job.model, job.data.window, gathered_bytes_per_param(job));
  return {.held = frozen_bytes(job, cost) + cost.encoder_bytes + episode.prompt_bytes, .row = episode.bytes};
}

/// What a DreamZero that acts for so many rows at once holds on a device.
std::int64_t acting_device_bytes(const JobConfig& job, const ModelCost& cost, std::int64_t rows) {
  const EpisodeCost episode = episode_cost(job.model, job.data.window, gathered_bytes_per_param(job));
  std::int64_t parameters = 0;
  for (const UnitCost& unit : cost.units) parameters += unit.params;
  const PlannedCall call{.robots = rows,
                         .branches = 1,
                         .seen_blocks = job.data.window.chunks - 1,
                         .prompt_rows = job.model.text_encoder.max_length};
  return parameters * gathered_bytes_per_param(job) + episode.prompt_bytes + rows * episode.bytes +
         call_workspace_bytes(job.model, job.data.window, dtype_of_precision(job.precision.param), call);
}

/// Of simulators, rollout workers and the evaluator. A process that acts holds three versions of the weights: one in
/// use, the newest, and one on its way; deterministic rollouts as many more as they may be behind (WeightReceiver).
void add_workers(ModelCost& cost, const JobConfig& job, const ActingBytes& acting) {
  constexpr std::int64_t kProcess = std::int64_t{128} << 20;  // LibTorch and its heap
  const RlShape shape = rl_shape(job);
  const std::int64_t versions = 3 + (job.algorithm.deterministic ? job.rollout.staleness : 0);
  const std::int64_t together = job.rollout.batch_blocks;  // 0: all
  const std::int64_t rows = (together == 0 ? shape.blocks : std::min(together, shape.blocks)) * shape.envs;
  const std::int64_t played = std::min<std::int64_t>(kParallelEpisodes, job.eval.episodes);
  // simulators hold their environments, rollout workers the slots of their simulators
  cost.decoder_bytes = kProcess + 2 * shape.blocks * cost.block_bytes;
  cost.rollout_bytes = cost.decoder_bytes + acting.held + versions * cost.policy_bytes + rows * acting.row;
  cost.evaluator_bytes = kProcess + acting.held + 3 * cost.policy_bytes +
                         played * (acting.row + cost.block_bytes / std::max<std::int64_t>(1, shape.envs));
  if (!learns_dreamzero(job)) return;
  cost.rollout_device_bytes = acting_device_bytes(job, cost, rows);
  cost.evaluator_device_bytes = acting_device_bytes(job, cost, played);
}

/// The policy's units, and what travels between simulators, rollout workers and learners.
Result<ModelCost> rl_model_cost(const JobConfig& job, const EnvSpec& env) {
  TROUPE_ASSIGN(const Agent agent, plan_agent(job, env));
  // a reward that cannot be computed is told before anything starts
  TROUPE_TRY(make_reward_rules(job.env.reward, job.algorithm, agent.spec()));
  const TrajectoryLayout item = make_trajectory_layout(job, agent.spec(), *agent.policy);
  const RlShape shape = rl_shape(job);
  ModelCost cost = learns_dreamzero(job) ? dreamzero_cost(job, *agent.policy) : policy_cost(*agent.policy);
  // What a forward of one row keeps is of the order of the layers' widths; taken as the item's share and the widest
  // units.
  cost.activation_bytes_per_sample =
      item.bytes / std::max<std::int64_t>(1, item.calls * item.rows) + (std::int64_t{64} << 10);
  cost.sample_bytes = item.bytes;
  cost.block_bytes = make_block_layout(agent.spec(), shape.envs, shape.chunk).bytes;
  add_workers(cost, job, learns_dreamzero(job) ? dreamzero_acting(job, cost) : ActingBytes{});
  if (job.algorithm.policy_gradient.kl_beta > 0)
    cost.reference_bytes = cost.policy_bytes + (learns_dreamzero(job) ? frozen_bytes(job, cost) : 0);
  return cost;
}

}  // namespace

Result<ModelCost> model_cost(const JobConfig& job, const EnvSpec& env) {
  if (is_imitation(job)) return imitation_model_cost(job, env);
  if (job.job.kind == JobKind::rl) return rl_model_cost(job, env);
  const DitCost dit = dit_cost(job.model, job.data.window, gathered_bytes_per_param(job));
  ModelCost cost;
  TROUPE_ASSIGN(const std::vector<UnitSpec> chain, trained_chain(job.model));
  add_transformer(cost, chain, dit);
  add_levels(cost, job, dit);
  const EncoderCost encoders = encoder_cost(job.model, job.data.window, element_bytes(job.precision.encoders));
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
