// DreamZero's transformer in the sharded engine: whole training steps, whose blocks run by programs.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <cmath>

#include "model/shard/init.h"
#include "model/wan/dit.h"
#include "model/wan/lora.h"
#include "tests/model/shard/guarded_device.h"
#include "tests/model/shard/shuffled_device.h"
#include "tests/model/shard/training_harness.h"
#include "tests/model/wan/network_run.h"
#include "tests/model/wan/tiny_model.h"
#include "tests/support/scratch_folder.h"

namespace troupe::model {
namespace {

using testing::ScratchFolder;

const testing::TinyShape kTrained{.name = "tiny"};

std::shared_ptr<const DitNetwork> make_network(bool lora = false) {
  auto config = testing::tiny_config(kTrained);
  if (lora) config.train_architecture = "lora";
  return std::make_shared<DitNetwork>(config, kTrained.max_blocks);
}

/// Training of that network; a micro-batch holds two samples.
TrainingRun run_of(const std::shared_ptr<const DitNetwork>& network, at::ScalarType dtype = at::kFloat) {
  TrainingRun run{.lr = 1e-3, .network = network};
  run.options.param_dtype = dtype;
  run.batch = [dtype](std::int64_t number) {
    return testing::tiny_batch(kTrained, 2, dtype, static_cast<std::uint64_t>(2 * number));
  };
  return run;
}

TEST(DitEngineTest, RanksSlotsModesAndLevelsChangeNoBit) {
  for (const bool lora : {false, true}) {
    for (const auto dtype : {at::kFloat, at::kBFloat16}) {
      const auto network = make_network(lora);
      TrainingRun alone = run_of(network, dtype);
      alone.micro_batches = 2;
      alone.steps = 3;
      const auto want = train(alone);
      TrainingRun run = run_of(network, dtype);
      run.world = 2;
      run.steps = 3;
      for (const int slots : {1, 2, 64}) {
        for (const auto level :
             {RecomputeLevel::none, RecomputeLevel::cheap, RecomputeLevel::attention, RecomputeLevel::full}) {
          run.options.param_slots = slots;
          run.options.recompute = {level};
          run.options.whole_gradients = slots == 64;
          const auto got = train(run);
          EXPECT_EQ(got.losses, want.losses) << slots << " slots, " << enum_name(level) << (lora ? ", lora" : "");
          EXPECT_TRUE(got.state == want.state) << slots << " slots, " << enum_name(level) << (lora ? ", lora" : "");
        }
      }
    }
  }
}

TEST(DitEngineTest, OffloadedActivationsAndStatesChangeNoBit) {
  const ScratchFolder folder("/var/tmp");
  auto config = testing::tiny_config(kTrained);
  config.dit.num_layers = 6;
  const auto network = std::make_shared<DitNetwork>(config, kTrained.max_blocks);
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    for (const auto level : {RecomputeLevel::none, RecomputeLevel::attention, RecomputeLevel::full}) {
      TrainingRun run = run_of(network, dtype);
      run.world = 2;
      run.micro_batches = 2;
      run.steps = 3;
      // blocks that keep different amounts share a place
      run.options.recompute = {level, level, RecomputeLevel::none, level};
      const auto want = train(run);
      for (const int slots : {2, 3}) {
        run.options.offload = {.states = slots == 3, .stash_slots = slots, .folder = folder.path()};
        const auto got = train(run);
        EXPECT_EQ(got.losses, want.losses) << slots << " slots, " << enum_name(level);
        EXPECT_TRUE(got.state == want.state) << slots << " slots, " << enum_name(level);
      }
      // a device that overtakes wherever it may
      run.device = [](int) { return std::make_unique<ShuffledDevice>(5); };
      EXPECT_TRUE(train(run).state == want.state) << enum_name(level);
    }
  }
}

TEST(DitEngineTest, ProgramsTouchTheirMemoryFromStreamsAlone) {
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    TrainingRun run = run_of(make_network(), dtype);
    run.micro_batches = 2;
    run.options.recompute = {RecomputeLevel::none, RecomputeLevel::attention, RecomputeLevel::cheap};
    const auto want = train(run);
    run.device = [](int) { return std::make_unique<GuardedDevice>(); };
    const auto got = train(run);
    EXPECT_EQ(got.losses, want.losses);
    EXPECT_TRUE(got.state == want.state);
  }
}

