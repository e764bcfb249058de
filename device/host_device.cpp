#include "device/host_device.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <new>
#include <optional>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/file_io.h"
#include "base/unnamed_file.h"

namespace troupe::device {
namespace {

class HostMemory final : public Memory {
 public:
  explicit HostMemory(std::int64_t bytes) : bytes_(bytes) {
    TROUPE_CHECK(bytes >= 0, "memory has a size");
    const auto whole = static_cast<std::size_t>((bytes + kMemoryAlignment - 1) / kMemoryAlignment * kMemoryAlignment);
    if (whole == 0) return;
    address_ = static_cast<std::byte*>(std::aligned_alloc(kMemoryAlignment, whole));
    if (address_ == nullptr) throw std::bad_alloc();
    std::memset(address_, 0, whole);
  }
  ~HostMemory() override { std::free(address_); }
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;
  std::byte* address() const noexcept override { return address_; }
  std::int64_t bytes() const noexcept override { return bytes_; }

 private:
  const std::int64_t bytes_;
  std::byte* address_ = nullptr;
};

/// An unnamed file, mapped.
class FileMemory final : public Memory {
 public:
  FileMemory(std::byte* address, std::int64_t bytes) : address_(address), bytes_(bytes) {}
  ~FileMemory() override {
    if (bytes_ > 0) ::munmap(address_, static_cast<std::size_t>(bytes_));
  }
  FileMemory(const FileMemory&) = delete;
  FileMemory& operator=(const FileMemory&) = delete;
  std::byte* address() const noexcept override { return address_; }
  std::int64_t bytes() const noexcept override { return bytes_; }

 private:
  std::byte* const address_;
  const std::int64_t bytes_;
};

class HostEvent final : public Event {
 public:
  void begin() {
    const std::lock_guard lock(mutex_);
    happened_ = false;
    failure_.reset();
  }
  void happen(const std::optional<Error>& failure) {
    const std::lock_guard lock(mutex_);
    happened_ = true;
    failure_ = failure;
    changed_.notify_all();
  }
  std::optional<Error> wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return happened_; });
    return failure_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  /// never recorded: nothing to wait for
  bool happened_ = true;
  std::optional<Error> failure_;
};

HostEvent& host(Event& event) { return static_cast<HostEvent&>(event); }

/// Does its work where it is enqueued.
class InlineStream final : public HostStream {
 public:
  void enqueue(Work work) override {
    if (failure_) return;
    if (auto done = work(); !done) failure_ = done.error();
  }
  void record(Event& event) override { host(event).happen(failure_); }
  void wait(Event& event) override {
    if (auto failure = host(event).wait(); failure && !failure_) failure_ = std::move(failure);
  }
  Result<void> synchronize() override {
    if (!failure_) return {};
    return *std::exchange(failure_, std::nullopt);
  }

 private:
  std::optional<Error> failure_;
};

/// Does its work on a thread of its own.
class ThreadStream final : public HostStream {
 public:
  ThreadStream() : thread_([this] { run(); }) {}
  ~ThreadStream() override {
    push([this] { closed_ = true; });
    thread_.join();
  }
  void enqueue(Work work) override {
    push([this, work = std::move(work)] {
      if (failure_) return;
      if (auto done = work(); !done) failure_ = done.error();
    });
  }
  void record(Event& event) override {
    host(event).begin();
    push([this, &event] { host(event).happen(failure_); });
  }
  void wait(Event& event) override {
    push([this, &event] {
      if (auto failure = host(event).wait(); failure && !failure_) failure_ = std::move(failure);
    });
  }
  Result<void> synchronize() override {
    HostEvent end;
    record(end);
    const auto failure = end.wait();
    if (!failure) return {};
    push([this] { failure_.reset(); });
    return *failure;
  }

 private:
  void push(std::function<void()> step) {
    {
      const std::lock_guard lock(mutex_);
      queue_.push_back(std::move(step));
    }
    queued_.notify_one();
  }
  void run() {
    while (!closed_) {
      std::unique_lock lock(mutex_);
      queued_.wait(lock, [this] { return !queue_.empty(); });
      const auto step = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      step();
    }
  }

  std::mutex mutex_;
  std::condition_variable queued_;
  std::deque<std::function<void()>> queue_;
  // of the thread alone
  std::optional<Error> failure_;
  bool closed_ = false;
  std::thread thread_;
};

class HostDevice final : public Device {
 public:
  bool is_host() const noexcept override { return true; }
  std::shared_ptr<Memory> allocate(std::int64_t bytes) override { return std::make_shared<HostMemory>(bytes); }
  Result<std::shared_ptr<Memory>> allocate_behind(std::int64_t bytes, const std::string& folder) override {
    TROUPE_ASSIGN(const FileDescriptor file, make_unnamed_file(folder, bytes));
    if (bytes == 0) return std::shared_ptr<Memory>(std::make_shared<FileMemory>(nullptr, 0));
    void* address = ::mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
    if (address == MAP_FAILED) return file_error(folder, fmt::format("{} bytes cannot be mapped", bytes), errno);
    return std::shared_ptr<Memory>(std::make_shared<FileMemory>(static_cast<std::byte*>(address), bytes));
  }
  std::shared_ptr<Memory> allocate_pinned(std::int64_t bytes) override { return allocate(bytes); }
  Result<std::unique_ptr<Pin>> pin(std::span<std::byte>) override { return std::make_unique<Pin>(); }
  std::unique_ptr<Stream> make_stream(StreamUse use) override {
    if (use == StreamUse::transfer) return std::make_unique<ThreadStream>();
    return std::make_unique<InlineStream>();
  }
  std::unique_ptr<Event> make_event() override { return std::make_unique<HostEvent>(); }
};

}  // namespace

void HostStream::copy(std::byte* to, const std::byte* from, std::int64_t bytes) {
  enqueue([=] {
    if (bytes > 0) std::memcpy(to, from, static_cast<std::size_t>(bytes));
    return Result<void>();
  });
}

void HostStream::clear(std::byte* to, std::int64_t bytes) {
  enqueue([=] {
    if (bytes > 0) std::memset(to, 0, static_cast<std::size_t>(bytes));
    return Result<void>();
  });
}

void HostStream::launch(Graph&) { TROUPE_CHECK(false, "streams of cores capture nothing"); }

Device& host_device() {
  static HostDevice device;
  return device;
}

}  // namespace troupe::device
