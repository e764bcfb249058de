#include "comm/channel/channel.h"

#include <fmt/format.h>

#include <utility>

#include "comm/channel/arena.h"
#include "comm/channel/channel_address.h"
#include "comm/channel/channel_transports.h"
#include "comm/channel/consumer_core.h"
#include "comm/channel/slot_table.h"

namespace troupe::comm {
namespace {

/// The consumer end of every transport: the core does the work, the listener is what differs.
class ConsumerEnd final : public ChannelConsumer {
 public:
  ConsumerEnd(std::string name, std::shared_ptr<ConsumerCore> core, Listener listener)
      : name_(std::move(name)),
        core_(std::move(core)),
        listener_(std::move(listener)),
        address_(listener_.address.text()) {}
  ~ConsumerEnd() override {
    core_->close(name_ + " closed the channel");
    listener_.stop();
  }
  ConsumerEnd(const ConsumerEnd&) = delete;
  ConsumerEnd& operator=(const ConsumerEnd&) = delete;

  Transport transport() const noexcept override { return listener_.address.transport; }
  std::string address() const override { return address_; }
  std::uint32_t num_slots() const noexcept override { return core_->table().num_slots(); }
  std::size_t slot_bytes() const noexcept override { return core_->table().slot_bytes(); }
  std::span<const std::byte> slot(std::uint32_t index) const override { return core_->table().slot(index); }
  std::uint32_t free_slots() const noexcept override { return core_->table().free_slots(); }
  Result<std::uint32_t> grant(const std::string& producer, const Credit& credit,
                              std::span<const std::byte> request) override {
    return core_->table().grant(producer, credit, request);
  }
  void release(std::uint32_t slot) override { core_->table().release(slot); }
  void drop_producer(const std::string& producer) override { core_->table().drop(producer); }
  ChannelStats stats() const override { return core_->stats(); }

  const std::shared_ptr<SlotTable>& table() const { return core_->shared_table(); }

 private:
  const std::string name_;
  const std::shared_ptr<ConsumerCore> core_;
  const Listener listener_;
  const std::string address_;
};

Result<std::shared_ptr<SlotTable>> table_of(const ChannelOptions& options, ChannelConsumer* share) {
  if (share != nullptr) {
    auto* const end = dynamic_cast<ConsumerEnd*>(share);
    if (end == nullptr) return Error{Errc::invalid_argument, "`share` was not made by open_consumer"};
    if ((options.slots != 0 && options.slots != share->num_slots()) ||
        (options.slot_bytes != 0 && options.slot_bytes != share->slot_bytes())) {
      return Error{
          Errc::invalid_argument,
          fmt::format("channel {}: {} slots of {} bytes asked for; the shared arena has {} of {}", options.name,
                      options.slots, options.slot_bytes, share->num_slots(), share->slot_bytes())};
    }
    return end->table();
  }
  if (options.slots == 0 || options.slots > kMaxSlots || options.slot_bytes == 0 ||
      options.slot_bytes > kMaxSlotBytes) {
    return Error{Errc::invalid_argument,
                 fmt::format("channel {}: {} slots of {} bytes; wanted 1 to {} slots of 1 to {} bytes", options.name,
                             options.slots, options.slot_bytes, kMaxSlots, kMaxSlotBytes)};
  }
  TROUPE_ASSIGN(auto arena, Arena::create(options.name, page_aligned(options.slot_bytes) * options.slots));
  return std::make_shared<SlotTable>(std::move(arena), options.slots, options.slot_bytes);
}

Error without_loop(const std::string& name) {
  return {Errc::invalid_argument, fmt::format("channel {}: shm and zmq need an IoLoop", name)};
}

}  // namespace

Result<std::unique_ptr<ChannelConsumer>> open_consumer(IoLoop* loop, const ChannelOptions& options,
                                                       ChannelConsumer::Callbacks callbacks, ChannelConsumer* share) {
  if (!is_channel_name(options.name)) {
    return Error{Errc::invalid_argument,
                 fmt::format("\"{}\" cannot name a channel; wanted 1 to 64 of [a-z0-9.#/_-]", options.name)};
  }
  if (options.transport != Transport::inproc && loop == nullptr) return without_loop(options.name);
  TROUPE_ASSIGN(auto table, table_of(options, share));
  const auto core = std::make_shared<ConsumerCore>(std::move(table), std::move(callbacks));
  auto listener =
      options.transport == Transport::inproc ? listen_inproc(options, core) : listen_socket(*loop, options, core);
  if (!listener) return listener.error().with("channel " + options.name);
  return std::unique_ptr<ChannelConsumer>(
      std::make_unique<ConsumerEnd>(options.name, core, std::move(listener).value()));
}

Result<std::unique_ptr<ChannelProducer>> open_producer(IoLoop* loop, const std::string& address,
                                                       const std::string& producer, std::uint32_t capacity,
                                                       std::chrono::milliseconds deadline,
                                                       std::optional<CurveClient> curve) {
  if (!is_channel_name(producer)) {
    return Error{Errc::invalid_argument,
                 fmt::format("\"{}\" cannot name a producer; wanted 1 to 64 of [a-z0-9.#/_-]", producer)};
  }
  if (capacity == 0)
    return Error{Errc::invalid_argument, fmt::format("producer {}: a capacity of 0 credits", producer)};
  TROUPE_ASSIGN(const auto parsed, ChannelAddress::parse(address));
  if (parsed.transport == Transport::inproc) return dial_inproc(parsed, producer, capacity);
  if (loop == nullptr) return without_loop(producer);
  return dial_socket(*loop, parsed, producer, capacity, deadline, std::move(curve));
}

}  // namespace troupe::comm
