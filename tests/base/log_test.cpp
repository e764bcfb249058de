#include "base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/file_io.h"
#include "tests/support/scratch_folder.h"

namespace troupe::base {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

struct LogTest : ::testing::Test {
  void SetUp() override { log::configure("test", file); }
  void TearDown() override { log::configure("test", ""); }
  std::vector<std::string> lines() const {
    log::flush();
    std::istringstream text(read_file(file).value());
    std::vector<std::string> found;
    for (std::string line; std::getline(text, line);) found.push_back(line);
    return found;
  }

  const testing::ScratchFolder scratch;
  const std::string file = scratch / "test.log";
};

TEST_F(LogTest, ALineIsOneLineWhateverItsTextHolds) {
  log::info("a\nb\x1b[2J\tc\x7f {} \xc2\x9b \xff", "\u00e9\u4e16");
  const auto found = lines();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(found[0], EndsWith("info test: a\\nb\\x1b[2J\\tc\\x7f \u00e9\u4e16 \\x9b \\xff"));
}

TEST_F(LogTest, ALongLineIsCutAndSaysSo) {
  log::info("{}", std::string(100'000, 'x'));
  log::info("{}", std::string(100'000, '\n'));
  for (const std::string& line : lines()) {
    EXPECT_LE(line.size() + 1, log::kLineBytes);
    EXPECT_THAT(line, EndsWith(" more bytes)"));
  }
}

TEST_F(LogTest, AFloodIsCutDownAndWhatIsMissingIsCounted) {
  constexpr int kLines = 20'000;
  for (int i = 0; i < kLines; ++i) log::info("flood {}", i);
  int written = 0, missing = 0;
  for (const std::string& line : lines()) {
    const std::size_t at = line.find(" lines were left out");
    if (at == std::string::npos) {
      ++written;
    } else {
      missing += std::stoi(line.substr(line.rfind(' ', at - 1)));
    }
  }
  EXPECT_EQ(written + missing, kLines);
  EXPECT_GT(missing, 0);
}

TEST_F(LogTest, LinesAreWrittenOnAThreadOfTheLogsOwn) {
  log::configure("test", "");
  std::mutex mutex;
  std::vector<std::thread::id> threads;
  std::vector<std::string> written;
  log::divert_stderr([&](const std::string& line) {
    const std::lock_guard lock(mutex);
    threads.push_back(std::this_thread::get_id());
    written.push_back(line);
  });
  // held by whoever logs: a writer on its thread would wait for itself
  std::unique_lock held(mutex);
  log::warn("slow terminal");
  held.unlock();
  log::divert_stderr({});
  ASSERT_EQ(threads.size(), 1u) << "what was logged before goes to the writer of before";
  EXPECT_NE(threads[0], std::this_thread::get_id());
  EXPECT_THAT(written[0], HasSubstr("slow terminal"));
}

}  // namespace
}  // namespace troupe::base
