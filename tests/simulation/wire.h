#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "comm/control/message_codec.h"
#include "comm/control/ordered_delivery.h"

namespace troupe::testing {

using namespace std::chrono_literals;
using SimTime = std::chrono::steady_clock::time_point;
using Millis = std::chrono::milliseconds;
/// Told of a rule that was broken.
using Breach = std::function<void(const std::string& what)>;

/// Virtual time: tasks in the order in which they are due, those of one moment in the order in which they were posted.
class SimClock {
 public:
  SimTime now() const { return now_; }
  /// From the begin of the job to `at`, in seconds.
  static double seconds_to(SimTime at) { return std::chrono::duration<double>(at - kBegin).count(); }
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
  static constexpr SimTime kBegin{1h};
  SimTime now_ = kBegin;
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
  /// Of this process alone: SimWire::add gives it.
  std::uint64_t serial = 0;
  OrderedDelivery delivery;
  bool is_alive = true;
  SimTime stopped_until{};
  /// What it sends until then comes then.
  SimTime held_until{};
  std::map<std::string, Handler> names;
  /// Starts of actors that live here, or whose end its agent has not seen yet.
  std::set<std::string> hosts;
  SimTime wakes_at = SimTime::max();
};

/// The network between the processes: it loses, repeats, delays and cuts, and a stopped process hears all of it when
/// it goes on.
class SimWire {
 public:
  SimWire(SimClock& clock, std::mt19937_64& draw, Breach breach)
      : clock_(clock), draw_(draw), breach_(std::move(breach)) {}

  /// Names of `process` can be reached from now on.
  void add(const std::shared_ptr<SimProcess>& process) {
    process->serial = ++serial_;
    processes_.push_back(process);
  }
  void send(const std::shared_ptr<SimProcess>& from, const std::string& sender, const std::string& to,
            const Message& message);
  /// Runs `work` in the process when it can: not while it is stopped, and never when it has ended.
  void run_in(const std::shared_ptr<SimProcess>& process, std::function<void()> work);
  /// `process` takes no more messages of `name`, which has ended.
  void forget(const std::shared_ptr<SimProcess>& process, const std::string& name);
  /// Until when something was in the way between a process of this host and one elsewhere, or stopped it.
  SimTime trouble(const SimProcess& process) const;
  /// Finds messages that have not arrived though their way was free for long. Call now and then.
  void judge();

  /// By host: until when nothing of it passes, and nothing to it.
  std::map<std::size_t, SimTime> silent_until, deaf_until;
  SimTime bad_until{};
  std::int64_t deliveries = 0;

 private:
  /// The numbered messages of one name to another, as they were handed to the delivery.
  struct Line {
    struct Sent {
      std::size_t hash;
      SimTime at;
    };
    std::string from, to;
    std::deque<Sent> under_way;
    std::weak_ptr<SimProcess> sender;
    // The process that had the addressee's name first; 0: none yet.
    std::uint64_t addressee = 0;
  };
  /// `serial`: of the sender's process; controllers of one job have one name.
  static std::string key(const std::string& from, const std::string& to, std::uint64_t serial) {
    return from + '>' + to + '>' + std::to_string(serial);
  }
  static std::size_t hash_of(std::uint16_t type, const std::vector<std::byte>& payload);
  void transmit(const std::shared_ptr<SimProcess>& from, const Packet& packet);
  void arrive(std::size_t from, const Packet& packet);
  void deliver(const std::shared_ptr<SimProcess>& process, const Packet& packet);
  std::shared_ptr<SimProcess> process_of(const std::string& name);
  void wake(const std::shared_ptr<SimProcess>& process);
  void wake_at(const std::shared_ptr<SimProcess>& process);
  static SimTime latest(const std::map<std::size_t, SimTime>& until, std::size_t host);
  std::uint64_t in(std::uint64_t n) { return draw_() % n; }

  SimClock& clock_;
  std::mt19937_64& draw_;
  const Breach breach_;
  std::uint64_t serial_ = 0;
  std::vector<std::weak_ptr<SimProcess>> processes_;
  std::set<std::pair<std::uint64_t, std::string>> forgotten_;
  // By receiving process and sender's name: the process that it heard first under that name. A later process of the
  // name (a resumed job has another controller) numbers from 1 again, so messages between the two are not judged.
  std::map<std::pair<std::uint64_t, std::string>, std::uint64_t> first_life_;
  std::map<std::string, Line> lines_;
};

}  // namespace troupe::testing
