#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <random>
#include <string>
#include <vector>

#include "comm/control/message_codec.h"
#include "comm/control/ordered_delivery.h"

namespace troupe::testing {

using namespace std::chrono_literals;
using SimTime = std::chrono::steady_clock::time_point;
using Millis = std::chrono::milliseconds;

/// Virtual time: tasks in the order in which they are due, those of one moment in the order in which they were posted.
class SimClock {
 public:
  SimTime now() const { return now_; }
  void after(Millis delay, std::function<void()> task) { tasks_.push({now_ + delay, serial_++, std::move(task)}); }
  /// Runs the next task; false: there is none before `until`.
  bool step(SimTime until) {
    if (tasks_.empty() || tasks_.top().at > until) return false;
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): it is popped in the next line
    Task task = std::move(const_cast<Task&>(tasks_.top()));
    tasks_.pop();
    now_ = task.at;
    task.run();
    return true;
  }

 private:
  struct Task {
    SimTime at;
    std::uint64_t serial;
    std::function<void()> run;
    bool operator<(const Task& other) const { return at != other.at ? at > other.at : serial > other.serial; }
  };
  SimTime now_{std::chrono::hours(1)};
  std::uint64_t serial_ = 0;
  std::priority_queue<Task> tasks_;
};

/// A process of the simulated job: it can be stopped and killed, and has names that messages are for.
class SimProcess {
 public:
  using Handler = std::function<void(const std::string& from, const Message& message)>;
  /// `machine`: number of its place in the network.
  SimProcess(std::size_t machine, OrderedDelivery::Limits limits) : host(machine), delivery(limits) {}

  const std::size_t host;
  OrderedDelivery delivery;
  bool is_alive = true;
  SimTime stopped_until{};
  std::map<std::string, Handler> names;
  SimTime wakes_at = SimTime::max();
};

/// The network between the processes: it loses, repeats, delays and cuts, and a stopped process hears all of it when
/// it goes on.
class SimWire {
 public:
  SimWire(SimClock& clock, std::mt19937_64& draw) : clock_(clock), draw_(draw) {}

  /// Names of `process` can be reached from now on.
  void add(const std::shared_ptr<SimProcess>& process) { processes_.push_back(process); }
  void send(const std::shared_ptr<SimProcess>& from, const std::string& sender, const std::string& to,
            const Message& message);
  /// Runs `work` in the process when it can: not while it is stopped, and never when it has ended.
  void run_in(const std::shared_ptr<SimProcess>& process, std::function<void()> work);

  /// By host: until when nothing of it passes, and nothing to it.
  std::map<std::size_t, SimTime> silent_until, deaf_until;
  SimTime bad_until{};
  std::int64_t deliveries = 0;

 private:
  void transmit(std::size_t host, const Packet& packet);
  void arrive(std::size_t from, const Packet& packet);
  void wake(const std::shared_ptr<SimProcess>& process);
  void wake_at(const std::shared_ptr<SimProcess>& process);
  std::uint64_t in(std::uint64_t n) { return draw_() % n; }

  SimClock& clock_;
  std::mt19937_64& draw_;
  std::vector<std::weak_ptr<SimProcess>> processes_;
};

}  // namespace troupe::testing
