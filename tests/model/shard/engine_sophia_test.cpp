// Sophia in the engine: curvature from labels that are drawn from the model.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "model/loss/sampled_label.h"
#include "tests/model/shard/training_harness.h"
#include "tests/support/scratch_folder.h"

namespace troupe::model {
namespace {

using testing::ScratchFolder;

/// Curvature stands in the place of v.
constexpr std::size_t kH = kV;

/// Linear regression: loss = c sum (X W - y)^2 of a batch's input X, target y and coefficient c; with its label_noise
/// the loss of labels drawn from the model.
class RegressionNetwork final : public Network {
 public:
  RegressionNetwork(std::int64_t inputs, std::int64_t outputs, Init init = {Init::Kind::normal, 1}) {
    units_ = {
        {"weight", "weight", {{"w", {inputs, outputs}, init}}}, {"identity", "identity", {}}, {"head", "head", {}}};
  }
  const std::vector<UnitSpec>& units() const override { return units_; }
  Carry prologue(const ParamView& p, const Batch& batch) const override {
    return {batch.at("input").matmul(p["w"]), {}};
  }
  at::Tensor block(std::int64_t, const ParamView&, const Carry& carry, const Batch&) const override { return carry.x; }
  Outputs epilogue(const ParamView&, const Carry& carry, const Batch& batch) const override {
    const at::Tensor& coefficient = batch.at("coefficient");
    if (const auto noise = batch.find("label_noise"); noise != batch.end())
      return {sampled_label_loss(carry.x, coefficient, noise->second), {}, {}};
    return {((carry.x - batch.at("target")).square() * coefficient).sum(), {}, {}};
  }

