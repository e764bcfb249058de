#include "workers/decoder/decoder_role.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "base/fault.h"
#include "base/hash.h"
#include "workers/stream/order.h"

namespace troupe::workers {
namespace {

/// What the feed's side of a channel sees and says.
struct Feed {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Credit> credits;
  std::vector<Item> items;
  bool stopped = false;

  void grant(std::int64_t position) {
    const std::lock_guard lock(mutex);
    credits.push_back({.slot = 0, .tag = SampleKey{Split::train, position}.tag(), .fence = 1});
    changed.notify_all();
  }
  std::vector<Item> wait_for(std::size_t count) {
    std::unique_lock lock(mutex);
    EXPECT_TRUE(changed.wait_for(lock, std::chrono::seconds(30), [&] { return items.size() >= count; }));
    return items;
  }
};

class FakeProducer final : public ChannelProducer {
 public:
  explicit FakeProducer(std::shared_ptr<Feed> feed) : feed_(std::move(feed)) {}
  Result<Credit> next_credit(std::chrono::milliseconds deadline) override {
    std::unique_lock lock(feed_->mutex);
    feed_->changed.wait_for(lock, deadline, [&] { return feed_->stopped || !feed_->credits.empty(); });
    if (feed_->stopped) return Error{Errc::cancelled, "stopped"};
    if (feed_->credits.empty()) return Error{Errc::deadline_exceeded, "no credit"};
    const Credit credit = feed_->credits.front();
    feed_->credits.pop_front();
    return credit;
  }
  std::span<std::byte> slot(const Credit& credit) override {
    return slots_[static_cast<std::size_t>(SampleKey::of(credit.tag).position) % slots_.size()];
  }
  Result<void> send(const Item& item) override {
    const std::lock_guard lock(feed_->mutex);
    feed_->items.push_back(item);
    feed_->changed.notify_all();
    return {};
  }
  void progress(const Credit&) override {}
  void stop() override {
    const std::lock_guard lock(feed_->mutex);
    feed_->stopped = true;
    feed_->changed.notify_all();
  }
  ChannelStats stats() const override { return {}; }

 private:
  const std::shared_ptr<Feed> feed_;
  std::array<std::array<std::byte, 64>, 32> slots_{};
};

class DecoderRoleTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* address : {"a", "b"}) feeds_[address] = std::make_shared<Feed>();
    const auto build = [this](Split, std::int64_t position, std::span<std::byte> slot) -> Result<std::size_t> {
      EXPECT_EQ(++building_, 1);  // one sample at a time, whoever asked
      std::memcpy(slot.data(), &position, sizeof position);
      --building_;
      if (position == 13) return Error{Errc::data_loss, "v.mp4: broken"};
      return sizeof position;
    };
    role_ = make_role({build});
    role_->start();
  }
  std::unique_ptr<DecoderRole> make_role(std::vector<BuildSample> builds) {
    const auto dial = [this](const std::string& address,
                             const std::string& producer) -> Result<std::unique_ptr<ChannelProducer>> {
      EXPECT_EQ(producer, "decoder/3#1");
      return std::unique_ptr<ChannelProducer>(std::make_unique<FakeProducer>(feeds_.at(address)));
    };
    const auto outbox = [this](const std::string& to, const Message& message) {
      EXPECT_EQ(to, "controller");
      const std::lock_guard lock(mutex_);
      if (const auto* times = std::get_if<ProducerTimes>(&message)) times_.push_back(*times);
    };
    return std::make_unique<DecoderRole>(ActorIdentity{.actor = "decoder/3", .incarnation = 1}, std::move(builds), dial,
                                         outbox, 0.0);
  }
  void TearDown() override {
    role_.reset();
    ASSERT_TRUE(arm_faults(""));
  }

  std::map<std::string, std::shared_ptr<Feed>> feeds_;
  std::atomic<int> building_{0};
  std::mutex mutex_;
  std::vector<ProducerTimes> times_;
  std::unique_ptr<DecoderRole> role_;
};

