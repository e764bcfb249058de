#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/enum_names.h"
#include "base/result.h"
#include "comm/control/io_loop.h"

namespace troupe::comm {

/// How an item's bytes travel (docs/channels.md). The plan picks one per pair and prints it.
/// inproc: threads of one process; shm: processes of one machine, an Arena; zmq: two machines.
enum class Transport : std::uint8_t { inproc, shm, zmq };
/// As in plans and addresses.
constexpr auto enum_names(Transport) { return std::array{"inproc", "shm", "zmq"}; }

/// In place of a slot's index: grant() chooses a free slot.
inline constexpr std::uint32_t kAnySlot = std::numeric_limits<std::uint32_t>::max();

/// Permission to produce one item: which slot to fill and with what. Given by the consumer, used once.
struct Credit {
  /// Slot of the consumer's arena.
  std::uint32_t slot = kAnySlot;
  /// Says which item: the consumer's own mark, which the channel carries and does not read.
  std::uint64_t tag = 0;
  /// Membership epoch that the item is made for; 0: none.
  std::uint64_t fence = 0;
  /// What the consumer said beside: bytes at the start of the slot; set by grant().
  std::uint32_t request_bytes = 0;
};

/// One filled slot.
/// What a producer hands to send() and a consumer gets in on_item. The bytes are in the slot, not here.
struct Item {
  /// As next_credit() gave it, all fields unchanged; an item with another credit is late.
  Credit credit;
  /// Bytes written to the slot; 0 when `error` says why the sample is bad.
  std::uint64_t bytes = 0;
  /// XXH3-64 of those bytes.
  std::uint64_t xxh3 = 0;
  /// Non-empty: the item is VOID for this reason (file, frame, cause).
  std::string error = {};
};

/// What went over a channel end so far.
struct ChannelStats {
  /// Accepted (consumer) or handed over (producer); VOID items count.
  std::uint64_t items = 0;
  /// Of those items' `bytes`; VOID items add 0, requests are not counted.
  std::uint64_t bytes = 0;
  /// Producer: blocked in next_credit; consumer: credits were out and no slot was filled.
  double wait_seconds = 0;
  /// Consumer: granted and not filled; producer: arrived and not sent.
  std::uint64_t credits_outstanding = 0;
  /// Dropped: other fence, or a credit that was revoked.
  std::uint64_t late_items = 0;
};

/// Consumer end: owns the arena of slots, grants credits to named producers, receives items.
/// All methods are thread-safe and may be called from a callback, except the destructor. Callbacks come on an internal
/// thread (the io_loop, or the producer's for inproc), under no lock of the channel, and must not block. The destructor
/// waits for callbacks under way and for the producers' answers to its goodbye (at most 250 ms); it runs before that of
/// the IoLoop and never on the loop's thread.
class ChannelConsumer {
 public:
  /// Each may be empty. They are moved in at opening and cannot be changed.
  struct Callbacks {
    /// A producer dialled in and is ready for credits; `capacity` is how many it wants at a time.
    std::function<void(const std::string& producer, std::uint32_t capacity)> on_producer;
    /// A slot was filled (or declared void). The slot belongs to the consumer until it grants or releases it.
    std::function<void(const std::string& producer, const Item& item)> on_item;
    /// A producer has gone on with the item of a credit (ChannelProducer::progress). Not checked against the grant, and
    /// lost with a connection; never after the item.
    std::function<void(const std::string& producer, const Credit& credit)> on_progress = {};
  };
  virtual ~ChannelConsumer() = default;
  /// The one it was opened with.
  virtual Transport transport() const noexcept = 0;
  /// What a producer needs to connect; travels in control messages.
  /// Text without line breaks, at most 1,024 bytes (docs/channels.md#addresses).
  virtual std::string address() const = 0;
  /// As in ChannelOptions; fixed.
  virtual std::uint32_t num_slots() const noexcept = 0;
  /// Bytes that a slot offers; slots lie at multiples of page_aligned() of it.
  virtual std::size_t slot_bytes() const noexcept = 0;
  /// Number of free slots. Only grant() lowers it.
  virtual std::uint32_t free_slots() const noexcept = 0;
  /// Bytes of a slot. Read only between its on_item and its next grant or release.
  virtual std::span<const std::byte> slot(std::uint32_t index) const = 0;
  /// Gives `producer` the credit, and returns its slot: the one that it names, or for kAnySlot a free one.
  /// The bytes of `request`, which are copied, lie at the start of the slot when the producer gets the credit. Errors:
  /// not_found (never dialled in or gone), invalid_argument (slot out of range or in use, or the request is longer than
  /// a slot), resource_exhausted (no slot is free).
  virtual Result<std::uint32_t> grant(const std::string& producer, const Credit& credit,
                                      std::span<const std::byte> request) = 0;
  /// A credit without a request.
  Result<std::uint32_t> grant(const std::string& producer, const Credit& credit) { return grant(producer, credit, {}); }
  /// Makes a filled slot free. Calling it for a slot in another state is an invariant violation.
  virtual void release(std::uint32_t slot) = 0;
  /// Forgets the producer: its outstanding credits are void, and items it still sends are counted and dropped.
  /// Call only after its exit is confirmed; its slots may be granted again at once.
  /// An on_item of that producer which has already begun may still reach you: its slot is filled, and yours.
  virtual void drop_producer(const std::string& producer) = 0;
  /// Of this end; wait_seconds over all ends of the arena.
  virtual ChannelStats stats() const = 0;
};

/// Producer end. next_credit() is called by one thread at a time; slot(), send() and progress() by any, for credits in
/// hand.
class ChannelProducer {
 public:
  /// Says goodbye to the consumer. Not on the loop's thread, and not while another thread is in next_credit().
  virtual ~ChannelProducer() = default;
  /// Next credit in the order granted. Errors: deadline_exceeded, cancelled (stop() was called), unavailable (consumer
  /// gone).
  virtual Result<Credit> next_credit(std::chrono::milliseconds deadline) = 0;
  /// Where to write the item of `credit`, over the consumer's request; valid until send().
  /// slot_bytes of the consumer, on a page where the memory is shared; not zeroed. Aborts on a credit of another
  /// channel.
  virtual std::span<std::byte> slot(const Credit& credit) = 0;
  /// Hands the item over. Errors: unavailable (consumer gone), invalid_argument (bytes > slot).
  /// The item's xxh3 must be XXH3-64 of the first item.bytes bytes: the consumer compares it and takes a difference
  /// for damage. After success the slot must not be touched.
  virtual Result<void> send(const Item& item) = 0;
  /// Tells the consumer that the item of `credit`, which takes long, has gone on: a message on shm and zmq, so not
  /// more often than about once a second. Not after send(). A consumer that is gone hears nothing.
  virtual void progress(const Credit& credit) = 0;
  /// Wakes next_credit with `cancelled`. Any thread.
  virtual void stop() = 0;
  /// Any thread.
  virtual ChannelStats stats() const = 0;
};

/// What a consumer end is made of.
struct ChannelOptions {
  /// Consumer's actor name, such as "learner/0".
  std::string name;
  /// 1 to kMaxSlots, each of slot_bytes, 1 to kMaxSlotBytes (comm/channel/channel_address.h).
  std::uint32_t slots = 0;
  std::size_t slot_bytes = 0;
  /// Fixed for the end's life.
  Transport transport = Transport::inproc;
  /// shm and zmq: ZeroMQ endpoint to bind, "ipc:///run/..." or "tcp://127.0.0.1:*". shm: in the folder of the node's
  /// ArenaDesk.
  std::string endpoint = {};
  /// zmq: required when the endpoint is not loopback.
  std::optional<CurveServer> curve = std::nullopt;
  /// zmq: the host that address() names; empty: the one that is bound.
  std::string advertise = {};
  /// zmq: a port of this range is bound, in place of the endpoint's; {0, 0}: that.
  std::uint16_t first_port = 0;
  std::uint16_t last_port = 0;
};

/// One consumer serves one transport; a feed with local and remote producers opens two over one arena by passing
/// `share`: one table of slots, two sockets. Callbacks and counters belong to the end that the producer dialled;
/// grant() and drop_producer() reach a producer of either. With `share`, `slots` and `slot_bytes` are 0 or equal to the
/// first's. `loop` may be null for inproc. Errors: invalid_argument, failed_precondition (name or endpoint taken),
/// resource_exhausted.
Result<std::unique_ptr<ChannelConsumer>> open_consumer(IoLoop* loop, const ChannelOptions& options,
                                                       ChannelConsumer::Callbacks callbacks,
                                                       ChannelConsumer* share = nullptr);
/// Dials a consumer by its address() and waits for its answer. `producer` is this end's actor name, unique over
/// restarts
/// ("decoder/0#3"). `curve` holds this end's keys; an empty server_key is taken from the address. Never call it on the
/// loop's thread. Errors: invalid_argument (address, name), not_found (inproc: no such consumer), failed_precondition
/// (refused: name in use or
///         dropped; arena not reachable), deadline_exceeded (no answer).
Result<std::unique_ptr<ChannelProducer>> open_producer(IoLoop* loop, const std::string& address,
                                                       const std::string& producer, std::uint32_t capacity,
                                                       std::chrono::milliseconds deadline,
                                                       std::optional<CurveClient> curve = std::nullopt);

}  // namespace troupe::comm
