#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "comm/channel/channel.h"

namespace troupe::comm {

/// Envelopes of channels expire after an hour, milliseconds: the control plane's deadlines are not theirs.
inline constexpr std::uint32_t kChannelTtlMs = 3'600'000;

// Messages between the ends of a shm or zmq channel (docs/channels.md). They travel as payloads of envelopes; a payload
// is a MessagePack map with unsigned integer keys. Decoders are pure, check every bound and allocate less than they are
// given. Their errors are invalid_argument.

/// Message types of a channel's socket (docs/channels.md#messages).
namespace channel_message {
/// Consumer -> producer.
inline constexpr std::uint16_t kCredit = 0x30;
/// Producer -> consumer.
inline constexpr std::uint16_t kItem = 0x31;
/// Producer -> consumer; repeated until answered.
inline constexpr std::uint16_t kHello = 0x36;
/// Consumer -> producer.
inline constexpr std::uint16_t kWelcome = 0x37;
/// Both ways.
inline constexpr std::uint16_t kBye = 0x38;
/// Consumer -> producer, on zmq.
inline constexpr std::uint16_t kTaken = 0x39;
/// Producer -> consumer.
inline constexpr std::uint16_t kProgress = 0x3A;
}  // namespace channel_message

/// Largest payload of a channel's message without the item's bytes.
inline constexpr std::size_t kMaxChannelMessage = 8 * 1024;
/// Longest reason of a VOID item and of a BYE; longer ones are cut when sent.
inline constexpr std::size_t kMaxReasonBytes = 1024;

/// A producer is there. `capacity`: how many credits it wants at a time.
/// `number` counts a producer's HELLOs from 1.
struct Hello {
  std::string producer;
  std::uint32_t capacity = 0;
  std::uint64_t number = 0;
};
/// The consumer's sizes, which must be those of the address that was dialled, and the number of the HELLO it answers.
struct Welcome {
  std::uint32_t slots = 0;
  std::uint64_t slot_bytes = 0;
  std::uint64_t number = 0;
};
/// `data`, the request, views the payload that was decoded; empty on shm, where it is in the slot.
struct CreditMessage {
  Credit credit;
  /// SlotTable numbers its grants from 1; a repeated message keeps its number.
  std::uint64_t serial = 0;
  std::span<const std::byte> data = {};
};
/// `data` views the payload that was decoded; empty on shm.
struct ItemMessage {
  Item item;
  std::span<const std::byte> data;
};
/// The item of this credit has arrived, or is not wanted any more: its bytes need not be kept.
struct Taken {
  Credit credit;
};
/// The item of this credit has gone on.
struct ItemProgress {
  Credit credit;
};
/// This end is going, or refuses the other; `reason` is shown to users.
struct Bye {
  std::string reason;
};

/// Reasons are cut to kMaxReasonBytes; the rest of a message is taken as it is.
std::vector<std::byte> encode(const Hello& message);
std::vector<std::byte> encode(const Welcome& message);
/// Four bytes (little endian: length of the map), the map, then `data`.
std::vector<std::byte> encode(const CreditMessage& message);
std::vector<std::byte> encode(const ItemMessage& message);
std::vector<std::byte> encode(const Taken& message);
std::vector<std::byte> encode(const ItemProgress& message);
std::vector<std::byte> encode(const Bye& message);

/// Any bytes may be given; views in the results live as long as `payload`.
Result<Hello> decode_hello(std::span<const std::byte> payload);
Result<Welcome> decode_welcome(std::span<const std::byte> payload);
Result<CreditMessage> decode_credit(std::span<const std::byte> payload);
Result<ItemMessage> decode_item(std::span<const std::byte> payload);
Result<Taken> decode_taken(std::span<const std::byte> payload);
Result<ItemProgress> decode_progress(std::span<const std::byte> payload);
Result<Bye> decode_bye(std::span<const std::byte> payload);

/// `text` as it may travel: UTF-8, at most kMaxReasonBytes.
std::string to_reason(std::string_view text);

}  // namespace troupe::comm
