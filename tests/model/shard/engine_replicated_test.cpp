// A frozen base whose units are gathered without gradients, and resident parameters that are trained on top of it.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "model/optim/adamw.h"
#include "model/shard/init.h"
#include "tests/model/shard/training_harness.h"

namespace troupe::model {
namespace {

Init normal(double scale) { return {Init::Kind::normal, scale}; }

/// Units with frozen parameters and residents; the second block has none of its own, the third trains everything.
///     x = tanh(input W + c),  x = x + scale * tanh(x U + (x A) B),  loss = mean((x V + d - target)^2)
class AdaptedChain final : public Network {
 public:
  explicit AdaptedChain(bool third_block_is_trained = false) {
    units_ = {frozen("embed", {{"embed.W", {7, 24}, normal(0.5)}}, {{"embed.c", {24}, normal(0.1)}})};
    for (int i = 0; i < 3; ++i) {
      const auto p = "blocks." + std::to_string(i) + ".";
      std::vector<ParamSpec> adapters = {{p + "A", {24, 3}, normal(0.3)}, {p + "B", {3, 24}, normal(0.3)}};
      units_.push_back(frozen("blocks." + std::to_string(i), {{p + "U", {24, 24}, normal(0.3)}},
                              i == 1 ? std::vector<ParamSpec>{} : adapters));
      units_.back().adapter_scale = 0.5;
    }
    units_[3].trainable = third_block_is_trained;
    units_.push_back(frozen("head", {{"head.V", {24, 5}, normal(0.3)}}, {{"head.d", {5}, {}}}));
  }
  const std::vector<UnitSpec>& units() const override { return units_; }
  Carry prologue(const ParamView& p, const Batch& batch) const override {
    const auto input = batch.at("input").to(p["embed.W"].scalar_type());
    return {(input.matmul(p["embed.W"]) + p["embed.c"]).tanh(), {input.sum(1)}};
  }
  at::Tensor block(std::int64_t index, const ParamView& p, const Carry& carry, const Batch&) const override {
    const auto prefix = "blocks." + std::to_string(index) + ".";
    auto hidden = carry.x.matmul(p[prefix + "U"]);
    if (p.contains(prefix + "A")) hidden = hidden + carry.x.matmul(p[prefix + "A"]).matmul(p[prefix + "B"]);
    return carry.x + p.adapter_scale() * hidden.tanh();
  }
  Outputs epilogue(const ParamView& p, const Carry& carry, const Batch& batch) const override {
    const auto y = carry.x.matmul(p["head.V"]) + p["head.d"] + carry.conditioning[0].unsqueeze(1) * 0.1;
    return {(y.to(at::kFloat) - batch.at("target")).square().mean(), {}, {}};
  }

