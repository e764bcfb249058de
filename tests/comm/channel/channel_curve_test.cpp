// zmq channels with CURVE keys on loopback, as between hosts.
#include "comm/control/curve_keys.h"
#include "tests/comm/channel/channel_fixture.h"

namespace troupe::comm {
namespace {

using namespace testing_support;

class ChannelCurveTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (auto* pair : {&server_, &client_, &stranger_}) {
      auto made = generate_keypair();
      *pair = std::move(made).value();
    }
    const ChannelOptions options{
        .name = "learner/0",
        .slots = 1,
        .slot_bytes = 5000,
        .transport = Transport::zmq,
        .endpoint = "tcp://127.0.0.1:*",
        .curve = CurveServer{.secret_key = server_.secret_key, .allowed_clients = {client_.public_key}}};
    auto opened = open_consumer(rig_.consumer_loop(), options, inbox_.callbacks());
    consumer_ = std::move(opened).value();
  }
  auto dial(const CurveKeyPair& keys, const std::string& server_key, std::chrono::milliseconds deadline = kPatience) {
    return open_producer(
        rig_.producer_loop(), consumer_->address(), "decoder/0#0", 1, deadline,
        CurveClient{.server_key = server_key, .public_key = keys.public_key, .secret_key = keys.secret_key});
  }

  CurveKeyPair server_, client_, stranger_;
  ChannelRig rig_{true};
  Inbox inbox_;
  std::unique_ptr<ChannelConsumer> consumer_;
};

TEST_F(ChannelCurveTest, AnAllowedKeyTakesTheServersKeyFromTheAddress) {
  EXPECT_TRUE(consumer_->address().ends_with(";" + server_.public_key)) << consumer_->address();
  auto producer = dial(client_, "");
  ASSERT_TRUE(inbox_.wait_for_producer("decoder/0#0"));
  ASSERT_TRUE(consumer_->grant("decoder/0#0", {.slot = 0, .tag = 3, .fence = 1}));
  const auto credit = (*producer)->next_credit(kPatience);
  const auto bytes = bytes_of(3, 5000);
  ASSERT_TRUE((*producer)->send(fill(**producer, *credit, bytes)));
  const auto arrival = inbox_.next();
  EXPECT_EQ(to_vector(consumer_->slot(0).first(arrival->item.bytes)), bytes);
}

TEST_F(ChannelCurveTest, AnotherKeyIsNotLetIn) {
  EXPECT_EQ(dial(stranger_, "", 800ms).error().code(), Errc::deadline_exceeded);
  EXPECT_TRUE(inbox_.producers().empty());
}

TEST_F(ChannelCurveTest, NoKeysOrTheWrongServersKeyIsAnErrorAtOnce) {
  EXPECT_EQ(rig_.try_dial(consumer_->address(), "decoder/0#0").error().code(), Errc::invalid_argument);
  EXPECT_EQ(dial(client_, stranger_.public_key).error().code(), Errc::invalid_argument);
}

}  // namespace
}  // namespace troupe::comm