TEST(DitEngineTest, ReplayedProgramsGiveTheBitsOfFreshOnesOverThreeStepsThatDiffer) {
  const auto step = [](TrainingRun run, std::int64_t number) {
    run.first_step = number;
    run.steps = 1;
    run.lr = 1e-3 * static_cast<double>(number + 1);
    run.options.clip_grad_norm = number == 1 ? 0.01 : 1.0;
    return run;
  };
  FullState fresh, replayed;
  const auto once = make_network();
  for (std::int64_t number = 0; number < 3; ++number) {
    // a network owns its programs: one that has run before replays them, a new one records its own
    TrainingRun with_replay = step(run_of(once), number), with_recording = step(run_of(make_network()), number);
    if (number > 0) with_replay.resume = &replayed, with_recording.resume = &fresh;
    replayed = train(with_replay).state;
    fresh = train(with_recording).state;
    ASSERT_TRUE(replayed == fresh) << "step " << number;
  }
}

/// AdamW and clipping over leaves, forward and backward as one autograd graph.
std::vector<double> plain_losses(const TrainingRun& run) {
  const auto& units = run.network->units();
  testing::NamedTensors parameters;
  for (const auto& unit : units) {
    const FlatLayout layout = make_flat_layout(unit.params);
    std::vector<float> values(static_cast<std::size_t>(layout.numel));
    fill_initial(unit, layout, 11, 0, values);
    const auto flat = at::from_blob(values.data(), {layout.numel}, at::kFloat);
    const ParamView views = views_of(layout, flat, false);
    for (const auto& [name, tensor] : views.tensors()) parameters[name] = tensor.clone().requires_grad_(true);
  }
  std::map<std::string, std::pair<at::Tensor, at::Tensor>> moments;
  for (const auto& [name, p] : parameters) moments[name] = {at::zeros_like(p), at::zeros_like(p)};
  std::vector<double> losses;
  for (std::int64_t step = 0; step < run.steps; ++step) {
    const auto outputs = testing::run_network(*run.network, parameters, run.batch(step));
    losses.push_back(outputs.loss.item<double>());
    const auto gradients = testing::gradients(outputs.loss, parameters);
    const at::NoGradGuard no_grad;
    double squares = 0;
    for (const auto& [name, g] : gradients) squares += g.to(at::kDouble).square().sum().item<double>();
    const double clip = std::min(1.0, run.options.clip_grad_norm / (std::sqrt(squares) + 1e-6));
    for (const auto& [name, p] : parameters) {
      auto& [m, v] = moments[name];
      at::_fused_adamw_({p.detach()}, {gradients.at(name) * clip}, {m}, {v}, {}, {at::full({}, step + 1.0)}, run.lr,
                        run.options.adamw.beta1, run.options.adamw.beta2, run.options.adamw.weight_decay,
                        run.options.adamw.eps, false, false);
    }
  }
  return losses;
}

constexpr std::size_t kWindow = 20;

/// Mean of a window of losses.
double smoothed(const std::vector<double>& losses, std::size_t at) {
  double sum = 0;
  for (std::size_t i = at; i < at + kWindow; ++i) sum += losses[i];
  return sum / kWindow;
}

TEST(DitEngineTest, Bf16MomentsGiveTheLossCurveOfF32Ones) {
  TrainingRun run = run_of(make_network());
  run.steps = 100;
  const auto f32 = train(run).losses;
  run.options.moment_dtype = at::kBFloat16;
  const auto bf16 = train(run).losses;
  EXPECT_NE(bf16, f32);
  for (std::size_t at = 0; at + kWindow <= f32.size(); ++at)
    ASSERT_NEAR(smoothed(bf16, at), smoothed(f32, at), 2e-2 * smoothed(f32, at)) << "step " << at;
  EXPECT_LT(smoothed(bf16, bf16.size() - kWindow), smoothed(bf16, 0));
}

TEST(DitEngineTest, TwoHundredStepsFollowThePlainImplementationsLossCurve) {
  TrainingRun run = run_of(make_network());
  run.steps = 200;
  const auto ours = train(run).losses, plain = plain_losses(run);
  for (std::size_t at = 0; at + kWindow <= ours.size(); ++at)
    ASSERT_NEAR(smoothed(ours, at), smoothed(plain, at), 1e-3 * smoothed(plain, at)) << "step " << at;
  EXPECT_LT(smoothed(ours, ours.size() - kWindow), smoothed(ours, 0));
}

}  // namespace
}  // namespace troupe::model
