// Loads and stores. Source: PTX ISA 9.0, "Data Movement and Conversion Instructions: ld, ld.global.nc, ldu, st".
#include <cstring>

#include "tests/device/ptx/lanes.h"
#include "tests/device/ptx/memory_access.h"

namespace troupe::device::ptx {
namespace {

/// Op::a of loads and stores: elements, bytes of one, width of its register, whether it is extended by its sign.
struct Layout {
  std::uint32_t count, bytes, width;
  bool is_signed;
};
constexpr std::uint32_t pack(const Layout& x) {
  return x.count | x.bytes << 8 | x.width << 16 | (x.is_signed ? 1U << 24 : 0);
}
constexpr Layout unpack(std::uint32_t a) { return {a & 0xFF, a >> 8 & 0xFF, a >> 16 & 0xFF, a >> 24 != 0}; }

/// Element by element out of the lanes' bytes into registers.
template <class Element, class Register>
void distribute(WarpState& warp, Ref ref, const std::byte* data, std::uint32_t stride) {
  Register result[kLanes];
  for (std::uint32_t i = 0; i < kLanes; ++i) {
    Element element;
    std::memcpy(&element, data + std::size_t{i} * stride, sizeof element);
    result[i] = static_cast<Register>(element);
  }
  warp.store(ref, result);
}

template <class Register>
void distribute(WarpState& warp, Ref ref, const Layout& layout, const std::byte* data, std::uint32_t stride) {
  if (layout.bytes == 1 && layout.is_signed) return distribute<std::int8_t, Register>(warp, ref, data, stride);
  if (layout.bytes == 1) return distribute<std::uint8_t, Register>(warp, ref, data, stride);
  if (layout.bytes == 2 && layout.is_signed) return distribute<std::int16_t, Register>(warp, ref, data, stride);
  if (layout.bytes == 2) return distribute<std::uint16_t, Register>(warp, ref, data, stride);
  if (layout.bytes == 4 && layout.is_signed) return distribute<std::int32_t, Register>(warp, ref, data, stride);
  if (layout.bytes == 4) return distribute<std::uint32_t, Register>(warp, ref, data, stride);
  return distribute<std::uint64_t, Register>(warp, ref, data, stride);
}

/// refs: registers, then the address. Op::b: space, kind and the address's width; Op::offset.
void prepare(WarpState& warp, const Op& op, const Layout& layout, Access& access) {
  access.space = static_cast<Space>(op.b & 0xFF);
  access.kind = static_cast<AccessKind>(op.b >> 8 & 0xFF);
  access.size = layout.count * layout.bytes;
  access.lanes = warp.active;
  read_addresses(warp, op, {.ref = layout.count, .width = op.b >> 16, .offset = op.offset}, access);
}

void load(WarpState& warp, const Op& op) {
  const Layout layout = unpack(op.a);
  Access access;
  prepare(warp, op, layout, access);
  perform(warp, op, access);
  for (std::uint32_t e = 0; e < layout.count; ++e) {
    const std::byte* data = access.data + e * layout.bytes;
    if (layout.width == 2) distribute<std::uint16_t>(warp, op.refs[e], layout, data, access.size);
    if (layout.width == 4) distribute<std::uint32_t>(warp, op.refs[e], layout, data, access.size);
    if (layout.width == 8) distribute<std::uint64_t>(warp, op.refs[e], layout, data, access.size);
  }
}

/// The low bytes of a register into the lanes' bytes.
template <class Register>
void collect(const WarpState& warp, Ref ref, std::uint32_t bytes, std::byte* data, std::uint32_t stride) {
  const auto* from = warp.values<Register>(ref);
  for (std::size_t i = 0; i < kLanes; ++i) {
    if (bytes == sizeof(Register)) {
      std::memcpy(data + i * stride, from + i, sizeof(Register));
    } else {
      std::memcpy(data + i * stride, from + i, bytes);
    }
  }
}

void store(WarpState& warp, const Op& op) {
  const Layout layout = unpack(op.a);
  Access access;
  prepare(warp, op, layout, access);
  for (std::uint32_t e = 0; e < layout.count; ++e) {
    warp.require_written(op, op.refs[e]);
    std::byte* data = access.data + e * layout.bytes;
    if (layout.width == 2) collect<std::uint16_t>(warp, op.refs[e], layout.bytes, data, access.size);
    if (layout.width == 4) collect<std::uint32_t>(warp, op.refs[e], layout.bytes, data, access.size);
    if (layout.width == 8) collect<std::uint64_t>(warp, op.refs[e], layout.bytes, data, access.size);
  }
  perform(warp, op, access);
}

OpClass class_of(Space space) {
  if (space == Space::shared) return OpClass::shared;
  if (space == Space::local) return OpClass::local;
  return space == Space::param || space == Space::constant ? OpClass::constant : OpClass::global;
}

bool take_order(Decoder& decoder) {
  if (decoder.take("weak") || decoder.take("volatile")) return true;
  if (!decoder.take_one({"relaxed", "acquire", "release"}).empty()) {
    return !decoder.take_one({"cta", "gpu", "sys"}).empty();
  }
  return true;
}

Space take_space(Decoder& decoder) {
  if (decoder.take("global")) return Space::global;
  if (decoder.take("const")) return Space::constant;
  if (!decoder.take_one({"shared", "shared::cta"}).empty()) return Space::shared;
  if (decoder.take("local")) return Space::local;
  if (!decoder.take_one({"param", "param::entry", "param::func"}).empty()) {
    return decoder.in_entry() ? Space::param : Space::local;
  }
  return Space::generic;
}

void skip_hints(Decoder& decoder) {
  while (!decoder
              .take_one({"ca", "cg", "cs", "lu", "cv", "wb", "wt", "L1::evict_normal", "L1::evict_unchanged",
                         "L1::evict_first", "L1::evict_last", "L1::no_allocate", "L2::evict_normal", "L2::evict_first",
                         "L2::evict_last", "L2::64B", "L2::128B", "L2::256B"})
              .empty()) {
  }
}

}  // namespace

AddressPart decode_address(Decoder& decoder, Op& op, const Operand& operand, std::uint32_t ref, Space& space) {
  AddressPart part{.ref = ref, .offset = operand.value};
  if (operand.kind != Operand::Kind::address) {
    decoder.fail("an operand that is no address");
    return part;
  }
  if (operand.name.empty()) return part;
  const int width = decoder.width(operand);
  if (width >= 4) {
    part.width = static_cast<std::uint32_t>(width);
    op.refs[ref] = decoder.destination(operand);
    return part;
  }
  const Decoder::Place place = decoder.place(operand);
  if (space == Space::generic || space == Space::param || place.space == Space::local) space = place.space;
  part.offset = static_cast<std::int64_t>(place.address);
  return part;
}

bool decode_memory(Decoder& decoder, std::string_view mnemonic) {
  const bool loads = mnemonic == "ld" || mnemonic == "ldu";
  if (!loads && mnemonic != "st") return false;
  if (!take_order(decoder) || decoder.operands() != 2) return false;
  Space space = take_space(decoder);
  skip_hints(decoder);
  const bool read_only = decoder.take("nc") || mnemonic == "ldu";
  skip_hints(decoder);
  std::uint32_t count = 1;
  if (decoder.take("v2")) count = 2;
  if (decoder.take("v4")) count = 4;
  const Type type = decoder.take_type();
  const Operand& data = decoder.operand(loads ? 0 : 1);
  const Operand& address = decoder.operand(loads ? 1 : 0);
  std::vector<Operand> elements = data.kind == Operand::Kind::vector ? data.parts : std::vector<Operand>{data};
  if (elements.size() != count || type == Type::pred || size_of(type) * count > 16) return false;
  Op op{.run = loads ? &load : &store};
  const AddressPart part = decode_address(decoder, op, address, count, space);
  op.offset = part.offset;
  op.op_class = class_of(space);
  const AccessKind kind = !loads ? AccessKind::write : read_only ? AccessKind::read_only : AccessKind::read;
  op.b = static_cast<std::uint32_t>(space) | static_cast<std::uint32_t>(kind) << 8 | part.width << 16;
  std::uint32_t register_width = size_of(type);
  for (const Operand& element : elements) {
    if (decoder.width(element) > 0) register_width = static_cast<std::uint32_t>(decoder.width(element));
  }
  if (register_width == 1) register_width = 2;
  if (register_width < size_of(type)) decoder.fail("a register that is narrower than the access");
  op.a = pack({count, size_of(type), register_width, is_signed(type)});
  for (std::size_t i = 0; i < elements.size(); ++i) {
    if (loads) {
      op.refs[i] = decoder.destination(elements[i]);
    } else {
      op.refs[i] = decoder.source(elements[i], register_width == 2 && size_of(type) == 1 ? Type::b16 : type);
    }
  }
  decoder.note_access(space, size_of(type) * count);
  decoder.emit(op);
  return true;
}

}  // namespace troupe::device::ptx
