// Windows of several policy calls: what a call sees, what rows remember, and the same rows judged and trained again.
#include "model/wan/policy/dreamzero_window.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <cmath>

#include "model/wan/policy/dit_policy_network.h"
#include "tests/model/wan/network_run.h"
#include "tests/model/wan/policy/dreamzero_fixture.h"
#include "tests/support/tensor_checks.h"

namespace troupe::model {
namespace {

using ::testing::ElementsAre;

constexpr std::int64_t kChunks = 3, kCalls = 7, kSequences = 3;
constexpr double kNoiseLevel = 0.3;

std::string memory_key(const std::string& name) { return rl_keys::kMemoryPrefix + name; }

/// Sequences in which a policy acted call by call, as trajectories keep them: row t * kSequences + s. New episodes
/// begin in sequence 1 at calls 1 and 2, in the middle of windows.
struct ActedWindows {
  explicit ActedWindows(const testing::DreamZeroCase& c) : net(testing::make_dreamzero(c).value()) {
    params = testing::start_parameters(net->units(), 11, 0.2);
    views = testing::by_name(net->units(), params);
    const auto observation = testing::draw_observation(c.shape, kCalls * kSequences, 2);
    std::map<std::string, at::Tensor> memory;
    for (const auto& field : net->memory()) memory[field.name] = at::zeros({kSequences, field.width});
    for (const auto& [name, tensor] : memory) rows[memory_key(name)] = tensor;
    auto begins = at::zeros({kCalls * kSequences, 1}, at::kBool);
    begins[kSequences + 1] = begins[2 * kSequences + 1] = true;
    std::map<std::string, std::vector<at::Tensor>> kept;
    for (std::int64_t t = 0; t < kCalls; ++t) {
      Batch now{{rl_keys::kState, of_call(observation.at(rl_keys::kState), t)}};
      const auto goes_on = of_call(begins, t).logical_not().to(at::kFloat);
      for (const auto& [name, tensor] : memory) now[memory_key(name)] = tensor * goes_on;
      const auto result = net->act(views, {now, 9, keys(t), false, kNoiseLevel});
      kept["action"].push_back(result.action);
      kept["logp"].push_back(result.logp);
      for (const auto& [name, tensor] : result.extra) kept[rl_keys::kExtraPrefix + name].push_back(tensor);
      calls.push_back(result.memory.at(dreamzero_memory::kCalls).flatten());
      memory = result.memory;
      asked.push_back(std::move(now));
    }
    logp = at::cat(kept.extract("logp").mapped());
    for (const auto& [name, parts] : kept) rows[name] = at::cat(parts);
    rows[rl_keys::kState] = observation.at(rl_keys::kState);
    rows[rl_keys::kBegins] = begins;
    rows[rl_keys::kNoiseLevel] = at::scalar_tensor(kNoiseLevel, at::kDouble);
  }
  static at::Tensor of_call(const at::Tensor& all, std::int64_t t) { return all.narrow(0, t * kSequences, kSequences); }
  static std::vector<std::uint64_t> keys(std::int64_t t) {
    return testing::row_keys(kSequences, 200 + 10 * static_cast<std::uint64_t>(t));
  }
  /// What the loss reads beside the rows.
  Batch learning_batch(double off) const {
    Batch batch = rows;
    const auto generator = at::detail::createCPUGenerator(3);
    batch[rl_keys::kOldLogp] = logp + off * at::randn(logp.sizes(), generator, at::kFloat);
    batch[rl_keys::kAdvantage] = at::randn({logp.size(0), 1}, generator, at::kFloat);
    batch[rl_keys::kMask] = at::ones({logp.size(0), rows.at("extra.next").size(1)}, at::kBool);
    return batch;
  }

