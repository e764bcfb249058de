// One suite over every transport: what ChannelConsumer and ChannelProducer promise (comm/channel/channel.h).
#include <atomic>
#include <map>
#include <thread>

#include "tests/comm/channel/channel_fixture.h"

namespace troupe::comm {
namespace {

using namespace testing_support;

constexpr std::uint32_t kSlots = 4;
constexpr std::size_t kSlotBytes = 5000;  // more than a page, and not a multiple of one
constexpr std::uint64_t kFence = (1ULL << 32) + 1;

Credit credit_for(std::uint32_t slot, std::uint64_t tag, std::uint64_t fence = kFence) {
  return {.slot = slot, .tag = tag, .fence = fence};
}

class ChannelTest : public ::testing::TestWithParam<Transport> {
 protected:
  void SetUp() override {
#ifdef __SANITIZE_THREAD__
    // libzmq is not instrumented: what it hands from thread to thread looks like a race.
    if (GetParam() != Transport::inproc) GTEST_SKIP() << "not under the thread sanitizer";
#endif
    consumer_ = rig_.open(GetParam(), inbox_, kSlots, kSlotBytes);
  }
  /// Dials in and waits until the consumer has heard of it.
  std::unique_ptr<ChannelProducer> join(const std::string& name) {
    auto producer = rig_.dial(*consumer_, name);
    EXPECT_TRUE(inbox_.wait_for_producer(name));
    return producer;
  }
  Credit take(ChannelProducer& producer) { return producer.next_credit(kPatience).value(); }
  /// One item through the channel, checked.
  void pass(ChannelProducer& producer, const std::string& name, std::uint32_t slot, std::uint64_t tag) {
    ASSERT_TRUE(consumer_->grant(name, credit_for(slot, tag)));
    const auto bytes = bytes_of(tag, kSlotBytes);
    ASSERT_TRUE(producer.send(fill(producer, take(producer), bytes)));
    const auto arrival = inbox_.next();
    EXPECT_EQ(arrival->producer, name);
    EXPECT_EQ(arrival->item.credit.tag, tag);
    EXPECT_EQ(to_vector(consumer_->slot(slot).first(arrival->item.bytes)), bytes);
  }
  /// Waits until `slot` is refused to a producer because it has left.
  bool becomes_unknown(const std::string& name, std::uint32_t slot) {
    return eventually([&] {
      const auto granted = consumer_->grant(name, credit_for(slot, 1));
      return !granted && granted.error().code() == Errc::not_found;
    });
  }
  bool late_items_reach(std::uint64_t count) {
    return eventually([&] { return consumer_->stats().late_items == count; });
  }

  ChannelRig rig_{GetParam() != Transport::inproc};
  Inbox inbox_;
  std::unique_ptr<ChannelConsumer> consumer_;
};

TEST_P(ChannelTest, TheConsumerSaysWhatItIs) {
  EXPECT_EQ(consumer_->transport(), GetParam());
  EXPECT_EQ(consumer_->num_slots(), kSlots);
  EXPECT_EQ(consumer_->slot_bytes(), kSlotBytes);
  EXPECT_TRUE(consumer_->address().starts_with(std::string(enum_name(GetParam())) + ":")) << consumer_->address();
}

TEST_P(ChannelTest, AProducerIsAnnouncedOnceWithItsCapacity) {
  const auto producer = join("decoder/0#0");
  EXPECT_EQ(inbox_.producers(), (std::vector<std::pair<std::string, std::uint32_t>>{{"decoder/0#0", 2}}));
}

TEST_P(ChannelTest, CreditsArriveInTheOrderGranted) {
  const auto producer = join("a");
  for (const std::uint32_t slot : {2U, 0U, 3U, 1U}) {
    ASSERT_TRUE(consumer_->grant("a", credit_for(slot, ~0ULL - slot, kFence + slot)));
  }
  for (const std::uint32_t slot : {2U, 0U, 3U, 1U}) {
    const auto credit = take(*producer);
    EXPECT_EQ(credit.slot, slot);
    EXPECT_EQ(credit.tag, ~0ULL - slot);
    EXPECT_EQ(credit.fence, kFence + slot);
    EXPECT_EQ(producer->slot(credit).size(), kSlotBytes);
  }
}

TEST_P(ChannelTest, AnItemArrivesWithItsExactBytes) {
  const auto producer = join("a");
  std::uint64_t tag = 0;
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{4096}, kSlotBytes}) {
    const auto slot = static_cast<std::uint32_t>(tag % kSlots);
    ASSERT_TRUE(consumer_->grant("a", credit_for(slot, tag)));
    std::vector<std::byte> bytes(size);
    for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 31 + size);
    ASSERT_TRUE(producer->send(fill(*producer, take(*producer), bytes)));
    const auto arrival = inbox_.next();
    EXPECT_EQ(arrival->item.error, "");
    EXPECT_EQ(arrival->item.bytes, size);
    EXPECT_EQ(arrival->item.xxh3, xxh3_64(std::span<const std::byte>(bytes)));
    EXPECT_EQ(arrival->item.credit.fence, kFence);
    EXPECT_EQ(to_vector(consumer_->slot(slot).first(size)), bytes);
    ++tag;
  }
}

