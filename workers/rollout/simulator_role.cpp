#include "workers/rollout/simulator_role.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <thread>

#include "base/blocked_signals.h"
#include "base/fault.h"
#include "base/hash.h"
#include "base/log.h"
#include "placement/rl_shape.h"
#include "workers/rollout/block_requests.h"
#include "workers/stream/producer_times.h"

namespace troupe::workers {

namespace {
constexpr std::chrono::milliseconds kCreditPoll{500};
}

EnvOptions env_options_of(const EnvConfig& env) {
  return {.profile = env.profile, .options = env.options, .max_steps = env.max_episode_steps};
}

ResetMode reset_mode_of(const EnvConfig& env) {
  return env.reset_mode == "episode" ? ResetMode::episode
         : env.reset_mode == "fixed" ? ResetMode::fixed
                                     : ResetMode::same_step;
}

MakeBlock make_block_of(const JobConfig& job, std::shared_ptr<const EnvFactory> factory) {
  const RlShape rl = rl_shape(job);
  const EnvBlock::Options common{.first_env = 0,
                                 .rows = rl.rows,
                                 .chunk = rl.chunk,
                                 .exec_steps = job.env.exec_steps,
                                 .reset_mode = reset_mode_of(job.env),
                                 .group_size = job.env.group_size,
                                 .max_steps = job.env.max_episode_steps,
                                 .stagger = job.env.stagger,
                                 .seed = static_cast<std::uint64_t>(job.job.seed)};
  return [factory = std::move(factory), common](std::int64_t block, Executor& executor) {
    EnvBlock::Options options = common;
    options.first_env = block * common.rows;
    return EnvBlock::make(factory, options, executor);
  };
}

/// One rollout worker: a producer end, the thread that takes its requests, and the blocks that it holds.
class SimulatorRole::Connection {
 public:
  Connection(SimulatorRole& role, std::string address) : role_(role), address_(std::move(address)) {
    const BlockedSignals blocked;
    thread_ = std::thread([this] { serve(); });
  }
  ~Connection() {
    stopping_ = true;
    {
      const std::lock_guard lock(mutex_);
      if (producer_) producer_->stop();
    }
    thread_.join();
  }

 private:
  void serve() {
    const std::string instance = role_.setup_.identity.instance();
    auto dialled = dial_until_answered(role_.dial_, address_, instance, stopping_);
    if (!dialled) {
      log::warn("{}: cannot reach a rollout worker: {}", role_.setup_.identity.actor, dialled.error().message());
      return;
    }
    {
      const std::lock_guard lock(mutex_);
      producer_ = std::move(*dialled);
    }
    while (!stopping_) {
      const auto credit = producer_->next_credit(kCreditPoll);
      if (credit) {
        serve(*credit);
      } else if (credit.error().code() != Errc::deadline_exceeded) {
        if (!stopping_)
          log::info("{}: a rollout worker is done with this simulator: {}", instance, credit.error().message());
        break;
      }
    }
    // Steps under way write into the worker's slots and answer through the producer.
    std::unique_lock lock(mutex_);
    quiet_.wait(lock, [&] { return under_way_ == 0; });
    lock.unlock();
    blocks_.clear();
  }

  void serve(const Credit& credit) {
    {
      const std::lock_guard lock(mutex_);
      ++under_way_;
    }
    role_.count(+1);
    if (auto begun = begin(credit); !begun)
      answer({.credit = credit, .bytes = 0, .xxh3 = 0, .error = begun.error().message()});
  }

  /// Begins what the credit asks; a stepping thread answers. Errors are answered by the caller.
  Result<void> begin(const Credit& credit) {
    const auto slot = producer_->slot(credit);
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
      answer({.credit = credit, .bytes = 0, .xxh3 = xxh3_64(std::span<const std::byte>()), .error = {}});
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
    auto done = [this, credit, transition] {
      const auto written = std::span<const std::byte>(producer_->slot(credit)).first(transition);
      answer({.credit = credit, .bytes = transition, .xxh3 = xxh3_64(written), .error = {}});
    };
    if (request.kind == BlockRequest::Kind::reset) {
      block->reset(request.episode, out, std::move(done));
    } else {
      block->step(request.actions, out, std::move(done));
    }
    return {};
  }

  void answer(const Item& item) {
    if (auto sent = producer_->send(item); !sent) {
      log::debug("{}: a transition could not be delivered: {}", role_.setup_.identity.actor, sent.error().message());
    }
    role_.count(-1);
    const std::lock_guard lock(mutex_);
    if (--under_way_ == 0) quiet_.notify_all();
  }

  SimulatorRole& role_;
  const std::string address_;
  std::mutex mutex_;
  std::condition_variable quiet_;
  std::int64_t under_way_ = 0;                                // guarded by mutex_
  std::unique_ptr<ChannelProducer> producer_;                 // set once, under mutex_
  std::map<std::int64_t, std::unique_ptr<EnvBlock>> blocks_;  // the serving thread's
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

SimulatorRole::SimulatorRole(Setup setup, Dial dial, Outbox outbox)
    : setup_(std::move(setup)),
      dial_(std::move(dial)),
      outbox_(std::move(outbox)),
      executor_(Executor::make(setup_.executor)) {}

SimulatorRole::~SimulatorRole() { connections_.clear(); }

void SimulatorRole::start() {
  const RoleIdentity& self = setup_.identity;
  outbox_(
      "controller",
      ActorUp{.actor = self.actor, .incarnation = self.incarnation, .pid = ::getpid(), .channels = {}, .weights = {}});
}

void SimulatorRole::count(int change) {
  double idle = 0, busy = 0;
  {
    const std::lock_guard lock(times_mutex_);
    const auto now = Clock::now();
    if (last_change_ != Clock::time_point{}) {
      (under_way_ > 0 ? busy_seconds_ : idle_seconds_) += std::chrono::duration<double>(now - last_change_).count();
    }
    last_change_ = now;
    under_way_ += change;
    if (idle_seconds_ + busy_seconds_ < setup_.report_seconds) return;
    std::swap(idle, idle_seconds_);
    std::swap(busy, busy_seconds_);
  }
  outbox_("controller", Event{.actor = setup_.identity.actor,
                              .kind = std::string(kProducerTimes),
                              .text = producer_times_text(idle, busy),
                              .subject = setup_.identity.instance()});
}

void SimulatorRole::handle(const std::string&, const Message& message) {
  if (const auto* peers = std::get_if<Peers>(&message)) dial_workers(*peers);
}

void SimulatorRole::dial_workers(const Peers& peers) {
  std::erase_if(connections_, [&](const auto& entry) {
    return std::find(peers.channels.begin(), peers.channels.end(), entry.first) == peers.channels.end();
  });
  for (const std::string& address : peers.channels) {
    auto& connection = connections_[address];
    if (!connection) connection = std::make_unique<Connection>(*this, address);
  }
}

}  // namespace troupe::workers
