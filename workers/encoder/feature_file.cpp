#include "workers/encoder/feature_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/file_io.h"

namespace troupe::workers {

Result<std::shared_ptr<FeatureFile>> FeatureFile::open_with(const std::string& path, int flags) {
  TROUPE_ASSIGN(FileDescriptor fd, open_file(path, flags));
  return std::shared_ptr<FeatureFile>(new FeatureFile(path, std::move(fd)));
}

Result<std::shared_ptr<FeatureFile>> FeatureFile::open(const std::string& path) { return open_with(path, O_RDONLY); }
Result<std::shared_ptr<FeatureFile>> FeatureFile::create(const std::string& path) {
  return open_with(path, O_RDWR | O_CREAT | O_EXCL);
}
Result<std::shared_ptr<FeatureFile>> FeatureFile::open_writable(const std::string& path) {
  return open_with(path, O_RDWR);
}

Result<std::uint64_t> FeatureFile::size() const { return file_size(fd_.get(), path_); }

Result<std::size_t> FeatureFile::read_at(std::span<std::byte> out, std::uint64_t offset) const {
  return base::read_at(fd_.get(), out, offset, path_);
}

Result<void> FeatureFile::write_at(std::span<const std::byte> bytes, std::uint64_t offset) {
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return file_error(path_, "cannot be written", errno);
    bytes = bytes.subspan(static_cast<std::size_t>(n));
    offset += static_cast<std::uint64_t>(n);
  }
  return {};
}

Result<void> FeatureFile::truncate(std::uint64_t size) {
  if (::ftruncate(fd_.get(), static_cast<off_t>(size)) != 0) return file_error(path_, "cannot be cut", errno);
  return {};
}

Result<void> FeatureFile::sync() {
  if (::fdatasync(fd_.get()) != 0) return file_error(path_, "cannot be synced", errno);
  return {};
}

bool FeatureFile::try_lock() { return ::flock(fd_.get(), LOCK_EX | LOCK_NB) == 0; }

Result<std::shared_ptr<FeatureFile>> OpenFeatureFiles::get(const std::string& path) {
  const std::lock_guard lock(mutex_);
  const auto it = std::find_if(files_.begin(), files_.end(), [&](const auto& file) { return file->path() == path; });
  if (it != files_.end()) {
    files_.splice(files_.begin(), files_, it);
    return files_.front();
  }
  TROUPE_ASSIGN(auto file, FeatureFile::open(path));
  files_.push_front(file);
  if (files_.size() > most_) files_.pop_back();
  return file;
}

void OpenFeatureFiles::forget(const std::string& path) {
  const std::lock_guard lock(mutex_);
  files_.remove_if([&](const auto& file) { return file->path() == path; });
}

}  // namespace troupe::workers
