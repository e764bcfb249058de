#include "comm/control/ordered_delivery.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace troupe::comm {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::uint16_t kSomething = 0x45;

Packet text(const std::string& from, const std::string& to, const std::string& bytes) {
  Packet packet{.envelope = make_envelope(kSomething, from, to, 0)};
  for (const char c : bytes) packet.payload.push_back(static_cast<std::byte>(c));
  return packet;
}

std::string text_of(const Packet& packet) {
  std::string bytes;
  for (const std::byte b : packet.payload) bytes += static_cast<char>(b);
  return bytes;
}

struct OrderedDeliveryTest : ::testing::Test {
  /// Of `from` to `to`, as it leaves.
  Packet send(OrderedDelivery& from, const std::string& bytes) {
    return *from.send(text(&from == &here ? "here#1" : "there#1", &from == &here ? "there#1" : "here#1", bytes), now);
  }
  std::vector<std::string> receive(OrderedDelivery& at, const Packet& packet) {
    std::vector<std::string> texts;
    for (const Packet& due : at.receive(packet, now)) texts.push_back(text_of(due));
    return texts;
  }
  OrderedDelivery::Time now{1h};
  OrderedDelivery here{{.tries = 4, .bytes = 1000, .early = 8}}, there{{.tries = 4, .bytes = 1000, .early = 8}};
};

TEST_F(OrderedDeliveryTest, MessagesComeInTheOrderInWhichTheyWereSentAndOnce) {
  const Packet a = send(here, "a"), b = send(here, "b"), c = send(here, "c");
  EXPECT_THAT(receive(there, c), IsEmpty());
  EXPECT_THAT(receive(there, a), ElementsAre("a"));
  EXPECT_THAT(receive(there, a), IsEmpty());
  EXPECT_THAT(receive(there, b), ElementsAre("b", "c"));
  EXPECT_THAT(receive(there, b), IsEmpty());
}

TEST_F(OrderedDeliveryTest, AMessageIsSentAgainUntilItsAddresseeSaysThatItHasIt) {
  const Packet a = send(here, "a");
  EXPECT_THAT(here.due(now + 249ms), IsEmpty());
  const auto again = here.due(now + 250ms);
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].envelope.id, a.envelope.id);
  EXPECT_EQ(again[0].envelope.number, a.envelope.number);
  EXPECT_THAT(here.due(now + 700ms), IsEmpty()) << "the next pause is twice as long";
  EXPECT_THAT(receive(there, again[0]), ElementsAre("a"));
  now += 20ms;
  const auto word = there.due(now);
  ASSERT_EQ(word.size(), 1u);
  EXPECT_EQ(word[0].envelope.type, OrderedDelivery::kAcknowledge);
  EXPECT_THAT(here.receive(word[0], now), IsEmpty());
  EXPECT_EQ(here.waiting(), 0u);
  EXPECT_THAT(here.due(now + 1h), IsEmpty());
  EXPECT_EQ(here.next_due(), std::nullopt);
}

TEST_F(OrderedDeliveryTest, AnAnswerSaysThatTheMessageCame) {
  receive(there, send(here, "a"));
  receive(here, send(there, "answer"));
  EXPECT_EQ(here.waiting(), 0u);
  EXPECT_THAT(there.due(now + 20ms), IsEmpty()) << "no word of its own is needed";
}

TEST_F(OrderedDeliveryTest, AWordThatWasLostIsSaidAgainWhenTheMessageComesAgain) {
  const Packet a = send(here, "a");
  receive(there, a);
  EXPECT_EQ(there.due(now + 20ms).size(), 1u);  // lost
  now += 250ms;
  EXPECT_THAT(receive(there, here.due(now).at(0)), IsEmpty());
  EXPECT_EQ(there.due(now).size(), 1u) << "at once";
}

TEST_F(OrderedDeliveryTest, AnAddresseeThatNeverAnswersCountsAsGone) {
  send(here, "a");
  std::size_t sent = 1;
  for (int i = 0; i < 100; ++i) sent += here.due(now += 5s).size();
  EXPECT_EQ(sent, 4u);
  EXPECT_EQ(here.send(text("here#1", "there#1", "b"), now), std::nullopt);
  EXPECT_NE(here.send(text("here#1", "there#2", "b"), now), std::nullopt) << "its next start is another name";
}