TEST_P(ChannelTest, ProgressOfAnItemComesBeforeTheItem) {
  const auto producer = join("a");
  ASSERT_TRUE(consumer_->grant("a", credit_for(2, 77)));
  const Credit credit = take(*producer);
  producer->progress(credit);
  const auto gone_on = inbox_.next();
  EXPECT_TRUE(gone_on->is_progress);
  EXPECT_EQ(gone_on->producer, "a");
  EXPECT_EQ(gone_on->item.credit.slot, 2U);
  EXPECT_EQ(gone_on->item.credit.tag, 77U);
  EXPECT_EQ(gone_on->item.credit.fence, kFence);
  ASSERT_TRUE(producer->send(fill(*producer, credit, bytes_of(77, kSlotBytes))));
  EXPECT_FALSE(inbox_.next()->is_progress);
}

TEST_P(ChannelTest, ARequestLiesInTheSlotWhenItsCreditArrives) {
  const auto producer = join("a");
  for (const std::size_t size : {std::size_t{1}, std::size_t{16}, std::size_t{4097}, kSlotBytes}) {
    std::vector<std::byte> request(size);
    for (std::size_t i = 0; i < size; ++i) request[i] = static_cast<std::byte>(i * 7 + size);
    ASSERT_TRUE(consumer_->grant("a", credit_for(1, 3), request));
    std::fill(request.begin(), request.end(), std::byte{0});  // it was copied
    const auto credit = take(*producer);
    ASSERT_EQ(credit.request_bytes, size);
    const auto slot = producer->slot(credit);
    for (std::size_t i = 0; i < size; ++i) ASSERT_EQ(slot[i], static_cast<std::byte>(i * 7 + size)) << i;
    // the answer goes over it
    const auto bytes = bytes_of(size, kSlotBytes);
    ASSERT_TRUE(producer->send(fill(*producer, credit, bytes)));
    const auto arrival = inbox_.next();
    EXPECT_EQ(to_vector(consumer_->slot(1).first(arrival->item.bytes)), bytes);
  }
  ASSERT_TRUE(consumer_->grant("a", credit_for(1, 3)));
  EXPECT_EQ(take(*producer).request_bytes, 0U) << "a credit without a request";
}

TEST_P(ChannelTest, ARequestLongerThanASlotIsRefused) {
  const auto producer = join("a");
  const std::vector<std::byte> request(kSlotBytes + 1);
  EXPECT_EQ(consumer_->grant("a", credit_for(0, 1), request).error().code(), Errc::invalid_argument);
  EXPECT_TRUE(consumer_->grant("a", credit_for(0, 1))) << "and the slot is still free";
}

TEST_P(ChannelTest, RequestsOfSeveralCreditsStayApart) {
  const auto producer = join("a");
  for (std::uint32_t slot = 0; slot < kSlots; ++slot) {
    const std::vector<std::byte> request(10 + slot, static_cast<std::byte>(slot));
    ASSERT_TRUE(consumer_->grant("a", credit_for(slot, slot), request));
  }
  std::vector<Credit> credits;
  for (std::uint32_t slot = 0; slot < kSlots; ++slot) credits.push_back(take(*producer));
  for (const auto& credit : credits) {
    ASSERT_EQ(credit.request_bytes, 10 + credit.slot);
    for (const auto byte : producer->slot(credit).first(credit.request_bytes))
      EXPECT_EQ(byte, static_cast<std::byte>(credit.slot));
  }
}

