// The C library's calls that change files, defined by the test program itself: its own code and the shared libraries it
// loads (libstdc++, SQLite) reach these. Each does what it is for by a system call, and writes down what it changed
// where a CrashFileSystem is active. Syncs of this program do nothing: its files need not outlive it.
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <mutex>
#include <string>
#include <utility>

#include "tests/crash/call_record.h"

// Declared by the library with attributes that a definition need not repeat.
#pragma GCC diagnostic ignored "-Wmissing-declarations"
#pragma GCC diagnostic ignored "-Wredundant-decls"

namespace troupe::testing {
namespace {

using Record = CrashFileSystem::Record;
using Kind = RecordedCall::Kind;

int stat_at(int folder, const char* path, struct stat* facts, int flags) {
  return static_cast<int>(::syscall(SYS_newfstatat, folder, path, facts, flags));
}

/// The record with its lock held while a call is made, so that the order of the record is that of the calls.
class Recording {
 public:
  Recording() : record_(Record::active()) {
    if (record_ != nullptr) lock_ = std::unique_lock(record_->mutex);
  }
  explicit operator bool() const { return record_ != nullptr; }
  Record* operator->() const { return record_; }

  std::size_t node_of(int fd) const {
    struct stat facts {};
    return record_ != nullptr && stat_at(fd, "", &facts, AT_EMPTY_PATH) == 0 ? record_->find(facts.st_dev, facts.st_ino)
                                                                             : 0;
  }
  void note(RecordedCall call) const { record_->calls.push_back(std::move(call)); }

 private:
  Record* const record_;
  std::unique_lock<std::recursive_mutex> lock_;
};

/// A name and the folder that has it, 0 where that is not recorded.
struct Place {
  Place(const Recording& recording, int folder, const char* path) {
    if (!recording) return;
    const std::string whole(path);
    const std::size_t end = whole.find_last_not_of('/') + 1;
    const std::size_t slash = whole.rfind('/', end == 0 ? 0 : end - 1);
    name = slash == std::string::npos ? whole.substr(0, end) : whole.substr(slash + 1, end - slash - 1);
    const std::string parent = slash == std::string::npos ? "." : slash == 0 ? "/" : whole.substr(0, slash);
    struct stat facts {};
    if (stat_at(folder, parent.c_str(), &facts, 0) == 0) node = recording->find(facts.st_dev, facts.st_ino);
    exists = stat_at(folder, path, &facts, AT_SYMLINK_NOFOLLOW) == 0;
  }
  std::size_t node = 0;
  std::string name;
  bool exists = false;
};

void note_made(const Recording& recording, const Place& place, int folder, const char* path, Record::Node made) {
  struct stat facts {};
  if (place.node == 0 || stat_at(folder, path, &facts, AT_SYMLINK_NOFOLLOW) != 0) return;
  const std::size_t node = recording->add(facts.st_dev, facts.st_ino, std::move(made));
  recording.note({.kind = Kind::make, .node = place.node, .name = place.name, .other = node});
}

int do_open(int folder, const char* path, int flags, mode_t mode) {
  const Recording recording;
  const Place place(recording, folder, path);
  const int fd = static_cast<int>(::syscall(SYS_openat, folder, path, flags, mode));
  if (!recording || fd < 0 || place.node == 0) return fd;
  if ((flags & O_CREAT) != 0 && !place.exists) {
    note_made(recording, place, folder, path, {});
  } else if ((flags & O_TRUNC) != 0) {
    if (const std::size_t node = recording.node_of(fd)) recording.note({.kind = Kind::truncate, .node = node});
  }
  return fd;
}

mode_t mode_of(int flags, va_list arguments) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
}

void note_write(const Recording& recording, int fd, std::uint64_t offset, const void* bytes, ssize_t count) {
  const std::size_t node = count > 0 ? recording.node_of(fd) : 0;
  if (node == 0) return;
  recording.note({.kind = Kind::write,
                  .node = node,
                  .offset = offset,
                  .bytes = std::string(static_cast<const char*>(bytes), static_cast<std::size_t>(count))});
}

ssize_t do_write(int fd, const void* bytes, std::size_t count) {
  const Recording recording;
  const ssize_t wrote = ::syscall(SYS_write, fd, bytes, count);
  if (!recording || wrote <= 0) return wrote;
  const off_t end = ::syscall(SYS_lseek, fd, 0, SEEK_CUR);  // behind what was written, with O_APPEND too
  if (end >= wrote) note_write(recording, fd, static_cast<std::uint64_t>(end - wrote), bytes, wrote);
  return wrote;
}

ssize_t do_pwrite(int fd, const void* bytes, std::size_t count, off_t offset) {
  const Recording recording;
  const ssize_t wrote = ::syscall(SYS_pwrite64, fd, bytes, count, offset);
  if (recording) note_write(recording, fd, static_cast<std::uint64_t>(offset), bytes, wrote);
  return wrote;
}

int do_truncate(int fd, off_t length) {
  const Recording recording;
  const int result = static_cast<int>(::syscall(SYS_ftruncate, fd, length));
  if (!recording || result != 0) return result;
  if (const std::size_t node = recording.node_of(fd))
    recording.note({.kind = Kind::truncate, .node = node, .offset = static_cast<std::uint64_t>(length)});
  return result;
}

int do_sync(int fd) {
  const Recording recording;
  if (const std::size_t node = recording ? recording.node_of(fd) : 0)
    recording.note({.kind = Kind::sync, .node = node});
  return 0;
}

int do_rename(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) {
  const Recording recording;
  const Place source(recording, from_folder, from), target(recording, to_folder, to);
  const int result = static_cast<int>(::syscall(SYS_renameat2, from_folder, from, to_folder, to, flags));
  if (recording && result == 0 && source.node != 0 && target.node != 0) {
    recording.note({.kind = (flags & RENAME_EXCHANGE) != 0 ? Kind::exchange : Kind::rename,
                    .node = source.node,
                    .name = source.name,
                    .other = target.node,
                    .new_name = target.name});
  }
  return result;
}

int do_unlink(int folder, const char* path, int flags) {
  const Recording recording;
  const Place place(recording, folder, path);
  const int result = static_cast<int>(::syscall(SYS_unlinkat, folder, path, flags));
  if (recording && result == 0 && place.node != 0)
    recording.note({.kind = Kind::remove, .node = place.node, .name = place.name});
  return result;
}

int do_mkdir(int folder, const char* path, mode_t mode) {
  const Recording recording;
  const Place place(recording, folder, path);
  const int result = static_cast<int>(::syscall(SYS_mkdirat, folder, path, mode));
  if (recording && result == 0) note_made(recording, place, folder, path, {.type = Record::Type::folder});
  return result;
}

int do_symlink(const char* target, int folder, const char* path) {
  const Recording recording;
  const Place place(recording, folder, path);
  const int result = static_cast<int>(::syscall(SYS_symlinkat, target, folder, path));
  if (recording && result == 0)
    note_made(recording, place, folder, path, {.type = Record::Type::link, .target = target});
  return result;
}

/// Streams of libstdc++ open their files by it.
FILE* do_fopen(const char* path, const char* mode) {
  using Function = FILE* (*)(const char*, const char*);
  static const auto real = reinterpret_cast<Function>(::dlsym(RTLD_NEXT, "fopen64"));
  const Recording recording;
  const Place place(recording, AT_FDCWD, path);
  FILE* const file = real(path, mode);
  if (!recording || file == nullptr || place.node == 0) return file;
  if (!place.exists) {
    note_made(recording, place, AT_FDCWD, path, {});
  } else if (mode[0] == 'w') {
    if (const std::size_t node = recording.node_of(::fileno(file)))
      recording.note({.kind = Kind::truncate, .node = node});
  }
  return file;
}

}  // namespace
}  // namespace troupe::testing

