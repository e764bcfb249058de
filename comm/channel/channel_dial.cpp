#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/log.h"
#include "base/trace.h"
#include "comm/channel/arena.h"
#include "comm/channel/channel_messages.h"
#include "comm/channel/channel_transports.h"
#include "comm/channel/credit_queue.h"
#include "comm/channel/sent_items.h"

namespace troupe::comm {
namespace {

using namespace std::chrono_literals;

constexpr auto kHelloInterval = 500ms;
/// A producer that starves asks again in case a credit was lost with a connection; the consumer repeats what it owes.
constexpr auto kStarvedInterval = 2000ms;
/// An item that is unconfirmed so long makes its producer ask: its connection may have taken it along.
constexpr auto kDoubtInterval = 500ms;

/// Where the items of a socket's producer are written: the consumer's arena (shm), or buffers of this process (zmq).
/// Thread-safe.
class SlotMemory {
 public:
  virtual ~SlotMemory() = default;
  virtual std::span<std::byte> slot(std::uint32_t index) = 0;
  /// A credit came with these bytes; none on shm.
  virtual void put(std::uint32_t index, std::span<const std::byte> request) = 0;
  /// The item's bytes for the message; empty on shm.
  virtual std::span<const std::byte> data(const Item& item) = 0;
  /// The slot was sent.
  virtual void release(std::uint32_t index) = 0;
};

class SharedSlots final : public SlotMemory {
 public:
  SharedSlots(Arena arena, std::size_t slot_bytes) : arena_(std::move(arena)), slot_bytes_(slot_bytes) {}
  std::span<std::byte> slot(std::uint32_t index) override {
    return arena_.bytes().subspan(index * page_aligned(slot_bytes_), slot_bytes_);
  }
  void put(std::uint32_t, std::span<const std::byte>) override {}
  std::span<const std::byte> data(const Item&) override { return {}; }
  void release(std::uint32_t) override {}

 private:
  const Arena arena_;
  const std::size_t slot_bytes_;
};

class LocalSlots final : public SlotMemory {
 public:
  explicit LocalSlots(std::size_t slot_bytes) : slot_bytes_(slot_bytes) {}
  std::span<std::byte> slot(std::uint32_t index) override {
    const std::lock_guard lock(mutex_);
    auto& buffer = buffers_[index];
    if (!buffer && !spare_.empty()) {
      buffer = std::move(spare_.back());
      spare_.pop_back();
    }
    if (!buffer) buffer = make_buffer();
    return {buffer.get(), slot_bytes_};
  }
  void put(std::uint32_t index, std::span<const std::byte> request) override {
    if (!request.empty()) std::copy(request.begin(), request.end(), slot(index).begin());
  }
  std::span<const std::byte> data(const Item& item) override {
    return std::span<const std::byte>(slot(item.credit.slot)).first(item.bytes);
  }
  void release(std::uint32_t index) override {
    const std::lock_guard lock(mutex_);
    const auto found = buffers_.find(index);
    if (found == buffers_.end()) return;
    spare_.push_back(std::move(found->second));
    buffers_.erase(found);
  }

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  using Buffer = std::unique_ptr<std::byte[], Free>;
  /// Zeros, as gaps of an item go over the wire; an item that fills little of a large slot touches no more pages than
  /// that.
  Buffer make_buffer() const {
    Buffer buffer(static_cast<std::byte*>(std::calloc(slot_bytes_, 1)));
    if (!buffer) throw std::bad_alloc();
    return buffer;
  }