TEST_P(ChannelTest, ProducersGetTheirOwnCreditsOnly) {
  const auto a = join("a");
  const auto b = join("b");
  ASSERT_TRUE(consumer_->grant("b", credit_for(0, 10)));
  ASSERT_TRUE(consumer_->grant("a", credit_for(1, 11)));
  EXPECT_EQ(take(*a).tag, 11U);
  EXPECT_EQ(take(*b).tag, 10U);
  EXPECT_EQ(a->next_credit(1ms).error().code(), Errc::deadline_exceeded);
  EXPECT_EQ(b->next_credit(1ms).error().code(), Errc::deadline_exceeded);
}

TEST_P(ChannelTest, AnUnknownProducerGetsNoCredit) {
  EXPECT_EQ(consumer_->grant("nobody", credit_for(0, 1)).error().code(), Errc::not_found);
}

TEST_P(ChannelTest, ASlotOutOfRangeIsRefused) {
  const auto producer = join("a");
  EXPECT_EQ(consumer_->grant("a", credit_for(kSlots, 1)).error().code(), Errc::invalid_argument);
}

TEST_P(ChannelTest, ASlotInUseIsRefusedUntilItIsFilled) {
  const auto a = join("a");
  const auto b = join("b");
  ASSERT_TRUE(consumer_->grant("a", credit_for(0, 1)));
  for (const char* name : {"a", "b"}) {
    const auto granted = consumer_->grant(name, credit_for(0, 2));
    EXPECT_EQ(granted.error().code(), Errc::invalid_argument) << name;
  }
  ASSERT_TRUE(a->send(fill(*a, take(*a), bytes_of(1, kSlotBytes))));
  ASSERT_TRUE(inbox_.next());
  EXPECT_TRUE(consumer_->grant("b", credit_for(0, 2)));
}

TEST_P(ChannelTest, ACreditForAnySlotGetsOneThatNobodyUses) {
  const auto a = join("a");
  ASSERT_TRUE(consumer_->grant("a", credit_for(0, 0)));
  for (std::uint32_t left = kSlots - 1; left-- > 0;) {
    const auto slot = consumer_->grant("a", credit_for(kAnySlot, 1));
    EXPECT_NE(*slot, 0U);
    EXPECT_EQ(consumer_->free_slots(), left);
  }
  EXPECT_EQ(consumer_->grant("a", credit_for(kAnySlot, 2)).error().code(), Errc::resource_exhausted);
  ASSERT_TRUE(a->send(fill(*a, take(*a), bytes_of(0, kSlotBytes))));
  ASSERT_TRUE(inbox_.next());
  EXPECT_EQ(consumer_->free_slots(), 0U) << "a filled slot is its consumer's";
  consumer_->release(0);
  EXPECT_EQ(*consumer_->grant("a", credit_for(kAnySlot, 3)), 0U);
}

TEST_P(ChannelTest, AnItemOfADroppedProducerIsLateAndItsSlotIsSafe) {
  const auto a = join("a");
  const auto b = join("b");
  ASSERT_TRUE(consumer_->grant("a", credit_for(0, 1)));
  // Filled before its owner is declared dead, sent after.
  const Item late = fill(*a, take(*a), bytes_of(1, kSlotBytes));
  consumer_->drop_producer("a");
  ASSERT_TRUE(consumer_->grant("b", credit_for(0, 1)));
  const auto bytes = bytes_of(2, kSlotBytes);
  const Item good = fill(*b, take(*b), bytes);
  ASSERT_TRUE(a->send(late));
  ASSERT_TRUE(late_items_reach(1));
  ASSERT_TRUE(b->send(good));
  const auto arrival = inbox_.next();
  EXPECT_EQ(arrival->producer, "b");
  EXPECT_EQ(arrival->item.error, "");
  EXPECT_EQ(to_vector(consumer_->slot(0).first(arrival->item.bytes)), bytes);
  EXPECT_EQ(inbox_.num_items(), 1U);
}