 private:
  static UnitSpec frozen(const std::string& name, std::vector<ParamSpec> params, std::vector<ParamSpec> replicated) {
    return {.name = name,
            .layout_class = name,
            .params = std::move(params),
            .trainable = false,
            .replicated = std::move(replicated)};
  }
  std::vector<UnitSpec> units_;
};

const auto kAdapted = std::make_shared<AdaptedChain>();

std::vector<float> initial(const UnitSpec& unit) {
  const auto layout = make_flat_layout(unit.params);
  std::vector<float> values(static_cast<std::size_t>(layout.numel));
  fill_initial(unit, layout, 11, 0, values);
  return values;
}

TEST(EngineResidentTest, OneStepEqualsPlainAutogradAndAdamw) {
  // the same network as one graph
  const auto units = state_units(kAdapted->units());
  std::vector<ParamView> views(kAdapted->units().size());
  std::vector<std::vector<float>> values;
  std::vector<at::Tensor> leaves;
  for (const auto& unit : units) values.push_back(initial(unit));
  const auto tensor_of = [&](std::size_t u) {
    return at::from_blob(values[u].data(), {static_cast<std::int64_t>(values[u].size())}, at::kFloat);
  };
  const auto replicated = views_of(make_flat_layout(units.back().params), tensor_of(units.size() - 1), true);
  for (std::size_t u = 0; u < views.size(); ++u) {
    views[u] = views_of(make_flat_layout(units[u].params), tensor_of(u), false);
    views[u].set_adapter_scale(units[u].adapter_scale);
    for (const auto& param : units[u].replicated) views[u].set(param.name, replicated[param.name]);
  }
  const auto batch = chain_batch(0);
  auto carry = kAdapted->prologue(views.front(), batch);
  for (std::size_t u = 1; u + 1 < views.size(); ++u) {
    carry.x = kAdapted->block(static_cast<std::int64_t>(u) - 1, views[u], carry, batch);
  }
  const auto loss = kAdapted->epilogue(views.back(), carry, batch).loss;
  for (const auto& param : units.back().params) leaves.push_back(replicated[param.name]);
  const auto grads = torch::autograd::grad({loss}, leaves);

  const auto layout = make_flat_layout(units.back().params);
  const auto size = static_cast<std::size_t>(layout.numel);
  std::vector<float> gradient(size), m(size), v(size);
  double squares = 0;
  for (std::size_t i = 0; i < grads.size(); ++i) {
    const auto flat = grads[i].contiguous().flatten();
    std::copy_n(flat.data_ptr<float>(), flat.numel(), gradient.begin() + layout.entries[i].offset);
    squares += flat.to(at::kDouble).square().sum().item<double>();
  }
  const auto result = train({.steps = 1, .network = kAdapted});
  EXPECT_NEAR(result.losses[0], loss.item<double>(), 1e-6);
  EXPECT_NEAR(result.norms[0], std::sqrt(squares), 1e-5 * result.norms[0]);
  const TrainingRun run;
  adamw_step(values.back(), m, v, gradient, kernels::clip_factor(result.norms[0], 0.5),
             adamw_update(run.lr, 1, run.options.adamw));
  const auto& got = result.state.values.back()[0];
  for (std::size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], values.back()[i], 1e-6) << i;
}

TEST(EngineResidentTest, TheFrozenBaseNeverChangesAndIsSavedWithoutMoments) {
  const auto result = train({.world = 2, .steps = 5, .network = kAdapted});
  const auto units = state_units(kAdapted->units());
  ASSERT_EQ(result.state.values.size(), units.size());
  for (std::size_t u = 0; u + 1 < units.size(); ++u) {
    ASSERT_EQ(result.state.values[u].size(), 1U) << units[u].name;
    EXPECT_EQ(result.state.values[u][0], initial(units[u])) << units[u].name;
  }
  EXPECT_EQ(result.state.values.back().size(), 3U);
  EXPECT_NE(result.state.values.back()[0], initial(units.back()));
}

TEST(EngineResidentTest, SlotsAndRanksChangeNoBit) {
  const auto reference = train({.micro_batches = 2, .steps = 4, .network = kAdapted});
  for (const int slots : {1, 2, 5}) {
    TrainingRun run{.micro_batches = 2, .steps = 4, .network = kAdapted};
    run.options.param_slots = slots;
    EXPECT_TRUE(train(run).state == reference.state) << slots;
  }
  TrainingRun two{.world = 2, .steps = 4, .network = kAdapted};
  const auto zero3 = train(two);
  EXPECT_EQ(zero3.losses, reference.losses);
  EXPECT_TRUE(zero3.state == reference.state);
  two.options.whole_gradients = true;
  EXPECT_TRUE(train(two).state == reference.state);
}

TEST(EngineResidentTest, TwoHalvesEqualTheWholeAndAnotherWorldLoadsTheSameBits) {
  const auto whole = train({.world = 2, .steps = 8, .network = kAdapted});
  const auto first = train({.world = 2, .steps = 4, .network = kAdapted});
  const auto second = train({.world = 2, .first_step = 4, .steps = 4, .network = kAdapted, .resume = &first.state});
  EXPECT_TRUE(second.state == whole.state);
  const auto wider = train({.world = 3, .steps = 0, .network = kAdapted, .resume = &first.state});
  EXPECT_TRUE(wider.state == first.state);
}

TEST(EngineResidentTest, TrainedAndFrozenUnitsMix) {
  const auto mixed = std::make_shared<AdaptedChain>(true);
  const auto one = train({.micro_batches = 2, .steps = 4, .network = mixed});
  EXPECT_TRUE(one.state == train({.world = 2, .steps = 4, .network = mixed}).state);
  const auto units = state_units(mixed->units());
  EXPECT_NE(one.state.values[3][0], initial(units[3]));
  EXPECT_EQ(one.state.values[2][0], initial(units[2]));
  EXPECT_EQ(one.state.values[3].size(), 3U);
}

TEST(EngineResidentTest, Bf16KeepsTheBaseInBf16AndTheAdaptersMastersInFp32) {
  TrainingRun run{.world = 2, .steps = 3, .network = kAdapted};
  run.options.param_dtype = at::kBFloat16;
  const auto result = train(run);
  const auto units = state_units(kAdapted->units());
  auto base = initial(units[0]);
  auto tensor = at::from_blob(base.data(), {static_cast<std::int64_t>(base.size())}, at::kFloat);
  tensor.copy_(tensor.to(at::kBFloat16));
  EXPECT_EQ(result.state.values[0][0], base);
  run.resume = &result.state;
  run.steps = 0;
  EXPECT_TRUE(train(run).state == result.state);
}

TEST(EngineResidentTest, AllocatedBytesFollowTheFormula) {
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    run_thread_ranks(2, [&](Collective& group) {
      const std::int64_t width = dtype == at::kFloat ? 4 : 2;
      Engine engine(kAdapted, {.param_dtype = dtype, .param_slots = 3, .grad_slots = 2});
      engine.attach(group).value();
      std::int64_t frozen = 0, largest = 0;
      for (std::size_t u = 0; u + 1 < engine.layouts().size(); ++u) {
        frozen += engine.layouts()[u].shard(2);
        largest = std::max(largest, engine.layouts()[u].padded(2));
      }
      const auto replicated = engine.layouts().back().padded(2);
      EXPECT_EQ(engine.bytes().at("shards"), frozen * width + replicated / 2 * (dtype == at::kFloat ? 16 : 18));
      EXPECT_EQ(engine.bytes().at("slots"), (3 * largest + replicated) * width);
      EXPECT_EQ(engine.bytes().at("gradients"), 2 * replicated * 4) << "as written, and as the ranks sent them";
      EXPECT_EQ(engine.snapshot_bytes(), static_cast<std::size_t>(replicated / 2 * 12));
    });
  }
}

}  // namespace
}  // namespace troupe::model
