#include "workers/rollout/simulator_role.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <thread>

#include "base/blocked_signals.h"
#include "base/fault.h"
#include "base/log.h"
#include "workers/rollout/block_requests.h"

namespace troupe::workers {

/// One rollout worker: the loop that takes its requests, and the blocks that it holds.
class SimulatorRole::Connection {
 public:
  Connection(SimulatorRole& role, const std::string& address)
      : role_(role),
        loop_({.producer = role.setup_.identity.instance(), .consumer = "a rollout worker", .address = address},
              role.dial_,
              {.serve = [this](const auto& producer, const Credit& credit) { return serve(*producer, credit); },
               .left = [this] { clear(); }}) {
    if (!role_.setup_.is_making) return;
    const BlockedSignals blocked;
    teller_ = std::thread([this] { tell(); });
  }
  ~Connection() {
    loop_.stop();
    {
      const std::lock_guard lock(mutex_);
      is_over_ = true;
    }
    over_.notify_all();
    if (teller_.joinable()) teller_.join();
  }

 private:
  /// The teller's thread.
  void tell() {
    std::unique_lock lock(mutex_);
    while (!over_.wait_for(lock, role_.setup_.tell_every, [&] { return is_over_; })) {
      lock.unlock();
      const bool is_making = role_.setup_.is_making();
      lock.lock();
      for (const auto& [tag, request] : unanswered_) {
        if (is_making) request.producer->progress(request.credit);
      }
    }
  }

  Result<void> serve(ChannelProducer& producer, const Credit& credit) {
    {
      const std::lock_guard lock(mutex_);
      ++under_way_;
      unanswered_[credit.tag] = {&producer, credit};
    }
    role_.count(+1, +1);
    if (auto begun = begin(producer, credit); !begun) answer(producer, make_item(credit, {}, begun.error()));
    return {};
  }

  /// Begins what the credit asks; a stepping thread answers. Errors are answered by the caller.
  Result<void> begin(ChannelProducer& producer, const Credit& credit) {
    const auto slot = producer.slot(credit);
    const auto bytes = slot.first(std::min<std::size_t>(slot.size(), credit.request_bytes));
    TROUPE_ASSIGN(const BlockRequest request,
                  read_block_request(bytes, static_cast<std::size_t>(role_.setup_.actions)));
    TROUPE_TRY(
        fault_point("simulator.step", fmt::format("{} block {}", role_.setup_.identity.instance(), request.block)));
    const auto transition = static_cast<std::size_t>(role_.setup_.layout.bytes);
    if (slot.size() < transition) {
      return Error{Errc::failed_precondition,
                   fmt::format("a slot of {} bytes; a transition has {}", slot.size(), transition)};
    }
    if (request.kind == BlockRequest::Kind::release) {
      blocks_.erase(request.block);
      answer(producer, make_item(credit, slot, std::size_t{0}));
      return {};
    }
    auto& block = blocks_[request.block];
    if (!block && request.kind == BlockRequest::Kind::step) {
      return Error{Errc::failed_precondition, fmt::format("block {} was not begun here", request.block)};
    }
    if (!block) {
      TROUPE_ASSIGN(block, role_.setup_.make_block(request.block, *role_.executor_));
    }
    const BlockView out{&role_.setup_.layout, slot.data()};
    auto done = [this, &producer, credit, transition] {
      answer(producer, make_item(credit, producer.slot(credit), transition));
    };
    if (request.kind == BlockRequest::Kind::reset) {
      block->reset(request.episode, out, std::move(done));
    } else {
      // counted before the answer, behind which the block may go
      auto counted = [this, of = block.get(), before = block->counters(), done = std::move(done)] {
        role_.count_step(of->counters() - before);
        done();
      };
      block->step(request.actions, out, std::move(counted));
    }
    return {};
  }

  void answer(ChannelProducer& producer, const Item& item) {
    role_.count(0, -1);
    {
      const std::lock_guard lock(mutex_);
      unanswered_.erase(item.credit.tag);
    }
    if (auto sent = producer.send(item); !sent) {
      log::debug("{}: a transition could not be delivered: {}", role_.setup_.identity.actor, sent.error().message());
    }
    role_.count(-1, 0);
    const std::lock_guard lock(mutex_);
    if (--under_way_ == 0) quiet_.notify_all();
  }

  /// Steps under way write into the worker's slots and answer through the producer: the blocks go after them.
  void clear() {
    std::unique_lock lock(mutex_);
    quiet_.wait(lock, [&] { return under_way_ == 0; });
    lock.unlock();
    blocks_.clear();
  }

  SimulatorRole& role_;
  std::mutex mutex_;
  std::condition_variable quiet_;
  struct Request {
    ChannelProducer* producer = nullptr;
    Credit credit;
  };
  std::int64_t under_way_ = 0;                   // guarded by mutex_, as the next two
  std::map<std::uint64_t, Request> unanswered_;  // by tag
  bool is_over_ = false;
  std::condition_variable over_;
  std::thread teller_;
  std::map<std::int64_t, std::unique_ptr<EnvBlock>> blocks_;  // the loop's thread's
  ProducerLoop loop_;                                         // last: it starts when everything else is there
};

SimulatorRole::SimulatorRole(Setup setup, ConsumerDial dial, Outbox outbox)
    : setup_(std::move(setup)),
      dial_(std::move(dial)),
      outbox_(std::move(outbox)),
      executor_(Executor::make(setup_.executor)) {}

SimulatorRole::~SimulatorRole() { connections_.clear(); }

void SimulatorRole::start() {
  const ActorIdentity& self = setup_.identity;
  outbox_("controller", ActorUp{.actor = self.actor, .incarnation = self.incarnation, .pid = ::getpid()});
}

void SimulatorRole::count_step(const EnvBlock::Counters& added) {
  const std::lock_guard lock(times_mutex_);
  times_.env_steps += added.env_steps;
  times_.env_step_seconds += added.step_seconds;
}

void SimulatorRole::count(int under_way, int simulating) {
  ProducerTimes times;
  {
    const std::lock_guard lock(times_mutex_);
    const auto now = Clock::now();
    if (last_change_ != Clock::time_point{}) {
      const double seconds = Seconds(now - last_change_).count();
      (under_way_ > 0 ? times_.busy_seconds : times_.idle_seconds) += seconds;
      if (simulating_ > 0) times_.simulate_seconds += seconds;
    }
    last_change_ = now;
    under_way_ += under_way;
    simulating_ += simulating;
    if (times_.idle_seconds + times_.busy_seconds < setup_.report_seconds) return;
    std::swap(times, times_);
  }
  times.actor = setup_.identity.actor;
  outbox_("controller", times);
}

void SimulatorRole::handle(const std::string&, const Message& message) {
  if (const auto* peers = std::get_if<Peers>(&message)) dial_workers(*peers);
}

void SimulatorRole::dial_workers(const Peers& peers) {
  connect_listed(connections_, peers.channels,
                 [this](const std::string& address) { return std::make_unique<Connection>(*this, address); });
}

}  // namespace troupe::workers