  std::shared_ptr<const PolicyNet> net;
  std::vector<ParamView> params;
  UnitViews views;
  Batch rows;
  at::Tensor logp;
  /// Of each call: what the policy was asked, and the calls of each window afterwards.
  std::vector<Batch> asked;
  std::vector<at::Tensor> calls;
};

class DreamZeroWindowTest : public ::testing::TestWithParam<bool> {
 protected:
  static testing::DreamZeroCase wanted() { return testing::dreamzero_case(GetParam(), kChunks); }
};

TEST_P(DreamZeroWindowTest, TheLearnerFindsTheLogProbabilitiesOfActing) {
  const ActedWindows acted(wanted());
  const auto difference = acted.net->logp(acted.views, acted.rows) - acted.logp;
  EXPECT_LE(difference.abs().max().item<double>(), 1e-4) << "per number";
  EXPECT_NEAR(difference.exp().mean().item<double>(), 1.0, 1e-3);
  EXPECT_GT(acted.logp.abs().max().item<double>(), 0.01);
}

TEST_P(DreamZeroWindowTest, AWindowEndsBehindItsCallsAndWithTheEpisode) {
  const ActedWindows acted(wanted());
  std::vector<std::vector<float>> calls(kSequences);
  for (const auto& after : acted.calls) {
    for (std::int64_t s = 0; s < kSequences; ++s) calls[static_cast<std::size_t>(s)].push_back(after[s].item<float>());
  }
  EXPECT_THAT(calls[0], ElementsAre(1, 2, 0, 1, 2, 0, 1));
  EXPECT_THAT(calls[1], ElementsAre(1, 1, 1, 2, 0, 1, 2)) << "episodes began at the second and the third call";
  for (const std::int64_t t : {0, 3, 6}) {
    auto without_memory = acted.asked[static_cast<std::size_t>(t)];
    for (const auto& field : acted.net->memory()) without_memory[memory_key(field.name)].zero_();
    const auto result = acted.net->act(acted.views, {without_memory, 9, ActedWindows::keys(t), false, kNoiseLevel});
    const auto want = ActedWindows::of_call(acted.rows.at("action"), t);
    testing::expect_near(result.action[0], want[0], 1e-6, "the first call of a window remembers nothing");
  }
}

TEST_P(DreamZeroWindowTest, ACallSeesTheFramesOfItsWindowSoFarAndNothingElse) {
  const auto c = wanted();
  const ActedWindows acted(c);
  const std::int64_t frames = c.model.latent_frames_per_block, length = 1 + (kChunks - 1) * frames;
  const auto moved = [&](std::int64_t t, const char* name, const std::function<void(const at::Tensor&)>& change) {
    auto asked = acted.asked[static_cast<std::size_t>(t)];
    auto& memory = asked.at(memory_key(name));
    memory = memory.clone();
    change(memory);
    const auto result = acted.net->act(acted.views, {asked, 9, ActedWindows::keys(t), false, kNoiseLevel});
    const auto want = ActedWindows::of_call(acted.rows.at("action"), t);
    return testing::max_difference(result.action[0], want[0]);
  };
  // of sequence 0, call 1 has seen frame 0, and call 2 a block more; the frames that a call brings are not remembered
  const auto latents = [&](std::int64_t first, std::int64_t count) {
    return [=, channels = c.model.dit.out_dim](const at::Tensor& memory) {
      memory.view({kSequences, channels, length, -1}).narrow(2, first, count).add_(0.5);
    };
  };
  EXPECT_GT(moved(1, dreamzero_memory::kLatents, latents(0, 1)), 1e-4);
  EXPECT_LT(moved(1, dreamzero_memory::kLatents, latents(1, length - 1)), 1e-6);
  EXPECT_GT(moved(2, dreamzero_memory::kLatents, latents(1, frames)), 1e-4);
  EXPECT_LT(moved(2, dreamzero_memory::kLatents, latents(1 + frames, length - 1 - frames)), 1e-6);
  EXPECT_LT(moved(3, dreamzero_memory::kLatents, latents(0, length)), 1e-6) << "of the next window";
  EXPECT_GT(moved(1, dreamzero_memory::kClip, [](const at::Tensor& memory) { memory.neg_(); }), 1e-4);
}

TEST_P(DreamZeroWindowTest, ARowDependsOnItsOwnWindowAlone) {
  const ActedWindows acted(wanted());
  for (const std::int64_t t : {1, 2, 3}) {
    Batch one;
    for (const auto& [name, tensor] : acted.asked[static_cast<std::size_t>(t)]) one[name] = tensor.narrow(0, 1, 1);
    const std::vector<std::uint64_t> key{ActedWindows::keys(t)[1]};
    const auto alone = acted.net->act(acted.views, {one, 9, key, false, kNoiseLevel});
    testing::expect_near(alone.action, ActedWindows::of_call(acted.rows.at("action"), t).narrow(0, 1, 1), 1e-5,
                         "action");
  }
}

TEST_P(DreamZeroWindowTest, AnItemMayBeginInsideAWindow) {
  const ActedWindows acted(wanted());
  constexpr std::int64_t kFirst = 1;
  Batch later;
  for (const auto& [name, tensor] : acted.rows) {
    if (name.starts_with(rl_keys::kMemoryPrefix))
      later[name] = acted.asked[kFirst].at(name);
    else
      later[name] = tensor.dim() == 0 ? tensor : tensor.narrow(0, kFirst * kSequences, (kCalls - kFirst) * kSequences);
  }
  const auto want = acted.logp.narrow(0, kFirst * kSequences, (kCalls - kFirst) * kSequences);
  testing::expect_near(acted.net->logp(acted.views, later), want, 1e-4, "log-probabilities");
}

TEST_P(DreamZeroWindowTest, GradientsAreThoseOfOneGraphOverTheWholeChain) {
  const ActedWindows acted(wanted());
  const auto batch = acted.net->prepare(acted.learning_batch(0.1));
  const auto objective = acted.net->objective("policy");
  std::vector<ParamView> slots;
  for (const auto& unit : acted.net->units()) slots.push_back(testing::laid_out(unit.params, at::kFloat, std::nan("")));
  const auto result = testing::run_tape(*objective, acted.params, batch, 1.0, slots);
  testing::NamedTensors parameters, got;
  for (const auto& view : acted.params) parameters.insert(view.tensors().begin(), view.tensors().end());
  for (const auto& view : slots) got.insert(view.tensors().begin(), view.tensors().end());
  const auto plain = testing::run_network(*objective, parameters, batch);
  EXPECT_NEAR(result.loss, plain.loss.item<double>(), 1e-5);
  const auto want = testing::gradients(plain.loss, parameters);
  double largest = 0;
  for (const auto& [name, gradient] : want) largest = std::max(largest, testing::largest(gradient));
  EXPECT_GT(largest, 0);
  for (const auto& [name, gradient] : want) testing::expect_near(got.at(name), gradient, 1e-4 * largest, name);

  const auto unchanged = acted.net->prepare(acted.learning_batch(0));
  const auto first = testing::run_tape(*objective, acted.params, unchanged, 1.0, slots);
  EXPECT_NEAR(first.metrics.at("actor/ratio"), 1.0, 1e-3);
  EXPECT_EQ(first.metrics.at("nonfinite_samples"), 0.0);
}

INSTANTIATE_TEST_SUITE_P(Models, DreamZeroWindowTest, ::testing::Bool(),
                         [](const auto& image) { return std::string(image.param ? "ImageToVideo" : "TextToVideo"); });

TEST(DreamZeroWindowShapeTest, WithOneBlockEveryRowIsAWindowAsTheObserverSeesIt) {
  const auto c = testing::dreamzero_case(true);
  const testing::WaveObserver observer(c);
  const DreamZeroWindow window(c.model, 1);
  EXPECT_TRUE(window.memory().empty());
  const auto rows = testing::draw_observation(c.shape, 5, 2);
  const auto placed = window.place(rows, 5, observer);
  const auto seen = observer.encode(rows);
  EXPECT_EQ(placed.windows, 5);
  EXPECT_THAT(placed.window, ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(placed.block, ElementsAre(0, 0, 0, 0, 0));
  for (const char* name : {batch_keys::kContext, batch_keys::kClip, batch_keys::kFirstFrame})
    EXPECT_TRUE(at::equal(placed.seen.at(name), seen.at(name))) << name;
  EXPECT_TRUE(at::equal(placed.state, seen.at(batch_keys::kState)));
  EXPECT_TRUE(at::equal(placed.seen.at(batch_keys::kCleanLatents).narrow(2, 0, 1), seen.at(batch_keys::kCleanLatents)));

  const auto acted = testing::act_dreamzero(c, 5);
  EXPECT_TRUE(acted.result.memory.empty());
  const auto batch = acted.net->prepare(acted.rows);
  EXPECT_EQ(batch.count(DitPolicyNetwork::kSlots), 0u);
  const auto& noisy = batch.at(batch_keys::kNoisyLatents);
  EXPECT_TRUE(at::equal(noisy.narrow(2, 1, noisy.size(2) - 1), acted.result.extra.at("video")));
  EXPECT_TRUE(at::equal(batch.at(batch_keys::kNoisyActions), acted.result.extra.at("actions")));
}

TEST(DreamZeroWindowShapeTest, RowsStandAtTheirBlocks) {
  const auto c = testing::dreamzero_case(false, 2);
  const DreamZeroWindow window(c.model, 2);
  Batch rows = testing::draw_observation(c.shape, 6, 2);  // three calls of two sequences
  for (const auto& field : window.memory()) rows[memory_key(field.name)] = at::zeros({2, field.width});
  rows[memory_key(dreamzero_memory::kCalls)][1] = 1.0;
  const auto placed = window.place(rows, 6, testing::WaveObserver(c));
  EXPECT_THAT(placed.block, ElementsAre(0, 1, 1, 0, 0, 1));
  EXPECT_THAT(placed.window, ElementsAre(0, 1, 0, 2, 3, 2));
  EXPECT_EQ(placed.windows, 4);
  const auto numbers = at::arange(1, 7, at::kFloat).unsqueeze(1);
  const std::vector<float> want{1, 3, 0, 2, 4, 6, 5, 0};
  EXPECT_TRUE(at::equal(placed.of_blocks(numbers), at::tensor(want).view({4, 2, 1})));
}

TEST(DreamZeroWindowShapeTest, MemoriesThatDoNotFitAreRefused) {
  const auto c = testing::dreamzero_case(false, 2);
  const DreamZeroWindow window(c.model, 2);
  Batch rows = testing::draw_observation(c.shape, 3, 2);
  EXPECT_THROW((void)window.place(rows, 3, testing::WaveObserver(c)), c10::Error) << "no memory";
  for (const auto& field : window.memory()) rows[memory_key(field.name)] = at::zeros({2, field.width});
  EXPECT_THROW((void)window.place(rows, 3, testing::WaveObserver(c)), c10::Error) << "3 rows of 2 sequences";
}

}  // namespace
}  // namespace troupe::model