  const std::size_t slot_bytes_;
  std::mutex mutex_;
  std::map<std::uint32_t, Buffer> buffers_;  ///< of credits in hand, by slot
  std::vector<Buffer> spare_;
};

/// What a producer and its DEALER's callback share: the callback may run for a moment longer than the producer lives.
struct Shared {
  CreditQueue queue;
  std::unique_ptr<SlotMemory> memory;
  SentItems sent;
  std::atomic<bool> said_bye{false};  ///< one goodbye is enough
};

/// An item's envelope may wait for its peer to come back.
Envelope item_envelope(const std::string& producer, std::uint64_t fence) {
  auto envelope = make_envelope(channel_message::kItem, producer, {}, fence);
  envelope.ttl_ms = kChannelTtlMs;
  return envelope;
}

/// What a producer's DEALER does with messages. Runs on the loop's thread. `resend` sends an item again.
Result<void> handle(Shared& shared, const ChannelAddress& address, std::uint16_t type,
                    std::span<const std::byte> payload, const std::function<void(const Item&)>& resend) {
  CreditQueue& queue = shared.queue;
  switch (type) {
    case channel_message::kWelcome: {
      TROUPE_ASSIGN(const auto welcome, decode_welcome(payload));
      if (welcome.slots != address.slots || welcome.slot_bytes != address.slot_bytes) {
        queue.close(fmt::format("it has {} slots of {} bytes; its address says {} of {}", welcome.slots,
                                welcome.slot_bytes, address.slots, address.slot_bytes));
        return {};
      }
      queue.welcome();
      for (const Item& item : shared.sent.lost(welcome.number, SentItems::Clock::now())) resend(item);
      return {};
    }
    case channel_message::kTaken: {
      TROUPE_ASSIGN(const auto taken, decode_taken(payload));
      if (shared.sent.confirmed(taken.credit)) shared.memory->release(taken.credit.slot);
      return {};
    }
    case channel_message::kCredit: {
      TROUPE_ASSIGN(const auto message, decode_credit(payload));
      if (message.credit.slot >= address.slots) {
        return Error{Errc::invalid_argument,
                     fmt::format("a credit for slot {} of {}", message.credit.slot, address.slots)};
      }
      const auto wanted = address.transport == Transport::zmq ? message.credit.request_bytes : 0;
      if (message.data.size() != wanted || message.credit.request_bytes > address.slot_bytes) {
        return Error{Errc::invalid_argument,
                     fmt::format("a credit with {} bytes of a request of {}; a slot holds {}", message.data.size(),
                                 message.credit.request_bytes, address.slot_bytes)};
      }
      if (queue.arrive(message.credit, message.serial, {message.data.begin(), message.data.end()}))
        shared.sent.granted_again(message.credit.slot);
      return {};
    }
    case channel_message::kBye: {
      TROUPE_ASSIGN(const auto bye, decode_bye(payload));
      queue.close(bye.reason);
      return {};
    }
    default:
      return Error{Errc::invalid_argument, fmt::format("type {:#06x} does not belong on a channel", type)};
  }
}

class SocketProducer final : public ChannelProducer {
 public:
  SocketProducer(IoLoop& loop, SocketId socket, std::string name, ChannelAddress address, std::uint32_t capacity,
                 std::shared_ptr<Shared> shared)
      : loop_(loop),
        socket_(socket),
        name_(std::move(name)),
        address_(std::move(address)),
        capacity_(capacity),
        shared_(std::move(shared)) {}
  ~SocketProducer() override {
    // One that was never let in has nothing to leave, and may dial again under its name.
    if (is_connected_ && !shared_->said_bye.exchange(true)) post(channel_message::kBye, encode(Bye{"done"}));
    loop_.close(socket_);
  }
  SocketProducer(const SocketProducer&) = delete;
  SocketProducer& operator=(const SocketProducer&) = delete;

  Result<void> connect(std::chrono::milliseconds deadline) {
    TROUPE_TRY(shared_->queue.wait_for_welcome(address_.endpoint, deadline, kHelloInterval, [this] { say_hello(); }));
    is_connected_ = true;
    return {};
  }
  Result<Credit> next_credit(std::chrono::milliseconds deadline) override {
    ask_in_doubt();
    auto asked = SentItems::Clock::now();
    const auto ask = [&] {
      const auto now = SentItems::Clock::now();
      if (now - asked >= kStarvedInterval || shared_->sent.is_doubtful(now, kDoubtInterval)) say_hello(), asked = now;
    };
    TROUPE_ASSIGN(const auto arrived, shared_->queue.next(deadline, kDoubtInterval, ask));
    shared_->memory->put(arrived.credit.slot, arrived.request);
    return arrived.credit;
  }
  std::span<std::byte> slot(const Credit& credit) override {
    TROUPE_CHECK(credit.slot < address_.slots, "a credit from next_credit names a slot of the arena");
    return shared_->memory->slot(credit.slot);
  }
  Result<void> send(const Item& item) override {
    const Span span("send");
    if (item.credit.slot >= address_.slots) {
      return Error{Errc::invalid_argument,
                   fmt::format("slot {} of {} does not exist", item.credit.slot, address_.slots)};
    }
    TROUPE_ASSIGN(const Item checked, checked_item(item, address_.slot_bytes));
    TROUPE_TRY(shared_->queue.check_open());
    shared_->queue.count_sent(checked);
    // Noted first: the confirmation may come before this returns.
    const bool is_zmq = address_.transport == Transport::zmq;
    std::vector<std::byte> payload = encode(ItemMessage{checked, shared_->memory->data(checked)});
    if (is_zmq) shared_->sent.sent(checked, SentItems::Clock::now());
    loop_.send(socket_, {}, item_envelope(name_, item.credit.fence), std::move(payload));
    if (is_zmq) ask_in_doubt();
    return {};
  }
  void progress(const Credit& credit) override {
    auto envelope = make_envelope(channel_message::kProgress, name_, {}, credit.fence);
    // it is said again while the item goes on, so an old one is worth nothing
    envelope.ttl_ms = static_cast<std::uint32_t>(kStarvedInterval.count());
    loop_.send(socket_, {}, envelope, encode(ItemProgress{credit}));
  }
  void stop() override { shared_->queue.stop(); }
  ChannelStats stats() const override { return shared_->queue.stats(); }

