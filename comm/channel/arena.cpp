#include "comm/channel/arena.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

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

/// When the process started, in clock ticks after boot: with the pid, this names one process for good.
std::optional<std::uint64_t> start_time_of(std::uint64_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  // Field 2 is the command in parentheses and may hold spaces and parentheses: count from its last one. Field 22 is
  // wanted.
  const auto paren = line.rfind(')');
  if (paren == std::string::npos) return std::nullopt;
  std::string_view rest = std::string_view(line).substr(paren + 1);
  for (int field = 3;; ++field) {
    const auto begin = rest.find_first_not_of(' ');
    if (begin == std::string_view::npos) return std::nullopt;
    const auto end = std::min(rest.find(' ', begin), rest.size());
    if (field == 22) return number(rest.substr(begin, end - begin));
    rest.remove_prefix(end);
  }
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

struct Handle {
  std::uint64_t pid = 0, fd = 0, bytes = 0, start_time = 0;
};

Result<Handle> parse_handle(const std::string& text) {
  constexpr std::string_view kPrefix = "memfd:";
  const Error malformed{
      Errc::invalid_argument,
      fmt::format("\"{}\" is not an arena handle; wanted memfd:<pid>:<fd>:<bytes>:<start time>", text)};
  if (!text.starts_with(kPrefix)) return malformed;
  std::array<std::uint64_t, 4> values{};
  std::string_view rest = std::string_view(text).substr(kPrefix.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const bool is_last = i + 1 == values.size();
    const auto colon = is_last ? rest.size() : rest.find(':');
    if (colon == std::string_view::npos) return malformed;
    const auto value = number(rest.substr(0, colon));
    if (!value) return malformed;
    values[i] = *value;
    rest.remove_prefix(is_last ? colon : colon + 1);
  }
  return Handle{.pid = values[0], .fd = values[1], .bytes = values[2], .start_time = values[3]};
}

Result<void> check_alive(const Handle& handle, const std::string& text) {
  const auto started = start_time_of(handle.pid);
  if (!started) {
    return Error{Errc::not_found,
                 fmt::format("the owner of arena {} is gone: no process {} is visible here", text, handle.pid)};
  }
  if (*started != handle.start_time) {
    return Error{Errc::not_found, fmt::format("the owner of arena {} is gone: process {} started at tick {}, wanted {}",
                                              text, handle.pid, *started, handle.start_time)};
  }
  return {};
}

Result<std::byte*> map(int fd, std::size_t bytes, const std::string& what) {
  void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (data == MAP_FAILED) {
    return Error{Errc::resource_exhausted, fmt::format("{}: cannot map {} bytes: {}", what, bytes, why(errno))};
  }
  return static_cast<std::byte*>(data);
}

Result<FileDescriptor> open_memfd(const Handle& handle, const std::string& text) {
  const auto path = fmt::format("/proc/{}/fd/{}", handle.pid, handle.fd);
  FileDescriptor fd(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
  if (fd.is_open()) return fd;
  const int error = errno;
  if (error == EACCES || error == EPERM) {
    return Error{
        Errc::failed_precondition,
        fmt::format("arena {}: {} refuses access ({}); run both processes as one user in one container with the owner "
                    "dumpable, or let this pair use the zmq transport",
                    text, path, why(error))};
  }
  if (error == ENOENT)
    return Error{Errc::not_found, fmt::format("arena {}: {} does not exist; the owner closed it", text, path)};
  return Error{Errc::failed_precondition, fmt::format("arena {}: cannot open {}: {}", text, path, why(error))};
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
  const auto pid = static_cast<std::uint64_t>(::getpid());
  const auto started = start_time_of(pid);
  if (!started)
    return Error{Errc::failed_precondition, fmt::format("arena {}: /proc/{}/stat is not readable", name, pid)};

  Arena arena;
  TROUPE_ASSIGN(arena.data_, map(file.get(), bytes, "arena " + name));
  arena.size_ = bytes;
  arena.handle_ = fmt::format("memfd:{}:{}:{}:{}", pid, file.get(), bytes, *started);
  arena.fd_ = std::move(file);
  return arena;
}

Result<Arena> Arena::attach(const std::string& handle, std::size_t expected_bytes) {
  TROUPE_ASSIGN(const Handle parsed, parse_handle(handle));
  if (parsed.bytes != expected_bytes || expected_bytes == 0) {
    return Error{Errc::invalid_argument,
                 fmt::format("arena {} holds {} bytes; the plan wants {}", handle, parsed.bytes, expected_bytes)};
  }
  // Before and after opening, because the pid can pass to another process in between.
  TROUPE_TRY(check_alive(parsed, handle));
  TROUPE_ASSIGN(const FileDescriptor file, open_memfd(parsed, handle));
  TROUPE_TRY(check_alive(parsed, handle));

  // The file could be anything that the owner opened since: without the seal a reader can die of SIGBUS.
  const int seals = ::fcntl(file.get(), F_GET_SEALS);
  if (seals < 0 || (seals & kWantedSeals) != kWantedSeals) {
    return Error{Errc::failed_precondition, fmt::format("arena {}: descriptor {} of process {} is not a sealed memfd",
                                                        handle, parsed.fd, parsed.pid)};
  }
  struct stat status {};
  if (::fstat(file.get(), &status) != 0 || static_cast<std::uint64_t>(status.st_size) != expected_bytes) {
    return Error{Errc::invalid_argument, fmt::format("arena {}: the file holds {} bytes; the plan wants {}", handle,
                                                     status.st_size, expected_bytes)};
  }
  Arena arena;
  TROUPE_ASSIGN(arena.data_, map(file.get(), expected_bytes, "arena " + handle));
  arena.size_ = expected_bytes;
  arena.handle_ = handle;
  return arena;
}

Arena::Arena(Arena&& other) noexcept
    : fd_(std::move(other.fd_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      handle_(std::move(other.handle_)) {}

Arena& Arena::operator=(Arena&& other) noexcept {
  if (this == &other) return *this;
  release();
  fd_ = std::move(other.fd_);
  data_ = std::exchange(other.data_, nullptr);
  size_ = std::exchange(other.size_, 0);
  handle_ = std::move(other.handle_);
  return *this;
}

Arena::~Arena() { release(); }

void Arena::release() noexcept {
  if (data_ != nullptr) ::munmap(data_, size_);
  fd_.reset();
  data_ = nullptr;
}

}  // namespace troupe::comm
