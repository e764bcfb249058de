#include <ATen/ATen.h>

#include <map>
#include <string>
#include <vector>

#include "base/namespaces.h"
#include "model/loss/rl_keys.h"
#include "tests/model/golden_rl/cases.h"
#include "tests/support/visible.h"
#include "tests/workers/rollout/played_item.h"
#include "workers/learner/rl/rollout_rows.h"

namespace troupe::testing {

namespace {

/// The case's rollout epochs: those of a learner are items that lie side by side. A tensor of the case holds them one
/// after the other, flags and values with one row more, of which the first, or last, is of the state before, or after.
struct Epochs {
  explicit Epochs(const RlCase& of_case) : golden(of_case) {}

  const RlCase& golden;
  const std::int64_t count = golden.config().at("rollout_epoch").get<std::int64_t>();
  const std::int64_t calls = golden.in("rewards").size(0) / count;

  at::Tensor of(const std::string& name, std::int64_t epoch) const {
    const auto& all = golden.in(name);
    return all.narrow(0, epoch * all.size(0) / count, all.size(0) / count);
  }
  at::Tensor side_by_side(const std::string& name) const {
    std::vector<at::Tensor> parts;
    for (std::int64_t epoch = 0; epoch < count; ++epoch) parts.push_back(of(name, epoch));
    return at::cat(parts, 1);
  }
  /// Blocks that play the epochs, as the job's learner puts their items together. With auto-reset the reference
  /// executes every action of a chunk: an episode ends with the chunk then.
  RolloutBatch play(JobConfig job, bool auto_reset) const {
    std::vector<CollectedItem> items;
    RolloutBatch batch;
    for (std::int64_t epoch = 0; epoch < count; ++epoch) {
      const auto rewards = of("rewards", epoch), logp = of("prev_logprobs", epoch), values = of("prev_values", epoch);
      auto ends = of("dones", epoch).narrow(0, 1, calls).to(at::kBool);
      if (auto_reset) {
        ends = at::cat({at::zeros_like(ends.narrow(2, 1, ends.size(2) - 1)), ends.any(2, /*keepdim=*/true)}, 2);
      }
      PlayedItem played(job, {rewards, ends}, logp.size(2) / rewards.size(2));
      const auto fill = [](std::span<float> to, const at::Tensor& from) {
        const auto x = from.contiguous();
        std::copy_n(x.const_data_ptr<float>(), to.size(), to.begin());
      };
      fill(played.view().all<float>(played.layout().logp), logp);
      fill(played.view().all<float>(played.layout().value), values);
      items.push_back(played.item());
      if (epoch + 1 == count) batch = played.batch_of(items);
    }
    return batch;
  }
  JobConfig job(bool auto_reset) const {
    return recorded_job(of("rewards", 0).sizes(), auto_reset ? "auto" : "episode");
  }
};

/// Epochs merged, masked where every environment plays one episode, then filtered by group.
void check_rollout(const Epochs& epochs, const RlVariant& v) {
  const bool auto_reset = v.get("auto_reset", false);
  const auto& want_mask = v.at("loss_mask");
  auto job = epochs.job(auto_reset);
  job.algorithm.name = Algorithm::grpo;
  job.env.group_size = v.get("group_size", epochs.golden.config().at("group_size").get<std::int64_t>());
  auto& c = job.algorithm.policy_gradient;
  c.reward_level = want_mask.size(2) == 1 ? "chunk" : "action";
  if (v.config.contains("filter") && !v.config.at("filter").is_null()) {
    const auto bounds = v.config.at("filter").get<std::vector<double>>();
    c.filter_low = bounds.at(0), c.filter_high = bounds.at(1);
  }
  const auto batch = epochs.play(job, auto_reset);
  // The reference's returns hold what a chunk earned behind its end; a block would not have played that.
  const auto rewards = epochs.side_by_side("rewards");
  const auto rows = make_rollout_rows(job, batch, {.reward = rewards, .current_logp = {}, .reference_logp = {}});
  expect_same(rows.valid_cells.view_as(want_mask), want_mask, v.name + " mask");

  // what the reference's environments did after their end no block does
  const auto executed = [&](const at::Tensor& x) { return x * batch.mask; };
  std::map<std::string, at::Tensor> got = {{"prev_logprobs", batch.logp}, {"prev_values", batch.value}};
  for (const auto& [name, want] : v.out) {
    if (name == "loss_mask") continue;
    if (name == "rewards") {
      expect_same(batch.reward, executed(want), v.name + " rewards");
    } else if (name == "dones") {
      expect_same(batch.terminated, executed(want.narrow(0, 1, epochs.calls)), v.name + " dones");
    } else if (name == "loss_mask_sum") {
      const auto steps = rows.rows.at(rl_keys::kValidSteps).view({epochs.calls, -1, 1});
      expect_same(steps.expand_as(want), want, v.name + " valid steps");
    } else {
      ASSERT_EQ(got.count(name), 1U) << epochs.golden.name() << " " << v.name << " has " << name;
      expect_same(got.at(name), want, v.name + " " + name);
    }
  }
}

/// Rows in the order of a permutation, as an update takes its minibatches. A learner's rows hold neither rewards nor
/// flags; the reference orders them as the others.
void check_flatten(const Epochs& epochs, const RlVariant& v) {
  auto job = epochs.job(/*auto_reset=*/true);
  job.algorithm.policy_gradient.reward_level = "chunk";
  const auto batch = epochs.play(job, /*auto_reset=*/true);
  const auto rows = make_rollout_rows(job, batch, {.reward = batch.reward, .current_logp = {}, .reference_logp = {}});
  const std::map<std::string, at::Tensor> flat = {{"prev_logprobs", rows.rows.at(rl_keys::kOldLogp)},
                                                  {"prev_values", rows.rows.at(rl_keys::kOldValue)}};
  for (const auto& [name, want] : v.out) {
    if (name == "permutation") continue;
    const auto found = flat.find(name);
    const auto all =
        found != flat.end() ? found->second : epochs.side_by_side(name).narrow(0, 0, epochs.calls).flatten(0, 1);
    expect_same(all.index_select(0, v.at("permutation")), want, v.name + " " + name);
  }
}

void check_batch_preprocess(const RlCase& golden) {
  const Epochs epochs(golden);
  for (const auto& v : golden.variants()) {
    v.has("permutation") ? check_flatten(epochs, v) : check_rollout(epochs, v);
  }
}

}  // namespace

RlHandlers batch_handlers() { return {{"batch_preprocess", check_batch_preprocess}}; }

}  // namespace troupe::testing
