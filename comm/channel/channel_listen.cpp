#include <fmt/format.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <set>
#include <string_view>
#include <utility>

#include "base/log.h"
#include "comm/channel/channel_messages.h"
#include "comm/channel/channel_transports.h"
#include "comm/control/curve_keys.h"
#include "comm/control/endpoint.h"

namespace troupe::comm {
namespace {

/// A credit or an item may wait for a peer to come back; a stuck one is its owner's business. The largest ttl that is
/// taken.
constexpr std::chrono::milliseconds kFarewellDeadline{250};

Envelope to_producer(const std::string& consumer, std::uint16_t type, std::uint64_t fence) {
  auto envelope = make_envelope(type, consumer, {}, fence);
  envelope.ttl_ms = kChannelTtlMs;
  return envelope;
}

/// Producers that were told goodbye and have not answered. A DEALER drops what it has not read when its connection
/// ends, so a socket that is closed right after its BYE would often take the BYE with it.
class Farewells {
 public:
  void expect(const std::string& producer) {
    const std::lock_guard lock(mutex_);
    if (!arrived_.contains(producer)) awaited_.insert(producer);
  }
  void arrived(const std::string& producer) {
    const std::lock_guard lock(mutex_);
    awaited_.erase(producer);
    arrived_.insert(producer);
    answered_.notify_all();
  }
  /// A dead producer cannot answer: waits so long and no longer.
  void wait() {
    std::unique_lock lock(mutex_);
    answered_.wait_for(lock, kFarewellDeadline, [&] { return awaited_.empty(); });
  }

 private:
  std::mutex mutex_;
  std::condition_variable answered_;
  std::set<std::string> awaited_;
  std::set<std::string> arrived_;  ///< also of those that left by themselves, whose goodbye may cross ours
};

/// A producer behind a ROUTER. The loop is reached only inside the core's gate, that is while the consumer lives.
class SocketLink final : public ProducerLink {
 public:
  SocketLink(IoLoop& loop, SocketId socket, std::string consumer, std::string producer,
             const std::shared_ptr<ConsumerCore>& core, std::shared_ptr<Farewells> farewells, bool has_data)
      : loop_(loop),
        socket_(socket),
        consumer_(std::move(consumer)),
        producer_(std::move(producer)),
        core_(core),
        farewells_(std::move(farewells)),
        has_data_(has_data) {}

  void deliver(const Credit& credit, std::uint64_t serial, std::span<const std::byte> request) override {
    const auto core = core_.lock();
    if (!core) return;
    const Gate::Visit visit(core->gate());
    if (!visit) return;
    loop_.send(socket_, producer_, to_producer(consumer_, channel_message::kCredit, credit.fence),
               encode(CreditMessage{credit, serial, has_data_ ? request : std::span<const std::byte>()}));
  }
  void close(const std::string& reason) override {
    farewells_->expect(producer_);
    loop_.send(socket_, producer_, to_producer(consumer_, channel_message::kBye, 0), encode(Bye{reason}));
  }

 private:
  IoLoop& loop_;
  const SocketId socket_;
  const std::string consumer_;
  const std::string producer_;
  const std::weak_ptr<ConsumerCore> core_;
  const std::shared_ptr<Farewells> farewells_;
  const bool has_data_;  ///< the producer does not see the arena: requests travel with their credits
};

/// What a consumer's ROUTER does with messages. Runs on the loop's thread, for a moment longer than the consumer lives.
class SocketServer {
 public:
  SocketServer(IoLoop& loop, const ChannelOptions& options, const std::shared_ptr<ConsumerCore>& core,
               std::shared_ptr<Farewells> farewells)
      : loop_(loop),
        name_(options.name),
        has_data_(options.transport == Transport::zmq),
        core_(core),
        farewells_(std::move(farewells)) {}

  void on_message(SocketId socket, const std::string& producer, std::uint16_t type,
                  std::span<const std::byte> payload) {
    auto handled = handle(socket, producer, type, payload);
    // Once per channel: a peer that sends rubbish would fill the log as well.
    if (!handled && !has_warned_.exchange(true)) {
      log::warn("channel {}: dropped a message of {}: {}", name_, producer, handled.error().message());
    }
  }

 private:
  Result<void> handle(SocketId socket, const std::string& producer, std::uint16_t type,
                      std::span<const std::byte> payload) {
    if (type == channel_message::kBye) farewells_->arrived(producer);
    const auto core = core_.lock();
    if (!core) return {};
    switch (type) {
      case channel_message::kHello: {
        TROUPE_ASSIGN(const auto hello, decode_hello(payload));
        return on_hello(*core, socket, producer, hello);
      }
      case channel_message::kItem: {
        TROUPE_ASSIGN(const auto message, decode_item(payload));
        std::optional<std::span<const std::byte>> data;
        if (has_data_) data = message.data;
        core->receive(producer, message.item, data);
        // Also of a late one, which nobody will want: the producer keeps its bytes until it hears of them.
        if (has_data_) {
          loop_.send(socket, producer, to_producer(name_, channel_message::kTaken, 0),
                     encode(Taken{message.item.credit}));
        }
        return {};
      }
      case channel_message::kProgress: {
        TROUPE_ASSIGN(const auto message, decode_progress(payload));
        core->progress(producer, message.credit);
        return {};
      }
      case channel_message::kBye: {
        TROUPE_ASSIGN(const auto bye, decode_bye(payload));
        log::debug("channel {}: {} left: {}", name_, producer, bye.reason);
        core->leave(producer);
        return {};
      }
      default:
        return Error{Errc::invalid_argument, fmt::format("type {:#06x} does not belong on a channel", type)};
    }
  }