TEST_P(ChannelTest, ADroppedProducerGetsNoCreditAndItsSlotsAreFree) {
  const auto a = join("a");
  const auto b = join("b");
  for (std::uint32_t slot = 0; slot < kSlots; ++slot) ASSERT_TRUE(consumer_->grant("a", credit_for(slot, slot)));
  EXPECT_EQ(consumer_->stats().credits_outstanding, kSlots);
  consumer_->drop_producer("a");
  EXPECT_EQ(consumer_->stats().credits_outstanding, 0U);
  EXPECT_EQ(consumer_->grant("a", credit_for(0, 1)).error().code(), Errc::not_found);
  for (std::uint32_t slot = 0; slot < kSlots; ++slot) ASSERT_NO_FATAL_FAILURE(pass(*b, "b", slot, slot));
}

TEST_P(ChannelTest, AnItemOfAnotherFenceIsDroppedAndItsCreditStands) {
  const auto a = join("a");
  ASSERT_TRUE(consumer_->grant("a", credit_for(0, 1)));
  const auto credit = take(*a);
  Item stale = fill(*a, credit, bytes_of(1, kSlotBytes));
  stale.credit.fence = kFence - 1;
  ASSERT_TRUE(a->send(stale));
  ASSERT_TRUE(late_items_reach(1));
  EXPECT_EQ(inbox_.num_items(), 0U);
  EXPECT_EQ(consumer_->stats().credits_outstanding, 1U);
  ASSERT_TRUE(a->send(fill(*a, credit, bytes_of(1, kSlotBytes))));
  const auto arrival = inbox_.next();
  EXPECT_EQ(arrival->item.credit.fence, kFence);
}

TEST_P(ChannelTest, AnItemSentTwiceArrivesOnce) {
  const auto a = join("a");
  ASSERT_TRUE(consumer_->grant("a", credit_for(0, 1)));
  const auto credit = take(*a);
  const auto bytes = bytes_of(1, kSlotBytes);
  ASSERT_TRUE(a->send(fill(*a, credit, bytes)));
  ASSERT_TRUE(a->send(fill(*a, credit, bytes)));
  ASSERT_TRUE(late_items_reach(1));
  EXPECT_EQ(inbox_.num_items(), 1U);
  EXPECT_EQ(consumer_->stats().items, 1U);
}

TEST_P(ChannelTest, AVoidItemCarriesItsReasonAndNoBytes) {
  const auto a = join("a");
  ASSERT_TRUE(consumer_->grant("a", credit_for(0, 9)));
  Item item = fill(*a, take(*a), bytes_of(1, kSlotBytes));
  item.error = "videos/chunk-000/episode_000003.mp4 frame 12: no such frame";
  ASSERT_TRUE(a->send(item));
  const auto arrival = inbox_.next();
  EXPECT_EQ(arrival->item.error, item.error);
  EXPECT_EQ(arrival->item.bytes, 0U);
  EXPECT_EQ(arrival->item.credit.tag, 9U);
  ASSERT_NO_FATAL_FAILURE(pass(*a, "a", 0, 10));
}

TEST_P(ChannelTest, AnOversizeItemIsRefusedAndItsCreditStands) {
  const auto a = join("a");
  ASSERT_TRUE(consumer_->grant("a", credit_for(0, 1)));
  const auto credit = take(*a);
  Item item{.credit = credit, .bytes = kSlotBytes + 1, .xxh3 = 0};
  EXPECT_EQ(a->send(item).error().code(), Errc::invalid_argument);
  ASSERT_TRUE(a->send(fill(*a, credit, bytes_of(1, kSlotBytes))));
  EXPECT_TRUE(inbox_.next());
}

TEST_P(ChannelTest, BytesThatDoNotMatchTheirDigestAreReportedAsDamaged) {
  const auto a = join("a");
  ASSERT_TRUE(consumer_->grant("a", credit_for(0, 1)));
  Item item = fill(*a, take(*a), bytes_of(1, kSlotBytes));
  item.xxh3 ^= 1;
  ASSERT_TRUE(a->send(item));
  const auto arrival = inbox_.next();
  EXPECT_NE(arrival->item.error.find("damaged in transit"), std::string::npos) << arrival->item.error;
  EXPECT_EQ(arrival->item.bytes, 0U);
  EXPECT_EQ(consumer_->stats().bytes, 0U);
}

TEST_P(ChannelTest, WithoutCreditTheDeadlineEndsTheWait) {
  const auto a = join("a");
  EXPECT_EQ(a->next_credit(0ms).error().code(), Errc::deadline_exceeded);
  EXPECT_EQ(a->next_credit(5ms).error().code(), Errc::deadline_exceeded);
  EXPECT_GT(a->stats().wait_seconds, 0.0);
}

