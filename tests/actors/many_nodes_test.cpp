// 256 nodes in one process join a controller over the network and beat. The nodes' clock is the test's.
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>

#include "base/descriptor_limit.h"
#include "comm/control/message_codec.h"
#include "tests/support/running_controller.h"
#include "workers/controller/join_rules.h"
#include "workers/node/node_membership.h"

namespace troupe::actors {
namespace {

using namespace std::chrono_literals;

constexpr int kNodes = 256;
constexpr int kSeconds = 10;
constexpr auto kPatience = 60s;
constexpr std::size_t kDescriptors = 4096;  // both ends of every connection are here

/// One node: its membership, and the messages that it has received.
struct Node {
  std::string address;
  SocketId line{};
  std::unique_ptr<NodeMembership> membership;
  /// Guarded by Crowd's mutex.
  std::vector<Message> inbox;
  std::int64_t rank = -1;
  int num_joins = 0;
  std::vector<std::uint64_t> beats, acknowledged;
};

/// Nodes that differ from those of `troupe node` in that they share a process, host nothing and live in the test's
/// time.
class Crowd {
 public:
  explicit Crowd(const Token& token) : nodes_(kNodes), loop_(IoLoop::start("nodes").value()) {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      Node& node = nodes_[i];
      const std::string name = "n" + std::to_string(i);
      const std::uint64_t incarnation = 1000 + i;
      Join join;
      join.name = name, join.incarnation = incarnation, join.cpus = 1, join.memory_bytes = 1 << 30;
      describe_build(join);
      node.address = name + "#" + std::to_string(incarnation);
      node.membership = std::make_unique<NodeMembership>(join);
      node.line = loop_
                      ->connect_dealer(
                          token.endpoint, node.address,
                          [this, &node](SocketId, const std::string&, const Envelope& envelope,
                                        const std::vector<std::byte>& payload) {
                            auto message = decode(envelope.type, payload);
                            const std::lock_guard lock(mutex_);
                            node.inbox.push_back(message.value());
                            ++num_answers_;
                            changed_.notify_all();
                          },
                          CurveClient{token.server_key, token.public_key, token.secret_key})
                      .value();
    }
  }

  /// Every node sends what is due at `now` and takes the controller's answers.
  void turn(NodeMembership::TimePoint now) {
    for (Node& node : nodes_) {
      const auto message = node.membership->tick({}, 1 << 20, now);
      if (!message) continue;
      if (const auto* beat = std::get_if<Heartbeat>(&*message)) {
        node.beats.push_back(beat->sequence);
      } else {
        ++node.num_joins;
      }
      loop_->send(node.line, "", make_envelope(type_of(*message), node.address, "controller", 0),
                  encode(*message).value());
      ++num_asked_;
    }
    std::unique_lock lock(mutex_);
    ASSERT_TRUE(changed_.wait_for(lock, kPatience, [&] { return num_answers_ >= num_asked_; }))
        << num_answers_ << " answers to " << num_asked_ << " messages";
    for (Node& node : nodes_) {
      for (const Message& message : std::exchange(node.inbox, {})) hear(node, message, now);
    }
  }
  const std::vector<Node>& nodes() const { return nodes_; }

 private:
  static void hear(Node& node, const Message& message, NodeMembership::TimePoint now) {
    if (const auto* joined = std::get_if<Joined>(&message)) {
      node.rank = joined->node_rank;
      node.membership->on(*joined, now);
    } else if (const auto* ack = std::get_if<HeartbeatAck>(&message)) {
      node.acknowledged.push_back(ack->sequence);
      node.membership->on(*ack, now);
    } else {
      ADD_FAILURE() << node.address << " was told " << name_of(type_of(message));
    }
  }

  std::vector<Node> nodes_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t num_answers_ = 0;
  std::size_t num_asked_ = 0;
  std::unique_ptr<IoLoop> loop_;  // last: its callbacks use what is above
};

TEST(ManyNodesTest, AllJoinAndEachBeatsOnceASecond) {
  ASSERT_GE(raise_descriptor_limit(kDescriptors), kDescriptors)
      << "this test opens up to " << kDescriptors << " descriptors: raise the hard limit (ulimit -Hn, LimitNOFILE=, or "
      << "docker run --ulimit nofile=" << kDescriptors << ")";

  std::map<std::string, int> answered;  // beats by node; used by the controller's thread
  testing::RunningController controller([&](const std::string& to, const Message& message) {
    if (std::holds_alternative<HeartbeatAck>(message)) ++answered[to];
  });
  {
    Crowd crowd(controller.token());
    const auto begin = NodeMembership::TimePoint(1h);
    for (auto at = 0ms; at < std::chrono::seconds(kSeconds); at += 100ms) {
      crowd.turn(begin + at);
      ASSERT_FALSE(HasFatalFailure());
    }
    std::set<std::int64_t> ranks;
    std::vector<std::uint64_t> one_a_second;
    for (std::uint64_t beat = 1; beat <= kSeconds; ++beat) one_a_second.push_back(beat);
    for (const Node& node : crowd.nodes()) {
      EXPECT_EQ(node.membership->phase(), MembershipPhase::member) << node.address;
      EXPECT_EQ(node.num_joins, 1) << node.address;
      // the first a tick after Joined, the tenth 9 s later
      EXPECT_EQ(node.beats, one_a_second) << node.address;
      EXPECT_EQ(node.acknowledged, one_a_second) << node.address;
      ranks.insert(node.rank);
    }
    EXPECT_EQ(ranks.size(), std::size_t{kNodes});
    EXPECT_EQ(*ranks.begin(), 1);
    EXPECT_EQ(*ranks.rbegin(), kNodes);
  }
  const auto stats = controller.stats();
  EXPECT_EQ(stats.received, std::uint64_t{kNodes} * (1 + kSeconds));
  EXPECT_EQ(stats.malformed + stats.refused + stats.undeliverable, 0U);
  controller.stop();
  EXPECT_EQ(controller.membership().members().size(), std::size_t{kNodes} + 1);
  ASSERT_EQ(answered.size(), std::size_t{kNodes});
  for (const auto& [name, beats] : answered) EXPECT_EQ(beats, kSeconds) << name;
}

}  // namespace
}  // namespace troupe::actors
