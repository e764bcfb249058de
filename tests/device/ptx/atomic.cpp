// Atomics on integers. Source: PTX ISA 9.0, "Parallel Synchronization and Communication Instructions: atom, red".
// Floats are refused: their sums would depend on the order of threads.
#include <cstring>

#include "tests/device/ptx/lanes.h"
#include "tests/device/ptx/memory_access.h"

namespace troupe::device::ptx {
namespace {

constexpr std::string_view kNames[] = {"add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec"};

template <class T>
T combined(std::uint32_t what, T old, T b, T c) {
  using U = std::make_unsigned_t<T>;
  switch (what) {
    case 0:
      return static_cast<T>(static_cast<U>(old) + static_cast<U>(b));
    case 1:
      return old < b ? old : b;
    case 2:
      return old > b ? old : b;
    case 3:
      return old & b;
    case 4:
      return old | b;
    case 5:
      return old ^ b;
    case 6:
      return b;
    case 7:
      return old == b ? c : old;
    case 8:
      return old >= b ? T{0} : static_cast<T>(old + 1);
    default:
      return old == 0 || old > b ? b : static_cast<T>(old - 1);
  }
}

/// refs: d, address, b, c. Op::a: place in kNames, and 8 bits up the space; Op::b: the address's width.
template <class T>
void atomic(WarpState& warp, const Op& op) {
  Access access;
  access.space = static_cast<Space>(op.a >> 8);
  access.kind = AccessKind::atomic;
  access.size = sizeof(T);
  access.lanes = warp.active;
  read_addresses(warp, op, {.ref = 1, .width = op.b, .offset = op.offset}, access);
  warp.require_written(op, op.refs[2]);
  warp.require_written(op, op.refs[3]);
  std::memset(access.at, 0, sizeof access.at);
  locate(warp, op, access);
  const T* b = warp.values<T>(op.refs[2]);
  const T* c = warp.values<T>(op.refs[3]);
  T result[kLanes] = {};
  for (int i = 0; i < kLanes; ++i) {
    if ((warp.active >> i & 1) == 0 || access.at[i] == nullptr) continue;
    std::memcpy(&result[i], access.at[i], sizeof(T));
    const T next = combined(op.a & 0xFF, result[i], b[i], c[i]);
    std::memcpy(access.at[i], &next, sizeof(T));
  }
  warp.store(op.refs[0], result);
}

}  // namespace

bool decode_atomic(Decoder& decoder, std::string_view mnemonic) {
  const bool returns = mnemonic == "atom";
  if (!returns && mnemonic != "red") return false;
  decoder.take_one({"relaxed", "acquire", "release", "acq_rel"});
  decoder.take_one({"cta", "gpu", "sys"});
  Space space = Space::generic;
  if (decoder.take("global")) space = Space::global;
  if (!decoder.take_one({"shared", "shared::cta"}).empty()) space = Space::shared;
  std::uint32_t what = 0;
  while (what < std::size(kNames) && !decoder.take(kNames[what])) ++what;
  if (what == std::size(kNames)) return false;
  const Type type = decoder.take_type();
  if (is_float(type)) {
    decoder.fail("atomics on floats");
    return false;
  }
  const std::size_t first = returns ? 1 : 0;
  if (size_of(type) < 4 || decoder.operands() != first + (what == 7 ? 3 : 2)) return false;
  const bool is_long = size_of(type) == 8;
  Op op{.run = is_long ? (is_signed(type) ? &atomic<std::int64_t> : &atomic<std::uint64_t>)
                       : (is_signed(type) ? &atomic<std::int32_t> : &atomic<std::uint32_t>)};
  op.refs[0] = returns ? decoder.destination(decoder.operand(0)) : decoder.scratch(8);
  const AddressPart part = decode_address(decoder, op, decoder.operand(first), 1, space);
  if (part.width == 0) op.refs[1] = decoder.constant(0, 8);
  op.refs[2] = decoder.source(decoder.operand(first + 1), type);
  op.refs[3] = what == 7 ? decoder.source(decoder.operand(first + 2), type) : op.refs[2];
  op.op_class = space == Space::shared ? OpClass::shared : OpClass::global;
  op.a = what | static_cast<std::uint32_t>(space) << 8;
  op.b = part.width;
  op.offset = part.offset;
  decoder.note_access(space, size_of(type));
  decoder.emit(op);
  return true;
}

}  // namespace troupe::device::ptx
