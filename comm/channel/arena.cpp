#include "comm/channel/arena.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/unnamed_file.h"
#include "comm/channel/arena_desk.h"

namespace troupe::comm {
namespace {

constexpr int kWantedSeals = F_SEAL_SHRINK | F_SEAL_GROW;

std::string why(int error) { return std::strerror(error); }

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// The number after `key` in a file of /proc or /sys/fs/cgroup; an empty key reads the first word.
std::optional<std::uint64_t> number_in(const char* path, std::string_view key) {
  std::ifstream file(path);
  std::string word;
  bool is_next = key.empty();
  while (file >> word) {
    if (is_next) return number(word);
    is_next = word == key;
  }
  return std::nullopt;
}

/// Bytes that can still be taken without calling the OOM killer: of the machine and, where there is one, of the cgroup.
/// Reserving a memfd takes page after page and never stops by itself, so this must be asked first.
std::uint64_t available_bytes() {
  struct Cgroup {
    const char *limit, *used, *stat, *cache;
  };
  constexpr Cgroup kLayouts[] = {
      {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current", "/sys/fs/cgroup/memory.stat", "inactive_file"},
      {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes",
       "/sys/fs/cgroup/memory/memory.stat", "total_inactive_file"},
  };
  auto available = number_in("/proc/meminfo", "MemAvailable:").value_or(0) * 1024;
  for (const auto& [limit_file, used_file, stat_file, cache_key] : kLayouts) {
    const auto limit = number_in(limit_file, "");
    const auto used = number_in(used_file, "");
    if (!limit || !used) continue;
    // Page cache can be dropped; counting it as used would make a node that reads files look full.
    const auto taken = *used - std::min(*used, number_in(stat_file, cache_key).value_or(0));
    available = std::min(available, *limit - std::min(*limit, taken));
  }
  return available;
}

/// "arena:<bytes>:<ticket>"
struct Handle {
  std::uint64_t bytes = 0;
  std::string ticket;
};
constexpr std::string_view kPrefix = "arena:";

Result<Handle> parse_handle(const std::string& text) {
  const auto colon = text.find(':', kPrefix.size());
  const auto bytes = text.starts_with(kPrefix) && colon != std::string::npos
                         ? number(std::string_view(text).substr(kPrefix.size(), colon - kPrefix.size()))
                         : std::nullopt;
  if (!bytes) {
    return Error{Errc::invalid_argument,
                 fmt::format("\"{}\" is not an arena handle; wanted arena:<bytes>:<socket>:<secret>", text)};
  }
  return Handle{.bytes = *bytes, .ticket = text.substr(colon + 1)};
}

Result<std::byte*> map(int fd, std::size_t bytes, const std::string& what) {
  void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (data == MAP_FAILED) {
    return Error{Errc::resource_exhausted, fmt::format("{}: cannot map {} bytes: {}", what, bytes, why(errno))};
  }
  return static_cast<std::byte*>(data);
}

}  // namespace

std::size_t page_aligned(std::size_t bytes) noexcept {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

Result<Arena> Arena::create(const std::string& name, std::size_t bytes) {
  if (bytes == 0) return Error{Errc::invalid_argument, fmt::format("arena {}: 0 bytes asked for", name)};
  if (const auto available = available_bytes(); bytes > available) {
    return Error{Errc::resource_exhausted,
                 fmt::format("arena {}: {} bytes of shared memory wanted, {} available; use fewer or "
                             "smaller slots, or raise the memory limit",
                             name, bytes, available)};
  }
  FileDescriptor file(::memfd_create(("troupe:" + name).c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file.is_open())
    return Error{Errc::resource_exhausted, fmt::format("arena {}: memfd_create: {}", name, why(errno))};
  const int reserved = ::posix_fallocate(file.get(), 0, static_cast<off_t>(bytes));
  if (reserved != 0) {
    return Error{Errc::resource_exhausted,
                 fmt::format("arena {}: cannot reserve {} bytes of shared memory: {}", name, bytes, why(reserved))};
  }
  if (::fcntl(file.get(), F_ADD_SEALS, kWantedSeals | F_SEAL_SEAL) != 0) {
    return Error{Errc::resource_exhausted, fmt::format("arena {}: cannot seal the memfd: {}", name, why(errno))};
  }
  return mapped(std::move(file), bytes, "arena " + name);
}

Result<Arena> Arena::create_on_disk(const std::string& folder, std::size_t bytes) {
  if (bytes == 0) return Error{Errc::invalid_argument, fmt::format("arena in {}: 0 bytes asked for", folder)};
  TROUPE_ASSIGN(FileDescriptor file, make_unnamed_file(folder, static_cast<std::int64_t>(bytes)));
  return mapped(std::move(file), bytes, "arena in " + folder);
}

Result<Arena> Arena::mapped(FileDescriptor file, std::size_t bytes, const std::string& what) {
  Arena arena;
  TROUPE_ASSIGN(arena.data_, map(file.get(), bytes, what));
  arena.size_ = bytes;
  arena.fd_ = std::move(file);
  return arena;
}

Result<void> Arena::publish(const std::string& folder) {
  if (!handle_.empty()) return {};
  TROUPE_CHECK(fd_.is_open(), "only an arena's owner publishes it");
  if (folder.find(';') != std::string::npos)
    return Error{Errc::invalid_argument, fmt::format("{}: a folder of sockets has no ; in its path", folder)};
  auto deposit = ArenaDesk::leave(folder, fd_.get());
  if (!deposit) return deposit.error().with("an arena for other processes");
  handle_ = fmt::format("{}{}:{}", kPrefix, size_, deposit->ticket);
  line_ = std::move(deposit->line);
  return {};
}

Result<Arena> Arena::attach(const std::string& handle, std::size_t expected_bytes, ArenaPlace farthest) {
  TROUPE_ASSIGN(const Handle parsed, parse_handle(handle));
  if (parsed.bytes != expected_bytes || expected_bytes == 0) {
    return Error{Errc::invalid_argument,
                 fmt::format("arena {} holds {} bytes; the plan wants {}", handle, parsed.bytes, expected_bytes)};
  }
  TROUPE_ASSIGN(FileDescriptor file, ArenaDesk::fetch(parsed.ticket));
  TROUPE_ASSIGN(Arena arena, map_foreign(std::move(file), expected_bytes, farthest, "arena " + handle));
  arena.handle_ = handle;
  return arena;
}

Result<Arena> Arena::attach_to(std::int64_t pid, std::int64_t fd, std::size_t expected_bytes) {
  const std::string path = fmt::format("/proc/{}/fd/{}", pid, fd);
  FileDescriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file.is_open()) return Error{Errc::not_found, fmt::format("{} cannot be opened: {}", path, why(errno))};
  return map_foreign(std::move(file), expected_bytes, ArenaPlace::memory, path);
}

Result<Arena> Arena::map_foreign(FileDescriptor file, std::size_t expected_bytes, ArenaPlace farthest,
                                 const std::string& what) {
  struct stat status {};
  if (::fstat(file.get(), &status) != 0)
    return Error{Errc::failed_precondition, fmt::format("{}: fstat: {}", what, why(errno))};
  // Another process made the file and could shrink it: reading behind the new end raises SIGBUS.
  const int seals = ::fcntl(file.get(), F_GET_SEALS);
  const bool is_sealed = seals >= 0 && (seals & kWantedSeals) == kWantedSeals;
  const bool is_unnamed = S_ISREG(status.st_mode) && status.st_nlink == 0 && status.st_uid == ::geteuid();
  if (!is_sealed && (farthest == ArenaPlace::memory || seals >= 0 || !is_unnamed)) {
    return Error{Errc::failed_precondition,
                 fmt::format("{}: the descriptor is not a sealed memfd{}", what,
                             farthest == ArenaPlace::disk ? ", nor a file without a name" : "")};
  }
  if (static_cast<std::uint64_t>(status.st_size) != expected_bytes) {
    return Error{Errc::invalid_argument,
                 fmt::format("{}: the file holds {} bytes; the plan wants {}", what, status.st_size, expected_bytes)};
  }
  Arena arena;
  TROUPE_ASSIGN(arena.data_, map(file.get(), expected_bytes, what));
  arena.size_ = expected_bytes;
  return arena;
}

Arena::Arena(Arena&& other) noexcept
    : fd_(std::move(other.fd_)),
      line_(std::move(other.line_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      handle_(std::move(other.handle_)) {}

Arena& Arena::operator=(Arena&& other) noexcept {
  if (this == &other) return *this;
  release();
  fd_ = std::move(other.fd_);
  line_ = std::move(other.line_);
  data_ = std::exchange(other.data_, nullptr);
  size_ = std::exchange(other.size_, 0);
  handle_ = std::move(other.handle_);
  return *this;
}

Arena::~Arena() { release(); }

void Arena::release() noexcept {
  if (data_ != nullptr) ::munmap(data_, size_);
  line_.reset();
  fd_.reset();
  data_ = nullptr;
}

}  // namespace troupe::comm
