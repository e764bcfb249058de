#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "base/log.h"
#include "comm/control/io_loop.h"
#include "tests/support/scratch_folder.h"

namespace troupe::comm {

using namespace std::chrono_literals;

/// Long enough for any machine; a test that meets it has failed.
inline constexpr auto kPatience = 30s;

/// What arrived, and a wait for more. Thread-safe.
class Inbox {
 public:
  struct Arrival {
    SocketId socket{};
    std::string peer;
    Envelope envelope;
    std::string payload;
  };
  IoLoop::OnMessage receiver() {
    return [this](SocketId socket, const std::string& peer, Envelope envelope, std::vector<std::byte> payload) {
      const std::lock_guard lock(mutex_);
      arrivals_.push_back({socket, peer, std::move(envelope),
                           std::string(reinterpret_cast<const char*>(payload.data()), payload.size())});
      changed_.notify_all();
    };
  }
  /// False at the deadline.
  bool wait_for(std::size_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, [&] { return arrivals_.size() >= count; });
  }
  std::vector<Arrival> all() {
    const std::lock_guard lock(mutex_);
    return arrivals_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Arrival> arrivals_;
};

/// Lets the test wait for something that happens on a loop.
class Signal {
 public:
  void raise() {
    const std::lock_guard lock(mutex_);
    ++count_;
    changed_.notify_all();
  }
  bool wait_for(int count = 1) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, [&] { return count_ >= count; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int count_ = 0;
};

class LoopTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { log::configure("test", "", log::Level::warn); }  // before any thread writes

  static std::unique_ptr<IoLoop> start(const std::string& name) { return IoLoop::start(name).value(); }
  std::string ipc(const std::string& name = "ctl") const { return scratch_.endpoint(name); }

  static void send(IoLoop& loop, SocketId socket, const std::string& peer, const std::string& text,
                   std::uint16_t type = 1) {
    const auto* first = reinterpret_cast<const std::byte*>(text.data());
    loop.send(socket, peer, make_envelope(type, "tester", "", 0), {first, first + text.size()});
  }

  /// Looks at `condition` on the loop's thread every few milliseconds until it holds.
  static bool eventually(IoLoop& loop, std::function<bool()> condition) {
    struct Watcher {
      Signal done;
      std::atomic<bool> stop{false};
      std::function<void()> look;
    };
    auto watcher = std::make_shared<Watcher>();
    watcher->look = [&loop, condition = std::move(condition), weak = std::weak_ptr(watcher)] {
      const auto self = weak.lock();
      if (!self || self->stop) return;
      if (condition()) return self->done.raise();
      loop.after(2ms, [self] { self->look(); });
    };
    loop.post([watcher] { watcher->look(); });
    const bool held = watcher->done.wait_for();
    watcher->stop = true;
    return held;
  }

  const ScratchFolder scratch_{"/tmp"};
  const std::string folder_ = scratch_.path();
};

}  // namespace troupe::comm
