// A policy trained by reinforcement learning outside its run: exported, and behind a socket.
#include <cstring>

#include "tests/app/rl_fixture.h"

namespace troupe::app {
namespace {

/// One short run; every test looks at its last checkpoint.
class RlServeTest : public RlRunTest {
 protected:
  void SetUp() override {
    ASSERT_TRUE(succeeded(run("runs", {"training.steps=2", "env.num_envs=16", "rollout.normalize_obs=true"})));
    run_ = dir_ / "runs/latest";
  }
  ProgramEnd exported(const Words& more) const { return troupe(Words{"export", run_, "--out", dir_ / "out"} + more); }
  std::string run_;
};

TEST_F(RlServeTest, ExportWritesEveryTensorAndWhatActingTakes) {
  ASSERT_TRUE(succeeded(exported({"--format", "safetensors"})));
  const auto policy = nlohmann::json::parse(testing::text_of(dir_ / "out/policy.json"));
  EXPECT_EQ(policy.at("environment").at("id"), "CartPole-v1");
  EXPECT_EQ(policy.at("step"), 2);
  EXPECT_EQ(policy.at("normaliser").at("mean").size(), 4u);
  EXPECT_EQ(policy.at("normaliser").at("count"), 2 * 16 * 32) << "environments times steps of both iterations";
  std::size_t tensors = 0;
  for (const auto& unit : policy.at("units")) tensors += unit.at("tensors").size();
  const std::string file = testing::text_of(dir_ / "out/model.safetensors");
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof length);
  auto header = nlohmann::json::parse(file.substr(sizeof length, length));
  header.erase("__metadata__");
  EXPECT_EQ(header.size(), tensors);
  EXPECT_TRUE(std::filesystem::exists(dir_ / "out/job.yaml"));
}

TEST_F(RlServeTest, FormatsOfDreamZeroAreRefused) {
  for (const char* format : {"lora", "gear"}) {
    expect_end(exported({"--format", format}), 2, {}, {"--format safetensors"});
    EXPECT_FALSE(std::filesystem::exists(dir_ / "out"));
  }
}

TEST_F(RlServeTest, OpenpiClientsAreAnswered) {
  expect_end(troupe({"serve", run_, "--protocol", "openpi", "--once-selftest"}), 0,
             {"(CartPole-v1) with openpi", "self-test ok: actions <f4 [1, 1]"});
}

TEST_F(RlServeTest, ADamagedRankFileIsNamed) {
  const std::string checkpoint = std::filesystem::canonical(run_ + "/checkpoints/latest");
  const std::string file = checkpoint + "/" + files_of(checkpoint, ".safetensors").begin()->first;
  flip_byte(file, 5'000);
  expect_end(troupe({"eval", run_, "--episodes", "1"}), 4, {}, {file});
  expect_end(troupe({"eval", checkpoint, "--compare", run_, "--episodes", "1"}), 4, {}, {file});
  expect_end(exported({}), 4, {}, {file});
}

TEST_F(RlServeTest, OtherProtocolsAreRefused) {
  for (const char* protocol : {"dreamzero", "groot"}) {
    expect_end(troupe({"serve", run_, "--protocol", protocol, "--once-selftest"}), 2, {}, {"add --protocol openpi"});
  }
}

}  // namespace
}  // namespace troupe::app
