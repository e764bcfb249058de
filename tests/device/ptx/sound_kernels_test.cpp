// kernels/sound.cu as nvcc translates it: right results and no finding, whatever the order of threads.
#include <cmath>
#include <cstring>
#include <random>

#include "tests/device/ptx/rounding.h"
#include "tests/device/ptx/session.h"

namespace troupe::device::ptx {
namespace {

constexpr std::uint64_t kSeeds = 24;

std::vector<float> small_integers(std::size_t count, std::uint32_t seed = 1) {
  std::mt19937 random(seed);
  std::vector<float> values(count);
  for (float& v : values) v = static_cast<float>(static_cast<int>(random() % 33) - 16);
  return values;
}

/// By architecture, as the parameter says.
class SoundKernelsTest : public ::testing::TestWithParam<const char*> {
 protected:
  SoundKernelsTest() : session(Session::read(std::string(TROUPE_PTX_FOLDER) + "/sound." + GetParam() + ".ptx")) {}

  template <class... Arguments>
  LaunchResult run(const char* name, std::uint64_t seed, const LaunchShape& shape, const Arguments&... arguments) {
    const LaunchResult result = session.run(name, shape, {.seed = seed}, arguments...);
    EXPECT_TRUE(result.findings.empty()) << "seed " << seed << "\n" << to_string(result.findings);
    return result;
  }

  Session session;
};

TEST_P(SoundKernelsTest, SumsAreThoseOfALoop) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    for (const std::int64_t n : {std::int64_t{1}, std::int64_t{257}, std::int64_t{1000}}) {
      const auto x = small_integers(static_cast<std::size_t>(n));
      const auto blocks = static_cast<std::uint32_t>((n + 255) / 256);
      const float* in = session.upload(x);
      float* shuffled = session.allocate<float>(blocks);
      float* tree = session.allocate<float>(blocks);
      run("sum_by_shuffle", seed, {.grid = {blocks, 1, 1}, .block = {256, 1, 1}}, in, shuffled, n);
      run("sum_by_tree", seed, {.grid = {blocks, 1, 1}, .block = {256, 1, 1}, .shared_bytes = 1024}, in, tree, n);
      std::vector<float> want(blocks, 0.0f);
      for (std::size_t i = 0; i < x.size(); ++i) want[i / 256] += x[i];
      EXPECT_EQ(session.download(shuffled, blocks), want);
      EXPECT_EQ(session.download(tree, blocks), want);
    }
  }
}

TEST_P(SoundKernelsTest, TransposesAndCountsBankConflicts) {
  const std::uint32_t rows = 64, columns = 96;
  const auto x = small_integers(rows * columns);
  const float* in = session.upload(x);
  float* out = session.allocate<float>(x.size());
  const LaunchShape shape{.grid = {columns / 32, rows / 32, 1}, .block = {32, 8, 1}};
  const int r = static_cast<int>(rows), c = static_cast<int>(columns);
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const LaunchResult padded = run("transpose_padded", seed, shape, in, out, r, c);
    const LaunchResult plain = run("transpose_plain", seed, shape, in, out, r, c);
    const auto got = session.download(out, x.size());
    for (std::size_t i = 0; i < x.size(); ++i) ASSERT_EQ(got[i % columns * rows + i / columns], x[i]);
    const std::uint64_t accesses = rows * columns / 32;
    EXPECT_EQ(padded.counts.all.conflicts, 0U);
    EXPECT_EQ(padded.counts.all.wavefronts, 2 * accesses);
    EXPECT_EQ(plain.counts.all.conflicts, 31 * accesses);
    EXPECT_EQ(plain.counts.all.sectors, 2 * accesses * 4);
    EXPECT_EQ(plain.counts.all.sector_use(), 1.0);
    std::uint64_t at_line = 0;
    for (const LineCounts& line : plain.counts.lines) at_line += line.all.conflicts > 0;
    EXPECT_EQ(at_line, 1U) << "one source line has the conflicts";
    ASSERT_EQ(padded.touched.size(), 2U);
    const auto base = reinterpret_cast<std::uint64_t>(in);
    EXPECT_EQ(padded.touched[0].reads, (std::vector<Interval>{{base, base + 4 * x.size()}}));
    EXPECT_TRUE(padded.touched[0].writes.empty());
    EXPECT_EQ(padded.touched[1].writes.size(), 1U);
  }
}

TEST_P(SoundKernelsTest, AsyncCopiesLandBeforeTheyAreRead) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const int steps = 5;
    const auto x = small_integers(5 * 512);
    const float* in = session.upload(x);
    float* out = session.allocate<float>(512);
    run("sum_rows_async", seed, {.block = {128, 1, 1}}, in, out, steps);
    const auto got = session.download(out, 512);
    for (std::size_t i = 0; i < 512; ++i) {
      float want = 0;
      for (std::size_t s = 0; s < 5; ++s) want += x[s * 512 + (127 - i / 4) * 4 + i % 4];
      ASSERT_EQ(got[i], want);
    }
  }
}

