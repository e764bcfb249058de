// A simulator that does not answer: stuck, or only slow.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "tests/workers/rollout/rollout_fixture.h"

namespace troupe::workers {
namespace {

using namespace testing;

/// Holds steps until it is opened; those that come later are done at once.
class StepDam {
 public:
  void pass(std::function<void()> done) {
    {
      const std::lock_guard lock(mutex_);
      if (!is_open_) return held_.push_back(std::move(done));
    }
    done();
  }
  void open() {
    std::vector<std::function<void()>> held;
    {
      const std::lock_guard lock(mutex_);
      is_open_ = true;
      held.swap(held_);
    }
    for (const auto& done : held) done();
  }

 private:
  std::mutex mutex_;
  bool is_open_ = false;
  std::vector<std::function<void()>> held_;
};

/// Answers resets, and lets steps hang.
class HangingBlock final : public EnvBlock {
 public:
  HangingBlock(BlockLayout layout, std::shared_ptr<StepDam> dam) : layout_(std::move(layout)), dam_(std::move(dam)) {}
  const BlockLayout& layout() const override { return layout_; }
  void reset(std::int64_t, BlockView, std::function<void()> done) override { done(); }
  void reset_to_seed(std::uint64_t, BlockView, std::function<void()> done) override { done(); }
  void step(std::span<const float>, BlockView, std::function<void()> done, Executor::Caller) override {
    dam_->pass(std::move(done));
  }
  Counters counters() const override { return {}; }
  std::uint64_t state_hash(std::int64_t) const override { return 0; }
  const std::string& why_lost(std::int64_t) const override { return never_lost_; }
  Result<void> render(std::int64_t, const std::string&, RenderTarget) override {
    return Error{Errc::not_found, "no camera"};
  }
  Result<void> advise(std::int64_t, std::span<float>) override { return Error{Errc::not_found, "no expert"}; }

 private:
  const BlockLayout layout_;
  const std::string never_lost_;
  const std::shared_ptr<StepDam> dam_;
};

/// A job of one block that hangs in its first step, until the test opens the dam.
struct StuckBlockTest : ::testing::Test {
  explicit StuckBlockTest(double step_timeout_s = 0.05) : job(job_of(step_timeout_s)) {
    const auto layout = make_block_layout((*make_env_factory("CartPole-v1"))->spec(), 8, 1);
    job.make_block = [dam = dam, layout](std::int64_t, Executor&) -> Result<std::unique_ptr<EnvBlock>> {
      return std::unique_ptr<EnvBlock>(std::make_unique<HangingBlock>(layout, dam));
    };
  }
  ~StuckBlockTest() override { dam->open(); }  // so that the block can be destroyed
  static JobConfig job_of(double step_timeout_s) {
    JobConfig config = cart_pole_job();
    config.env.blocks = 1;
    config.env.step_timeout = Seconds(step_timeout_s);
    return config;
  }
  void begin() {
    job.start(1, 1);
    job.publish(0, 0.5f);
    job.allow(1, 0);
  }

  const std::shared_ptr<StepDam> dam = std::make_shared<StepDam>();
  RolloutJob job;
};
/// Patient enough for environments that are being made.
struct SlowBlockTest : StuckBlockTest {
  SlowBlockTest() : StuckBlockTest(1) {}
};

TEST_F(StuckBlockTest, ABlockThatHangsIsReportedOnceWithItsSimulator) {
  begin();
  ASSERT_TRUE(job.wait_for_stuck());
  EXPECT_FALSE(job.feed().take(0, 0, 200ms));
  const auto stuck = job.stuck();
  ASSERT_EQ(stuck.size(), 1u);
  EXPECT_EQ(stuck[0].producer, "env/0#0");
  EXPECT_THAT(stuck[0].text, ::testing::HasSubstr("env.step_timeout_s"));
}

TEST_F(SlowBlockTest, ABlockWhoseEnvironmentsAreBeingMadeIsSlowNotStuck) {
  constexpr int kTold = 200;
  // every 10 ms: together they take longer than a step may; still asked while the job ends
  const auto asked = std::make_shared<std::atomic<int>>(0);
  job.is_making = [asked] { return ++*asked < kTold; };
  begin();
  ASSERT_TRUE(job.wait_for_stuck());
  EXPECT_GE(*asked, kTold);
}

}  // namespace
}  // namespace troupe::workers
