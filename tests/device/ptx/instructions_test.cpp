// Single instructions against values known from IEEE 754 and from the examples and tables of PTX ISA 9.0.
#include <fmt/format.h>

#include <cmath>
#include <random>

#include "tests/device/ptx/rounding.h"
#include "tests/device/ptx/session.h"

namespace troupe::device::ptx {
namespace {

constexpr float kInf = INFINITY;
constexpr std::uint32_t kNan = 0x7FC00000;

std::uint64_t f(float x) { return bits_as<std::uint32_t>(x); }
std::uint64_t d(double x) { return bits_as<std::uint64_t>(x); }
std::uint64_t s(std::int32_t x) { return static_cast<std::uint32_t>(x); }

/// An instruction on registers %d, %a, %b, %c (predicates %p), its sources' bits and the result's.
struct Row {
  std::string instruction;
  std::vector<std::uint64_t> sources;
  std::uint64_t want = 0;
};

/// Widths in bits of %d, %a, %b, %c; 1 is a predicate.
struct Widths {
  int d = 32, a = 32, b = 32, c = 32;
};

std::uint64_t evaluate(const Row& row, const Widths& widths) {
  std::string text = ".version 9.0\n.target sm_90\n.address_size 64\n.entry k(.param .u64 out";
  for (std::size_t i = 0; i < 3; ++i) text += fmt::format(", .param .b64 p{}", i);
  text += ") {\n.reg .b64 %out, %wide;\n.reg .pred %p;\nld.param.u64 %out, [out];\n";
  const int source_widths[] = {widths.a, widths.b, widths.c};
  const auto declare = [&](char name, int width) {
    text += width == 1 ? fmt::format(".reg .pred %{};\n", name) : fmt::format(".reg .b{} %{};\n", width, name);
  };
  declare('d', widths.d);
  for (std::size_t i = 0; i < 3; ++i) {
    const char name = static_cast<char>('a' + i);
    declare(name, source_widths[i]);
    if (source_widths[i] == 1) {
      text += fmt::format("ld.param.u64 %wide, [p{}];\nsetp.ne.u64 %{}, %wide, 0;\n", i, name);
    } else {
      text += fmt::format("ld.param.b{} %{}, [p{}];\n", source_widths[i], name, i);
    }
  }
  text += row.instruction + ";\n";
  if (widths.d == 1) text += "selp.u64 %wide, 1, 0, %d;\n";
  if (widths.d == 16) text += "cvt.u64.u16 %wide, %d;\n";
  if (widths.d == 32) text += "cvt.u64.u32 %wide, %d;\n";
  if (widths.d == 64) text += "mov.b64 %wide, %d;\n";
  text += "st.global.u64 [%out], %wide;\nret;\n}\n";
  Session session(text);
  std::uint64_t* out = session.allocate<std::uint64_t>(1);
  std::uint64_t sources[3] = {};
  for (std::size_t i = 0; i < row.sources.size(); ++i) sources[i] = row.sources[i];
  const LaunchResult result = session.run("k", {}, {}, out, sources[0], sources[1], sources[2]);
  EXPECT_TRUE(result.findings.empty()) << row.instruction << "\n" << to_string(result.findings);
  return session.download(out, 1)[0];
}

void expect_all(const std::vector<Row>& rows, const Widths& widths = {}) {
  for (const Row& row : rows) {
    const std::uint64_t got = evaluate(row, widths);
    EXPECT_EQ(got, row.want) << fmt::format("{}: {:#x}, wanted {:#x}", row.instruction, got, row.want);
  }
}

TEST(InstructionsTest, IntegersWrapClampAndExtend) {
  expect_all(
      {{"add.s32 %d, %a, %b", {0x7FFFFFFF, 1}, 0x80000000},
       {"sub.u32 %d, %a, %b", {0, 1}, 0xFFFFFFFF},
       {"mul.lo.s32 %d, %a, %b", {0x10001, 0x10001}, 0x20001},
       {"mul.hi.u32 %d, %a, %b", {0xFFFFFFFF, 0xFFFFFFFF}, 0xFFFFFFFE},
       {"mul.hi.s32 %d, %a, %b", {s(-1), s(-1)}, 0},
       {"mad.lo.s32 %d, %a, %b, %c", {s(-3), 5, 20}, 5},
       {"div.s32 %d, %a, %b", {s(-7), 2}, s(-3)},
       {"rem.s32 %d, %a, %b", {s(-7), 2}, s(-1)},
       {"div.s32 %d, %a, %b", {0x80000000, s(-1)}, 0x80000000},
       {"div.u32 %d, %a, %b", {s(-7), 2}, 0x7FFFFFFC},
       {"min.s32 %d, %a, %b", {s(-1), 1}, s(-1)},
       {"min.u32 %d, %a, %b", {s(-1), 1}, 1},
       {"abs.s32 %d, %a", {0x80000000}, 0x80000000},
       {"neg.s32 %d, %a", {5}, s(-5)},
       {"shl.b32 %d, %a, %b", {1, 31}, 0x80000000},
       {"shl.b32 %d, %a, %b", {1, 32}, 0},
       {"shr.s32 %d, %a, %b", {0x80000000, 40}, 0xFFFFFFFF},
       {"shr.u32 %d, %a, %b", {0x80000000, 40}, 0},
       {"bfe.u32 %d, %a, 4, 8", {0xABCD1234}, 0x23},
       {"bfe.s32 %d, %a, 28, 4", {0xF0000000}, 0xFFFFFFFF},
       {"bfe.s32 %d, %a, 28, 8", {0x70000000}, 7},
       {"bfe.u32 %d, %a, 0, 32", {0xDEADBEEF}, 0xDEADBEEF},
       {"bfi.b32 %d, %a, %b, 8, 4", {0xF, 0}, 0xF00},
       {"bfi.b32 %d, %a, %b, 0, 32", {7, 9}, 7},
       {"prmt.b32 %d, %a, %b, 0x5410", {0x33221100, 0x77665544}, 0x55441100},
       {"prmt.b32 %d, %a, %b, 0xBA98", {0x00FF7F80, 0}, 0x00FF00FF},
       {"popc.b32 %d, %a", {0xF0F0F0F0}, 16},
       {"clz.b32 %d, %a", {1}, 31},
       {"clz.b32 %d, %a", {0}, 32},
       {"brev.b32 %d, %a", {1}, 0x80000000},
       {"bfind.u32 %d, %a", {0x00800000}, 23},
       {"bfind.s32 %d, %a", {s(-1)}, 0xFFFFFFFF},
       {"bfind.shiftamt.u32 %d, %a", {1}, 31},
       {"lop3.b32 %d, %a, %b, %c, 0x1A", {0xF0, 0xCC, 0xAA}, ((0xF0 & 0xCC) | 0xAA) ^ 0xF0},
       {"lop3.b32 %d, %a, %b, %c, 0x96", {0x12345678, 0x9ABCDEF0, 0x0F0F0F0F}, 0x12345678u ^ 0x9ABCDEF0u ^ 0x0F0F0F0Fu},
       {"shf.l.wrap.b32 %d, %a, %b, %c", {0x80000001, 0x00000001, 4}, 0x18},
       {"shf.r.wrap.b32 %d, %a, %b, %c", {0x12345678, 0x9ABCDEF0, 8}, 0xF0123456},
       {"shf.l.clamp.b32 %d, %a, %b, %c", {1, 2, 40}, 1},
       {"not.b32 %d, %a", {0x0F}, 0xFFFFFFF0}});
  expect_all({{"add.s64 %d, %a, %b", {~std::uint64_t{0}, 2}, 1},
              {"mul.hi.u64 %d, %a, %b", {std::uint64_t{1} << 63, 6}, 3},
              {"mul.hi.s64 %d, %a, %b", {~std::uint64_t{0}, 6}, ~std::uint64_t{0}},
              {"bfe.s64 %d, %a, 60, 4", {std::uint64_t{0xA} << 60}, ~std::uint64_t{5}},
              {"brev.b64 %d, %a", {1}, std::uint64_t{1} << 63}},
             {.d = 64, .a = 64, .b = 64, .c = 64});
  expect_all({{"mul.wide.s32 %d, %a, %b", {s(-2), 3}, ~std::uint64_t{5}},
              {"mul.wide.u32 %d, %a, %b", {0xFFFFFFFF, 2}, 0x1FFFFFFFE}},
             {.d = 64});
  expect_all({{"mad.wide.s32 %d, %a, %b, %c", {s(-2), 3, 10}, 4}}, {.d = 64, .c = 64});
  expect_all({{"mul.wide.s16 %d, %a, %b", {0xFFFF, 5}, s(-5)}}, {.a = 16, .b = 16});
  expect_all({{"shr.s16 %d, %a, %b", {0x8000, 20}, 0xFFFF}, {"shl.b16 %d, %a, %b", {0xFFFF, 8}, 0xFF00}},
             {.d = 16, .a = 16});
  expect_all({{"add.s16 %d, %a, %b", {0xFFFF, 2}, 1}, {"min.s16 %d, %a, %b", {0xFFFF, 2}, 0xFFFF}},
             {.d = 16, .a = 16, .b = 16});
}

TEST(InstructionsTest, ComparisonsOfAllKinds) {
  const Widths widths{.d = 1, .c = 1};
  expect_all({{"setp.lt.s32 %d, %a, %b", {s(-1), 1}, 1},
              {"setp.lt.u32 %d, %a, %b", {s(-1), 1}, 0},
              {"setp.hi.u32 %d, %a, %b", {s(-1), 1}, 1},
              {"setp.lt.f32 %d, %a, %b", {kNan, f(1)}, 0},
              {"setp.ltu.f32 %d, %a, %b", {kNan, f(1)}, 1},
              {"setp.ne.f32 %d, %a, %b", {kNan, f(1)}, 0},
              {"setp.neu.f32 %d, %a, %b", {kNan, f(1)}, 1},
              {"setp.equ.f32 %d, %a, %b", {f(2), f(1)}, 0},
              {"setp.eq.f32 %d, %a, %b", {f(-0.0f), f(0)}, 1},
              {"setp.num.f32 %d, %a, %b", {f(2), f(1)}, 1},
              {"setp.nan.f32 %d, %a, %b", {f(2), kNan}, 1},
              {"setp.gt.ftz.f32 %d, %a, %b", {1, 0}, 0},
              {"setp.gt.f32 %d, %a, %b", {1, 0}, 1},
              {"setp.lt.and.s32 %d, %a, %b, %c", {0, 1, 0}, 0},
              {"setp.lt.or.s32 %d, %a, %b, %c", {1, 1, 1}, 1},
              {"setp.lt.xor.s32 %d, %a, %b, !%c", {0, 1, 0}, 0},
              {"setp.lt.s32 %p|%d, %a, %b", {0, 1}, 0}},
             widths);
  expect_all({{"setp.lt.f16 %d, %a, %b", {to_half(1), to_half(2)}, 1},
              {"setp.ge.bf16 %d, %a, %b", {to_bfloat(1), to_bfloat(2)}, 0}},
             {.d = 1, .a = 16, .b = 16});
  expect_all({{"selp.b32 %d, %a, %b, %c", {1, 2, 1}, 1}, {"selp.b32 %d, %a, %b, %c", {1, 2, 0}, 2}}, {.c = 1});
}

TEST(InstructionsTest, FloatsRoundInEveryMode) {
  const float third = 1.0f / 3.0f, up = std::nextafter(1.0f, 2.0f), tiny = 0x1p-30f;
  expect_all({{"add.f32 %d, %a, %b", {f(1), f(tiny)}, f(1)},
              {"add.rp.f32 %d, %a, %b", {f(1), f(tiny)}, f(up)},
              {"add.rz.f32 %d, %a, %b", {f(1), f(-tiny)}, f(std::nextafter(1.0f, 0.0f))},
              {"add.rm.f32 %d, %a, %b", {f(1), f(-tiny)}, f(std::nextafter(1.0f, 0.0f))},
              {"add.rm.f32 %d, %a, %b", {f(1), f(-1)}, f(-0.0f)},
              {"sub.rp.f32 %d, %a, %b", {f(1), f(1)}, f(0)},
              {"add.rp.f32 %d, %a, %b", {f(0x1p100f), f(0x1p-100f)}, f(std::nextafter(0x1p100f, kInf))},
              {"mul.rz.f32 %d, %a, %b", {f(3e38f), f(3e38f)}, 0x7F7FFFFF},
              {"mul.rn.f32 %d, %a, %b", {f(3e38f), f(3e38f)}, f(kInf)},
              {"mul.rp.f32 %d, %a, %b", {1, f(0.5f)}, 1},
              {"mul.ftz.f32 %d, %a, %b", {f(0x1p-126f), f(-0.5f)}, 0x80000000},
              {"mul.f32 %d, %a, %b", {f(0x1p-126f), f(-0.5f)}, 0x80400000},
              {"add.ftz.f32 %d, %a, %b", {1, f(-0.0f)}, 0},
              {"add.sat.f32 %d, %a, %b", {f(1), f(1)}, f(1)},
              {"add.sat.f32 %d, %a, %b", {kNan, f(1)}, 0},
              {"add.f32 %d, %a, %b", {f(kInf), f(-kInf)}, 0x7FFFFFFF},
              {"fma.rn.f32 %d, %a, %b, %c", {f(up), f(up), f(-1)}, f(std::fma(up, up, -1.0f))},
              {"fma.rz.f32 %d, %a, %b, %c", {f(1), f(1), f(-tiny)}, f(std::nextafter(1.0f, 0.0f))},
              {"fma.rm.f32 %d, %a, %b, %c", {f(0x1p60f), f(0x1p60f), f(-1)}, f(std::nextafter(0x1p120f, 0.0f))},
              {"div.rn.f32 %d, %a, %b", {f(1), f(3)}, f(third)},
              {"div.rz.f32 %d, %a, %b", {f(1), f(3)}, f(std::nextafter(third, 0.0f))},
              {"div.rm.f32 %d, %a, %b", {f(1), f(3)}, f(std::nextafter(third, 0.0f))},
              {"div.rp.f32 %d, %a, %b", {f(1), f(3)}, f(third)},
              {"rcp.rp.f32 %d, %a", {f(-3)}, f(-std::nextafter(third, 0.0f))},
              {"sqrt.rn.f32 %d, %a", {f(2)}, f(std::sqrt(2.0f))},
              {"sqrt.rz.f32 %d, %a", {f(2)}, f(0x1.6A09E6p0f)},
              {"sqrt.rp.f32 %d, %a", {f(2)}, f(0x1.6A09E8p0f)},
              {"sqrt.rn.f32 %d, %a", {f(-1)}, 0x7FFFFFFF},
              {"min.f32 %d, %a, %b", {kNan, f(2)}, f(2)},
              {"min.NaN.f32 %d, %a, %b", {kNan, f(2)}, 0x7FFFFFFF},
              {"min.f32 %d, %a, %b", {f(0), f(-0.0f)}, f(-0.0f)},
              {"max.f32 %d, %a, %b", {f(-0.0f), f(0)}, f(0)},
              {"max.f32 %d, %a, %b", {kNan, kNan}, 0x7FFFFFFF},
              {"neg.f32 %d, %a", {kNan}, 0xFFC00000},
              {"abs.ftz.f32 %d, %a", {0x80000001}, 0},
              {"copysign.f32 %d, %a, %b", {f(-1), f(3)}, f(-3)},
              {"rcp.approx.ftz.f32 %d, %a", {1}, f(kInf)},
              {"ex2.approx.ftz.f32 %d, %a", {f(-3)}, f(0.125f)},
              {"lg2.approx.f32 %d, %a", {f(0)}, f(-kInf)},
              {"rsqrt.approx.f32 %d, %a", {f(4)}, f(0.5f)},
              {"sin.approx.f32 %d, %a", {f(0)}, f(0)},
              {"cos.approx.f32 %d, %a", {f(0)}, f(1)},
              {"tanh.approx.f32 %d, %a", {f(100)}, f(1)}});
  const Widths doubles{.d = 64, .a = 64, .b = 64, .c = 64};
  expect_all({{"add.f64 %d, %a, %b", {d(1), d(0x1p-60)}, d(1)},
              {"add.rp.f64 %d, %a, %b", {d(1), d(0x1p-60)}, d(std::nextafter(1.0, 2.0))},
              {"mul.rz.f64 %d, %a, %b", {d(1e308), d(1e308)}, 0x7FEFFFFFFFFFFFFF},
              {"fma.rn.f64 %d, %a, %b, %c", {d(3), d(4), d(5)}, d(17)},
              {"div.rn.f64 %d, %a, %b", {d(1), d(3)}, d(1.0 / 3.0)},
              {"sqrt.rn.f64 %d, %a", {d(2)}, d(std::sqrt(2.0))},
              {"max.f64 %d, %a, %b", {d(NAN), d(2)}, d(2)},
              {"neg.f64 %d, %a", {d(2)}, d(-2)}},
             doubles);
}

TEST(InstructionsTest, DirectedModesEncloseTheExactValue) {
  std::mt19937 random(5);
  for (int i = 0; i < 20000; ++i) {
    const float a = bits_as<float>(static_cast<std::uint32_t>(random())),
                b = bits_as<float>(static_cast<std::uint32_t>(random()));
    if (!std::isfinite(a) || !std::isfinite(b)) continue;
    // a sum in 80 bits or a product in 64 is exact enough to compare with
    const double product = static_cast<double>(a) * b;
    const float down = to_float(product, Rounding::down), up = to_float(product, Rounding::up);
    EXPECT_LE(static_cast<double>(down), product);
    EXPECT_GE(static_cast<double>(up), product);
    EXPECT_TRUE(down == up || std::nextafter(down, kInf) == up);
    const double odd = to_odd(exact_sum(a, b));
    EXPECT_EQ(to_float(odd, Rounding::nearest), a + b);
  }
}

TEST(InstructionsTest, ConversionsRoundAndSaturate) {
  expect_all({{"cvt.rn.f32.s32 %d, %a", {0x01000001}, f(16777216.0f)},
              {"cvt.rp.f32.s32 %d, %a", {0x01000001}, f(16777218.0f)},
              {"cvt.rz.f32.u32 %d, %a", {0xFFFFFFFF}, f(4294967040.0f)},
              {"cvt.rni.s32.f32 %d, %a", {f(2.5f)}, 2},
              {"cvt.rzi.s32.f32 %d, %a", {f(-2.9f)}, s(-2)},
              {"cvt.rmi.s32.f32 %d, %a", {f(-2.1f)}, s(-3)},
              {"cvt.rpi.s32.f32 %d, %a", {f(2.1f)}, 3},
              {"cvt.rzi.s32.f32 %d, %a", {f(1e20f)}, 0x7FFFFFFF},
              {"cvt.rzi.s32.f32 %d, %a", {kNan}, 0},
              {"cvt.rzi.u32.f32 %d, %a", {f(-1)}, 0},
              {"cvt.rni.f32.f32 %d, %a", {f(3.5f)}, f(4)},
              {"cvt.sat.f32.f32 %d, %a", {f(3.5f)}, f(1)},
              {"cvt.ftz.f32.f32 %d, %a", {1}, 0},
              {"cvt.s32.s8 %d, %a", {0x80}, s(-128)},
              {"cvt.u32.u8 %d, %a", {0x1FF}, 0xFF},
              {"cvt.sat.u8.s32 %d, %a", {s(-5)}, 0},
              {"cvt.sat.s8.s32 %d, %a", {200}, 127},
              {"cvt.rn.bf16x2.f32 %d, %a, %b", {f(1), f(2)}, 0x3F804000},
              {"cvt.rn.f16x2.f32 %d, %a, %b", {f(1), f(65520.0f)}, 0x3C007C00},
              {"cvt.rn.relu.bf16x2.f32 %d, %a, %b", {f(-1), f(2)}, 0x00004000}});
  expect_all({{"cvt.rn.bf16.f32 %d, %a", {0x3F808000}, 0x3F80},
              {"cvt.rn.bf16.f32 %d, %a", {0x3F818000}, 0x3F82},
              {"cvt.rz.bf16.f32 %d, %a", {0x3F81FFFF}, 0x3F81},
              {"cvt.rn.bf16.f32 %d, %a", {0xFFC00000}, 0x7FFF},
              {"cvt.rn.f16.f32 %d, %a", {f(0x1p-24f)}, 1},
              {"cvt.rn.f16.f32 %d, %a", {f(0x1p-25f)}, 0},
              {"cvt.rp.f16.f32 %d, %a", {f(0x1p-40f)}, 1},
              {"cvt.rm.f16.f32 %d, %a", {f(-0x1p-40f)}, 0x8001},
              {"cvt.rz.f16.f32 %d, %a", {f(65536.0f)}, 0x7BFF},
              {"cvt.rn.f16.f32 %d, %a", {f(65519.0f)}, 0x7BFF},
              {"cvt.rn.f16.s32 %d, %a", {2049}, to_half(2048)},
              {"cvt.u16.u32 %d, %a", {0x12345}, 0x2345}},
             {.d = 16});
  expect_all({{"cvt.f32.f16 %d, %a", {1}, f(0x1p-24f)},
              {"cvt.f32.f16 %d, %a", {0xFC00}, f(-kInf)},
              {"cvt.f32.bf16 %d, %a", {0x3F80}, f(1)},
              {"cvt.rzi.s32.f16 %d, %a", {to_half(-3.5f)}, s(-3)},
              {"cvt.s32.s16 %d, %a", {0x8000}, s(-32768)}},
             {.a = 16});
  expect_all({{"cvt.rn.f32.s64 %d, %a", {0x4000004000000001}, 0x5E800001},
              {"cvt.rn.f32.f64 %d, %a", {d(1.0 + 0x1p-24)}, f(1)},
              {"cvt.rp.f32.f64 %d, %a", {d(1.0 + 0x1p-40)}, f(std::nextafter(1.0f, 2.0f))},
              {"cvt.u32.u64 %d, %a", {0x1234567890}, 0x34567890},
              {"cvt.rzi.s32.f64 %d, %a", {d(-1e10)}, 0x80000000}},
             {.a = 64});
  expect_all({{"cvt.f64.f32 %d, %a", {f(1.5f)}, d(1.5)},
              {"cvt.s64.s32 %d, %a", {s(-2)}, ~std::uint64_t{1}},
              {"cvt.u64.u32 %d, %a", {s(-2)}, 0xFFFFFFFE},
              {"cvt.rzi.u64.f32 %d, %a", {f(1e30f)}, ~std::uint64_t{0}},
              {"cvt.rzi.s64.f32 %d, %a", {f(-0x1p40f)}, 0xFFFFFF0000000000},
              {"mov.b64 %d, {%a, %b}", {1, 2}, 0x200000001}},
             {.d = 64});
}

TEST(InstructionsTest, HalvesRoundOnceAndFollowTheirNanRules) {
  const Widths narrow{.d = 16, .a = 16, .b = 16, .c = 16};
  const std::uint64_t one = to_half(1), unit = 0x1400;  // 2^-10
  expect_all({{"add.f16 %d, %a, %b", {one, unit}, one + 1},
              {"mul.f16 %d, %a, %b", {to_half(300), to_half(300)}, 0x7C00},
              {"fma.rn.f16 %d, %a, %b, %c", {one + 1, one + 1, one ^ 0x8000}, to_half(0x1p-9f)},
              {"fma.rn.f16 %d, %a, %b, %c", {0x7BFF, 0x7BFF, 0xFC00}, 0xFC00},
              {"add.f16 %d, %a, %b", {0x7C00, 0xFC00}, 0x7FFF},
              {"min.f16 %d, %a, %b", {0x7E00, one}, one},
              {"min.NaN.f16 %d, %a, %b", {0x7E00, one}, 0x7FFF},
              {"neg.f16 %d, %a", {one}, one ^ 0x8000},
              {"abs.bf16 %d, %a", {0xBF80}, 0x3F80},
              {"fma.rn.bf16 %d, %a, %b, %c", {0x3F81, 0x3F81, 0xBF80}, to_bfloat(0x1.01p-6f)},
              {"fma.rn.relu.bf16 %d, %a, %b, %c", {0x3F80, 0xBF80, 0}, 0},
              {"max.bf16 %d, %a, %b", {0x3F80, 0x4000}, 0x4000},
              {"add.bf16 %d, %a, %b", {0x3F80, 0x3B80}, 0x3F80},
              {"ex2.approx.ftz.bf16 %d, %a", {0x4000}, 0x4080}},
             narrow);
  expect_all({{"add.f16x2 %d, %a, %b", {0x3C004000, 0x3C003C00}, 0x40004200},
              {"fma.rn.bf16x2 %d, %a, %b, %c", {0x3F804000, 0x40004000, 0x3F803F80}, 0x404040A0},
              {"neg.bf16x2 %d, %a", {0x3F80BF80}, 0xBF803F80}});
}

TEST(InstructionsTest, MatrixProductsAgreeWithATripleLoop) {
  for (const bool bfloat : {false, true}) {
    const std::string text = fmt::format(
        ".version 9.0\n.target sm_80\n.address_size 64\n.entry k(.param .u64 in, .param .u64 out) {{\n"
        ".reg .b64 %in, %out, %off;\n.reg .b32 %t, %a<4>, %b<2>;\n.reg .f32 %c<4>;\n"
        "ld.param.u64 %in, [in];\nld.param.u64 %out, [out];\nmov.u32 %t, %tid.x;\nmul.wide.u32 %off, %t, 48;\n"
        "add.u64 %in, %in, %off;\nmul.wide.u32 %off, %t, 16;\nadd.u64 %out, %out, %off;\n"
        "ld.global.v4.b32 {{%a0, %a1, %a2, %a3}}, [%in];\nld.global.v2.b32 {{%b0, %b1}}, [%in+16];\n"
        "ld.global.v4.f32 {{%c0, %c1, %c2, %c3}}, [%in+32];\n"
        "mma.sync.aligned.m16n8k16.row.col.f32.{0}.{0}.f32 {{%c0, %c1, %c2, %c3}}, {{%a0, %a1, %a2, %a3}}, "
        "{{%b0, %b1}}, {{%c0, %c1, %c2, %c3}};\n"
        "st.global.v4.f32 [%out], {{%c0, %c1, %c2, %c3}};\nret;\n}}\n",
        bfloat ? "bf16" : "f16");
    Session session(text);
    std::mt19937 random(9);
    const auto draw = [&] { return static_cast<float>(static_cast<int>(random() % 255) - 127) / 64.0f; };
    std::vector<std::vector<float>> a(16, std::vector<float>(16)), b(16, std::vector<float>(8)),
        c(16, std::vector<float>(8));
    for (auto* matrix : {&a, &b, &c}) {
      for (auto& row : *matrix) {
        for (float& x : row) x = draw();
      }
    }
    const auto bits = [&](float x) { return bfloat ? to_bfloat(x) : to_half(x); };
    // the figures of the ISA: groupID = lane / 4, threadID_in_group = lane % 4
    std::vector<std::uint32_t> in(32 * 12);
    for (std::size_t lane = 0; lane < 32; ++lane) {
      const std::size_t group = lane / 4, t = lane % 4;
      for (std::size_t i = 0; i < 8; ++i) {
        const std::size_t row = i % 4 < 2 ? group : group + 8, column = t * 2 + (i & 1) + (i >= 4 ? 8 : 0);
        in[lane * 12 + i / 2] |= static_cast<std::uint32_t>(bits(a[row][column])) << (16 * (i & 1));
      }
      for (std::size_t i = 0; i < 4; ++i) {
        const std::size_t row = t * 2 + (i & 1) + (i >= 2 ? 8 : 0);
        in[lane * 12 + 4 + i / 2] |= static_cast<std::uint32_t>(bits(b[row][group])) << (16 * (i & 1));
      }
      for (std::size_t i = 0; i < 4; ++i) {
        in[lane * 12 + 8 + i] = bits_as<std::uint32_t>(c[i < 2 ? group : group + 8][t * 2 + (i & 1)]);
      }
    }
    const std::uint32_t* from = session.upload(in);
    float* out = session.allocate<float>(128);
    const LaunchResult result = session.run("k", {.block = {32, 1, 1}}, {}, from, out);
    EXPECT_TRUE(result.findings.empty()) << to_string(result.findings);
    const auto got = session.download(out, 128);
    const auto value = [&](float x) {
      return static_cast<double>(bfloat ? from_bfloat(to_bfloat(x)) : from_half(to_half(x)));
    };
    for (std::size_t lane = 0; lane < 32; ++lane) {
      for (std::size_t i = 0; i < 4; ++i) {
        const std::size_t row = i < 2 ? lane / 4 : lane / 4 + 8, column = lane % 4 * 2 + (i & 1);
        double want = static_cast<double>(c[row][column]);
        for (std::size_t j = 0; j < 16; ++j) want += value(a[row][j]) * value(b[j][column]);
        ASSERT_EQ(got[lane * 4 + i], static_cast<float>(want));
      }
    }
  }
}

TEST(InstructionsTest, WhatIsOutsideTheSetIsNamed) {
  const auto error_of = [](const std::string& body) {
    auto module = Module::parse(
        ".version 9.0\n.target sm_90\n.address_size 64\n.file 1 \"a.cu\"\n.entry k() {\n"
        ".reg .b32 %r<4>;\n.reg .f32 %f<4>;\n.loc 1 12 0\n" +
        body + "\nret;\n}\n");
    if (!module) return module.error().message();
    DeviceMemory memory;
    const auto program = Program::load(std::move(*module), memory);
    return program ? std::string("loaded") : program.error().message();
  };
  for (const char* body :
       {"wgmma.fence.sync.aligned;", "mov.u32 %r1, %clock;", "add.cc.u32 %r1, %r2, %r3;",
        "tex.1d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [t, {%r1}];",
        "mma.sync.aligned.m8n8k4.row.col.f32.f32.f32.f32 %f0, %f1, %f2, %f3;", "barrier.cluster.arrive;",
        "match.any.sync.b32 %r1, %r2, -1;", "redux.sync.add.u32 %r1, %r2, -1;", "add.f32 %r1, %f1, %f2, %f3;",
        "red.global.add.f32 [%r1], %f1;"}) {
    const std::string error = error_of(body);
    EXPECT_NE(error.find("a.cu:12"), std::string::npos) << body << ": " << error;
    EXPECT_NE(error.find(std::string(body).substr(0, std::string(body).find_first_of(" ;"))), std::string::npos)
        << body << ": " << error;
  }
  EXPECT_EQ(error_of("add.u32 %r1, 1, 2;"), "loaded");
  EXPECT_NE(error_of(".tex .u64 t;").find(".tex"), std::string::npos);
}

}  // namespace
}  // namespace troupe::device::ptx