using namespace troupe::testing;

extern "C" {

FILE* fopen(const char* path, const char* mode) { return do_fopen(path, mode); }
FILE* fopen64(const char* path, const char* mode) { return do_fopen(path, mode); }

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return do_open(AT_FDCWD, path, flags, mode);
}
int openat(int folder, const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return do_open(folder, path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return do_open(AT_FDCWD, path, flags, mode);
}
int openat64(int folder, const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return do_open(folder, path, flags, mode);
}
ssize_t write(int fd, const void* bytes, size_t count) { return do_write(fd, bytes, count); }
ssize_t pwrite(int fd, const void* bytes, size_t count, off_t offset) { return do_pwrite(fd, bytes, count, offset); }
ssize_t pwrite64(int fd, const void* bytes, size_t count, off64_t offset) {
  return do_pwrite(fd, bytes, count, offset);
}
ssize_t writev(int fd, const struct iovec* parts, int count) {
  ssize_t total = 0;
  for (int i = 0; i < count; ++i) {
    const ssize_t wrote = do_write(fd, parts[i].iov_base, parts[i].iov_len);
    if (wrote < 0) return total > 0 ? total : wrote;
    total += wrote;
    if (static_cast<size_t>(wrote) < parts[i].iov_len) break;
  }
  return total;
}
int ftruncate(int fd, off_t length) noexcept { return do_truncate(fd, length); }
int ftruncate64(int fd, off64_t length) noexcept { return do_truncate(fd, length); }
int fsync(int fd) { return do_sync(fd); }
int fdatasync(int fd) { return do_sync(fd); }
int rename(const char* from, const char* to) noexcept { return do_rename(AT_FDCWD, from, AT_FDCWD, to, 0); }
int renameat(int from_folder, const char* from, int to_folder, const char* to) noexcept {
  return do_rename(from_folder, from, to_folder, to, 0);
}
int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) noexcept {
  return do_rename(from_folder, from, to_folder, to, flags);
}
int unlink(const char* path) noexcept { return do_unlink(AT_FDCWD, path, 0); }
int unlinkat(int folder, const char* path, int flags) noexcept { return do_unlink(folder, path, flags); }
int rmdir(const char* path) noexcept { return do_unlink(AT_FDCWD, path, AT_REMOVEDIR); }
int remove(const char* path) noexcept {
  const int result = do_unlink(AT_FDCWD, path, 0);
  return result != 0 && errno == EISDIR ? do_unlink(AT_FDCWD, path, AT_REMOVEDIR) : result;
}
int mkdir(const char* path, mode_t mode) noexcept { return do_mkdir(AT_FDCWD, path, mode); }
int mkdirat(int folder, const char* path, mode_t mode) noexcept { return do_mkdir(folder, path, mode); }
int symlink(const char* target, const char* path) noexcept { return do_symlink(target, AT_FDCWD, path); }
int symlinkat(const char* target, int folder, const char* path) noexcept { return do_symlink(target, folder, path); }

}  // extern "C"
