// Exchange between the lanes of a warp. Source: PTX ISA 9.0, "shfl.sync", "vote.sync", "bar.warp.sync",
// "activemask". The scheduler has gathered all lanes of the mask (refs[kMaskRef]) when these run.
#include "tests/device/ptx/lanes.h"

namespace troupe::device::ptx {
namespace {

/// refs: d, p, a, b, c. Op::a: 0 up, 1 down, 2 bfly, 3 idx.
void shuffle(WarpState& warp, const Op& op) {
  for (int i = 2; i < 5; ++i) warp.require_written(op, op.refs[i]);
  const auto* a = warp.values<std::uint32_t>(op.refs[2]);
  const auto* b = warp.values<std::uint32_t>(op.refs[3]);
  const auto* c = warp.values<std::uint32_t>(op.refs[4]);
  std::uint32_t result[kLanes], valid = 0, missing = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    const int by = static_cast<int>(b[lane] & 31), clamp = static_cast<int>(c[lane] & 31);
    const int segment = static_cast<int>(c[lane] >> 8 & 31);
    const int last = (lane & segment) | (clamp & ~segment);
    int from = lane - by;
    bool is_valid = from >= last;
    if (op.a != 0) {
      from = op.a == 1 ? lane + by : op.a == 2 ? lane ^ by : (lane & segment) | (by & ~segment);
      is_valid = from <= last;
    }
    if (!is_valid) from = lane;
    valid |= is_valid ? 1U << lane : 0U;
    missing |= (warp.active >> from & 1) == 0 ? 1U << lane : 0U;
    result[lane] = a[from];
  }
  missing &= warp.active;
  if (missing != 0) {
    warp.report(FindingKind::missing_lane, op, missing, "takes the value of a lane that does not take part");
  }
  warp.store(op.refs[0], result);
  warp.store_mask(op.refs[1], valid);
}

/// refs: d, p. Op::a: 0 all, 1 any, 2 uni, 3 ballot; Op::b: p is negated.
void vote(WarpState& warp, const Op& op) {
  warp.require_written(op, op.refs[1]);
  const std::uint32_t p = (*warp.values<std::uint32_t>(op.refs[1]) ^ (op.b != 0 ? kAllLanes : 0)) & warp.active;
  if (op.a == 3) {
    std::uint32_t result[kLanes];
    for (auto& r : result) r = p;
    return warp.store(op.refs[0], result);
  }
  const bool all = p == warp.active, none = p == 0;
  const bool result = op.a == 0 ? all : op.a == 1 ? !none : all || none;
  warp.store_mask(op.refs[0], result ? kAllLanes : 0);
}

void active_mask(WarpState& warp, const Op& op) {
  std::uint32_t result[kLanes];
  for (auto& r : result) r = warp.active;
  warp.store(op.refs[0], result);
}

void nothing(WarpState&, const Op&) {}

bool emit(Decoder& decoder, Op op, std::size_t mask_operand) {
  op.flow = Flow::rendezvous;
  op.op_class = OpClass::warp;
  if (op.run == nullptr || decoder.operands() != mask_operand + 1) return false;
  op.refs[kMaskRef] = decoder.source(decoder.operand(mask_operand), Type::b32);
  decoder.emit(op);
  return true;
}

bool take_of(Decoder& decoder, std::initializer_list<std::string_view> names, std::uint32_t& which) {
  which = 0;
  for (const std::string_view name : names) {
    if (decoder.take(name)) return true;
    ++which;
  }
  return false;
}

}  // namespace

bool decode_warp(Decoder& decoder, std::string_view mnemonic) {
  Op op;
  if (mnemonic == "shfl") {
    if (!decoder.take("sync") || !take_of(decoder, {"up", "down", "bfly", "idx"}, op.a) || !decoder.take("b32"))
      return false;
    if (decoder.operands() != 5) return false;
    op.run = &shuffle;
    const Operand& d = decoder.operand(0);
    op.refs[0] = decoder.destination(d);
    op.refs[1] = d.parts.empty() ? decoder.scratch(4) : decoder.destination(d.parts[0]);
    for (std::size_t i = 1; i < 4; ++i) op.refs[i + 1] = decoder.source(decoder.operand(i), Type::b32);
    return emit(decoder, op, 4);
  }
  if (mnemonic == "vote") {
    if (!decoder.take("sync") || !take_of(decoder, {"all", "any", "uni", "ballot"}, op.a)) return false;
    if (!decoder.take(op.a == 3 ? "b32" : "pred") || decoder.operands() != 3) return false;
    op.run = &vote;
    op.refs[0] = decoder.destination(decoder.operand(0));
    op.refs[1] = decoder.source(decoder.operand(1), Type::b32);
    op.b = decoder.operand(1).negated ? 1 : 0;
    return emit(decoder, op, 2);
  }
  if (mnemonic == "bar" && decoder.take("warp") && decoder.take("sync")) {
    op.run = &nothing;
    return emit(decoder, op, 0);
  }
  if (mnemonic == "activemask" && decoder.take("b32")) {
    op.run = &active_mask;
    op.op_class = OpClass::warp;
    op.refs[0] = decoder.destination(decoder.operand(0));
    decoder.emit(op);
    return true;
  }
  return false;
}

}  // namespace troupe::device::ptx