TEST_F(DecoderRoleTest, EveryFeedGetsWhatItGaveCreditFor) {
  role_->handle("controller", Peers{.fence = 1, .channels = {"a", "b"}});
  for (std::int64_t position = 0; position < 20; ++position) feeds_[position % 2 == 0 ? "a" : "b"]->grant(position);
  for (const char* address : {"a", "b"}) {
    const auto items = feeds_[address]->wait_for(10);
    for (const Item& item : items) {
      const std::int64_t position = SampleKey::of(item.credit.tag).position;
      if (position == 13) {
        EXPECT_EQ(item.error, "v.mp4: broken");
        continue;
      }
      EXPECT_EQ(item.error, "");
      EXPECT_EQ(item.bytes, sizeof(std::int64_t));
      EXPECT_EQ(item.xxh3, xxh3_64(std::as_bytes(std::span(&position, 1))));
    }
  }
}

TEST_F(DecoderRoleTest, AsManySamplesAreMadeAtATimeAsThereAreBuilds) {
  std::mutex mutex;
  std::condition_variable changed;
  int in_work = 0;
  const auto build = [&](Split, std::int64_t position, std::span<std::byte> slot) -> Result<std::size_t> {
    std::unique_lock lock(mutex);
    ++in_work;
    changed.notify_all();
    EXPECT_TRUE(changed.wait_for(lock, std::chrono::seconds(30), [&] { return in_work == 2; }));
    std::memcpy(slot.data(), &position, sizeof position);
    return sizeof position;
  };
  role_ = make_role({build, build});
  role_->handle("controller", Peers{.fence = 1, .channels = {"a"}});
  for (std::int64_t position = 0; position < 2; ++position) feeds_["a"]->grant(position);
  for (const Item& item : feeds_["a"]->wait_for(2)) {
    const std::int64_t position = SampleKey::of(item.credit.tag).position;
    EXPECT_EQ(item.xxh3, xxh3_64(std::as_bytes(std::span(&position, 1))));
  }
  role_.reset();  // before what it calls
}

TEST_F(DecoderRoleTest, ABuildThatNeverGetsASampleIsIdle) {
  const auto build = [](Split, std::int64_t position, std::span<std::byte> slot) -> Result<std::size_t> {
    std::memcpy(slot.data(), &position, sizeof position);
    return sizeof position;
  };
  role_ = make_role({build, build});
  role_->handle("controller", Peers{.fence = 1, .channels = {"a"}});
  for (std::int64_t position = 0; position < 3; ++position) {
    feeds_["a"]->grant(position);
    feeds_["a"]->wait_for(static_cast<std::size_t>(position) + 1);
  }
  role_.reset();
  const std::lock_guard lock(mutex_);
  double idle = 0, busy = 0;
  for (const ProducerTimes& times : times_) idle += times.idle_seconds, busy += times.busy_seconds;
  EXPECT_GT(busy, 0);
  EXPECT_GE(idle, busy) << "one of two works at a time";
}

TEST_F(DecoderRoleTest, AScriptedFaultCostsOneItem) {
  ASSERT_TRUE(arm_faults("decoder.item@position 1:fail"));
  role_->handle("controller", Peers{.fence = 1, .channels = {"a"}});
  for (std::int64_t position = 0; position < 3; ++position) feeds_["a"]->grant(position);
  const auto items = feeds_["a"]->wait_for(3);
  EXPECT_TRUE(items[0].error.empty());
  EXPECT_FALSE(items[1].error.empty());
  EXPECT_TRUE(items[2].error.empty());
}

TEST_F(DecoderRoleTest, IdleAndBusyTimeAreReportedToTheController) {
  role_->handle("controller", Peers{.fence = 1, .channels = {"a"}});
  for (std::int64_t position = 0; position < 5; ++position) feeds_["a"]->grant(position);
  feeds_["a"]->wait_for(5);
  const std::lock_guard lock(mutex_);
  ASSERT_EQ(times_.size(), 5u);
  double busy = 0;
  for (const ProducerTimes& times : times_) {
    EXPECT_EQ(times.actor, "decoder/3");
    busy += times.busy_seconds;
  }
  EXPECT_GT(busy, 0);
  EXPECT_EQ(times_[0].idle_seconds, 0);  // before its first credit it was not waiting for anybody
}

TEST_F(DecoderRoleTest, AFeedThatIsNoLongerNamedIsLeft) {
  role_->handle("controller", Peers{.fence = 1, .channels = {"a", "b"}});
  feeds_["a"]->grant(1);
  feeds_["a"]->wait_for(1);
  role_->handle("controller", Peers{.fence = 2, .channels = {"b"}});
  const std::lock_guard lock(feeds_["a"]->mutex);
  EXPECT_TRUE(feeds_["a"]->stopped);
}

}  // namespace
}  // namespace troupe::workers
