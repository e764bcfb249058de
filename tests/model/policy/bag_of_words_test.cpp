// Policies that are told something: what is made of a text, and who reads it.
#include "model/policy/bag_of_words.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/hash.h"
#include "model/policy/flow_imitation.h"
#include "model/policy/flow_policy.h"
#include "model/policy/sac_model.h"
#include "tests/model/policy/policy_fixture.h"

namespace troupe::model {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// u8 [N,bytes], zeros behind each.
at::Tensor texts(const std::vector<std::string>& all, std::int64_t bytes = 40) {
  auto told = at::zeros({static_cast<std::int64_t>(all.size()), bytes}, at::kByte);
  for (std::size_t i = 0; i < all.size(); ++i)
    std::copy(all[i].begin(), all[i].end(),
              told.mutable_data_ptr<std::uint8_t>() + static_cast<std::int64_t>(i) * bytes);
  return told;
}

TEST(WordRowsTest, WordsAreLowerCasedAndComeBeforeTheirPairs) {
  std::vector<std::int64_t> rows;
  for (const char* word : {"lift", "cube", "2", "lift cube", "cube 2"})
    rows.push_back(static_cast<std::int64_t>(xxh3_64(std::string_view(word)) % 1000));
  EXPECT_THAT(word_rows("Lift, cube--2!", 1000), ElementsAreArray(rows));
  EXPECT_THAT(word_rows(std::string_view("  lift cube 2\0behind", 20), 1000), ElementsAreArray(rows));
}

TEST(WordRowsTest, LettersAboveAsciiBelongToWords) {
  EXPECT_EQ(word_rows("gr\u00fc\u00df dich", 1 << 20).size(), 3u);
  EXPECT_EQ(word_rows("\u62ff\u8d77", 1 << 20).size(), 1u);
}

TEST(WordRowsTest, ATextWithoutAWordHasNone) {
  EXPECT_THAT(word_rows("", 16), IsEmpty());
  EXPECT_THAT(word_rows(" ?!", 16), IsEmpty());
}

/// A bag of 50 rows of three numbers in f64.
struct BagOfWordsTest : ::testing::Test {
  const BagOfWords bag{"actor.order", 50, 3};
  ParamView view;
  at::Tensor table = at::randn({50, 3}, at::detail::createCPUGenerator(3), at::kDouble);

