#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <string>
#include <utility>

#include "base/check.h"
#include "device/host_device.h"

namespace troupe::model {

/// The host's device with guarded memory: its pages are accessible only while one of its streams runs work. An access
/// at any other time raises SIGSEGV, as a host's access to a GPU's memory does. Pinned memory and memory behind are not
/// guarded. The device outlives what it made.
class GuardedDevice final : public device::Device {
 public:
  bool is_host() const noexcept override { return true; }
  std::shared_ptr<device::Memory> allocate(std::int64_t bytes) override {
    return std::make_shared<Guarded>(*this, bytes);
  }
  Result<std::shared_ptr<device::Memory>> allocate_behind(std::int64_t bytes, const std::string& folder) override {
    return device::host_device().allocate_behind(bytes, folder);
  }
  std::shared_ptr<device::Memory> allocate_pinned(std::int64_t bytes) override {
    return device::host_device().allocate_pinned(bytes);
  }
  Result<std::unique_ptr<device::Pin>> pin(std::span<std::byte> host) override {
    return device::host_device().pin(host);
  }
  std::unique_ptr<device::Stream> make_stream(device::StreamUse use) override {
    return std::make_unique<Stream>(*this, device::host_device().make_stream(use));
  }
  std::unique_ptr<device::Event> make_event() override { return device::host_device().make_event(); }

 private:
  class Guarded final : public device::Memory {
   public:
    Guarded(GuardedDevice& device, std::int64_t bytes) : device_(device), bytes_(bytes) {
      const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
      mapped_ = (static_cast<std::size_t>(bytes) + page - 1) / page * page;
      if (mapped_ == 0) return;
      void* address = ::mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (address == MAP_FAILED) throw std::bad_alloc();
      address_ = static_cast<std::byte*>(address);
      const std::lock_guard lock(device_.mutex_);
      device_.memories_[address_] = mapped_;
      if (device_.at_work_ > 0) protect(address_, mapped_, PROT_READ | PROT_WRITE);
    }
    ~Guarded() override {
      if (mapped_ == 0) return;
      const std::lock_guard lock(device_.mutex_);
      device_.memories_.erase(address_);
      ::munmap(address_, mapped_);
    }
    Guarded(const Guarded&) = delete;
    Guarded& operator=(const Guarded&) = delete;
    std::byte* address() const noexcept override { return address_; }
    std::int64_t bytes() const noexcept override { return bytes_; }

   private:
    GuardedDevice& device_;
    const std::int64_t bytes_;
    std::size_t mapped_ = 0;
    std::byte* address_ = nullptr;
  };

  class Stream final : public device::HostStream {
   public:
    Stream(GuardedDevice& device, std::unique_ptr<device::Stream> inner) : device_(device), inner_(std::move(inner)) {}
    void enqueue(Work work) override {
      inner_->enqueue([this, work = std::move(work)] {
        device_.change(1);
        auto done = work();
        device_.change(-1);
        return done;
      });
    }
    void record(device::Event& event) override { inner_->record(event); }
    void wait(device::Event& event) override { inner_->wait(event); }
    Result<void> synchronize() override { return inner_->synchronize(); }

   private:
    GuardedDevice& device_;
    std::unique_ptr<device::Stream> inner_;
  };

  static void protect(void* address, std::size_t bytes, int access) {
    TROUPE_CHECK(::mprotect(address, bytes, access) == 0, "memory is protected");
  }
  void change(int by) {
    const std::lock_guard lock(mutex_);
    const bool was_open = at_work_ > 0;
    at_work_ += by;
    if (was_open == (at_work_ > 0)) return;
    for (const auto& [address, bytes] : memories_)
      protect(address, bytes, at_work_ > 0 ? PROT_READ | PROT_WRITE : PROT_NONE);
  }

  std::mutex mutex_;
  /// mapped bytes by address
  std::map<void*, std::size_t> memories_;
  /// pieces of work of its streams that run
  int at_work_ = 0;
};

}  // namespace troupe::model
