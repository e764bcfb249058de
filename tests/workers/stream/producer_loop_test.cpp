#include "workers/stream/producer_loop.h"

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <cstring>

#include "base/hash.h"
#include "base/trace.h"
#include "tests/support/scratch_folder.h"

namespace troupe::workers {
namespace {

using namespace std::chrono_literals;

constexpr auto kPatience = 20s;

/// A consumer over a channel of this process that grants one credit for each item, and what the loop did.
class ProducerLoopTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto opened = open_consumer(
        nullptr, {.name = "learner/0", .slots = 2, .slot_bytes = 8, .transport = Transport::inproc},
        {.on_producer =
             [this](const std::string& producer, std::uint32_t) {
               EXPECT_TRUE(consumer_->grant(producer, {.tag = 1}));
               EXPECT_TRUE(consumer_->grant(producer, {.tag = 2}));
             },
         .on_item = [this](const std::string&, const Item& item) { note([&] { items_.push_back(item); }); }});
    consumer_ = std::move(*opened);
  }
  std::unique_ptr<ProducerLoop> start(ProducerLoop::Work work, std::int64_t threads = 1) {
    work.left = [this] { note([&] { has_left_ = true; }); };
    const auto dial = [this](const std::string& address,
                             const std::string& producer) -> Result<std::unique_ptr<ChannelProducer>> {
      note([&] { ++dialled_; });
      if (dialled_ <= refusals_) return Error{refusal_, "not now"};
      return open_producer(nullptr, address, producer, 2, kPatience);
    };
    return std::make_unique<ProducerLoop>(
        ProducerLoop::Options{
            .producer = "decoder/0#0", .consumer = "a feed", .address = consumer_->address(), .threads = threads},
        dial, std::move(work));
  }
  /// The item is its credit's tag.
  static Result<void> echo(const std::shared_ptr<ChannelProducer>& producer, const Credit& credit) {
    const auto slot = producer->slot(credit);
    std::memcpy(slot.data(), &credit.tag, sizeof credit.tag);
    return producer->send(make_item(credit, slot, sizeof credit.tag));
  }
  template <class Change>
  void note(const Change& change) {
    {
      const std::lock_guard lock(mutex_);
      change();
    }
    changed_.notify_all();
  }
  template <class Condition>
  bool wait_for(const Condition& condition) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, condition);
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Item> items_;
  bool has_left_ = false, is_ready_ = false;
  int dialled_ = 0, refusals_ = 0;
  Errc refusal_ = Errc::deadline_exceeded;
  std::unique_ptr<ChannelConsumer> consumer_;
};

TEST_F(ProducerLoopTest, EveryCreditIsServedInOrderUntilTheLoopIsStopped) {
  const auto loop = start({.serve = echo});
  ASSERT_TRUE(wait_for([&] { return items_.size() == 2; }));
  for (std::uint64_t tag = 1; tag <= 2; ++tag) {
    const Item& item = items_[tag - 1];
    EXPECT_EQ(item.credit.tag, tag);
    EXPECT_EQ(item.bytes, sizeof tag);
    EXPECT_EQ(item.xxh3, xxh3_64(std::as_bytes(std::span(&tag, 1))));
  }
  EXPECT_FALSE(has_left_);
  loop->stop();
  EXPECT_TRUE(has_left_);
  EXPECT_EQ(loop->stats().items, 2u);
}

TEST_F(ProducerLoopTest, ThreadsServeCreditsAtTheSameTime) {
  int in_work = 0;
  const auto loop = start({.serve =
                               [&](const auto& producer, const Credit& credit) {
                                 note([&] { ++in_work; });
                                 EXPECT_TRUE(wait_for([&] { return in_work == 2; }));
                                 return echo(producer, credit);
                               }},
                          2);
  ASSERT_TRUE(wait_for([&] { return items_.size() == 2; }));
  EXPECT_NE(items_[0].credit.tag, items_[1].credit.tag);
  loop->stop();
  EXPECT_TRUE(has_left_);
}

TEST_F(ProducerLoopTest, AnErrorOfOneThreadEndsAll) {
  const auto loop = start({.serve = [](const auto&, const Credit&) -> Result<void> {
                            return Error{Errc::internal, "broken"};
                          }},
                          3);
  EXPECT_TRUE(wait_for([&] { return has_left_; }));
}

TEST_F(ProducerLoopTest, AConsumerThatDoesNotAnswerIsDialledAgain) {
  refusals_ = 2;
  const auto loop = start({.serve = echo});
  ASSERT_TRUE(wait_for([&] { return items_.size() == 2; }));
  EXPECT_EQ(dialled_, 3);
}

