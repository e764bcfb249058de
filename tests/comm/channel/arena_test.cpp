#include "comm/channel/arena.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <string>
#include <utility>

namespace troupe::comm {
namespace {

constexpr std::size_t kBytes = 8192;

/// The four numbers of a handle: pid, fd, bytes, start time.
std::array<std::uint64_t, 4> numbers_of(const std::string& handle) {
  std::array<std::uint64_t, 4> numbers{};
  unsigned long long pid = 0, fd = 0, bytes = 0, start = 0;
  EXPECT_EQ(std::sscanf(handle.c_str(), "memfd:%llu:%llu:%llu:%llu", &pid, &fd, &bytes, &start), 4);
  return numbers = {pid, fd, bytes, start};
}
std::string handle_of(const std::array<std::uint64_t, 4>& n) {
  return fmt::format("memfd:{}:{}:{}:{}", n[0], n[1], n[2], n[3]);
}

Errc code_of(const Result<Arena>& result) { return result ? Errc::internal : result.error().code(); }

TEST(ArenaTest, BothMappingsSeeTheSameBytes) {
  auto owner = Arena::create("test", kBytes);
  auto guest = Arena::attach(owner->handle(), kBytes);
  EXPECT_EQ(guest->bytes().size(), kBytes);
  EXPECT_NE(guest->bytes().data(), owner->bytes().data());
  guest->bytes()[kBytes - 1] = std::byte{42};
  EXPECT_EQ(owner->bytes()[kBytes - 1], std::byte{42});
  EXPECT_EQ(owner->bytes()[0], std::byte{0});
}

TEST(ArenaTest, AGuestKeepsTheMemoryAfterItsOwner) {
  auto owner = Arena::create("test", kBytes);
  owner->bytes()[7] = std::byte{9};
  auto guest = Arena::attach(owner->handle(), kBytes);
  { const Arena gone = std::move(owner).value(); }
  EXPECT_EQ(guest->bytes()[7], std::byte{9});
}

TEST(ArenaTest, AClosedArenaCannotBeAttached) {
  std::string handle;
  {
    auto owner = Arena::create("test", kBytes);
    handle = owner->handle();
  }
  EXPECT_EQ(code_of(Arena::attach(handle, kBytes)), Errc::not_found);
}

TEST(ArenaTest, AnotherSizeThanThePlansIsRefused) {
  auto owner = Arena::create("test", kBytes);
  EXPECT_EQ(code_of(Arena::attach(owner->handle(), 2 * kBytes)), Errc::invalid_argument);
  // A handle that lies about the file's size is found out by the file.
  auto numbers = numbers_of(owner->handle());
  numbers[2] = 2 * kBytes;
  EXPECT_EQ(code_of(Arena::attach(handle_of(numbers), 2 * kBytes)), Errc::invalid_argument);
}

TEST(ArenaTest, AnotherStartTimeMeansThePidWasGivenAway) {
  auto owner = Arena::create("test", kBytes);
  auto numbers = numbers_of(owner->handle());
  numbers[3] += 1;
  const auto attached = Arena::attach(handle_of(numbers), kBytes);
  EXPECT_EQ(attached.error().code(), Errc::not_found);
  EXPECT_NE(attached.error().message().find("is gone"), std::string::npos) << attached.error().message();
}

TEST(ArenaTest, AProcessThatExitedIsNotFound) {
  auto owner = Arena::create("test", kBytes);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) ::_exit(0);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  auto numbers = numbers_of(owner->handle());
  numbers[0] = static_cast<std::uint64_t>(child);
  EXPECT_EQ(code_of(Arena::attach(handle_of(numbers), kBytes)), Errc::not_found);
}

TEST(ArenaTest, AFileThatIsNotSealedIsRefused) {
  auto owner = Arena::create("test", kBytes);
  const int other = ::memfd_create("other", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ASSERT_GE(other, 0);
  ASSERT_EQ(::ftruncate(other, kBytes), 0);
  auto numbers = numbers_of(owner->handle());
  numbers[1] = static_cast<std::uint64_t>(other);
  EXPECT_EQ(code_of(Arena::attach(handle_of(numbers), kBytes)), Errc::failed_precondition);
  ::close(other);
}

TEST(ArenaTest, NobodyCanResizeIt) {
  auto owner = Arena::create("test", kBytes);
  const int fd = static_cast<int>(numbers_of(owner->handle())[1]);
  EXPECT_NE(::ftruncate(fd, kBytes / 2), 0);
  EXPECT_NE(::ftruncate(fd, kBytes * 2), 0);
}

TEST(ArenaTest, MalformedHandlesAreRefused) {
  for (const char* handle :
       {"", "memfd:", "memfd:1:2:3", "memfd:1:2:3:4:5", "memfd:1:2:8192:-4", "memfd:x:2:8192:4", "memfd:1::8192:4",
        "memfd:1:../../etc:8192:4", "shm:1:2:8192:4", "memfd:1:2:8192:4 ", "memfd:99999999999999999999:2:8192:4"}) {
    EXPECT_EQ(code_of(Arena::attach(handle, kBytes)), Errc::invalid_argument) << handle;
  }
}

TEST(ArenaTest, AnEmptyArenaIsRefused) { EXPECT_EQ(code_of(Arena::create("test", 0)), Errc::invalid_argument); }

TEST(ArenaTest, MoreMemoryThanThereIsIsAnErrorAtOnce) {
  EXPECT_EQ(Arena::create("test", std::size_t{1} << 50).error().code(), Errc::resource_exhausted);
}

}  // namespace
}  // namespace troupe::comm