TEST_P(ChannelTest, StopWakesAWaitingProducer) {
  const auto a = join("a");
  std::thread stopper([&] { a->stop(); });
  EXPECT_EQ(a->next_credit(kPatience).error().code(), Errc::cancelled);
  stopper.join();
  EXPECT_EQ(a->next_credit(0ms).error().code(), Errc::cancelled);
}

TEST_P(ChannelTest, ARestartedProducerNeedsANewName) {
  auto first = join("decoder/0#0");
  first.reset();
  ASSERT_TRUE(becomes_unknown("decoder/0#0", kSlots));
  consumer_->drop_producer("decoder/0#0");
  // A ROUTER may still hold the old connection and then does not hear the new one of that name at all.
  const auto again = rig_.try_dial(consumer_->address(), "decoder/0#0", 600ms);
  EXPECT_TRUE(again.error().code() == Errc::failed_precondition || again.error().code() == Errc::deadline_exceeded)
      << again.error().to_string();
  const auto second = join("decoder/0#1");
  ASSERT_NO_FATAL_FAILURE(pass(*second, "decoder/0#1", 0, 1));
}

TEST_P(ChannelTest, AProducerThatLeftKeepsItsSlotUntilItIsDropped) {
  auto a = join("a");
  const auto b = join("b");
  ASSERT_TRUE(consumer_->grant("a", credit_for(0, 1)));
  a.reset();
  ASSERT_TRUE(becomes_unknown("a", 0));
  EXPECT_EQ(consumer_->grant("b", credit_for(0, 1)).error().code(), Errc::invalid_argument);
  consumer_->drop_producer("a");
  ASSERT_NO_FATAL_FAILURE(pass(*b, "b", 0, 1));
}

TEST_P(ChannelTest, AClosedConsumerIsUnavailable) {
  const auto a = join("a");
  ASSERT_TRUE(consumer_->grant("a", credit_for(0, 1)));
  const auto credit = take(*a);
  std::thread closer([&] { consumer_.reset(); });
  EXPECT_EQ(a->next_credit(kPatience).error().code(), Errc::unavailable);
  closer.join();
  // The memory stays valid for whoever still writes to it.
  const Item item = fill(*a, credit, bytes_of(1, kSlotBytes));
  EXPECT_EQ(a->send(item).error().code(), Errc::unavailable);
}

TEST_P(ChannelTest, DiallingNobodyFails) {
  const auto address = consumer_->address();
  consumer_.reset();
  const auto dialled = rig_.try_dial(address, "a", 50ms);
  const auto wanted = GetParam() == Transport::zmq ? Errc::deadline_exceeded : Errc::not_found;
  EXPECT_EQ(dialled.error().code(), wanted) << dialled.error().to_string();
}

TEST_P(ChannelTest, BadNamesAndCapacitiesAreRefused) {
  const auto* loop = rig_.producer_loop();
  EXPECT_EQ(rig_.try_dial(consumer_->address(), "").error().code(), Errc::invalid_argument);
  EXPECT_EQ(rig_.try_dial(consumer_->address(), "Decoder 0").error().code(), Errc::invalid_argument);
  EXPECT_EQ(rig_.try_dial(consumer_->address(), std::string(65, 'a')).error().code(), Errc::invalid_argument);
  EXPECT_EQ(open_producer(const_cast<IoLoop*>(loop), consumer_->address(), "a", 0, kPatience).error().code(),
            Errc::invalid_argument);
}

TEST_P(ChannelTest, BothEndsCountTheSame) {
  const auto a = join("a");
  std::uint64_t bytes = 0;
  for (std::uint32_t tag = 0; tag < 6; ++tag) {
    ASSERT_NO_FATAL_FAILURE(pass(*a, "a", tag % kSlots, tag));
    bytes += bytes_of(tag, kSlotBytes).size();
  }
  ASSERT_TRUE(consumer_->grant("a", credit_for(0, 6)));
  ASSERT_TRUE(consumer_->grant("a", credit_for(1, 7)));
  const auto credit = take(*a);
  ASSERT_TRUE(eventually([&] { return a->stats().credits_outstanding == 2; }));
  ASSERT_TRUE(a->send({.credit = credit, .bytes = 0, .xxh3 = 0, .error = "bad"}));
  ASSERT_TRUE(inbox_.next());
  for (const auto& stats : {consumer_->stats(), a->stats()}) {
    EXPECT_EQ(stats.items, 7U);
    EXPECT_EQ(stats.bytes, bytes);
    EXPECT_EQ(stats.credits_outstanding, 1U);
    EXPECT_EQ(stats.late_items, 0U);
    EXPECT_GT(stats.wait_seconds, 0.0);
  }
}