  at::Tensor forward(const std::vector<std::string>& said) {
    view.set("actor.order.words", table);
    return bag.forward(view, texts(said));
  }
  at::Tensor mean_of(const std::string& text) const {
    auto sum = at::zeros({3}, at::kDouble);
    const auto rows = word_rows(text, 50);
    for (const std::int64_t row : rows) sum += table[row];
    return sum / static_cast<double>(rows.size());
  }
};

TEST_F(BagOfWordsTest, ATextIsTheMeanOfItsRowsWhateverStandsBesideIt) {
  const std::vector<std::string> said{"push the red cube", "stop", "push the red cube", ""};
  const auto bags = forward(said);
  for (const std::int64_t n : {0, 1, 2}) EXPECT_TRUE(bags[n].allclose(mean_of(said[static_cast<std::size_t>(n)]))) << n;
  EXPECT_TRUE(bags[3].equal(at::zeros({3}, at::kDouble)));
  EXPECT_TRUE(forward({"stop"})[0].equal(bags[1]));
}

TEST_F(BagOfWordsTest, TheOrderOfWordsCounts) {
  const auto bags = forward({"red on blue", "blue on red"});
  EXPECT_FALSE(bags[0].allclose(bags[1]));
}

TEST_F(BagOfWordsTest, GradientsAreThoseOfDifferences) {
  const std::vector<std::string> said{"push the cube", "push", "push the cube"};
  const auto weight = at::randn({3, 3}, at::detail::createCPUGenerator(5), at::kDouble);
  const auto at_rest = table.clone();
  const auto value = [&] { return (forward(said) * weight).sum(); };
  table = at_rest.clone().requires_grad_(true);
  value().backward();
  const auto gradient = table.grad().clone();
  for (std::int64_t i = 0; i < at_rest.numel(); ++i) {
    table = at_rest.clone();
    table.view({-1})[i] += 1e-5;
    const double up = value().item<double>();
    table.view({-1})[i] -= 2e-5;
    EXPECT_NEAR(gradient.view({-1})[i].item<double>(), (up - value().item<double>()) / 2e-5, 1e-8) << i;
  }
}

/// What a policy observes, and what it is told.
PolicyCase told_case(PolicyKind kind, Vision vision, PolicyMemory memory, std::int64_t choices) {
  PolicyCase c;
  c.policy.kind = kind;
  c.policy.vision = vision;
  c.policy.memory = memory;
  c.policy.memory_width = 8;
  c.policy.text = TextReader::words;
  c.policy.text_width = 6;
  c.policy.hidden = {24, 24};
  c.policy.cnn_channels = {4, 5, 6};
  c.shape.state_dim = 3;
  if (vision != Vision::none) c.shape.images = {{.name = "rgb.front", .height = 36, .width = 40}};
  c.shape.texts = {{.name = "order", .bytes = 40}};
  c.shape.choices = choices;
  if (choices == 0) {
    c.shape.action_dim = 2;
    c.shape.action_low = {-1, 0};
    c.shape.action_high = {1, 4};
  }
  return c;
}

struct ToldCase {
  const char* name;
  PolicyKind kind;
  Vision vision = Vision::none;
  PolicyMemory memory = PolicyMemory::none;
  std::int64_t choices = 0;
};

class ToldPolicyTest : public ::testing::TestWithParam<ToldCase>, protected testing::PolicyInUse {
 protected:
  void SetUp() override {
    const auto& param = GetParam();
    ASSERT_NO_FATAL_FAILURE(use(told_case(param.kind, param.vision, param.memory, param.choices)));
    for (const auto& memory : net_->memory())
      observation_[rl_keys::kMemoryPrefix + memory.name] = at::zeros({kRows, memory.width});
    observation_["text.order"] = texts(std::vector<std::string>(kRows, "push the left lever"));
  }
};

TEST_P(ToldPolicyTest, ActorAndCriticReadARowsTextAndNoOtherRows) {
  const auto acted = act();
  Batch batch = stored(acted);
  const auto logp = [&] { return net_->logp(views(), batch); };
  const auto value = [&] { return net_->value(views(), batch).clone(); };
  const auto logp_before = logp(), value_before = value();
  std::vector<std::string> said(kRows, "push the left lever");
  said[2] = "push the right lever";
  batch["text.order"] = texts(said);
  const auto logp_after = logp(), value_after = value();
  for (std::int64_t row = 0; row < kRows; ++row) {
    EXPECT_EQ(logp_before[row].allclose(logp_after[row], 0, 1e-6), row != 2) << row;
    EXPECT_EQ(value_before[row].allclose(value_after[row], 0, 1e-6), row != 2) << row;
  }
}

TEST_P(ToldPolicyTest, LogProbabilitiesAreFoundAgainFromTheStoredText) {
  const auto acted = act();
  EXPECT_LT(testing::max_difference(net_->logp(views(), stored(acted)), acted.logp), 1e-4);
}

TEST_P(ToldPolicyTest, ItsTableIsNamedForTheTextAndAutogradDifferentiatesIt) {
  for (const char* unit : {"actor", "critic"}) {
    const auto found = std::ranges::find_if(net_->units(), [&](const UnitSpec& spec) { return spec.name == unit; });
    const auto table = std::ranges::find_if(
        found->params, [&](const ParamSpec& param) { return param.name == std::string(unit) + ".order.words"; });
    ASSERT_NE(table, found->params.end()) << unit;
    EXPECT_EQ(table->shape, (std::vector<std::int64_t>{1024, 6}));
  }
  EXPECT_EQ(net_->objective("policy")->manual_backward(), nullptr) << "it differentiates layers over a state alone";
}

INSTANTIATE_TEST_SUITE_P(Policies, ToldPolicyTest,
                         ::testing::Values(ToldCase{"Gaussian", PolicyKind::mlp},
                                           ToldCase{.name = "Categorical", .kind = PolicyKind::mlp, .choices = 3},
                                           ToldCase{"Flow", PolicyKind::flow},
                                           ToldCase{"Seeing", PolicyKind::mlp, Vision::keypoints},
                                           ToldCase{"SeeingFlow", PolicyKind::flow, Vision::keypoints},
                                           ToldCase{"Remembering", PolicyKind::mlp, Vision::cnn, PolicyMemory::gru}),
                         [](const auto& instance) { return std::string(instance.param.name); });

std::string refusal(const PolicyCase& c) {
  const auto net = make_policy_net(c.policy, c.algorithm, c.shape);
  return net ? "no error" : net.error().message();
}

TEST(ToldPolicyNamesTest, WhatDoesNotFitIsNamed) {
  auto untold = told_case(PolicyKind::mlp, Vision::none, PolicyMemory::none, 0);
  untold.shape.texts.clear();
  EXPECT_THAT(refusal(untold), HasSubstr("policy.text is words; the environment tells no text"));
  auto told_alone = told_case(PolicyKind::mlp, Vision::none, PolicyMemory::none, 0);
  told_alone.shape.state_dim = 0;
  EXPECT_EQ(refusal(told_alone), "no error");
}

TEST(ToldPolicyNamesTest, APolicyThatReadsNoTextIsTheOneItWas) {
  auto deaf = told_case(PolicyKind::mlp, Vision::none, PolicyMemory::none, 0);
  deaf.policy.text = TextReader::none;
  const auto net = make_policy_net(deaf.policy, deaf.algorithm, deaf.shape);
  for (const UnitSpec& unit : (*net)->units()) {
    for (const ParamSpec& param : unit.params) EXPECT_THAT(param.name, ::testing::Not(HasSubstr("order")));
  }
  EXPECT_NE((*net)->objective("policy")->manual_backward(), nullptr);
}

TEST(ToldSacTest, CriticsAreToldWhatTheActorIsAtBothObservations) {
  PolicyCase c = told_case(PolicyKind::mlp, Vision::none, PolicyMemory::none, 0);
  c.algorithm.name = Algorithm::sac;
  const auto model = *SacModel::make(c.policy, c.algorithm, c.shape);
  const auto params = testing::by_name(model->units(), testing::start_parameters(model->units(), 5, 0.2));
  Batch batch = testing::draw_observation(c.shape, 4, 2);
  batch[rl_keys::kNextState] = batch.at(rl_keys::kState) + 1;
  batch["text.order"] = texts({"left", "left", "right", "right"});
  const auto action = at::zeros({4, 2});
  const auto values = [&] { return model->values(params.at("critic"), batch, action).clone(); };
  const auto targets = [&] {
    return model->target_values(params.at("target"), model->next_observation(batch), action).clone();
  };
  const auto means = [&] {
    return model->distribution(params.at("actor"), model->next_observation(batch)).mean.clone();
  };
  const auto value = values(), target = targets(), mean = means();
  batch["text.order"] = texts({"left", "right", "right", "right"});
  for (const auto& [before, after] : {std::pair{value, values()}, {target, targets()}, {mean, means()}}) {
    EXPECT_FALSE(before[1].equal(after[1]));
    EXPECT_TRUE(before[2].equal(after[2]));
  }
}

/// Orders in the words of two people; the action is -1 or 1.
Batch orders(std::int64_t rows, std::uint64_t seed) {
  const auto side = at::randint(0, 2, {rows}, at::detail::createCPUGenerator(seed), at::kLong);
  std::vector<std::string> said;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::string which = side[row].item<std::int64_t>() == 0 ? "left" : "right";
    said.push_back(row % 2 == 0 ? "Push the " + which + " lever." : which + ", please");
  }
  Batch batch{{rl_keys::kState, at::zeros({rows, 1})},
              {rl_keys::kAction, (2 * side - 1).to(at::kFloat).unsqueeze(1)},
              {"text.order", texts(said)}};
  std::vector<std::uint64_t> positions;
  for (std::int64_t row = 0; row < rows; ++row) positions.push_back(1000 * seed + static_cast<std::uint64_t>(row));
  draw_flow_targets(seed, positions, 1, /*held_out=*/false, batch);
  return batch;
}

