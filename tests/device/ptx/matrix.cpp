// Products of small matrices by a whole warp. Source: PTX ISA 9.0, "Warp Level Matrix Instructions: mma, ldmatrix",
// whose figures say which lane holds which elements. The ISA leaves the order of the sums open: here products and the
// accumulator are added in f64, ascending in k, and rounded once.
#include <cmath>
#include <cstring>

#include "tests/device/ptx/memory_access.h"
#include "tests/device/ptx/rounding.h"

namespace troupe::device::ptx {
namespace {

bool require_whole_warp(WarpState& warp, const Op& op) {
  if (warp.active == kAllLanes) return true;
  warp.report(FindingKind::missing_lane, op, ~warp.active, "all lanes of the warp must take part");
  return false;
}

/// refs: 4 of d, 4 of a, 2 of b, 4 of c. d[16, 8] = a[16, 16] b[16, 8] + c.
template <class Format>
void multiply(WarpState& warp, const Op& op) {
  constexpr int kInner = 16, kA = 4, kB = 2;
  if (!require_whole_warp(warp, op)) return;
  for (int i = 4; i < 8 + kA + kB; ++i) warp.require_written(op, op.refs[i]);
  alignas(64) double a[16][kInner], b[kInner][8];
  // the elements of a register: widened in one loop, then put where the ISA's figures say
  const auto scatter = [&](Ref ref, auto place) {
    const auto* pairs = warp.values<std::uint32_t>(ref);
    float low[kLanes], high[kLanes];
    for (int i = 0; i < kLanes; ++i) low[i] = Format::from(static_cast<std::uint16_t>(pairs[i]));
    for (int i = 0; i < kLanes; ++i) high[i] = Format::from(static_cast<std::uint16_t>(pairs[i] >> 16));
    for (int i = 0; i < kLanes; ++i) {
      place(i, 0) = static_cast<double>(low[i]);
      place(i, 1) = static_cast<double>(high[i]);
    }
  };
  for (int r = 0; r < kA; ++r) {
    scatter(op.refs[4 + r],
            [&](int i, int half) -> double& { return a[i / 4 + 8 * (r % 2)][i % 4 * 2 + half + 8 * (r / 2)]; });
  }
  for (int r = 0; r < kB; ++r) {
    scatter(op.refs[4 + kA + r], [&](int i, int half) -> double& { return b[i % 4 * 2 + half + 8 * r][i / 4]; });
  }
  alignas(64) double sums[16][8];
  const auto place = [](int lane, int i) { return std::pair{lane / 4 + 8 * (i / 2), lane % 4 * 2 + i % 2}; };
  for (int i = 0; i < 4; ++i) {
    const auto* c = warp.values<float>(op.refs[4 + kA + kB + i]);
    for (int lane = 0; lane < kLanes; ++lane) {
      const auto [row, column] = place(lane, i);
      sums[row][column] = static_cast<double>(c[lane]);
    }
  }
  for (int row = 0; row < 16; ++row) {
    double sum[8];
    std::memcpy(sum, sums[row], sizeof sum);
    for (int k = 0; k < kInner; ++k) {
      const double x = a[row][k];
      for (int column = 0; column < 8; ++column) sum[column] = std::fma(x, b[k][column], sum[column]);  // x b is exact
    }
    std::memcpy(sums[row], sum, sizeof sum);
  }
  for (int i = 0; i < 4; ++i) {
    float d[kLanes];
    for (int lane = 0; lane < kLanes; ++lane) {
      const auto [row, column] = place(lane, i);
      d[lane] = canonical(static_cast<float>(sums[row][column]));
    }
    warp.store(op.refs[i], d);
  }
}

bool multiply(Decoder& decoder) {
  if (!decoder.take("sync") || !decoder.take("aligned")) return false;
  if (!decoder.take("m16n8k16") || !decoder.take("row") || !decoder.take("col") || !decoder.take("f32")) return false;
  const Type type = decoder.take_type();
  if (decoder.take_type() != type || !decoder.take("f32") || (type != Type::f16 && type != Type::bf16)) return false;
  Op op{.flow = Flow::rendezvous, .op_class = OpClass::mma};
  op.run = type == Type::f16 ? &multiply<Half> : &multiply<Bfloat>;
  const std::size_t counts[] = {4, 4, 2, 4};
  if (decoder.operands() != 4) return false;
  std::size_t next = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    const std::vector<Operand>& parts = decoder.operand(i).parts;
    if (parts.size() != counts[i]) return false;
    for (const Operand& part : parts) {
      decoder.require_width(part, Type::b32);
      op.refs[next++] = i == 0 ? decoder.destination(part) : decoder.source(part, i == 3 ? Type::f32 : Type::b32);
    }
  }
  op.target = kAllLanesMask;
  decoder.emit(op);
  return true;
}

/// refs: Op::a destinations, then the address. Op::b: its width; Op::c: transposed.
void load_matrices(WarpState& warp, const Op& op) {
  if (!require_whole_warp(warp, op)) return;
  Access addresses;
  read_addresses(warp, op, {.ref = op.a, .width = op.b, .offset = op.offset}, addresses);
  for (std::uint32_t m = 0; m < op.a; ++m) {
    // lanes 8m to 8m + 7 name the rows of matrix m
    Access rows;
    rows.space = Space::shared;
    rows.kind = AccessKind::read;
    rows.size = 16;
    rows.lanes = 0xFFU << (8 * m);
    std::memcpy(rows.address, addresses.address, sizeof rows.address);
    perform(warp, op, rows);
    const auto element = [&](int row, int column) {
      std::uint16_t value = 0;
      std::memcpy(&value, rows.data + (8 * m + static_cast<std::uint32_t>(row)) * 16 + 2 * column, 2);
      return std::uint32_t{value};
    };
    std::uint32_t result[kLanes];
    for (int lane = 0; lane < kLanes; ++lane) {
      const int major = lane / 4, minor = lane % 4 * 2;
      result[lane] = op.c != 0 ? element(minor, major) | element(minor + 1, major) << 16
                               : element(major, minor) | element(major, minor + 1) << 16;
    }
    warp.store(op.refs[m], result);
  }
}

bool load_matrices(Decoder& decoder) {
  if (!decoder.take("sync") || !decoder.take("aligned") || !decoder.take("m8n8")) return false;
  const std::string_view count = decoder.take_one({"x1", "x2", "x4"});
  if (count.empty() || decoder.operands() != 2) return false;
  Op op{.run = &load_matrices, .flow = Flow::rendezvous, .op_class = OpClass::shared};
  op.a = static_cast<std::uint32_t>(count[1] - '0');
  op.c = decoder.take("trans") ? 1 : 0;
  if (decoder.take_one({"shared", "shared::cta"}).empty() || !decoder.take("b16")) return false;
  const Operand& d = decoder.operand(0);
  std::vector<Operand> parts = d.kind == Operand::Kind::vector ? d.parts : std::vector<Operand>{d};
  if (parts.size() != op.a) return false;
  for (std::size_t i = 0; i < parts.size(); ++i) op.refs[i] = decoder.destination(parts[i]);
  Space space = Space::shared;
  const AddressPart part = decode_address(decoder, op, decoder.operand(1), op.a, space);
  op.offset = part.offset;
  op.b = part.width;
  op.target = kAllLanesMask;
  decoder.note_access(Space::shared, 16);
  decoder.emit(op);
  return true;
}

}  // namespace

bool decode_matrix(Decoder& decoder, std::string_view mnemonic) {
  if (mnemonic == "mma") return multiply(decoder);
  if (mnemonic == "ldmatrix") return load_matrices(decoder);
  return false;
}

}  // namespace troupe::device::ptx