TEST_P(ChannelTest, OnItemMayGrantTheSlotAgain) {
  constexpr std::uint64_t kItems = 50;
  std::atomic<std::uint64_t> arrived{0};
  std::atomic<ChannelConsumer*> self{nullptr};  // the loop of the consumer reads it
  ChannelConsumer::Callbacks callbacks;
  callbacks.on_producer = [&](const std::string& name, std::uint32_t) {
    EXPECT_TRUE(self.load()->grant(name, credit_for(0, 0)));
  };
  callbacks.on_item = [&](const std::string& name, const Item& item) {
    if (item.credit.tag + 1 < kItems) {
      EXPECT_TRUE(self.load()->grant(name, credit_for(0, item.credit.tag + 1)));
    }
    ++arrived;
  };
  ChannelOptions options{.name = "greedy", .slots = 1, .slot_bytes = kSlotBytes, .transport = GetParam()};
  if (GetParam() == Transport::shm) options.endpoint = rig_.folder().endpoint("greedy");
  if (GetParam() == Transport::zmq) options.endpoint = "tcp://127.0.0.1:*";
  auto consumer = open_consumer(rig_.consumer_loop(), options, callbacks);
  self = consumer->get();
  const auto producer = rig_.dial(**consumer, "a");
  for (std::uint64_t tag = 0; tag < kItems; ++tag) {
    const auto credit = take(*producer);
    ASSERT_EQ(credit.tag, tag);
    ASSERT_TRUE(producer->send(fill(*producer, credit, bytes_of(tag, kSlotBytes))));
  }
  EXPECT_TRUE(eventually([&] { return arrived == kItems; }));
}

TEST_P(ChannelTest, AThousandItemsOfThreeProducersArriveIntact) {
  constexpr std::uint64_t kItems = 1000;
  const std::vector<std::string> names{"a", "b", "c"};
  std::vector<std::unique_ptr<ChannelProducer>> producers;
  for (const auto& name : names) producers.push_back(join(name));
  std::vector<std::thread> threads;
  for (auto& producer : producers) {
    threads.emplace_back([&producer] {
      while (true) {
        const auto credit = producer->next_credit(kPatience);
        if (!credit) {
          EXPECT_EQ(credit.error().code(), Errc::cancelled);
          return;
        }
        EXPECT_TRUE(producer->send(fill(*producer, *credit, bytes_of(credit->tag, kSlotBytes))));
      }
    });
  }
  CounterRng rng(1, 2, 3);
  std::uint64_t next = 0;
  const auto grant = [&](std::uint32_t slot) {
    return consumer_->grant(names[rng.below(3)], credit_for(slot, next++));
  };
  for (std::uint32_t slot = 0; slot < kSlots; ++slot) EXPECT_TRUE(grant(slot));
  std::map<std::uint64_t, int> seen;
  for (std::uint64_t received = 0; received < kItems; ++received) {
    const auto arrival = inbox_.next();
    const auto& item = arrival->item;
    EXPECT_EQ(to_vector(consumer_->slot(item.credit.slot).first(item.bytes)), bytes_of(item.credit.tag, kSlotBytes));
    ++seen[item.credit.tag];
    if (next < kItems) {
      EXPECT_TRUE(grant(item.credit.slot));
    }
  }
  for (auto& producer : producers) producer->stop();
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(seen.size(), kItems);
  EXPECT_EQ(consumer_->stats().items, kItems);
  EXPECT_EQ(consumer_->stats().late_items, 0U);
  EXPECT_EQ(consumer_->stats().credits_outstanding, 0U);
}

INSTANTIATE_TEST_SUITE_P(Transports, ChannelTest, ::testing::Values(Transport::inproc, Transport::shm, Transport::zmq),
                         [](const auto& instance) { return std::string(enum_name(instance.param)); });

}  // namespace
}  // namespace troupe::comm