TEST(ToldTrainingTest, AFlowPolicyObeysWhatItIsTold) {
  PolicyCase c;
  c.policy.kind = PolicyKind::flow;
  c.policy.text = TextReader::words;
  c.policy.text_width = 8;
  c.policy.hidden = {32, 32};
  c.policy.activation = Activation::relu;
  c.algorithm.name = Algorithm::grpo;
  c.shape.state_dim = 1;
  c.shape.texts = {{.name = "order", .bytes = 40}};
  c.shape.action_dim = 1;
  c.shape.action_low = {-1};
  c.shape.action_high = {1};
  const auto net = *make_flow_policy_net(c.policy, c.algorithm, c.shape);
  const auto params = testing::start_parameters(net->units(), 5);
  const auto gradients = testing::empty_gradients(net->units());
  testing::SmallAdam adam(0.01);
  for (std::uint64_t step = 1; step <= 150; ++step) {
    testing::run_tape(*net->objective("sft"), params, orders(64, step), 1.0, gradients);
    adam.step(params[0], gradients[0]);
  }
  const auto batch = orders(64, 5000);
  const auto keys = testing::row_keys(64);
  const auto acted = net->act(testing::by_name(net->units(), params), {batch, 1, keys, /*deterministic=*/true});
  const double obeyed = (acted.action.sign() == batch.at(rl_keys::kAction)).to(at::kDouble).mean().item<double>();
  EXPECT_GT(obeyed, 0.95) << "a policy that is not told obeys half of the time";
}

}  // namespace
}  // namespace troupe::model
