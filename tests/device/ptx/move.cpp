// Moves, packing, and addresses of spaces. Source: PTX ISA 9.0, "Data Movement and Conversion Instructions: mov, cvta,
// isspacep". Moving a register that was never written is no finding; its destination then counts as never written.
#include "tests/device/ptx/lanes.h"

namespace troupe::device::ptx {
namespace {

/// refs: d, a.
template <class T>
void move(WarpState& warp, const Op& op) {
  const std::uint32_t written = warp.written(op.refs[1]);
  T result[kLanes];
  std::memcpy(result, warp.values<T>(op.refs[1]), sizeof result);
  warp.store(op.refs[0], result);
  warp.mark_unwritten(op.refs[0], warp.active & ~written);
}

void move_predicate(WarpState& warp, const Op& op) {
  const std::uint32_t written = warp.written(op.refs[1]);
  warp.store_mask(op.refs[0], *warp.values<std::uint32_t>(op.refs[1]));
  warp.mark_unwritten(op.refs[0], warp.active & ~written);
}

/// refs: d, then Op::a pieces of type Piece, the lowest first.
template <class Piece, class Whole>
void pack(WarpState& warp, const Op& op) {
  Whole result[kLanes] = {};
  std::uint32_t written = kAllLanes;
  for (std::uint32_t p = 0; p < op.a; ++p) {
    const Piece* piece = warp.values<Piece>(op.refs[1 + p]);
    written &= warp.written(op.refs[1 + p]);
    for (int i = 0; i < kLanes; ++i) result[i] |= static_cast<Whole>(Whole{piece[i]} << (8 * sizeof(Piece) * p));
  }
  warp.store(op.refs[0], result);
  warp.mark_unwritten(op.refs[0], warp.active & ~written);
}

/// refs: the source last, before it Op::a pieces.
template <class Piece, class Whole>
void unpack(WarpState& warp, const Op& op) {
  const std::uint32_t written = warp.written(op.refs[op.a]);
  Whole whole[kLanes];
  std::memcpy(whole, warp.values<Whole>(op.refs[op.a]), sizeof whole);
  for (std::uint32_t p = 0; p < op.a; ++p) {
    Piece result[kLanes];
    for (int i = 0; i < kLanes; ++i) result[i] = static_cast<Piece>(whole[i] >> (8 * sizeof(Piece) * p));
    warp.store(op.refs[p], result);
    warp.mark_unwritten(op.refs[p], warp.active & ~written);
  }
}

bool move_vector(Decoder& decoder, Type type) {
  const bool packs = decoder.operand(1).kind == Operand::Kind::vector;
  const auto& pieces = decoder.operand(packs ? 1 : 0).parts;
  const std::uint32_t whole = size_of(type), piece = whole / static_cast<std::uint32_t>(pieces.size());
  Op op{.op_class = OpClass::integer, .a = static_cast<std::uint32_t>(pieces.size())};
  if (whole == 8 && piece == 4)
    op.run = packs ? &pack<std::uint32_t, std::uint64_t> : &unpack<std::uint32_t, std::uint64_t>;
  if (whole == 8 && piece == 2)
    op.run = packs ? &pack<std::uint16_t, std::uint64_t> : &unpack<std::uint16_t, std::uint64_t>;
  if (whole == 4 && piece == 2)
    op.run = packs ? &pack<std::uint16_t, std::uint32_t> : &unpack<std::uint16_t, std::uint32_t>;
  if (op.run == nullptr) return false;
  const Type piece_type = piece == 4 ? Type::b32 : Type::b16;
  std::size_t next = 0;
  const auto whole_ref = [&] {
    const Operand& operand = decoder.operand(packs ? 0 : 1);
    decoder.require_width(operand, type);
    return packs ? decoder.destination(operand) : decoder.source(operand, type);
  };
  if (packs) op.refs[next++] = whole_ref();
  for (const Operand& operand : pieces) {
    if (operand.name != "_") decoder.require_width(operand, piece_type);
    op.refs[next++] = packs ? decoder.source(operand, piece_type) : decoder.destination(operand);
  }
  if (!packs) op.refs[next++] = whole_ref();
  decoder.emit(op);
  return true;
}

std::uint64_t window_of(std::string_view space) {
  if (space == "shared" || space == "shared::cta") return window::kShared;
  if (space == "local") return window::kLocal;
  return space == "param" ? window::kParam : 0;
}

/// refs: d, a. Op::offset is added: a window's address, or its negative.
template <class T>
void add_window(WarpState& warp, const Op& op) {
  warp.require_written(op, op.refs[1]);
  T result[kLanes];
  const T* a = warp.values<T>(op.refs[1]);
  for (int i = 0; i < kLanes; ++i) result[i] = static_cast<T>(a[i] + static_cast<T>(op.offset));
  warp.store(op.refs[0], result);
}

/// refs: p, a. Op::a: the window's number, 0 for global.
void is_in_space(WarpState& warp, const Op& op) {
  warp.require_written(op, op.refs[1]);
  const auto* a = warp.values<std::uint64_t>(op.refs[1]);
  std::uint32_t mask = 0;
  for (int i = 0; i < kLanes; ++i) mask |= a[i] >> 60 == op.a ? 1U << i : 0U;
  warp.store_mask(op.refs[0], mask);
}

}  // namespace

bool decode_move(Decoder& decoder, std::string_view mnemonic) {
  if (mnemonic == "mov") {
    const Type type = decoder.take_type();
    if (decoder.operands() != 2) return false;
    if (decoder.operand(0).kind == Operand::Kind::vector || decoder.operand(1).kind == Operand::Kind::vector) {
      return move_vector(decoder, type);
    }
    const std::uint32_t size = size_of(type);
    Op op{.run = size == 2   ? &move<std::uint16_t>
                 : size == 4 ? &move<std::uint32_t>
                             : &move<std::uint64_t>,
          .op_class = OpClass::integer};
    if (type == Type::pred) op.run = &move_predicate;
    if (size == 1 && type != Type::pred) return false;
    decoder.refs(op, type, {type});
    decoder.emit(op);
    return true;
  }
  if (mnemonic != "cvta" && mnemonic != "isspacep") return false;
  const bool to = decoder.take("to");
  const std::string_view space = decoder.take_one({"global", "const", "shared", "shared::cta", "local", "param"});
  if (space.empty()) return false;
  if (mnemonic == "isspacep") {
    Op op{.run = &is_in_space, .op_class = OpClass::integer, .a = static_cast<std::uint32_t>(window_of(space) >> 60)};
    decoder.refs(op, Type::pred, {Type::u64});
    decoder.emit(op);
    return true;
  }
  const Type type = decoder.take_type();
  if (type != Type::u64) return false;
  Op op{.run = &add_window<std::uint64_t>, .op_class = OpClass::integer};
  const auto window = static_cast<std::int64_t>(window_of(space));
  op.offset = to ? -window : window;
  decoder.refs(op, type, {type});
  decoder.emit(op);
  return true;
}

}  // namespace troupe::device::ptx
