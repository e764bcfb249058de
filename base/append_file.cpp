#include "base/append_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/log.h"

namespace troupe::base {

namespace {

constexpr std::size_t kBufferBytes = 1 << 16;

Error system_error(const std::string& path, const char* doing) {
  const int code = errno;
  const bool full = code == ENOSPC || code == EDQUOT || code == EMFILE || code == ENFILE;
  return {full ? Errc::resource_exhausted : Errc::data_loss,
          fmt::format("{}: {}: {}", path, doing, std::generic_category().message(code))};
}

/// The length of the file up to and including its last newline.
Result<std::uint64_t> end_of_last_line(int fd, std::uint64_t size, const std::string& path) {
  char block[4096];
  for (std::uint64_t end = size; end > 0;) {
    const std::uint64_t begin = end > sizeof block ? end - sizeof block : 0;
    const auto wanted = static_cast<std::size_t>(end - begin);
    if (::pread(fd, block, wanted, static_cast<off_t>(begin)) != static_cast<ssize_t>(wanted))
      return system_error(path, "read");
    const std::size_t newline = std::string_view(block, wanted).rfind('\n');
    if (newline != std::string_view::npos) return begin + newline + 1;
    end = begin;
  }
  return std::uint64_t{0};
}

}  // namespace

Result<AppendFile> AppendFile::open(const std::string& path, Open how) {
  std::error_code ignored;  // a folder that could not be made shows in open()
  const auto parent = std::filesystem::path(path).parent_path();
  if (!parent.empty()) std::filesystem::create_directories(parent, ignored);

  const int flags = O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | (how == Open::exclusive ? O_EXCL : 0);
  const int fd = ::open(path.c_str(), flags, 0644);
  if (fd < 0 && errno == EEXIST) return Error{Errc::failed_precondition, path + " exists already"};
  if (fd < 0) return system_error(path, "open");
  AppendFile file(path, fd, 0);
  struct stat status {};
  if (::fstat(fd, &status) != 0) return system_error(path, "stat");
  file.size_ = static_cast<std::uint64_t>(status.st_size);
  if (how == Open::exclusive) return file;

  TROUPE_ASSIGN(const std::uint64_t whole, end_of_last_line(fd, file.size_, path));
  if (whole < file.size_) {
    log::warn("{}: cut off {} bytes of a line that was not finished", path, file.size_ - whole);
    if (::ftruncate(fd, static_cast<off_t>(whole)) != 0) return system_error(path, "truncate");
    file.size_ = whole;
  }
  return file;
}

AppendFile::AppendFile(AppendFile&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      size_(other.size_),
      buffer_(std::move(other.buffer_)) {}

AppendFile& AppendFile::operator=(AppendFile&& other) noexcept {
  if (this == &other) return *this;
  close();
  path_ = std::move(other.path_);
  fd_ = std::exchange(other.fd_, -1);
  size_ = other.size_;
  buffer_ = std::move(other.buffer_);
  return *this;
}

AppendFile::~AppendFile() { close(); }

void AppendFile::close() {
  if (fd_ < 0) return;
  if (auto flushed = flush(); !flushed) log::error("{}", flushed.error().message());
  ::close(fd_);
  fd_ = -1;
}

Result<void> AppendFile::append(std::string_view bytes) {
  buffer_.append(bytes);
  size_ += bytes.size();
  if (buffer_.size() < kBufferBytes) return {};
  return flush();
}

Result<void> AppendFile::flush() {
  std::size_t done = 0;
  while (done < buffer_.size()) {
    const ssize_t wrote = ::write(fd_, buffer_.data() + done, buffer_.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) {
      const Error error = system_error(path_, "write");
      buffer_.erase(0, done);  // what is left may still fit later
      return error;
    }
    done += static_cast<std::size_t>(wrote);
  }
  buffer_.clear();
  return {};
}

}  // namespace troupe::base
