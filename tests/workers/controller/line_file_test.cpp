#include "workers/controller/line_file.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file_io.h"
#include "tests/support/scratch_folder.h"

namespace troupe::workers {
namespace {

struct LineFileTest : ::testing::Test {
  void write(LineFile& file, const std::string& line) const {
    file.write(line, [](std::int64_t n) { return fmt::format("{} lost", n); });
  }
  const testing::ScratchFolder scratch;
  const std::string path = scratch / "events.jsonl";
};

TEST_F(LineFileTest, AFullDiskCostsTheLinesOfItsTimeAndTheLossIsTold) {
  LineFile file(path);
  write(file, "one");
  // every write to it fails with ENOSPC
  std::filesystem::rename(path, scratch / "kept");
  std::filesystem::create_symlink("/dev/full", path);
  LineFile full(path);
  for (const char* line : {"two", "three", "four"}) write(full, line);
  std::filesystem::remove(path);
  std::filesystem::rename(scratch / "kept", path);
  write(full, "five");
  write(full, "six");
  EXPECT_EQ(read_file(path).value(), "one\n3 lost\nfive\nsix\n");
}

TEST_F(LineFileTest, HalfALineIsCutOffWhenTheFileIsOpenedAnew) {
  {
    LineFile file(path);
    write(file, "one");
  }
  std::filesystem::resize_file(path, 2);
  LineFile file(path);
  write(file, "two");
  EXPECT_EQ(read_file(path).value(), "two\n");
}

TEST_F(LineFileTest, NothingIsMadeBeforeTheFirstLine) {
  const LineFile file(path);
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace troupe::workers
