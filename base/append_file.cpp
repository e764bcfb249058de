#include "base/append_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/file_io.h"
#include "base/log.h"

namespace troupe::base {

namespace {
constexpr std::size_t kBufferBytes = 1 << 16;
}  // namespace

Result<std::uint64_t> end_of_last_line(int fd, const std::string& path) {
  char block[4096];
  TROUPE_ASSIGN(std::uint64_t end, file_size(fd, path));
  while (end > 0) {
    const std::uint64_t begin = end - std::min<std::uint64_t>(end, sizeof block);
    const auto wanted = static_cast<std::size_t>(end - begin);
    TROUPE_ASSIGN(const std::size_t got, read_at(fd, std::as_writable_bytes(std::span(block, wanted)), begin, path));
    if (got != wanted) return Error{Errc::data_loss, path + ": became shorter while it was read"};
    const std::size_t newline = std::string_view(block, wanted).rfind('\n');
    if (newline != std::string_view::npos) return begin + newline + 1;
    end = begin;
  }
  return std::uint64_t{0};
}

Result<AppendFile> AppendFile::open(const std::string& path, Open how) {
  std::error_code ignored;  // a folder that could not be made shows in open()
  const auto parent = std::filesystem::path(path).parent_path();
  if (!parent.empty()) std::filesystem::create_directories(parent, ignored);

  const int flags = O_RDWR | O_CREAT | O_APPEND | (how == Open::exclusive ? O_EXCL : 0);
  TROUPE_ASSIGN(FileDescriptor fd, open_file(path, flags));
  TROUPE_ASSIGN(std::uint64_t size, file_size(fd.get(), path));
  if (how == Open::resume) {
    TROUPE_ASSIGN(const std::uint64_t whole, end_of_last_line(fd.get(), path));
    if (whole < size) {
      log::warn("{}: cut off {} bytes of a line that was not finished", path, size - whole);
      if (::ftruncate(fd.get(), static_cast<off_t>(whole)) != 0) return file_error(path, "cannot be cut", errno);
      size = whole;
    }
  }
  return AppendFile(path, std::move(fd), size);
}

AppendFile& AppendFile::operator=(AppendFile&& other) noexcept {
  if (this == &other) return *this;
  close();
  path_ = std::move(other.path_);
  fd_ = std::move(other.fd_);
  size_ = other.size_;
  buffer_ = std::move(other.buffer_);
  return *this;
}

AppendFile::~AppendFile() { close(); }

void AppendFile::close() {
  if (!fd_.is_open()) return;
  if (auto flushed = flush(); !flushed) log::error("{}", flushed.error().message());
  fd_.reset();
}

void AppendFile::abandon() {
  buffer_.clear();
  fd_.reset();
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
    const ssize_t wrote = ::write(fd_.get(), buffer_.data() + done, buffer_.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) {
      const Error error = file_error(path_, "cannot be written", errno);
      buffer_.erase(0, done);  // what is left may still fit later
      return error;
    }
    done += static_cast<std::size_t>(wrote);
  }
  buffer_.clear();
  return {};
}

}  // namespace troupe::base
