#include "workers/decoder/decoder_role.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "base/fault.h"
#include "base/hash.h"
#include "base/log.h"
#include "workers/stream/producer_times.h"

namespace troupe::workers {

namespace {
constexpr std::chrono::milliseconds kCreditPoll{500};
}

/// One feed: a producer end and the thread that serves it.
class DecoderRole::Connection {
 public:
  Connection(DecoderRole& role, std::string address)
      : role_(role), address_(std::move(address)), thread_([this] { serve(); }) {}

  ~Connection() {
    stopping_ = true;
    {
      std::lock_guard lock(mutex_);
      if (producer_) producer_->stop();
    }
    thread_.join();
  }

 private:
  void serve() {
    auto dialled = dial_until_answered(role_.dial_, address_, role_.identity_.instance(), stopping_);
    if (!dialled) {
      // The feed's process may just have died; the controller sends new addresses when it is back.
      log::warn("{}: cannot reach a feed: {}", role_.identity_.actor, dialled.error().message());
      return;
    }
    {
      std::lock_guard lock(mutex_);
      producer_ = std::move(*dialled);
      if (stopping_) return;
    }
    while (!stopping_) {
      const auto credit = producer_->next_credit(kCreditPoll);
      if (!credit) {
        if (credit.error().code() == Errc::deadline_exceeded) continue;
        log::info("{}: a feed is done with this decoder: {}", role_.identity_.actor, credit.error().message());
        return;
      }
      if (auto sent = produce(*credit); !sent) {
        log::warn("{}: position {} could not be delivered: {}", role_.identity_.actor, credit->position,
                  sent.error().message());
        return;
      }
    }
  }

  Result<void> produce(const Credit& credit) {
    Item item{.credit = credit, .error = {}};
    const std::span<std::byte> slot = producer_->slot(credit);
    {
      std::lock_guard lock(role_.build_mutex_);
      const auto begin = Clock::now();
      const auto faulted =
          fault_point("decoder.item", fmt::format("{} position {}", role_.identity_.instance(), credit.position));
      const auto split = split_of(credit.tag);
      const auto bytes = !faulted ? Result<std::size_t>(faulted.error())
                         : !split ? Result<std::size_t>(Error{Errc::invalid_argument,
                                                              fmt::format("credit with tag {}: no split", credit.tag)})
                                  : role_.build_(*split, credit.position, slot);
      if (bytes) {
        item.bytes = *bytes;
        item.xxh3 = xxh3_64(std::span<const std::byte>(slot).first(*bytes));
      } else {
        item.error = bytes.error().message();
      }
      role_.count(begin, Clock::now());
    }
    return producer_->send(item);
  }

  DecoderRole& role_;
  const std::string address_;
  std::mutex mutex_;
  std::unique_ptr<ChannelProducer> producer_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

DecoderRole::DecoderRole(RoleIdentity identity, BuildSample build, Dial dial, Outbox outbox, double report_seconds)
    : identity_(std::move(identity)),
      build_(std::move(build)),
      dial_(std::move(dial)),
      outbox_(std::move(outbox)),
      report_seconds_(report_seconds) {}

DecoderRole::~DecoderRole() = default;

void DecoderRole::start() {
  outbox_("controller",
          ActorUp{.actor = identity_.actor, .incarnation = identity_.incarnation, .pid = ::getpid(), .channels = {}});
}

void DecoderRole::count(Clock::time_point begin, Clock::time_point end) {
  // between two items nobody had given credit, or else the lock would have been taken at once
  if (last_end_ != Clock::time_point{}) idle_seconds_ += std::chrono::duration<double>(begin - last_end_).count();
  busy_seconds_ += std::chrono::duration<double>(end - begin).count();
  last_end_ = end;
  if (idle_seconds_ + busy_seconds_ < report_seconds_) return;
  outbox_("controller", Event{.actor = identity_.actor,
                              .kind = std::string(kProducerTimes),
                              .text = producer_times_text(idle_seconds_, busy_seconds_),
                              .subject = identity_.instance()});
  idle_seconds_ = busy_seconds_ = 0;
}

void DecoderRole::handle(const std::string&, const Message& message) {
  if (const auto* peers = std::get_if<Peers>(&message)) dial_feeds(*peers);
}

void DecoderRole::dial_feeds(const Peers& peers) {
  std::erase_if(connections_, [&](const auto& entry) {
    return std::find(peers.channels.begin(), peers.channels.end(), entry.first) == peers.channels.end();
  });
  for (const std::string& address : peers.channels) {
    auto& connection = connections_[address];
    if (!connection) connection = std::make_unique<Connection>(*this, address);
  }
}

}  // namespace troupe::workers
