// Two consumer ends over one arena: a local transport and zmq (comm/channel/channel.h, `share`).
#include "tests/comm/channel/channel_fixture.h"

namespace troupe::comm {
namespace {

using namespace testing_support;

constexpr std::uint32_t kSlots = 2;
constexpr std::size_t kSlotBytes = 3000;

Credit credit_for(std::uint32_t slot, std::uint64_t tag) { return {.slot = slot, .tag = tag, .fence = 1}; }

class ChannelShareTest : public ::testing::TestWithParam<Transport> {
 protected:
  void SetUp() override {
    near_ = rig_.open(GetParam(), near_inbox_, kSlots, kSlotBytes);
    far_ = rig_.open(Transport::zmq, far_inbox_, 0, 0, near_.get());
  }
  void send(ChannelProducer& producer, std::uint64_t seed) {
    const auto credit = producer.next_credit(kPatience);
    ASSERT_TRUE(producer.send(fill(producer, *credit, bytes_of(seed, kSlotBytes))));
  }

  ChannelRig rig_{true};
  Inbox near_inbox_, far_inbox_;
  std::unique_ptr<ChannelConsumer> near_, far_;
};

TEST_P(ChannelShareTest, BothEndsFillOneArena) {
  const auto near = rig_.dial(*near_, "near");
  const auto far = rig_.dial(*far_, "far");
  ASSERT_TRUE(near_inbox_.wait_for_producer("near"));
  ASSERT_TRUE(far_inbox_.wait_for_producer("far"));
  EXPECT_EQ(near_inbox_.producers().size(), 1U);
  EXPECT_EQ(far_inbox_.producers().size(), 1U);
  // Either end reaches either producer.
  ASSERT_TRUE(far_->grant("near", credit_for(0, 1)));
  ASSERT_TRUE(near_->grant("far", credit_for(1, 2)));
  ASSERT_NO_FATAL_FAILURE(send(*near, 1));
  ASSERT_NO_FATAL_FAILURE(send(*far, 2));
  const auto from_near = near_inbox_.next();
  const auto from_far = far_inbox_.next();
  EXPECT_EQ(from_near->producer, "near");
  EXPECT_EQ(from_far->producer, "far");
  for (const auto* end : {near_.get(), far_.get()}) {
    EXPECT_EQ(to_vector(end->slot(0).first(from_near->item.bytes)), bytes_of(1, kSlotBytes));
    EXPECT_EQ(to_vector(end->slot(1).first(from_far->item.bytes)), bytes_of(2, kSlotBytes));
    EXPECT_EQ(end->stats().items, 1U);
  }
}

TEST_P(ChannelShareTest, ASlotGrantedOnOneEndIsInUseOnTheOther) {
  const auto near = rig_.dial(*near_, "near");
  const auto far = rig_.dial(*far_, "far");
  ASSERT_TRUE(near_->grant("near", credit_for(0, 1)));
  EXPECT_EQ(far_->grant("far", credit_for(0, 1)).error().code(), Errc::invalid_argument);
  // Dropped through the end that it did not dial.
  far_->drop_producer("near");
  ASSERT_TRUE(far_->grant("far", credit_for(0, 1)));
  ASSERT_NO_FATAL_FAILURE(send(*far, 1));
  ASSERT_TRUE(far_inbox_.next());
}

TEST_P(ChannelShareTest, ANameIsTakenOnBothEnds) {
  const auto near = rig_.dial(*near_, "decoder/0#0");
  const auto again = rig_.try_dial(far_->address(), "decoder/0#0");
  EXPECT_EQ(again.error().code(), Errc::failed_precondition) << again.error().to_string();
}

TEST_P(ChannelShareTest, TheOtherEndGoesOnWhenTheFirstIsClosed) {
  const auto near = rig_.dial(*near_, "near");
  const auto far = rig_.dial(*far_, "far");
  near_.reset();
  EXPECT_EQ(near->next_credit(kPatience).error().code(), Errc::unavailable);
  EXPECT_EQ(far_->grant("near", credit_for(0, 1)).error().code(), Errc::not_found);
  ASSERT_TRUE(far_->grant("far", credit_for(0, 1)));
  ASSERT_NO_FATAL_FAILURE(send(*far, 5));
  const auto arrival = far_inbox_.next();
  EXPECT_EQ(to_vector(far_->slot(0).first(arrival->item.bytes)), bytes_of(5, kSlotBytes));
}

TEST_P(ChannelShareTest, OtherSizesThanTheArenasAreRefused) {
  Inbox inbox;
  ChannelOptions options{.name = "other",
                         .slots = kSlots,
                         .slot_bytes = kSlotBytes + 1,
                         .transport = Transport::zmq,
                         .endpoint = "tcp://127.0.0.1:*"};
  EXPECT_EQ(open_consumer(rig_.consumer_loop(), options, inbox.callbacks(), near_.get()).error().code(),
            Errc::invalid_argument);
}

INSTANTIATE_TEST_SUITE_P(Transports, ChannelShareTest, ::testing::Values(Transport::inproc, Transport::shm),
                         [](const auto& instance) { return std::string(enum_name(instance.param)); });

class ChannelOptionsTest : public ::testing::Test {
 protected:
  Errc code_of(const ChannelOptions& options, IoLoop* loop) {
    Inbox inbox;
    const auto opened = open_consumer(loop, options, inbox.callbacks());
    return opened ? Errc::internal : opened.error().code();
  }
};

TEST_F(ChannelOptionsTest, WhatCannotWorkIsRefusedAtOnce) {
  ChannelRig rig(true);
  const ChannelOptions good{.name = "x", .slots = 1, .slot_bytes = 10, .transport = Transport::inproc};
  auto options = good;
  options.name = "Bad Name";
  EXPECT_EQ(code_of(options, nullptr), Errc::invalid_argument);
  options = good, options.slots = 0;
  EXPECT_EQ(code_of(options, nullptr), Errc::invalid_argument);
  options = good, options.slot_bytes = 0;
  EXPECT_EQ(code_of(options, nullptr), Errc::invalid_argument);
  options = good, options.endpoint = "ipc:///tmp/x";
  EXPECT_EQ(code_of(options, nullptr), Errc::invalid_argument);
  options = good, options.transport = Transport::zmq, options.endpoint = "tcp://127.0.0.1:*";
  EXPECT_EQ(code_of(options, nullptr), Errc::invalid_argument) << "zmq without a loop";
  options.transport = Transport::shm;
  EXPECT_EQ(code_of(options, rig.consumer_loop()), Errc::invalid_argument) << "shm over tcp";
  options.transport = Transport::zmq, options.endpoint = "tcp://0.0.0.0:*";
  EXPECT_NE(code_of(options, rig.consumer_loop()), Errc::internal) << "a keyless socket for everybody";
}

TEST_F(ChannelOptionsTest, ANameIsTakenWhileItsConsumerLives) {
  Inbox inbox;
  const ChannelOptions options{.name = "x", .slots = 1, .slot_bytes = 10, .transport = Transport::inproc};
  auto first = open_consumer(nullptr, options, inbox.callbacks());
  EXPECT_EQ(code_of(options, nullptr), Errc::failed_precondition);
  first->reset();
  EXPECT_TRUE(open_consumer(nullptr, options, inbox.callbacks()));
}

}  // namespace
}  // namespace troupe::comm