TEST_P(SoundKernelsTest, TileProductIsTheTripleLoop) {
  const int steps = 3;
  const std::size_t k = 48;
  const auto a = small_integers(16 * k), b = small_integers(8 * k, 2);
  const auto to_bits = [](const std::vector<float>& values) {
    std::vector<std::uint16_t> bits;
    for (const float v : values) bits.push_back(to_bfloat(v));
    return bits;
  };
  const std::uint16_t* in_a = session.upload(to_bits(a));
  const std::uint16_t* in_b = session.upload(to_bits(b));
  float* out = session.allocate<float>(16 * 8);
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const LaunchResult result = run("tile_product", seed, {.block = {32, 1, 1}}, in_a, in_b, out, steps);
    const auto got = session.download(out, 16 * 8);
    for (std::size_t row = 0; row < 16; ++row) {
      for (std::size_t column = 0; column < 8; ++column) {
        float want = 0;
        for (std::size_t i = 0; i < k; ++i) want += a[row * k + i] * b[column * k + i];
        ASSERT_EQ(got[row * 8 + column], want);
      }
    }
    EXPECT_EQ(result.counts.warps_by_class[static_cast<std::size_t>(OpClass::mma)], 3U);
  }
}

struct Box {
  float corner[2] = {2, 3};
  std::int32_t counts[5] = {10, 11, 12, 13, 14};
  double scale = 0.5;
};

TEST_P(SoundKernelsTest, StructsAndCallsKeepTheirValues) {
  const Box box;
  float* out = session.allocate<float>(40);
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    run("struct_by_value", seed, {.block = {40, 1, 1}}, box, out);
    const auto got = session.download(out, 40);
    for (std::size_t i = 0; i < 40; ++i) {
      const float by = 1.0f + static_cast<float>(i);
      const float size = 1.0f + 4 * by + 14 + 2 * 4;
      ASSERT_EQ(got[i], size * 0.5f + static_cast<float>(10 + i % 5));
    }
  }
}

TEST_P(SoundKernelsTest, PartedLoopsMeetAgain) {
  std::vector<std::uint32_t> start;
  for (std::uint32_t i = 0; i < 150; ++i) start.push_back(1 + i * 37 % 511);
  const std::uint32_t* in = session.upload(start);
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    std::uint32_t* steps = session.allocate<std::uint32_t>(150);
    std::uint32_t* longest = session.upload(std::vector<std::uint32_t>{0});
    const int n = 150;
    const LaunchResult result = run("collatz", seed, {.grid = {3, 1, 1}, .block = {64, 1, 1}}, in, steps, longest, n);
    const auto got = session.download(steps, 150);
    std::uint32_t most = 0;
    for (std::size_t i = 0; i < 150; ++i) {
      std::uint64_t x = start[i];
      std::uint32_t count = 0;
      for (; x > 1; ++count) x = x % 2 == 0 ? x / 2 : 3 * x + 1;
      ASSERT_EQ(got[i], count);
      most = std::max(most, count);
    }
    EXPECT_EQ(session.download(longest, 1)[0], most);
    EXPECT_LT(result.counts.all.lane_use(), 0.9);
  }
}

TEST_P(SoundKernelsTest, HalvesOfAWarpShuffleByThemselves) {
  std::vector<std::int32_t> x;
  for (int i = 0; i < 64; ++i) x.push_back(i * i % 17);
  const std::int32_t* in = session.upload(x);
  std::int32_t* out = session.allocate<std::int32_t>(64);
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    run("halves", seed, {.block = {64, 1, 1}}, in, out);
    const auto got = session.download(out, 64);
    for (std::size_t warp = 0; warp < 64; warp += 32) {
      std::int32_t low = 0, running = 0;
      for (std::size_t i = 0; i < 16; ++i) low += x[warp + i];
      EXPECT_EQ(got[warp + 16], low);
      for (std::size_t i = 0; i < 16; ++i) {
        running += x[warp + 16 + i];
        ASSERT_EQ(got[warp + i], running);
      }
    }
  }
}

TEST_P(SoundKernelsTest, NumberedBarriersHandOver) {
  const int rounds = 4;
  const auto x = small_integers(256);
  const float* in = session.upload(x);
  float* out = session.allocate<float>(256);
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    run("hand_over", seed, {.block = {128, 1, 1}}, in, out, rounds);
    const auto got = session.download(out, 256);
    for (std::size_t i = 0; i < 256; ++i) ASSERT_EQ(got[i], 2 * x[i / 64 * 64 + ((i % 64) ^ 33)]);
  }
}

TEST_P(SoundKernelsTest, AtomicsOnIntegersCount) {
  const int n = 1003;
  std::vector<std::uint8_t> x;
  for (int i = 0; i < n; ++i) x.push_back(static_cast<std::uint8_t>(i * 89));
  std::vector<std::uint32_t> want(16);
  for (const std::uint8_t v : x) ++want[v / 16];
  const std::uint8_t* in = session.upload(x);
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    std::uint32_t* out = session.upload(std::vector<std::uint32_t>(16, 0));
    run("histogram", seed, {.grid = {3, 1, 1}, .block = {96, 1, 1}}, in, out, n);
    EXPECT_EQ(session.download(out, 16), want);
  }
}

