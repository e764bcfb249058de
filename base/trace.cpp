#include "base/trace.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>

#include "base/file_descriptor.h"
#include "base/file_io.h"

namespace troupe::base {

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kSwitchMagic = 0x7377697463683031, kSpansMagic = 0x7370616e73303031;
/// 20 MiB of address space a process; only what is written takes memory and disk.
constexpr std::uint64_t kMostSpans = 1 << 18;

struct Switch {
  std::uint64_t magic;
  std::int64_t first, last;
  std::atomic<std::uint32_t> on;
};

struct Slot {
  std::int64_t begin;
  std::atomic<std::int64_t> end;  ///< 0: not yet written whole
  std::int32_t thread;
  std::uint8_t kind;
  char thread_name[16];
  char name[48];
};

struct SpansHeader {
  std::uint64_t magic;
  std::atomic<std::uint64_t> count;
  char process[112];
};

static_assert(std::atomic<std::uint32_t>::is_always_lock_free && std::atomic<std::uint64_t>::is_always_lock_free);

// Of this process, set by start_tracing and kept mapped until it ends.
Switch* the_switch = nullptr;
SpansHeader* the_header = nullptr;
Slot* the_slots = nullptr;

std::string switch_of(const std::string& folder) { return folder + "/switch"; }

template <class T>
void copy_text(T& to, std::string_view from) {
  const std::size_t size = std::min(from.size(), sizeof(to) - 1);
  std::memcpy(to, from.data(), size);
  to[size] = 0;
}

Result<void*> map_shared(const std::string& path, std::size_t bytes, bool make) {
  TROUPE_ASSIGN(const FileDescriptor fd, open_file(path, make ? O_RDWR | O_CREAT | O_TRUNC : O_RDWR));
  if (make && ::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0)
    return file_error(path, "cannot be made so large", errno);
  void* map = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (map == MAP_FAILED) return file_error(path, "cannot be mapped", errno);
  return map;
}

/// Files of recorded spans, sorted.
std::vector<std::string> spans_in(const std::string& folder, std::error_code& code) {
  std::vector<std::string> paths;
  for (const auto& entry : fs::directory_iterator(folder, code)) {
    if (entry.path().extension() == ".spans") paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

/// This thread's name and number, asked for once.
struct ThisThread {
  std::int32_t id = static_cast<std::int32_t>(::gettid());
  char name[16] = {};
  ThisThread() { ::pthread_getname_np(::pthread_self(), name, sizeof name); }
};

}  // namespace

std::int64_t trace_detail::now() noexcept {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return std::int64_t{1'000'000'000} * t.tv_sec + t.tv_nsec;
}

void trace_detail::record(std::string_view name, std::string_view detail, SpanKind kind, std::int64_t begin) noexcept {
  const std::int64_t end = now();
  const std::uint64_t place = the_header->count.fetch_add(1, std::memory_order_relaxed);
  if (place >= kMostSpans) return;
  thread_local const ThisThread thread;
  Slot& slot = the_slots[place];
  slot.begin = begin;
  slot.thread = thread.id;
  slot.kind = static_cast<std::uint8_t>(kind);
  copy_text(slot.thread_name, thread.name);
  copy_text(slot.name, name);
  if (!detail.empty() && name.size() + 2 < sizeof slot.name) {
    slot.name[name.size()] = ' ';
    const std::size_t size = std::min(detail.size(), sizeof slot.name - name.size() - 2);
    std::memcpy(slot.name + name.size() + 1, detail.data(), size);
    slot.name[name.size() + 1 + size] = 0;
  }
  slot.end.store(end, std::memory_order_release);
}

Result<void> prepare_tracing(const std::string& folder, TracedSteps steps) {
  std::error_code code;
  fs::remove_all(folder, code);
  if (!code) fs::create_directories(folder, code);
  if (code) return file_error(folder, "cannot be made", code.value());
  TROUPE_ASSIGN(void* const map, map_shared(switch_of(folder), sizeof(Switch), true));
  new (map) Switch{.magic = kSwitchMagic, .first = steps.first, .last = steps.last, .on = 0};
  ::munmap(map, sizeof(Switch));
  return {};
}

Result<void> start_tracing(const std::string& folder, const std::string& process) {
  std::error_code code;
  const auto size = fs::file_size(switch_of(folder), code);
  if (code == std::errc::no_such_file_or_directory) return {};
  if (code) return file_error(switch_of(folder), "cannot be read", code.value());
  if (size < sizeof(Switch)) return Error{Errc::data_loss, fmt::format("{}: too short", switch_of(folder))};
  TROUPE_ASSIGN(void* const on, map_shared(switch_of(folder), sizeof(Switch), false));
  auto* const found = static_cast<Switch*>(on);
  if (found->magic != kSwitchMagic) return Error{Errc::data_loss, fmt::format("{}: no switch", switch_of(folder))};
  std::string name = process;
  std::replace(name.begin(), name.end(), '/', '-');
  TROUPE_ASSIGN(void* const spans, map_shared(fmt::format("{}/{}.spans", folder, name),
                                              sizeof(SpansHeader) + kMostSpans * sizeof(Slot), true));
  the_header = static_cast<SpansHeader*>(spans);
  the_header->magic = kSpansMagic;
  copy_text(the_header->process, process);
  the_slots = reinterpret_cast<Slot*>(the_header + 1);
  the_switch = found;
  trace_detail::is_on = &found->on;
  return {};
}

void trace_step(std::int64_t step) noexcept {
  if (the_switch == nullptr) return;
  trace_detail::is_outside = step < the_switch->first || step > the_switch->last;
  if (!trace_detail::is_outside) {
    the_switch->on.store(1, std::memory_order_relaxed);
  } else if (step != the_switch->last + 1) {
    the_switch->on.store(0, std::memory_order_relaxed);
  }
}

Result<std::vector<ProcessSpans>> read_spans(const std::string& folder) {
  std::error_code code;
  const std::vector<std::string> paths = spans_in(folder, code);
  if (code) return file_error(folder, "cannot be listed", code.value());
  std::vector<ProcessSpans> out;
  for (const std::string& path : paths) {
    const auto size = fs::file_size(path, code);
    if (code || size != sizeof(SpansHeader) + kMostSpans * sizeof(Slot))
      return Error{Errc::data_loss, fmt::format("{}: no file of spans", path)};
    TROUPE_ASSIGN(void* const map, map_shared(path, size, false));
    const auto* const header = static_cast<const SpansHeader*>(map);
    const auto* const slots = reinterpret_cast<const Slot*>(header + 1);
    const std::uint64_t count = header->count.load();
    ProcessSpans process{.process = header->process, .spans = {}, .dropped = 0};
    process.dropped = static_cast<std::int64_t>(count - std::min(count, kMostSpans));
    for (std::uint64_t i = 0; i < std::min(count, kMostSpans); ++i) {
      const Slot& slot = slots[i];
      const std::int64_t end = slot.end.load(std::memory_order_acquire);
      if (end == 0) continue;  // its process ended while it wrote
      process.spans.push_back({.begin = slot.begin,
                               .end = end,
                               .thread = slot.thread,
                               .kind = static_cast<SpanKind>(slot.kind),
                               .thread_name = slot.thread_name,
                               .name = slot.name});
    }
    const bool foreign = header->magic != kSpansMagic;
    ::munmap(map, size);
    if (foreign) return Error{Errc::data_loss, fmt::format("{}: no file of spans", path)};
    out.push_back(std::move(process));
  }
  return out;
}

Result<void> end_tracing(const std::string& folder) {
  std::error_code code;
  fs::remove(switch_of(folder), code);
  if (code) return file_error(switch_of(folder), "cannot be removed", code.value());
  for (const std::string& path : spans_in(folder, code)) {
    if (!fs::remove(path, code) && code) return file_error(path, "cannot be removed", code.value());
  }
  return {};
}

}  // namespace troupe::base
