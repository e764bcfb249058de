#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "device/host_device.h"

namespace troupe::model {

/// Does nothing until someone waits, then everything that its streams and events allow, in an order drawn from a seed:
/// as early, as late and as interleaved as a real device may. All in the waiting thread, so that ranks with one seed
/// and the same calls have one order. One thread.
class ShuffledDevice final : public device::Device {
 public:
  explicit ShuffledDevice(std::uint64_t seed) : seed_(seed) {}

  bool is_host() const noexcept override { return true; }
  std::shared_ptr<device::Memory> allocate(std::int64_t bytes) override {
    return device::host_device().allocate(bytes);
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
  std::unique_ptr<device::Stream> make_stream(device::StreamUse) override { return std::make_unique<Stream>(*this); }
  std::unique_ptr<device::Event> make_event() override { return std::make_unique<Event>(); }

  /// Steps that were taken although an older one of another stream could have been.
  int overtakings() const { return overtakings_; }

 private:
  struct Event final : device::Event {
    int pending = 0;
    std::optional<Error> failure;
  };
  struct Step {
    std::uint64_t number;
    device::Stream::Work work;
    Event* recorded = nullptr;
    Event* awaited = nullptr;
  };
  class Stream final : public device::HostStream {
   public:
    explicit Stream(ShuffledDevice& device) : device_(device) { device.streams_.push_back(this); }
    ~Stream() override { std::erase(device_.streams_, this); }
    void enqueue(Work work) override { push({.number = 0, .work = std::move(work)}); }
    void record(device::Event& event) override {
      auto& mine = static_cast<Event&>(event);
      ++mine.pending;
      push({.number = 0, .work = nullptr, .recorded = &mine});
    }
    void wait(device::Event& event) override {
      push({.number = 0, .work = nullptr, .recorded = nullptr, .awaited = &static_cast<Event&>(event)});
    }
    Result<void> synchronize() override {
      while (!steps_.empty()) device_.take_a_step();
      if (!failure_) return {};
      return *std::exchange(failure_, std::nullopt);
    }
    bool is_ready() const {
      return !steps_.empty() && (steps_.front().awaited == nullptr || steps_.front().awaited->pending == 0);
    }
    std::uint64_t head() const { return steps_.front().number; }
    void take() {
      const Step step = std::move(steps_.front());
      steps_.pop_front();
      if (step.awaited != nullptr && step.awaited->failure && !failure_) failure_ = step.awaited->failure;
      if (step.work && !failure_) {
        if (auto done = step.work(); !done) failure_ = done.error();
      }
      if (step.recorded == nullptr) return;
      --step.recorded->pending;
      step.recorded->failure = failure_;
    }

   private:
    void push(Step step) {
      step.number = ++device_.pushed_;
      steps_.push_back(std::move(step));
    }
    ShuffledDevice& device_;
    std::deque<Step> steps_;
    std::optional<Error> failure_;
  };

  void take_a_step() {
    std::vector<Stream*> ready;
    for (Stream* stream : streams_) {
      if (stream->is_ready()) ready.push_back(stream);
    }
    TROUPE_CHECK(!ready.empty(), "the order of a step has a cycle");
    Stream* chosen = ready[mix64(seed_ * 7919 + ++taken_) % ready.size()];
    for (const Stream* other : ready) overtakings_ += other->head() < chosen->head();
    chosen->take();
  }

  const std::uint64_t seed_;
  std::uint64_t pushed_ = 0, taken_ = 0;
  int overtakings_ = 0;
  std::vector<Stream*> streams_;
};

}  // namespace troupe::model
