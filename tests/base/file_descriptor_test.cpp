#include "base/file_descriptor.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <utility>

#include "base/event_fd.h"

namespace troupe::base {
namespace {

int open_null() { return ::open("/dev/null", O_RDONLY | O_CLOEXEC); }
bool is_open(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }

TEST(FileDescriptorTest, ClosesWhatItHolds) {
  const int fd = open_null();
  { const FileDescriptor owner(fd); }
  EXPECT_FALSE(is_open(fd));
}

TEST(FileDescriptorTest, MovesItAndKeepsNone) {
  const int fd = open_null();
  FileDescriptor first(fd);
  FileDescriptor second(std::move(first));
  EXPECT_FALSE(first.is_open());  // NOLINT: what is left is promised
  EXPECT_EQ(second.get(), fd);
  second = std::move(*&second);
  EXPECT_TRUE(is_open(fd));
}

TEST(FileDescriptorTest, ClosesTheOldOneWhenItTakesAnother) {
  const int before = open_null(), after = open_null();
  FileDescriptor owner(before);
  owner = FileDescriptor(after);
  EXPECT_FALSE(is_open(before));
  EXPECT_TRUE(is_open(after));
  owner.reset();
  EXPECT_FALSE(is_open(after));
  EXPECT_EQ(owner.get(), -1);
}

TEST(FileDescriptorTest, LeavesAReleasedOneOpen) {
  const int fd = open_null();
  {
    FileDescriptor owner(fd);
    EXPECT_EQ(owner.release(), fd);
  }
  EXPECT_TRUE(is_open(fd));
  ::close(fd);
}

TEST(EventFdTest, IsReadableFromRaiseUntilClear) {
  const EventFd event;
  ASSERT_TRUE(event.is_open());
  pollfd wanted{event.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&wanted, 1, 0), 0);
  event.raise();
  event.raise();
  EXPECT_EQ(::poll(&wanted, 1, 0), 1);
  event.clear();
  EXPECT_EQ(::poll(&wanted, 1, 0), 0);
  event.clear();  // nothing to clear: does not wait
}

}  // namespace
}  // namespace troupe::base
