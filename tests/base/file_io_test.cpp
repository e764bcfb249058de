#include "base/file_io.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/append_file.h"
#include "base/mapped_file.h"
#include "tests/support/scratch_folder.h"

namespace troupe::base {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class FileIoTest : public ::testing::Test {
 protected:
  std::string put(const std::string& name, const std::string& bytes) const {
    std::ofstream(scratch_ / name, std::ios::binary) << bytes;
    return scratch_ / name;
  }
  const ScratchFolder scratch_;
};

TEST_F(FileIoTest, AnErrnoHasOneCodeWhereverItComesFrom) {
  EXPECT_EQ(errc_of_errno(EIO), Errc::unavailable);
  EXPECT_EQ(errc_of_errno(ENOENT), Errc::not_found);
  EXPECT_EQ(errc_of_errno(EDQUOT), Errc::resource_exhausted);
  EXPECT_EQ(errc_of_errno(EMFILE), Errc::resource_exhausted);
  EXPECT_EQ(errc_of_errno(EACCES), Errc::failed_precondition);
  EXPECT_EQ(errc_of_errno(EAGAIN), Errc::unavailable);
  EXPECT_EQ(file_error("a/b", "cannot be read", EIO).message(), "a/b: cannot be read: Input/output error");
  const std::string absent = scratch_ / "absent";
  EXPECT_EQ(read_file(absent).error().code(), Errc::not_found);
  EXPECT_EQ(MappedFile::open(absent, 0).error().code(), Errc::not_found);
  put("file", "x");
  EXPECT_EQ(AppendFile::open(scratch_ / "file/a", AppendFile::Open::resume).error().code(), Errc::not_found);
  EXPECT_EQ(AppendFile::open(scratch_ / "file", AppendFile::Open::exclusive).error().code(), Errc::failed_precondition);
}

TEST_F(FileIoTest, AFileIsReadWhole) {
  const std::string bytes = std::string(100'000, 'x') + std::string("\0\n", 2);
  EXPECT_EQ(read_file(put("a", bytes)).value(), bytes);
  EXPECT_EQ(read_file(put("empty", "")).value(), "");
  EXPECT_THAT(read_file("/proc/self/status").value(), HasSubstr("Name:"));  // its size is said to be 0
}

TEST_F(FileIoTest, APipeIsReadToItsEnd) {
  const std::string path = scratch_ / "pipe", bytes(200'000, 'p');
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  std::thread writer([&] { std::ofstream(path, std::ios::binary) << bytes; });
  const auto text = read_file(path);
  writer.join();
  EXPECT_EQ(text.value(), bytes);
}

TEST_F(FileIoTest, AFileBeyondTheLimitIsRefused) {
  const std::string path = put("a", "12345");
  EXPECT_EQ(read_file(path, 5).value(), "12345");
  const auto large = read_file(path, 4);
  EXPECT_EQ(large.error().code(), Errc::data_loss);
  EXPECT_EQ(large.error().message(), path + ": larger than the 4 bytes allowed");
}

TEST_F(FileIoTest, AFolderIsNoFile) {
  EXPECT_EQ(read_file(scratch_.path()).error().message(), scratch_.path() + ": cannot be read: Is a directory");
}

TEST_F(FileIoTest, AReadPastTheEndGivesWhatIsThere) {
  const std::string path = put("a", "0123456789");
  const FileDescriptor fd = open_file(path, O_RDONLY).value();
  std::array<std::byte, 8> out{};
  EXPECT_EQ(file_size(fd.get(), path).value(), 10U);
  EXPECT_EQ(read_at(fd.get(), out, 0, path).value(), 8U);
  EXPECT_EQ(read_at(fd.get(), out, 7, path).value(), 3U);
  EXPECT_EQ(out[0], std::byte{'7'});
  EXPECT_EQ(read_at(fd.get(), out, 10, path).value(), 0U);
}

TEST_F(FileIoTest, AnOpenFileIsNotInheritedAndHasTheModeAskedFor) {
  const std::string path = scratch_ / "new";
  const FileDescriptor fd = open_file(path, O_WRONLY | O_CREAT, 0600).value();
  EXPECT_NE(::fcntl(fd.get(), F_GETFD) & FD_CLOEXEC, 0);
  EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(open_file(path, O_WRONLY | O_CREAT | O_EXCL).error().message(), path + ": cannot be created: File exists");
}

TEST_F(FileIoTest, FoldersAreMadeWithThoseAboveThem) {
  ASSERT_TRUE(make_folders(scratch_ / "a/b/c"));
  ASSERT_TRUE(make_folders(scratch_ / "a/b"));
  EXPECT_TRUE(fs::is_directory(scratch_ / "a/b/c"));
  put("file", "x");
  EXPECT_THAT(make_folders(scratch_ / "file/d").error().message(), HasSubstr(scratch_ / "file/d"));
}

TEST_F(FileIoTest, TheLastLineEndsAtItsNewline) {
  const auto end_in = [&](const std::string& text) {
    const std::string path = put("lines", text);
    return end_of_last_line(open_file(path, O_RDONLY)->get(), path).value();
  };
  EXPECT_EQ(end_in(""), 0U);
  EXPECT_EQ(end_in("torn"), 0U);
  EXPECT_EQ(end_in("a\nb\n"), 4U);
  EXPECT_EQ(end_in("a\n" + std::string(10'000, 't')), 2U);  // further back than one block
  EXPECT_EQ(end_in(std::string(4095, 'x') + "\n" + std::string(4096, 't')), 4096U);
}

}  // namespace
}  // namespace troupe::base