TEST_F(OrderedDeliveryTest, AnAddresseeWithTooMuchThatWaitsCountsAsGone) {
  for (int i = 0; i < 10; ++i) send(here, std::string(100, 'a'));
  EXPECT_EQ(here.send(text("here#1", "there#1", "a"), now), std::nullopt);
  EXPECT_THAT(here.due(now + 1h), IsEmpty()) << "nor is the rest sent";
}

TEST_F(OrderedDeliveryTest, WhatIsKeptForAMissingMessageIsBounded) {
  std::vector<Packet> packets;
  for (int i = 0; i < 12; ++i) packets.push_back(send(here, std::string(1, static_cast<char>('a' + i))));
  for (std::size_t i = 1; i < packets.size(); ++i) EXPECT_THAT(receive(there, packets[i]), IsEmpty());
  EXPECT_EQ(receive(there, packets[0]).size(), 9u) << "itself and eight that were kept";
  EXPECT_THAT(receive(there, packets[11]), IsEmpty());
  EXPECT_EQ(receive(there, packets[9]).size(), 1u);
}

TEST_F(OrderedDeliveryTest, NothingIsHeardOfANameThatHasEnded) {
  const Packet a = send(here, "a"), b = send(here, "b");
  receive(there, a);
  there.forget("here#1");
  EXPECT_THAT(receive(there, a), IsEmpty());
  EXPECT_THAT(receive(there, b), IsEmpty());
  EXPECT_EQ(there.next_due(), std::nullopt);
}

TEST_F(OrderedDeliveryTest, AFarewellLeavesNothingBehindAndNothingIsHeardOfTheNameAgain) {
  const Packet question = send(here, "scale");
  receive(there, question);
  send(there, "answer");
  EXPECT_EQ(there.waiting(), 1u);
  EXPECT_THAT(receive(there, OrderedDelivery::farewell("here#1", "there#1")), IsEmpty());
  EXPECT_EQ(there.waiting(), 0u);
  EXPECT_EQ(there.next_due(), std::nullopt);
  EXPECT_THAT(receive(there, question), IsEmpty()) << "late, and not done twice";
}

TEST_F(OrderedDeliveryTest, MessagesWithoutANumberPassAsTheyCome) {
  EXPECT_THAT(receive(there, text("here#1", "there#1", "beat")), ElementsAre("beat"));
  EXPECT_THAT(receive(there, text("here#1", "there#1", "beat")), ElementsAre("beat"));
}

/// Both send 200 messages over a wire that loses, repeats and reorders three in ten.
TEST_F(OrderedDeliveryTest, EverythingArrivesOverABadWire) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937 draw(seed);
    OrderedDelivery a{{}}, b{{}};
    std::multimap<OrderedDelivery::Time, std::pair<OrderedDelivery*, Packet>> wire;
    const auto put = [&](OrderedDelivery& to, const Packet& packet) {
      for (int copies = draw() % 10 == 0 ? 0 : draw() % 10 == 1 ? 2 : 1; copies > 0; --copies)
        wire.emplace(now + std::chrono::milliseconds(draw() % 300), std::pair(&to, packet));
    };
    std::vector<std::string> at_a, at_b, wanted;
    for (int i = 0; i < 200; ++i) {
      wanted.push_back(std::to_string(i));
      put(b, *a.send(text("a", "b", wanted.back()), now));
      put(a, *b.send(text("b", "a", wanted.back()), now));
    }
    for (int turn = 0; turn < 20'000 && (a.next_due() || b.next_due() || !wire.empty()); ++turn) {
      now += 10ms;
      for (const Packet& packet : a.due(now)) put(b, packet);
      for (const Packet& packet : b.due(now)) put(a, packet);
      while (!wire.empty() && wire.begin()->first <= now) {
        const auto [to, packet] = wire.begin()->second;
        wire.erase(wire.begin());
        for (const Packet& due : to->receive(packet, now)) (to == &a ? at_a : at_b).push_back(text_of(due));
      }
    }
    EXPECT_EQ(at_a, wanted) << seed;
    EXPECT_EQ(at_b, wanted) << seed;
    EXPECT_EQ(a.waiting() + b.waiting(), 0u) << seed;
  }
}

}  // namespace
}  // namespace troupe::comm
