// Channels between real processes: this binary runs itself as the producer (see main).
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <iostream>
#include <string_view>

#include "tests/comm/channel/channel_fixture.h"

extern char** environ;

namespace troupe::comm {
namespace {

using namespace testing_support;

constexpr std::uint32_t kSlots = 3;
constexpr std::size_t kSlotBytes = 20'000;

Credit credit_for(std::uint32_t slot, std::uint64_t tag) { return {.slot = slot, .tag = tag, .fence = 7}; }

/// A producer process; killed and reaped at the end of its scope.
class Child {
 public:
  Child(const std::string& address, const std::string& name, const std::string& mode) {
    std::array<std::string, 5> words{"/proc/self/exe", "--producer", address, name, mode};
    std::array<char*, 6> argv{};
    for (std::size_t i = 0; i < words.size(); ++i) argv[i] = words[i].data();
    if (::posix_spawn(&pid_, "/proc/self/exe", nullptr, nullptr, argv.data(), environ) != 0)
      ADD_FAILURE() << "posix_spawn failed";
  }
  ~Child() {
    if (pid_ > 0) kill_and_reap();
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  /// Returns once the exit is confirmed.
  void kill_and_reap() {
    ::kill(pid_, SIGKILL);
    (void)wait();
  }
  int wait() {
    int status = -1;
    EXPECT_EQ(::waitpid(std::exchange(pid_, -1), &status, 0) > 0, true);
    return status;
  }

 private:
  pid_t pid_ = -1;
};

class ChannelProcessTest : public ::testing::TestWithParam<Transport> {
 protected:
  void SetUp() override { consumer_ = rig_.open(GetParam(), inbox_, kSlots, kSlotBytes); }
  void expect_intact(const Arrival& arrival) {
    EXPECT_EQ(arrival.item.error, "");
    EXPECT_EQ(to_vector(consumer_->slot(arrival.item.credit.slot).first(arrival.item.bytes)),
              bytes_of(arrival.item.credit.tag, kSlotBytes));
  }

  ChannelRig rig_{true};
  Inbox inbox_;
  std::unique_ptr<ChannelConsumer> consumer_;
};

TEST_P(ChannelProcessTest, ItemsOfAnotherProcessArriveIntact) {
  Child child(consumer_->address(), "decoder/0#0", "produce");
  ASSERT_TRUE(inbox_.wait_for_producer("decoder/0#0"));
  constexpr std::uint64_t kItems = 40;
  std::uint64_t next = 0;
  for (std::uint32_t slot = 0; slot < kSlots; ++slot)
    ASSERT_TRUE(consumer_->grant("decoder/0#0", credit_for(slot, next++)));
  for (std::uint64_t received = 0; received < kItems; ++received) {
    const auto arrival = inbox_.next();
    expect_intact(*arrival);
    if (next < kItems) {
      ASSERT_TRUE(consumer_->grant("decoder/0#0", credit_for(arrival->item.credit.slot, next++)));
    }
  }
  // The consumer's goodbye ends the child in order.
  consumer_.reset();
  const int status = child.wait();
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST_P(ChannelProcessTest, TheSlotsOfAKilledProducerAreReusedOnceItsExitIsConfirmed) {
  Child victim(consumer_->address(), "decoder/0#0", "hold");
  Child heir(consumer_->address(), "decoder/1#0", "produce");
  ASSERT_TRUE(inbox_.wait_for_producer("decoder/0#0"));
  ASSERT_TRUE(inbox_.wait_for_producer("decoder/1#0"));
  // The victim sends item 0 and from then on writes to the slot of item 1 without end.
  ASSERT_TRUE(consumer_->grant("decoder/0#0", credit_for(0, 0)));
  ASSERT_TRUE(consumer_->grant("decoder/0#0", credit_for(1, 1)));
  const auto first = inbox_.next();
  expect_intact(*first);
  EXPECT_EQ(consumer_->grant("decoder/1#0", credit_for(1, 1)).error().code(), Errc::invalid_argument);

  victim.kill_and_reap();
  consumer_->drop_producer("decoder/0#0");
  for (int round = 0; round < 5; ++round) {
    ASSERT_TRUE(consumer_->grant("decoder/1#0", credit_for(1, 1)));
    const auto arrival = inbox_.next();
    EXPECT_EQ(arrival->producer, "decoder/1#0");
    expect_intact(*arrival);
  }
  // What the dead one had delivered is still there, and a successor under a new name takes its place.
  expect_intact(*first);
  Child successor(consumer_->address(), "decoder/0#1", "produce");
  ASSERT_TRUE(inbox_.wait_for_producer("decoder/0#1"));
  ASSERT_TRUE(consumer_->grant("decoder/0#1", credit_for(2, 2)));
  const auto arrival = inbox_.next();
  expect_intact(*arrival);
}

INSTANTIATE_TEST_SUITE_P(Transports, ChannelProcessTest, ::testing::Values(Transport::shm, Transport::zmq),
                         [](const auto& instance) { return std::string(enum_name(instance.param)); });

/// The other process. "produce": serve credits until the consumer says goodbye. "hold": send one item, then keep
/// writing to the next slot until killed. Exit status 0: goodbye came.
int produce(const std::string& address, const std::string& name, std::string_view mode) {
  auto loop = IoLoop::start(name);
  if (!loop) return 2;
  auto producer = open_producer(loop->get(), address, name, kSlots, kPatience);
  if (!producer) {
    std::cerr << producer.error().to_string() << "\n";
    return 3;
  }
  for (bool is_first = true;; is_first = false) {
    const auto credit = (*producer)->next_credit(kPatience);
    if (!credit) return credit.error().code() == Errc::unavailable ? 0 : 4;
    const auto bytes = bytes_of(credit->tag, kSlotBytes);
    if (mode == "hold" && !is_first) {
      volatile std::byte* const slot = (*producer)->slot(*credit).data();
      // Ends with SIGKILL, or when the test itself has died and the harness kills its group.
      for (unsigned i = 0; ::getppid() != 1; ++i) slot[i % kSlotBytes] = static_cast<std::byte>(i);
      return 5;
    }
    if (!(*producer)->send(fill(**producer, *credit, bytes))) return 6;
  }
}

}  // namespace
}  // namespace troupe::comm

int main(int argc, char** argv) {
  if (argc == 5 && std::string_view(argv[1]) == "--producer") return troupe::comm::produce(argv[2], argv[3], argv[4]);
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
