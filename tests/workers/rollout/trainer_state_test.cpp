#include "workers/rollout/trainer_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe::workers {
namespace {

RlTrainerState some_state() {
  RlTrainerState state;
  state.present = true;
  state.normaliser = {Moments(2), Moments(1)};
  state.normaliser.observed.add(std::vector<float>{0.1f, -3e-20f, 7, 1e20f, 1.0f / 3, 2});
  state.normaliser.returned.add(std::vector<float>{0.7f, -0.2f});
  state.optimizer_steps = 1234567890123;
  state.env_steps = 42;
  state.counters = {{"evicted", 7}, {"lost", 0}};
  return state;
}

TEST(RlTrainerStateTest, ComesBackBitForBit) {
  const RlTrainerState state = some_state();
  const auto parsed = RlTrainerState::parse(state.text());
  EXPECT_TRUE(parsed->present);
  EXPECT_EQ(encode(parsed->normaliser), encode(state.normaliser));
  EXPECT_EQ(parsed->optimizer_steps, state.optimizer_steps);
  EXPECT_EQ(parsed->env_steps, state.env_steps);
  EXPECT_EQ(parsed->counters, state.counters);
  EXPECT_EQ(parsed->text(), state.text());
}

TEST(RlTrainerStateTest, EmptyTextIsAJobThatBegins) {
  const auto parsed = RlTrainerState::parse("");
  EXPECT_FALSE(parsed->present);
  EXPECT_EQ(parsed->optimizer_steps, 0);
}

TEST(RlTrainerStateTest, TextCutShortIsDamaged) {
  const std::string text = some_state().text();
  // the last two characters are the brace and a newline
  for (std::size_t length = 1; length + 2 <= text.size(); ++length) {
    const auto parsed = RlTrainerState::parse(text.substr(0, length));
    EXPECT_EQ(parsed.error().code(), Errc::data_loss) << length;
    EXPECT_THAT(parsed.error().message(), ::testing::HasSubstr("trainer_state.json"));
  }
}

TEST(RlTrainerStateTest, FieldsOfAnotherKindAreDamaged) {
  const auto refused = [](const std::string& text) {
    const auto parsed = RlTrainerState::parse(text);
    return !parsed && parsed.error().code() == Errc::data_loss;
  };
  const std::string rest = R"(, "optimizer_steps": 1, "env_steps": 2, "counters": {}})";
  EXPECT_FALSE(refused(R"({"normaliser": "")" + rest));
  EXPECT_TRUE(refused(R"({"normaliser": 5)" + rest));
  EXPECT_TRUE(refused(R"({"normaliser": "0")" + rest));
  EXPECT_TRUE(refused(R"({"normaliser": "0g")" + rest));
  EXPECT_TRUE(refused(R"({"normaliser": "00")" + rest));
  EXPECT_TRUE(refused(R"({"normaliser": "", "optimizer_steps": "1", "env_steps": 2, "counters": {}})"));
  EXPECT_TRUE(refused(R"({"normaliser": "", "optimizer_steps": 1, "env_steps": 2, "counters": {"lost": "many"}})"));
  EXPECT_TRUE(refused(R"({"normaliser": ""})"));
  EXPECT_TRUE(refused("[]"));
}

}  // namespace
}  // namespace troupe::workers