 private:
  void ask_in_doubt() {
    if (shared_->sent.is_doubtful(SentItems::Clock::now(), kDoubtInterval)) say_hello();
  }
  void say_hello() {
    const std::uint64_t number = shared_->sent.next_hello(SentItems::Clock::now());
    post(channel_message::kHello, encode(Hello{name_, capacity_, number}));
  }
  void post(std::uint16_t type, std::vector<std::byte> payload) {
    auto envelope = make_envelope(type, name_, {}, 0);
    // A HELLO is repeated, so an old one is worth nothing.
    envelope.ttl_ms =
        type == channel_message::kHello ? static_cast<std::uint32_t>(kStarvedInterval.count()) : kChannelTtlMs;
    loop_.send(socket_, {}, envelope, std::move(payload));
  }

  IoLoop& loop_;
  const SocketId socket_;
  const std::string name_;
  const ChannelAddress address_;
  const std::uint32_t capacity_;
  const std::shared_ptr<Shared> shared_;
  bool is_connected_ = false;
};

Result<std::optional<CurveClient>> keys_for(const ChannelAddress& address, std::optional<CurveClient> curve) {
  if (address.transport == Transport::shm) {
    if (curve) return Error{Errc::invalid_argument, "shm travels over ipc and takes no keys"};
    return curve;
  }
  if (!curve) {
    if (address.server_key.empty()) return curve;
    return Error{Errc::invalid_argument,
                 fmt::format("{} wants CURVE; open_producer was given no keys", address.endpoint)};
  }
  if (curve->server_key.empty()) curve->server_key = address.server_key;
  if (curve->server_key != address.server_key) {
    return Error{Errc::invalid_argument, fmt::format("{} announces the key \"{}\"; wanted \"{}\"", address.endpoint,
                                                     address.server_key, curve->server_key)};
  }
  return curve;
}

}  // namespace

Result<std::unique_ptr<ChannelProducer>> dial_socket(IoLoop& loop, const ChannelAddress& address,
                                                     const std::string& producer, std::uint32_t capacity,
                                                     std::chrono::milliseconds deadline,
                                                     std::optional<CurveClient> curve) {
  TROUPE_ASSIGN(auto keys, keys_for(address, std::move(curve)));
  const bool is_zmq = address.transport == Transport::zmq;
  const auto shared = std::make_shared<Shared>();
  if (is_zmq) {
    shared->memory = std::make_unique<LocalSlots>(address.slot_bytes);
  } else {
    TROUPE_ASSIGN(auto arena, Arena::attach(address.arena, page_aligned(address.slot_bytes) * address.slots));
    shared->memory = std::make_unique<SharedSlots>(std::move(arena), address.slot_bytes);
  }
  auto on_message = [&loop, shared, address, producer](SocketId socket, const std::string&, const Envelope& envelope,
                                                       const std::vector<std::byte>& payload) {
    const auto resend = [&](const Item& item) {
      log::info("channel to {}: the item of slot {} was lost with its connection and is sent again", address.endpoint,
                item.credit.slot);
      loop.send(socket, {}, item_envelope(producer, item.credit.fence),
                encode(ItemMessage{item, shared->memory->data(item)}));
    };
    if (auto handled = handle(*shared, address, envelope.type, payload, resend); !handled) {
      log::warn("channel to {}: dropped a message: {}", address.endpoint, handled.error().message());
    } else if (envelope.type == channel_message::kBye && !shared->said_bye.exchange(true)) {
      // The consumer waits for this before it closes its socket.
      loop.send(socket, {}, make_envelope(channel_message::kBye, producer, {}, 0), encode(Bye{"goodbye"}));
    }
  };
  const auto max_payload = kMaxChannelMessage + (is_zmq ? address.slot_bytes : 0);
  TROUPE_ASSIGN(const auto socket,
                loop.connect_dealer(address.endpoint, producer, std::move(on_message), std::move(keys), max_payload));
  auto end = std::make_unique<SocketProducer>(loop, socket, producer, address, capacity, shared);
  TROUPE_TRY(end->connect(deadline));
  return std::unique_ptr<ChannelProducer>(std::move(end));
}

}  // namespace troupe::comm
