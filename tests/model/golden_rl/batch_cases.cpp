#include <ATen/ATen.h>

#include <map>
#include <string>
#include <vector>

#include "base/namespaces.h"
#include "model/loss/grpo.h"
#include "model/loss/loss_mask.h"
#include "model/loss/rollout_layout.h"
#include "tests/model/golden_rl/cases.h"
#include "tests/support/visible.h"

namespace troupe::testing {

namespace {

/// Every output of a variant that is a merged copy of the input of that name.
void expect_merged(const RlCase& golden, const RlVariant& v, const std::map<std::string, at::Tensor>& merged) {
  for (const auto& [name, tensor] : merged) {
    if (v.has(name)) expect_same(tensor, v.at(name), v.name + " " + name);
  }
  for (const auto& [name, tensor] : v.out) {
    EXPECT_TRUE(merged.count(name) != 0 || name == "loss_mask" || name == "loss_mask_sum")
        << golden.name() << " " << v.name << " has " << name;
  }
}

/// Merged, masked where every environment plays one episode, then filtered by group.
void check_rollout(const RlCase& golden, const RlVariant& v, const std::map<std::string, at::Tensor>& merged) {
  expect_merged(golden, v, merged);
  const auto& rewards = merged.at("rewards");
  at::Tensor mask;
  if (!v.get("auto_reset", false) && !v.get("ignore_terminations", false)) {
    auto steps = make_loss_mask(merged.at("dones"));
    if (v.get<std::string>("reward_type", "action_level") == "chunk_level") steps = to_chunk_mask(steps);
    mask = steps.mask;
    if (v.has("loss_mask_sum")) expect_same(steps.n_valid, v.at("loss_mask_sum"), v.name + " valid steps");
  }
  if (v.config.contains("filter") && !v.config.at("filter").is_null()) {
    const auto bounds = v.config.at("filter").get<std::vector<double>>();
    const auto group = v.get("group_size", golden.config().at("group_size").get<std::int64_t>());
    const auto kept = kept_groups(rewards, mask, group, bounds.at(0), bounds.at(1)).reshape({1, -1, 1});
    mask = mask.defined() ? mask.logical_and(kept) : kept.expand({rewards.size(0), rewards.size(1), 1});
  }
  expect_same(mask, v.at("loss_mask"), v.name + " mask");
}

void check_flatten(const RlVariant& v, const std::map<std::string, at::Tensor>& merged) {
  const auto calls = merged.at("rewards").size(0);
  for (const auto& [name, want] : v.out) {
    if (name == "permutation") continue;
    expect_same(flatten_samples(merged.at(name).narrow(0, 0, calls), v.at("permutation")), want, v.name + " " + name);
  }
}

void check_batch_preprocess(const RlCase& golden) {
  std::map<std::string, at::Tensor> merged;
  for (const auto& [name, tensor] : golden.inputs())
    merged[name] = merge_epochs(tensor, golden.config().at("rollout_epoch").get<std::int64_t>());
  for (const auto& v : golden.variants()) {
    v.has("permutation") ? check_flatten(v, merged) : check_rollout(golden, v, merged);
  }
}

}  // namespace

RlHandlers batch_handlers() { return {{"batch_preprocess", check_batch_preprocess}}; }

}  // namespace troupe::testing
