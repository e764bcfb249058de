// The switch between spaces, with datagrams that carry a number.
#include "tests/lab/switch.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <optional>

#include "tests/lab/space.h"

namespace troupe::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::uint32_t kA = 0x0A4D0001, kB = 0x0A4D0002;  // 10.77.0.1 and .2
constexpr std::uint16_t kPort = 4000;
constexpr auto kQuiet = 1500ms;  // what has not come by then does not come

sockaddr_in socket_address(std::uint32_t address) {
  sockaddr_in result{};
  result.sin_family = AF_INET;
  result.sin_port = htons(kPort);
  result.sin_addr.s_addr = htonl(address);
  return result;
}

/// Two spaces, each with a datagram socket.
class SwitchTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string missing = Space::missing(); !missing.empty()) GTEST_SKIP() << "no namespaces: " << missing;
    a_.emplace(SpaceOptions{.name = "a"});
    b_.emplace(SpaceOptions{.name = "b"});
    from_ = attach(*a_, kA);
    to_ = attach(*b_, kB);
  }
  FileDescriptor attach(const Space& space, std::uint32_t address) {
    switch_.plug(space.tun(address), address);
    FileDescriptor socket;
    space.in_network([&] {
      socket.reset(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
      const sockaddr_in own = socket_address(address);
      if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&own), sizeof own) != 0)
        throw std::runtime_error("bind failed");
    });
    return socket;
  }
  static void send(const FileDescriptor& socket, std::uint32_t to, int number) {
    const sockaddr_in other = socket_address(to);
    ASSERT_EQ(
        ::sendto(socket.get(), &number, sizeof number, 0, reinterpret_cast<const sockaddr*>(&other), sizeof other),
        static_cast<ssize_t>(sizeof number));
  }
  void send_all(int count) {
    for (int i = 0; i < count; ++i) send(from_, kB, i);
  }
  static std::optional<int> next(const FileDescriptor& socket, std::chrono::milliseconds deadline) {
    pollfd readable{socket.get(), POLLIN, 0};
    int number = -1;
    if (::poll(&readable, 1, static_cast<int>(deadline.count())) != 1) return std::nullopt;
    return ::recv(socket.get(), &number, sizeof number, 0) == sizeof number ? std::optional(number) : std::nullopt;
  }
  /// The numbers that arrive at b until `count` have or none comes any more.
  std::vector<int> arrived(std::size_t count) {
    std::vector<int> numbers;
    while (numbers.size() < count) {
      const auto number = next(to_, kQuiet);
      if (!number) break;
      numbers.push_back(*number);
    }
    return numbers;
  }

  std::optional<Space> a_, b_;
  Switch switch_{1};
  FileDescriptor from_, to_;
};

TEST_F(SwitchTest, CarriesDatagramsBothWays) {
  send_all(3);
  EXPECT_THAT(arrived(3), ElementsAre(0, 1, 2));
  send(to_, kA, 7);
  EXPECT_EQ(next(from_, kQuiet), 7);
}

TEST_F(SwitchTest, ACutOneWayLeavesTheOtherOpen) {
  switch_.set(kA, kB, {.cut = true});
  send_all(3);
  EXPECT_THAT(arrived(1), IsEmpty());
  send(to_, kA, 7);
  EXPECT_EQ(next(from_, kQuiet), 7);
  EXPECT_EQ(switch_.counts(kA, kB).cut, 3);
  switch_.set(kA, kB, {});
  send(from_, kB, 9);
  EXPECT_THAT(arrived(1), ElementsAre(9));
}

TEST_F(SwitchTest, DelaysEachDatagram) {
  switch_.set(kA, kB, {.delay = 100ms});
  const auto begin = std::chrono::steady_clock::now();
  send(from_, kB, 0);
  EXPECT_THAT(arrived(1), SizeIs(1));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 100ms);
}

TEST_F(SwitchTest, DropsWhatTheLinkSays) {
  switch_.set(kA, kB, {.loss = 0.5});
  send_all(100);
  const auto numbers = arrived(100);
  const auto counts = switch_.counts(kA, kB);
  EXPECT_EQ(counts.offered, 100);
  EXPECT_EQ(static_cast<std::int64_t>(numbers.size()), 100 - counts.lost);
  EXPECT_GT(counts.lost, 0);
}

TEST_F(SwitchTest, DoublesDatagrams) {
  switch_.set(kA, kB, {.duplicate = 1});
  send_all(2);
  EXPECT_THAT(arrived(5), ElementsAre(0, 0, 1, 1));
}

TEST_F(SwitchTest, ReordersDatagrams) {
  switch_.set(kA, kB, {.reorder = 0.5, .reorder_by = 50ms});
  send_all(20);
  auto numbers = arrived(20);
  EXPECT_THAT(numbers, SizeIs(20));
  EXPECT_FALSE(std::is_sorted(numbers.begin(), numbers.end()));
}

TEST_F(SwitchTest, ASpaceWithoutPowerIsOffAndItsAddressCanBePluggedAgain) {
  to_.reset();
  b_->kill();
  send_all(2);
  b_.emplace(SpaceOptions{.name = "b"});
  to_ = attach(*b_, kB);
  send(from_, kB, 5);
  EXPECT_THAT(arrived(1), ElementsAre(5));
}

}  // namespace
}  // namespace troupe::testing
