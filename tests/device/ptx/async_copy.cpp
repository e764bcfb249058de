// Copies from global to shared memory that land when they are waited for. Source: PTX ISA 9.0, "Data Movement and
// Conversion Instructions: cp.async, cp.async.commit_group, cp.async.wait_group".
#include <algorithm>
#include <cstring>

#include "tests/device/ptx/lanes.h"
#include "tests/device/ptx/memory_access.h"

namespace troupe::device::ptx {
namespace {

constexpr std::uint32_t kWhole = 0xFFFFFFFF;

/// Reads `bytes` of each lane in `lanes`, a power of two at once or else byte by byte.
void read_source(WarpState& warp, const Op& op, const Access& source, std::uint32_t lanes, std::uint32_t bytes,
                 Access& to) {
  const bool at_once = bytes == to.size;
  for (std::uint32_t done = 0; done < bytes; done += at_once ? bytes : 1) {
    Access part;
    part.space = Space::global;
    part.kind = AccessKind::read;
    part.size = at_once ? bytes : 1;
    part.lanes = lanes;
    for (int i = 0; i < kLanes; ++i) part.address[i] = source.address[i] + done;
    perform(warp, op, part);
    for (std::uint32_t i = 0; i < kLanes; ++i) {
      if ((lanes >> i & 1) != 0) std::memcpy(to.data + i * to.size + done, part.data + i * part.size, part.size);
    }
  }
}

/// refs: destination and source addresses, bytes to read (if Op::b has bit 8). Op::a: bytes, and the addresses' widths
/// behind 8 bits; Op::offset of the destination, Op::c of the source.
void copy(WarpState& warp, const Op& op) {
  Access source, target;
  target.space = Space::shared;
  target.kind = AccessKind::write;
  target.flags = SharedShadow::kPending;
  target.size = op.a & 0xFF;
  target.lanes = warp.active;
  read_addresses(warp, op, {.ref = 0, .width = op.a >> 8 & 0xFF, .offset = op.offset}, target);
  read_addresses(warp, op, {.ref = 1, .width = op.a >> 16, .offset = static_cast<std::int32_t>(op.c)}, source);
  std::memset(target.data, 0, sizeof target.data);
  if (op.b == 0) {
    read_source(warp, op, source, warp.active, target.size, target);
  } else {
    warp.require_written(op, op.refs[2]);
    const auto* sizes = warp.values<std::uint32_t>(op.refs[2]);
    for (std::uint32_t bytes = 1; bytes <= target.size; ++bytes) {
      std::uint32_t lanes = 0;
      for (int i = 0; i < kLanes; ++i) lanes |= std::min(sizes[i], target.size) == bytes ? 1U << i : 0U;
      if ((lanes & warp.active) != 0) read_source(warp, op, source, lanes & warp.active, bytes, target);
    }
  }
  std::memset(target.at, 0, sizeof target.at);
  locate(warp, op, target);
  for (std::uint32_t i = 0; i < kLanes; ++i) {
    if ((warp.active >> i & 1) == 0 || target.at[i] == nullptr) continue;
    PendingCopy pending{
        .lane = i, .group = warp.groups[i], .to = static_cast<std::uint32_t>(target.address[i]), .size = target.size};
    std::memcpy(pending.bytes, target.data + i * target.size, target.size);
    warp.pending.push_back(pending);
  }
}

void commit(WarpState& warp, const Op&) {
  for (int i = 0; i < kLanes; ++i) warp.groups[i] += warp.active >> i & 1;
}

/// Op::a: groups that may stay open, or kWhole for all copies, committed or not.
void wait(WarpState& warp, const Op& op) {
  const auto lands = [&](const PendingCopy& copy) {
    if ((warp.active >> copy.lane & 1) == 0) return false;
    return op.a == kWhole || std::uint64_t{copy.group} + op.a < warp.groups[copy.lane];
  };
  std::vector<PendingCopy> rest;
  Access access;
  access.lanes = 0;
  const auto flush = [&] {
    if (access.lanes != 0) perform(warp, op, access);
    access.space = Space::shared;
    access.kind = AccessKind::write;
    access.flags = SharedShadow::kLanding;
    access.lanes = 0;
    access.size = 0;
  };
  flush();
  for (const PendingCopy& copy : warp.pending) {
    if (!lands(copy)) {
      rest.push_back(copy);
      continue;
    }
    // as many lanes at once as come in order
    if (access.lanes >> copy.lane != 0 || (access.size != 0 && access.size != copy.size)) flush();
    access.lanes |= 1U << copy.lane;
    access.size = copy.size;
    access.address[copy.lane] = copy.to;
    std::memcpy(access.data + copy.lane * copy.size, copy.bytes, copy.size);
  }
  flush();
  warp.pending = std::move(rest);
}

}  // namespace

bool decode_async_copy(Decoder& decoder, std::string_view mnemonic) {
  if (mnemonic != "cp" || !decoder.take("async")) return false;
  Op op{.op_class = OpClass::shared};
  if (decoder.take("commit_group")) {
    op.run = &commit;
  } else if (decoder.take("wait_all")) {
    op.run = &wait;
    op.a = kWhole;
  } else if (decoder.take("wait_group")) {
    op.run = &wait;
    op.a = static_cast<std::uint32_t>(decoder.operand(0).value);
  } else {
    const bool all_levels = decoder.take("ca");
    if (!all_levels && !decoder.take("cg")) return false;
    if (decoder.take_one({"shared", "shared::cta"}).empty() || !decoder.take("global")) return false;
    decoder.take_one({"L2::64B", "L2::128B", "L2::256B"});
    if (decoder.operands() < 3 || decoder.operands() > 4) return false;
    Space shared = Space::shared, global = Space::global;
    const AddressPart to = decode_address(decoder, op, decoder.operand(0), 0, shared);
    const AddressPart from = decode_address(decoder, op, decoder.operand(1), 1, global);
    const auto bytes = static_cast<std::uint32_t>(decoder.operand(2).value);
    if (from.width == 0 || (bytes != 16 && (!all_levels || (bytes != 4 && bytes != 8)))) return false;
    op.run = &copy;
    op.op_class = OpClass::global;
    op.a = bytes | to.width << 8 | from.width << 16;
    op.offset = to.offset;
    op.c = static_cast<std::uint32_t>(from.offset);
    if (decoder.operands() == 4) {
      if (decoder.width(decoder.operand(3)) == 0) return false;  // the form with a predicate
      op.b = 1;
      op.refs[2] = decoder.source(decoder.operand(3), Type::u32);
    }
    decoder.note_access(Space::shared, bytes);
    decoder.note_access(Space::global, op.b != 0 ? 1 : bytes);
  }
  decoder.emit(op);
  return true;
}

}  // namespace troupe::device::ptx
