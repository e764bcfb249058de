#include "app/command_progress.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>

#include "base/file_descriptor.h"
#include "base/log.h"
#include "tests/support/folder_files.h"
#include "tests/support/scratch_folder.h"

namespace troupe::app {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class CommandProgressTest : public ::testing::Test {
 protected:
  std::function<CommandProgress::TimePoint()> clock() {
    return [this] { return now_; };
  }
  CommandProgress::TimePoint now_ = CommandProgress::TimePoint() + 1h;
  ScratchFolder dir_;
};

TEST_F(CommandProgressTest, WhereNobodyWatchesALineComesEveryTenSeconds) {
  const std::string file = dir_ / "err";
  const FileDescriptor fd(::open(file.c_str(), O_CREAT | O_WRONLY | O_APPEND, 0600));
  {
    CommandProgress line("stats", fd.get(), clock());
    line.show("episodes", 0, 100);
    now_ += 9s;
    line.show("episodes", 9, 100);
    EXPECT_EQ(text_of(file), "") << "a fast command says nothing";
    now_ += 1s;
    line.show("episodes", 10, 100);
    line.show("episodes", 11, 100);
    line.print("left out: one");
  }
  EXPECT_EQ(text_of(file), "[stats] ==>----------------- 10/100 episodes  1.00/s  ETA 1m30s\nleft out: one\n");
}

TEST_F(CommandProgressTest, ANewPartHasARateOfItsOwnAndThreadsMayCountOutOfOrder) {
  const std::string file = dir_ / "err";
  const FileDescriptor fd(::open(file.c_str(), O_CREAT | O_WRONLY | O_APPEND, 0600));
  CommandProgress line("convert", fd.get(), clock());
  line.show("parts", 50, 100);  // fifty were done before
  now_ += 10s;
  line.show("parts", 60, 100);
  EXPECT_THAT(text_of(file), HasSubstr("60/100 parts  1.00/s  ETA 40s"));
  now_ += 10s;
  line.show("parts", 59, 100);
  EXPECT_THAT(text_of(file), Not(HasSubstr("59/100")));
  line.show("tables", 0, 40);
  now_ += 10s;
  line.show("tables", 20, 40);
  EXPECT_THAT(text_of(file), HasSubstr("20/40 tables  2.00/s  ETA 10s"));
  line.show("tables", 1, 40);  // the next pass
  now_ += 10s;
  line.show("tables", 11, 40);
  EXPECT_THAT(text_of(file), HasSubstr("11/40 tables  1.00/s  ETA 29s"));
}

/// What a terminal gets while `work` shows its progress there.
std::string seen_on_terminal(const std::function<void(int fd)>& work) {
  int controller = -1, terminal = -1;
  if (::openpty(&controller, &terminal, nullptr, nullptr, nullptr) != 0) return {};
  const FileDescriptor reader(controller);
  FileDescriptor writer(terminal);
  const char* before = std::getenv("TERM");
  const std::string saved = before == nullptr ? "" : before;
  ::setenv("TERM", "xterm", 1);
  work(writer.get());
  before == nullptr ? ::unsetenv("TERM") : ::setenv("TERM", saved.c_str(), 1);
  writer.reset();
  // The kernel may pass on what was written in pieces; the end comes after all of them.
  std::string seen, piece(1 << 16, '\0');
  while (true) {
    const ssize_t got = ::read(reader.get(), piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;  // EIO: every writer has closed
    seen.append(piece, 0, static_cast<std::size_t>(got));
  }
  return seen;
}

TEST_F(CommandProgressTest, LinesOfTheLogStandAboveTheRepaintedOne) {
  log::configure("stats", "");
  const std::string seen = seen_on_terminal([&](int fd) {
    CommandProgress line("stats", fd, clock());
    line.show("episodes", 1, 100);
    log::warn("episode 1 is odd");
  });
  const std::size_t said = seen.find("20"), begin = seen.find(" warning stats: episode 1 is odd\r\n[stats] ");
  ASSERT_NE(begin, std::string::npos) << seen;
  EXPECT_EQ(seen.at(said - 1), '\r') << "the live line was taken away first";
}

TEST_F(CommandProgressTest, OnATerminalOneLineIsRepaintedAndGoesAway) {
  const std::string seen = seen_on_terminal([&](int fd) {
    CommandProgress line("eval", fd, clock());
    for (int i = 0; i <= 100; ++i) {
      line.show("windows", i, 100);
      now_ += 20ms;
    }
  });
  EXPECT_THAT(seen, AllOf(HasSubstr("\r[eval] "), HasSubstr(" windows"), Not(HasSubstr("\n"))));
  EXPECT_LE(std::count(seen.begin(), seen.end(), '['), 21) << "ten times a second";
  EXPECT_EQ(seen.back(), '\r') << "the line is gone";
}

}  // namespace
}  // namespace troupe::app
