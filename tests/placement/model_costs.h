#pragma once

#include <numeric>
#include <string>

#include "configs/job_config.h"
#include "placement/plan.h"
#include "tests/support/visible.h"

namespace troupe::testing {

inline UnitCost make_unit(std::string name, std::string layout_class, std::vector<std::int64_t> numels) {
  UnitCost unit{.name = std::move(name),
                .layout_class = std::move(layout_class),
                .params = 0,
                .numels = std::move(numels),
                .forward_flops_per_sample = 0};
  unit.params = std::accumulate(unit.numels.begin(), unit.numels.end(), std::int64_t{0});
  return unit;
}

/// A DreamZero-shaped chain: prologue, `layers` blocks of width d and feed-forward f, epilogue.
inline ModelCost chain(std::int64_t layers, std::int64_t d, std::int64_t f, std::int64_t outside) {
  ModelCost cost;
  cost.units.push_back(make_unit("embed", "embed", {outside, d}));
  std::vector<std::int64_t> block;
  for (int i = 0; i < 10; ++i) {  // q k v o of self attention, q k v o k_img v_img of cross attention
    block.push_back(d * d);
    block.push_back(d);
  }
  for (const std::int64_t numel : {d * f, f, f * d, d, 6 * d, d, d, d, d, d, d, d}) block.push_back(numel);
  for (std::int64_t i = 0; i < layers; ++i)
    cost.units.push_back(make_unit("blocks." + std::to_string(i), "block", block));
  cost.units.push_back(make_unit("head", "head", {d * 192, 192, 2 * d}));
  return cost;
}

/// Levels none, cheap, attention, full of blocks that keep so many bytes a sample.
inline void set_levels(ModelCost& cost, std::int64_t blocks, const std::array<std::int64_t, 4>& kept,
                       std::int64_t workspace) {
  const std::array<double, 4> work = {0, 3e8, 8e9, 1e10};
  cost.blocks = blocks;
  cost.level_samples = 1;
  for (std::size_t level = 0; level < kept.size(); ++level) {
    cost.levels[level] = {.kept_bytes = kept[level],
                          .last_kept_bytes = kept[level] / 2,
                          .workspace_bytes = level == 0 ? workspace / 2 : workspace,
                          .replay_work = work[level]};
  }
}

/// About 0.2 M parameters.
inline ModelCost tiny_cost() {
  ModelCost cost = chain(4, 48, 96, 50'000);
  cost.ends = {100'000, 100'000};
  set_levels(cost, 4, {525'000, 350'000, 150'000, 75'000}, 600'000);
  cost.encoder_bytes = 3'000'000;
  cost.sample_bytes = 700'000;
  cost.decoder_bytes = std::int64_t{96} << 20;
  return cost;
}

/// Sizes of the 5B model, with the bytes of a step that recomputes every transformer block.
inline ModelCost cost_5b() {
  ModelCost cost = chain(30, 3072, 14'336, 129'000'000);
  cost.ends = {10'000'000, 10'000'000};
  set_levels(cost, 30, {158'000'000, 99'000'000, 22'000'000, 5'600'000}, 350'000'000);
  cost.encoder_bytes = 12'700'000'000;
  cost.sample_bytes = 17'000'000;
  cost.decoder_bytes = std::int64_t{400} << 20;
  return cost;
}

inline ModelCost cost_14b() {
  ModelCost cost = chain(40, 5120, 13'824, 330'000'000);
  cost.ends = {300'000'000, 300'000'000};
  set_levels(cost, 40, {3'970'000'000, 2'560'000'000, 650'000'000, 160'000'000}, 8'000'000'000);
  cost.encoder_bytes = 12'700'000'000;
  cost.sample_bytes = 68'000'000;
  cost.decoder_bytes = std::int64_t{600} << 20;
  return cost;
}

/// The same blocks frozen, with rank-4 adapters on six linears of each and 89 M parameters of state and action modules.
inline ModelCost cost_14b_lora() {
  ModelCost cost = cost_14b();
  for (UnitCost& unit : cost.units) unit.trainable = false;
  std::vector<std::int64_t> numels{89'000'000};
  for (int i = 0; i < 40 * 4; ++i) {  // q k v o
    numels.push_back(4 * 5120);
    numels.push_back(5120 * 4);
  }
  for (int i = 0; i < 40 * 2; ++i) {  // ffn.0 and ffn.2
    numels.push_back(4 * 5120);
    numels.push_back(13'824 * 4);
  }
  cost.units.push_back(make_unit("resident", "resident", std::move(numels)));
  cost.units.back().replicated = true;
  return cost;
}

/// The same with the frozen encoders in encoder actors, not in learners.
inline ModelCost encoders_apart(ModelCost cost) {
  cost.decoder_bytes += cost.encoder_bytes;
  cost.encoder_bytes = 0;
  return cost;
}

/// global 8, micro 1, everything else at its default.
inline JobConfig small_job() {
  JobConfig job;
  job.job.name = "test";
  return job;
}

}  // namespace troupe::testing