TEST_F(ProducerLoopTest, AConsumerThatRefusesIsLeftAlone) {
  refusals_ = 2;
  refusal_ = Errc::failed_precondition;
  const auto loop = start({.serve = echo});
  ASSERT_TRUE(wait_for([&] { return dialled_ == 1; }));
  loop->stop();
  EXPECT_EQ(dialled_, 1);
  EXPECT_FALSE(has_left_) << "it was never there";
}

TEST_F(ProducerLoopTest, AnErrorOfTheWorkEndsTheLoop) {
  int served = 0;
  const auto loop = start({.serve = [&](const auto&, const Credit&) -> Result<void> {
    ++served;
    return Error{Errc::internal, "broken"};
  }});
  ASSERT_TRUE(wait_for([&] { return has_left_; }));
  EXPECT_EQ(served, 1);
}

TEST_F(ProducerLoopTest, AConsumerThatClosesEndsTheLoop) {
  const auto loop = start({.serve = echo});
  ASSERT_TRUE(wait_for([&] { return items_.size() == 2; }));
  consumer_.reset();
  EXPECT_TRUE(wait_for([&] { return has_left_; }));
}

TEST_F(ProducerLoopTest, NoCreditIsTakenBeforeThereIsSomethingToMake) {
  bool is_asked = false;
  const auto loop = start({.serve = echo, .ready = [&] {
                             note([&] { is_asked = true; });
                             return wait_for([&] { return is_ready_; });
                           }});
  ASSERT_TRUE(wait_for([&] { return is_asked; }));
  EXPECT_EQ(loop->stats().credits_outstanding, 2u);
  EXPECT_TRUE(items_.empty());
  note([&] { is_ready_ = true; });
  EXPECT_TRUE(wait_for([&] { return items_.size() == 2; }));
}

/// Has no credit three times, then one, and is gone after it.
class HesitantProducer final : public ChannelProducer {
 public:
  Result<Credit> next_credit(std::chrono::milliseconds) override {
    ++asked_;
    if (asked_ <= 3) return Error{Errc::deadline_exceeded, "none yet"};
    if (asked_ == 4) return Credit{};
    return Error{Errc::unavailable, "gone"};
  }
  std::span<std::byte> slot(const Credit&) override { return {}; }
  Result<void> send(const Item&) override { return {}; }
  void progress(const Credit&) override {}
  void stop() override {}
  ChannelStats stats() const override { return {}; }

 private:
  int asked_ = 0;
};

TEST_F(ProducerLoopTest, AWaitIsOneSpanHoweverOftenItIsTakenUpAgain) {
  const ScratchFolder folder;
  ASSERT_TRUE(prepare_tracing(folder.path(), {.first = 1, .last = 1}));
  ASSERT_TRUE(start_tracing(folder.path(), "decoder/0#0"));
  trace_step(1);
  ProducerLoop loop({.producer = "decoder/0#0", .consumer = "a feed", .address = consumer_->address()},
                    [](const std::string&, const std::string&) -> Result<std::unique_ptr<ChannelProducer>> {
                      return std::unique_ptr<ChannelProducer>(std::make_unique<HesitantProducer>());
                    },
                    {.serve = [](const auto&, const Credit&) -> Result<void> { return {}; },
                     .left = [this] { note([&] { has_left_ = true; }); }});
  ASSERT_TRUE(wait_for([&] { return has_left_; }));
  loop.stop();
  trace_step(3);
  const auto processes = read_spans(folder.path());
  ASSERT_TRUE(processes) << processes.error().message();
  std::vector<std::string> names;
  for (const RecordedSpan& span : processes->at(0).spans) names.push_back(span.name);
  EXPECT_EQ(names, (std::vector<std::string>{"wait for a credit", "serve a feed", "wait for a credit"}));
}

TEST(MakeItemTest, WhatCannotBeMadeIsVoid) {
  const Item item = make_item({.slot = 1, .tag = 2}, {}, Error{Errc::data_loss, "v.mp4: broken"});
  EXPECT_EQ(item.credit.tag, 2u);
  EXPECT_EQ(item.bytes, 0u);
  EXPECT_EQ(item.error, "v.mp4: broken");
}

TEST(ConnectListedTest, ConnectionsFollowTheList) {
  std::map<std::string, std::unique_ptr<int>> connections;
  int made = 0;
  const auto make = [&](const std::string&) { return std::make_unique<int>(++made); };
  connect_listed(connections, {"a", "b"}, make);
  connect_listed(connections, {"b", "c"}, make);
  EXPECT_EQ(connections.size(), 2u);
  EXPECT_EQ(*connections.at("b"), 2) << "kept";
  EXPECT_EQ(*connections.at("c"), 3);
}

}  // namespace
}  // namespace troupe::workers
