#pragma once

#include "tests/device/ptx/block_state.h"
#include "tests/device/ptx/decoder.h"

namespace troupe::device::ptx {

enum class AccessKind : std::uint8_t { read, read_only, write, atomic };

/// One access by the lanes of a warp: `size` bytes (a power of two up to 16) at each lane's address.
struct Access {
  Space space = Space::generic;
  AccessKind kind = AccessKind::read;
  std::uint32_t size = 0;
  std::uint32_t lanes = 0;
  /// By lane; shared and local addresses are offsets, generic ones may lie in a window.
  std::uint64_t address[kLanes];
  /// `size` bytes a lane: what is written, or what was read.
  alignas(32) std::byte data[kLanes * 16];
  /// For accesses to shared memory: SharedShadow's flags.
  std::uint32_t flags = 0;
  /// By lane, set by locate(): where its bytes are, null for a bad access. Not for local memory.
  std::byte* at[kLanes];
};

/// Checks the access, reports what is wrong with it, counts it, and fills `at`.
void locate(WarpState& warp, const Op& op, Access& access);
/// locate(), then moves the bytes; of bad reads zeros, of bad writes none.
void perform(WarpState& warp, const Op& op, Access& access);

/// Addresses of an operand: refs[`ref`] plus `offset`, in registers of `width` bytes; without a register (`width` 0)
/// the offset alone.
struct AddressPart {
  std::uint32_t ref = 0, width = 0;
  std::int64_t offset = 0;
};
void read_addresses(WarpState& warp, const Op& op, const AddressPart& part, Access& access);

/// Decodes `[base+offset]` into refs[`ref`]; the space of a named variable replaces `space`. Errors are noted.
AddressPart decode_address(Decoder& decoder, Op& op, const Operand& operand, std::uint32_t ref, Space& space);

}  // namespace troupe::device::ptx