TEST_P(SoundKernelsTest, PairsOfHalvesRoundOnce) {
  std::mt19937 random(3);
  std::vector<std::uint16_t> x(128), y(128);
  for (auto& v : x) v = to_half(static_cast<float>(random() % 4096) / 512.0f - 4.0f);
  for (auto& v : y) v = to_bfloat(static_cast<float>(random() % 4096) / 512.0f - 4.0f);
  const std::uint16_t *in_x = session.upload(x), *in_y = session.upload(y);
  std::uint16_t *out_x = session.allocate<std::uint16_t>(64), *out_y = session.allocate<std::uint16_t>(64);
  float* sums = session.allocate<float>(32);
  run("half_pairs", 1, {.block = {32, 1, 1}}, in_x, in_y, out_x, out_y, sums);
  const auto got_x = session.download(out_x, 64), got_y = session.download(out_y, 64);
  const auto got_sums = session.download(sums, 32);
  for (std::size_t i = 0; i < 64; ++i) {
    // products of 16-bit values and their sums with one are exact in f64
    const double a = from_half(x[i]), b = from_half(x[i + 64]), c = from_bfloat(y[i]), d = from_bfloat(y[i + 64]);
    const float fused = from_half(to_half(to_odd_float(a * b + a)));
    ASSERT_EQ(from_half(got_x[i]), std::max(fused, from_half(to_half(static_cast<float>(a - b)))));
    const float other = from_bfloat(to_bfloat(to_odd_float(c * d + c)));
    ASSERT_EQ(from_bfloat(got_y[i]), std::min(other, from_bfloat(to_bfloat(static_cast<float>(c * d)))));
  }
  for (std::size_t i = 0; i < 32; ++i) {
    const float more = from_half(x[2 * i]) > from_half(x[2 * i + 64]) ? 1.0f : 0.0f;
    const float c = from_bfloat(y[2 * i]) + from_bfloat(y[2 * i + 1]);
    ASSERT_EQ(got_sums[i], c + from_half(x[2 * i]) + from_half(x[2 * i + 1]) + more);
  }
}

TEST_P(SoundKernelsTest, EveryChoiceIsTaken) {
  const int n = 4;
  std::vector<std::int32_t> which;
  for (int i = 0; i < 64; ++i) which.push_back(i % 8);
  const std::int32_t* in = session.upload(which);
  float* out = session.allocate<float>(64);
  const float weights[] = {0.5f, 1.0f, 1.5f, 2.0f};
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    run("choices", seed, {.block = {64, 1, 1}}, in, out, n);
    const auto got = session.download(out, 64);
    for (std::size_t i = 0; i < 64; ++i) {
      const float v = weights[which[i] & 3] + 7.0f;
      const float values[] = {std::sqrt(v), v / 3.0f, std::exp(v), std::log(v), std::tanh(v), std::sin(v), -v, -v};
      ASSERT_NEAR(got[i], values[which[i]] + 32.0f, 1e-5f * std::fabs(values[which[i]]) + 1e-5f) << which[i];
    }
  }
}

TEST_P(SoundKernelsTest, AsyncCopiesFillUpWithZeros) {
  const int n = 77;
  const auto x = small_integers(77);
  const float* in = session.upload(x);
  float* out = session.allocate<float>(128);
  run("filled_up", 1, {.block = {32, 1, 1}}, in, out, n);
  const auto got = session.download(out, 128);
  for (std::size_t i = 0; i < 128; ++i) ASSERT_EQ(got[i], i < 77 ? x[i] : 0.0f);
}

TEST_P(SoundKernelsTest, LanesVote) {
  std::vector<std::int32_t> x;
  for (int i = 0; i < 32; ++i) x.push_back(1 + i * i % 3);
  const std::int32_t* in = session.upload(x);
  std::uint32_t* out = session.allocate<std::uint32_t>(32);
  run("votes", 1, {.block = {32, 1, 1}}, in, out);
  const auto got = session.download(out, 32);
  for (std::size_t i = 0; i < 32; ++i) {
    std::uint32_t odd = 0;
    for (std::size_t k = 0; k < 32; ++k) odd |= static_cast<std::uint32_t>(x[k] & 1) << k;
    ASSERT_EQ(got[i], odd + (1U << 31) + 32 + (x[i] == 1 ? 31U : 30U));
  }
}

TEST_P(SoundKernelsTest, PointersReachEverySpace) {
  const auto x = small_integers(32);
  const float* in = session.upload(x);
  float* out = session.allocate<float>(32);
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    run("any_space", seed, {.block = {32, 1, 1}}, in, out);
    const auto got = session.download(out, 32);
    for (std::size_t i = 0; i < 32; ++i) {
      const float want = i % 3 == 0 ? x[i] : i % 3 == 1 ? 10 * x[i ^ 1] : x[i] + static_cast<float>(1 + (i & 1));
      ASSERT_EQ(got[i], want) << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Architectures, SoundKernelsTest, ::testing::Values("sm_80", "sm_90"));

}  // namespace
}  // namespace troupe::device::ptx