  Result<void> on_hello(ConsumerCore& core, SocketId socket, const std::string& producer, const Hello& hello) {
    // The routing id is the name: what a peer says about itself elsewhere must agree.
    if (hello.producer != producer || !is_channel_name(producer) || hello.capacity == 0) {
      return Error{Errc::invalid_argument,
                   fmt::format("HELLO of \"{}\" with capacity {}", hello.producer, hello.capacity)};
    }
    const auto admitted = core.admit(
        producer, std::make_shared<SocketLink>(loop_, socket, name_, producer, core_.lock(), farewells_, has_data_));
    if (!admitted) {
      loop_.send(socket, producer, to_producer(name_, channel_message::kBye, 0),
                 encode(Bye{admitted.error().message()}));
      return {};
    }
    const auto& table = core.table();
    loop_.send(socket, producer, to_producer(name_, channel_message::kWelcome, 0),
               encode(Welcome{table.num_slots(), table.slot_bytes(), hello.number}));
    if (*admitted) core.announce(producer, hello.capacity);
    return {};
  }

  IoLoop& loop_;
  const std::string name_;
  const bool has_data_;
  const std::weak_ptr<ConsumerCore> core_;
  const std::shared_ptr<Farewells> farewells_;
  std::atomic<bool> has_warned_{false};
};

/// Of "ipc:///run/troupe/ID/x.flow": /run/troupe/ID.
std::string folder_of(const std::string& endpoint) {
  constexpr std::string_view kIpc = "ipc://";
  return endpoint.substr(kIpc.size(), endpoint.rfind('/') - kIpc.size());
}

Result<void> check_endpoint(const ChannelOptions& options) {
  if (options.endpoint.empty() || options.endpoint.find(';') != std::string::npos) {
    return Error{Errc::invalid_argument,
                 fmt::format("\"{}\" is not an endpoint for {}", options.endpoint, enum_name(options.transport))};
  }
  if (options.transport == Transport::shm && (!options.endpoint.starts_with("ipc://") || options.curve)) {
    return Error{Errc::invalid_argument,
                 fmt::format("shm binds an ipc endpoint without keys, not {}", options.endpoint)};
  }
  return {};
}

/// Binds the endpoint, or the first free port of the range.
Result<SocketId> bind_in_range(IoLoop& loop, const ChannelOptions& options, const IoLoop::OnMessage& on_message,
                               std::size_t max_payload) {
  if (options.first_port == 0) return loop.bind_router(options.endpoint, on_message, options.curve, max_payload);
  const std::string host = options.endpoint.substr(0, options.endpoint.rfind(':'));
  for (std::uint32_t port = options.first_port; port <= options.last_port; ++port) {
    auto bound = loop.bind_router(fmt::format("{}:{}", host, port), on_message, options.curve, max_payload);
    if (bound || bound.error().code() != Errc::unavailable) return bound;
  }
  return Error{Errc::unavailable, fmt::format("{}: no port of {}-{} is free for {}; widen cluster.ports", host,
                                              options.first_port, options.last_port, options.name)};
}

}  // namespace

Result<Listener> listen_socket(IoLoop& loop, const ChannelOptions& options, const std::shared_ptr<ConsumerCore>& core) {
  TROUPE_TRY(check_endpoint(options));
  Listener listener;
  auto& address = listener.address;
  if (options.curve) {
    TROUPE_ASSIGN(address.server_key, public_key_of(options.curve->secret_key));
  }
  const bool is_zmq = options.transport == Transport::zmq;
  // The node's desk is in the folder of the sockets.
  if (!is_zmq) TROUPE_TRY(core->table().publish(folder_of(options.endpoint)));
  const auto farewells = std::make_shared<Farewells>();
  const auto server = std::make_shared<SocketServer>(loop, options, core, farewells);
  auto on_message = [server](SocketId socket, const std::string& producer, const Envelope& envelope,
                             const std::vector<std::byte>& payload) {
    server->on_message(socket, producer, envelope.type, payload);
  };
  const auto max_payload = kMaxChannelMessage + (is_zmq ? core->table().slot_bytes() : 0);
  TROUPE_ASSIGN(const auto socket, bind_in_range(loop, options, on_message, max_payload));

  address.transport = options.transport;
  address.endpoint = with_host(loop.bound_endpoint(socket), options.advertise);
  address.slot_bytes = core->table().slot_bytes();
  address.slots = core->table().num_slots();
  if (!is_zmq) address.arena = core->table().arena_handle();
  listener.stop = [&loop, socket, farewells] {
    farewells->wait();
    loop.close(socket);
  };
  return listener;
}

}  // namespace troupe::comm