 private:
  std::vector<UnitSpec> units_;
};

at::Tensor normals(const std::vector<std::int64_t>& shape, std::uint64_t stream, std::int64_t number) {
  at::Tensor values = at::empty(shape);
  CounterRng rng(5, stream, static_cast<std::uint64_t>(number));
  for (std::int64_t i = 0; i < values.numel(); ++i) values.data_ptr<float>()[i] = rng.normal();
  return values;
}

constexpr std::int64_t kSamples = 4, kInputs = 60, kOutputs = 50;

Batch regression_batch(std::int64_t number) {
  return {{"input", normals({kSamples, kInputs}, rng_stream::toy_scene, number)},
          {"target", normals({kSamples, kOutputs}, rng_stream::video_noise, number)},
          {"coefficient", at::full({}, 1.0 / (kSamples * kOutputs))}};
}

Batch with_labels(Batch batch, std::int64_t number) {
  batch["label_noise"] =
      normals({batch.at("input").size(0), batch.at("target").size(1)}, rng_stream::video_label, number);
  return batch;
}

struct SophiaRun {
  int world = 1, micro_batches = 1;
  std::int64_t first_step = 0, steps = 30;
  const StateSource* resume = nullptr;
  /// updates wait for their use, and states lie in this folder
  std::string offload_folder = {};
  SophiaOptions sophia = {.beta1 = 0.9, .beta2 = 0.95, .rho = 0.04, .weight_decay = 0.01};
};

constexpr std::int64_t kEvery = 10;

FullState state_of(const SophiaRun& run) {
  const std::int64_t per_step = std::int64_t{run.world} * run.micro_batches;
  const auto accumulate = [&](Engine& engine, std::int64_t step, bool labels) {
    for (int j = 0; j < run.micro_batches; ++j) {
      const std::int64_t number = step * per_step + j * run.world + engine.rank();
      const Batch batch = regression_batch(number);
      engine.accumulate(labels ? with_labels(batch, number) : batch, 1.0 / static_cast<double>(per_step), j == 0)
          .value();
    }
    return engine.vote({}, {}).value();
  };
  const auto work = [&](Engine& engine) {
    if (run.resume) engine.load(*run.resume).value();
    for (std::int64_t step = run.first_step; step < run.first_step + run.steps; ++step) {
      if (step % kEvery == 0)
        engine.estimate_curvature(static_cast<double>(per_step), accumulate(engine, step, /*labels=*/true));
      engine.commit(1e-2, accumulate(engine, step, /*labels=*/false));
    }
  };
  EngineOptions options{.offload = {.states = !run.offload_folder.empty(), .folder = run.offload_folder},
                        .lazy_optimizer = !run.offload_folder.empty(),
                        .clip_grad_norm = 0.5,
                        .sophia = run.sophia};
  return state_after(run.world, std::make_shared<RegressionNetwork>(kInputs, kOutputs), options, 3, work);
}

TEST(EngineSophiaTest, TwoRanksHaveTheBitsOfOneAndFourAgree) {
  const auto two_alone = state_of({.micro_batches = 2}), two = state_of({.world = 2});
  EXPECT_TRUE(two_alone == two);
  const auto four_alone = state_of({.micro_batches = 4}), four = state_of({.world = 4});
  for (const std::size_t kind : {kMaster, kM, kH}) {
    const auto& want = four_alone.values[0][kind];
    const auto& got = four.values[0][kind];
    for (std::size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(got[i], want[i], 1e-6) << kind << " " << i;
  }
  EXPECT_EQ(four.num_updates, 30);
}

TEST(EngineSophiaTest, ALazyOptimizerAndOffloadedStatesChangeNoBit) {
  const ScratchFolder folder("/var/tmp");
  EXPECT_TRUE(state_of({.world = 2, .offload_folder = folder.path()}) == state_of({.world = 2}));
}

TEST(EngineSophiaTest, AResumeInTheMiddleOfTheCadenceIsExactOnAnyNumberOfRanks) {
  const auto straight = state_of({.world = 2, .steps = 25});
  const auto first = state_of({.world = 2, .steps = 13});
  EXPECT_TRUE(state_of({.world = 2, .first_step = 13, .steps = 12, .resume = &first}) == straight);
  for (const int world : {1, 3, 4}) EXPECT_TRUE(state_of({.world = world, .steps = 0, .resume = &first}) == first);
}

TEST(EngineSophiaTest, TheBackwardOfSampledLabelsIsTheJacobiansProductWithTheNoise) {
  const Batch batch = with_labels(regression_batch(7), 7);
  // without momentum or clipping, and at a learning rate of 0, m is the gradient
  const EngineOptions options{.clip_grad_norm = 0, .sophia = SophiaOptions{.beta1 = 0}};
  const auto work = [&](Engine& engine) {
    engine.accumulate(batch, 1.0, true).value();
    engine.commit(0.0, engine.vote({}, {}).value());
  };
  const auto state = state_after(1, std::make_shared<RegressionNetwork>(kInputs, kOutputs), options, 3, work);
  const auto x = batch.at("input").to(at::kDouble), noise = batch.at("label_noise").to(at::kDouble);
  const auto want = x.t().matmul(noise * std::sqrt(2.0 / (kSamples * kOutputs))).contiguous();
  for (std::int64_t i = 0; i < want.numel(); ++i)
    ASSERT_NEAR(state.values[0][kM][static_cast<std::size_t>(i)], want.data_ptr<double>()[i], 1e-5) << i;
}

constexpr std::int64_t kCurvatures = 25;

/// a from 1e-3 to 1e3.
at::Tensor curvatures() { return at::pow(10.0, at::linspace(-3.0, 3.0, kCurvatures, at::kDouble)).to(at::kFloat); }

/// 1/2 sum a theta^2 as the squares of sqrt(a) theta.
Batch quadratic_batch() {
  return {{"input", at::diag(curvatures().sqrt())},
          {"target", at::zeros({kCurvatures, 1})},
          {"coefficient", at::full({}, 0.5)}};
}

std::shared_ptr<const Network> quadratic() {
  return std::make_shared<RegressionNetwork>(kCurvatures, 1, Init{Init::Kind::ones, 1});
}

/// `body` with an engine of one rank that starts from theta = 1.
void with_engine(const EngineOptions& options, const std::function<void(Engine&)>& body) {
  run_thread_ranks(1, [&](Collective& group) {
    StartedEngine engine(group, quadratic(), options);
    body(engine);
  });
}

TEST(EngineSophiaTest, TheEstimateRecoversTheCurvatureOfAQuadratic) {
  constexpr int kDraws = 2000;
  std::vector<double> sums(kCurvatures, 0.0);
  const EngineOptions options{.clip_grad_norm = 0, .sophia = SophiaOptions{.beta2 = 0}};
  with_engine(options, [&](Engine& engine) {
    for (int draw = 0; draw < kDraws; ++draw) {
      engine.accumulate(with_labels(quadratic_batch(), draw), 1.0, true).value();
      engine.estimate_curvature(1.0, engine.vote({}, {}).value());
      const auto state = full_state(engine.units(), engine.layouts(), 1, {snapshot_of(engine)}, 0);
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += state.values[0][kH][i];
    }
  });
  const auto a = curvatures();
  double mean = 0;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const double ratio = sums[i] / kDraws / a[static_cast<std::int64_t>(i)].item<double>();
    EXPECT_NEAR(ratio, 1.0, 0.16) << i << ", five standard deviations";
    mean += ratio / static_cast<double>(kCurvatures);
  }
  EXPECT_NEAR(mean, 1.0, 0.05);
}

/// Updates until the loss is below 1e-3 of the first; `limit` where it is not before.
int steps_to_converge(const EngineOptions& options, double lr, int limit) {
  int steps = limit;
  with_engine(options, [&](Engine& engine) {
    double first = 0;
    for (int step = 0; step < limit; ++step) {
      if (options.sophia && step % kEvery == 0) {
        engine.accumulate(with_labels(quadratic_batch(), step), 1.0, true).value();
        engine.estimate_curvature(1.0, engine.vote({}, {}).value());
      }
      const double loss = engine.accumulate(quadratic_batch(), 1.0, true)->loss;
      if (step == 0) first = loss;
      if (loss < 1e-3 * first) {
        steps = step;
        break;
      }
      engine.commit(lr, engine.vote({}, {}).value());
    }
  });
  return steps;
}

TEST(EngineSophiaTest, ItReachesTheMinimumOfAQuadraticInFewerStepsThanAdamW) {
  constexpr int kLimit = 3000;
  const EngineOptions adamw{.clip_grad_norm = 0, .adamw = {.weight_decay = 0}};
  const EngineOptions sophia{.clip_grad_norm = 0, .sophia = SophiaOptions{.weight_decay = 0}};
  int best_adamw = kLimit, best_sophia = kLimit;
  for (const double lr : {1e-4, 3e-4, 1e-3, 3e-3, 1e-2}) {
    best_adamw = std::min(best_adamw, steps_to_converge(adamw, lr, kLimit));
    best_sophia = std::min(best_sophia, steps_to_converge(sophia, lr, kLimit));
  }
  EXPECT_LT(best_adamw, kLimit);
  EXPECT_LT(best_sophia, best_adamw);
  RecordProperty("adamw", best_adamw);
  RecordProperty("sophia", best_sophia);
}

TEST(EngineSophiaTest, ItCountsWholeStepsAndTheCurvature) {
  with_engine({.clip_grad_norm = 0, .sophia = SophiaOptions{.beta2 = 0}}, [&](Engine& engine) {
    engine.accumulate(quadratic_batch(), 1.0, true).value();
    engine.commit(1e-3, engine.vote({}, {}).value());
    EXPECT_EQ(engine.counts().whole_steps, static_cast<double>(kCurvatures)) << "no curvature is known yet";
    engine.accumulate(with_labels(quadratic_batch(), 0), 1.0, true).value();
    const auto before = engine.updates();
    engine.estimate_curvature(1.0, engine.vote({}, {}).value());
    EXPECT_EQ(engine.updates(), before);
    const auto state = full_state(engine.units(), engine.layouts(), 1, {snapshot_of(engine)}, 0);
    double sum = 0;
    for (const float h : state.values[0][kH]) sum += h;
    EXPECT_NEAR(engine.counts().curvature, sum, 1e-6 * sum);
  });
}

}  // namespace
}  // namespace troupe::model
