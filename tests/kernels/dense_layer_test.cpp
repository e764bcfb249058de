// Dense layers against sums in the documented order, bit by bit, and against f64; matrices between pages that no
// access may touch.
#include "kernels/dense_layer.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <new>
#include <random>
#include <utility>
#include <vector>

#include "kernels/dense_code.h"

namespace troupe::kernels {
namespace {

using Floats = std::vector<float>;

constexpr DenseActivation kActivations[] = {DenseActivation::none, DenseActivation::tanh, DenseActivation::relu};

/// One, primes, one past a vector and a tile, the sizes of policies, and rows around all blocks.
constexpr std::pair<std::int64_t, std::int64_t> kSizes[] = {{1, 1},   {2, 3},  {7, 5},    {5, 7},   {4, 64},
                                                            {17, 13}, {64, 2}, {64, 64},  {65, 67}, {130, 33},
                                                            {33, 97}, {3, 97}, {129, 17}, {376, 65}};
constexpr std::int64_t kRows[] = {1, 2, 7, 8, 16, 17, 33, 48, 49, 64, 65, 130};

/// A layer with inputs that lie inside wider rows, and gradients of its output.
struct Layer {
  Layer(std::int64_t rows, std::int64_t inputs, std::int64_t outputs, std::int64_t gap = 3)
      : shape{rows, inputs, outputs}, stride(inputs + gap) {
    std::mt19937 generator(static_cast<std::uint32_t>(rows * 1000003 + inputs * 1009 + outputs));
    std::normal_distribution<float> normal;
    const auto draw = [&](std::int64_t count, float scale) {
      Floats v(static_cast<std::size_t>(count));
      for (float& value : v) value = scale * normal(generator);
      return v;
    };
    x = draw((rows - 1) * stride + inputs, 1);
    w = draw(inputs * outputs, 1 / std::sqrt(static_cast<float>(inputs)));
    b = draw(outputs, 1);
    d = draw(rows * outputs, 1);
    h = draw(rows * inputs, 0.5F);
  }
  float x_at(std::int64_t r, std::int64_t i) const { return x[static_cast<std::size_t>(r * stride + i)]; }
  float w_at(std::int64_t o, std::int64_t i) const { return w[static_cast<std::size_t>(o * shape.inputs + i)]; }
  float d_at(std::int64_t r, std::int64_t o) const { return d[static_cast<std::size_t>(r * shape.outputs + o)]; }

  DenseShape shape;
  std::int64_t stride;
  Floats x, w, b, d, h;
};

struct Gradients {
  Floats dw, db;
};

/// Results of the functions under test; memory that they must overwrite is NaN before.
Floats unwritten(std::int64_t count) {
  return Floats(static_cast<std::size_t>(count), std::numeric_limits<float>::quiet_NaN());
}
Floats forward(const Layer& layer, DenseActivation f, const DenseCode& code, int threads = 1, bool has_bias = true) {
  DenseWorkspace workspace(code);
  Floats y = unwritten(layer.shape.rows * layer.shape.outputs);
  dense_forward(layer.shape, layer.x.data(), layer.stride, layer.w.data(), has_bias ? layer.b.data() : nullptr, f,
                y.data(), workspace, threads);
  return y;
}
Floats backward_input(const Layer& layer, DenseActivation f, const DenseCode& code, int threads = 1) {
  DenseWorkspace workspace(code);
  Floats dx = unwritten(layer.shape.rows * layer.shape.inputs);
  dense_backward_input(layer.shape, layer.d.data(), layer.w.data(), f,
                       f == DenseActivation::none ? nullptr : layer.h.data(), dx.data(), workspace, threads);
  return dx;
}
Gradients backward_params(const Layer& layer, const DenseCode& code, int threads = 1) {
  DenseWorkspace workspace(code);
  Gradients g{unwritten(layer.shape.inputs * layer.shape.outputs), unwritten(layer.shape.outputs)};
  dense_backward_params(layer.shape, layer.d.data(), layer.x.data(), layer.stride, g.dw.data(), g.db.data(), workspace,
                        threads);
  return g;
}

/// The documented sums, one number at a time.
Floats chained_sums(const Layer& layer, bool has_bias) {
  Floats y;
  for (std::int64_t r = 0; r < layer.shape.rows; ++r) {
    for (std::int64_t o = 0; o < layer.shape.outputs; ++o) {
      float sum = has_bias ? layer.b[static_cast<std::size_t>(o)] : 0.0F;
      for (std::int64_t i = 0; i < layer.shape.inputs; ++i) sum = std::fma(layer.x_at(r, i), layer.w_at(o, i), sum);
      y.push_back(sum);
    }
  }
  return y;
}
Floats chained_input_gradient(const Layer& layer, DenseActivation f) {
  Floats dx;
  for (std::int64_t r = 0; r < layer.shape.rows; ++r) {
    for (std::int64_t i = 0; i < layer.shape.inputs; ++i) {
      float sum = 0;
      for (std::int64_t o = 0; o < layer.shape.outputs; ++o) sum = std::fma(layer.d_at(r, o), layer.w_at(o, i), sum);
      const float h = layer.h[static_cast<std::size_t>(r * layer.shape.inputs + i)];
      if (f == DenseActivation::tanh) sum *= std::fma(-h, h, 1.0F);
      if (f == DenseActivation::relu && !(h > 0)) sum = 0;
      dx.push_back(sum);
    }
  }
  return dx;
}
Gradients chained_param_gradients(const Layer& layer) {
  const DenseShape& s = layer.shape;
  Gradients g{Floats(static_cast<std::size_t>(s.inputs * s.outputs)), {}};
  for (std::int64_t o = 0; o < s.outputs; ++o) {
    double bias = 0;
    for (std::int64_t begin = 0; begin < s.rows; begin += kDenseRowBlock) {
      const std::int64_t end = std::min(s.rows, begin + kDenseRowBlock);
      float block_bias = 0;
      for (std::int64_t r = begin; r < end; ++r) block_bias += layer.d_at(r, o);
      bias += static_cast<double>(block_bias);
      for (std::int64_t i = 0; i < s.inputs; ++i) {
        float block = 0;
        for (std::int64_t r = begin; r < end; ++r) block = std::fma(layer.d_at(r, o), layer.x_at(r, i), block);
        float& sum = g.dw[static_cast<std::size_t>(o * s.inputs + i)];
        sum = begin == 0 ? block : sum + block;
      }
    }
    g.db.push_back(static_cast<float>(bias));
  }
  return g;
}
float relu(float v) { return v > 0 ? v : 0.0F; }

/// A value's bits, so that equal means equal, also of zeros and NaN.
bool has_bits(const Floats& a, const Floats& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

/// check(layer) for all sizes and numbers of rows.
template <class F>
void each_layer(const F& check) {
  for (const auto& [inputs, outputs] : kSizes) {
    for (const std::int64_t rows : kRows) {
      SCOPED_TRACE(::testing::Message() << rows << " rows, " << inputs << " -> " << outputs);
      check(Layer(rows, inputs, outputs));
    }
  }
}

TEST(DenseLayerTest, ForwardIsTheDocumentedSumWithEveryCode) {
  each_layer([](const Layer& layer) {
    const Floats sums = chained_sums(layer, true);
    Floats rectified = sums;
    for (float& v : rectified) v = relu(v);
    for (const DenseCode* code : dense_codes()) {
      EXPECT_TRUE(has_bits(forward(layer, DenseActivation::none, *code), sums)) << code->name;
      EXPECT_TRUE(has_bits(forward(layer, DenseActivation::relu, *code), rectified)) << code->name;
    }
  });
}

TEST(DenseLayerTest, ALayerWithoutABiasBeginsAtZero) {
  const Layer layer(19, 21, 23);
  for (const DenseCode* code : dense_codes()) {
    EXPECT_TRUE(has_bits(forward(layer, DenseActivation::none, *code, 1, false), chained_sums(layer, false)))
        << code->name;
  }
}

TEST(DenseLayerTest, ForwardWithTanhIsTanhOfTheSum) {
  each_layer([](const Layer& layer) {
    Floats y = chained_sums(layer, true);
    dense_codes().front()->activate(DenseActivation::tanh, static_cast<std::int64_t>(y.size()), y.data(), y.data());
    for (const DenseCode* code : dense_codes())
      EXPECT_TRUE(has_bits(forward(layer, DenseActivation::tanh, *code), y)) << code->name;
  });
}

TEST(DenseLayerTest, RowsAloneGiveTheBitsOfTheirBatch) {
  for (const auto& [inputs, outputs] : kSizes) {
    const Layer batch(130, inputs, outputs);
    for (const DenseCode* code : dense_codes()) {
      const Floats whole = forward(batch, DenseActivation::tanh, *code);
      for (const std::int64_t count : {1, 13}) {
        DenseWorkspace workspace(*code);
        Floats y = unwritten(130 * outputs);
        for (std::int64_t r = 0; r < 130; r += count) {
          dense_forward({count, inputs, outputs}, batch.x.data() + r * batch.stride, batch.stride, batch.w.data(),
                        batch.b.data(), DenseActivation::tanh, y.data() + r * outputs, workspace, 1);
        }
        EXPECT_TRUE(has_bits(y, whole)) << code->name << ' ' << count << " rows, " << inputs << " -> " << outputs;
      }
    }
  }
}

TEST(DenseLayerTest, TheInputGradientIsTheDocumentedSumWithEveryCode) {
  each_layer([](const Layer& layer) {
    for (const DenseActivation f : kActivations) {
      const Floats dx = chained_input_gradient(layer, f);
      for (const DenseCode* code : dense_codes())
        EXPECT_TRUE(has_bits(backward_input(layer, f, *code), dx)) << code->name;
    }
  });
}

TEST(DenseLayerTest, ParameterGradientsAreTheDocumentedSumsWithEveryCode) {
  each_layer([](const Layer& layer) {
    const Gradients expected = chained_param_gradients(layer);
    for (const DenseCode* code : dense_codes()) {
      const Gradients g = backward_params(layer, *code);
      EXPECT_TRUE(has_bits(g.dw, expected.dw)) << code->name;
      EXPECT_TRUE(has_bits(g.db, expected.db)) << code->name;
    }
  });
}

TEST(DenseLayerTest, ParameterGradientsOfNoRowsAreZero) {
  Layer layer(1, 5, 70);
  layer.shape.rows = 0;
  for (const DenseCode* code : dense_codes()) {
    const Gradients g = backward_params(layer, *code);
    EXPECT_TRUE(has_bits(g.dw, Floats(g.dw.size(), 0.0F))) << code->name;
    EXPECT_TRUE(has_bits(g.db, Floats(g.db.size(), 0.0F))) << code->name;
  }
}

TEST(DenseLayerTest, ResultsAgreeWithSumsInF64) {
  for (const auto& [inputs, outputs] : {std::pair<std::int64_t, std::int64_t>{256, 256}, {376, 64}, {4, 64}}) {
    const Layer layer(150, inputs, outputs);
    const Floats y = forward(layer, DenseActivation::tanh, *dense_codes().front());
    const Floats dx = backward_input(layer, DenseActivation::tanh, *dense_codes().front());
    const Gradients g = backward_params(layer, *dense_codes().front());
    // terms have size 1 or less, and a chain of n of them loses some sqrt(n) half units of its sum
    constexpr double kTolerance = 2e-5;
    for (std::int64_t r = 0; r < 150; ++r) {
      for (std::int64_t o = 0; o < outputs; ++o) {
        double sum = layer.b[static_cast<std::size_t>(o)];
        for (std::int64_t i = 0; i < inputs; ++i) sum += static_cast<double>(layer.x_at(r, i)) * layer.w_at(o, i);
        ASSERT_NEAR(y[static_cast<std::size_t>(r * outputs + o)], std::tanh(sum), kTolerance);
      }
      for (std::int64_t i = 0; i < inputs; ++i) {
        double sum = 0;
        for (std::int64_t o = 0; o < outputs; ++o) sum += static_cast<double>(layer.d_at(r, o)) * layer.w_at(o, i);
        const double h = layer.h[static_cast<std::size_t>(r * inputs + i)];
        ASSERT_NEAR(dx[static_cast<std::size_t>(r * inputs + i)], (1 - h * h) * sum, kTolerance * (1 + h * h));
      }
    }
    for (std::int64_t o = 0; o < outputs; ++o) {
      for (std::int64_t i = 0; i < inputs; ++i) {
        double sum = 0;
        for (std::int64_t r = 0; r < 150; ++r) sum += static_cast<double>(layer.d_at(r, o)) * layer.x_at(r, i);
        ASSERT_NEAR(g.dw[static_cast<std::size_t>(o * inputs + i)], sum, kTolerance);
      }
      double sum = 0;
      for (std::int64_t r = 0; r < 150; ++r) sum += layer.d_at(r, o);
      ASSERT_NEAR(g.db[static_cast<std::size_t>(o)], sum, kTolerance);
    }
  }
}

TEST(DenseLayerTest, ThreadsChangeNoBit) {
  // enough work for several threads in every form: few rows and outputs, few inputs, both gradients
  for (const auto& [rows, inputs, outputs] :
       {std::array<std::int64_t, 3>{700, 130, 200}, {30000, 300, 2}, {30000, 3, 97}}) {
    const Layer layer(rows, inputs, outputs);
    const DenseCode& code = *dense_codes().front();
    const Floats y = forward(layer, DenseActivation::tanh, code);
    const Floats dx = backward_input(layer, DenseActivation::tanh, code);
    const Gradients g = backward_params(layer, code);
    for (const int threads : {2, 3, 7}) {
      EXPECT_TRUE(has_bits(forward(layer, DenseActivation::tanh, code, threads), y)) << threads;
      EXPECT_TRUE(has_bits(backward_input(layer, DenseActivation::tanh, code, threads), dx)) << threads;
      const Gradients shared = backward_params(layer, code, threads);
      EXPECT_TRUE(has_bits(shared.dw, g.dw)) << threads;
      EXPECT_TRUE(has_bits(shared.db, g.db)) << threads;
    }
  }
}

TEST(DenseLayerTest, ReluOfNanIsZeroAndHasNoSlope) {
  Layer layer(3, 2, 18, 0);
  layer.x.assign(layer.x.size(), std::numeric_limits<float>::quiet_NaN());
  layer.h.assign(layer.h.size(), std::numeric_limits<float>::quiet_NaN());
  for (const DenseCode* code : dense_codes()) {
    for (const float v : forward(layer, DenseActivation::relu, *code)) EXPECT_EQ(v, 0.0F) << code->name;
    for (const float v : backward_input(layer, DenseActivation::relu, *code)) EXPECT_EQ(v, 0.0F) << code->name;
  }
}

TEST(DenseLayerTest, AWorkspaceAllocatesNothingOnceItHasGrown) {
  const Layer layer(130, 65, 67);
  DenseWorkspace workspace;
  Floats y = unwritten(130 * 67), dx = unwritten(130 * 65), dw = unwritten(65 * 67), db = unwritten(67);
  const auto pass = [&] {
    dense_forward(layer.shape, layer.x.data(), layer.stride, layer.w.data(), layer.b.data(), DenseActivation::tanh,
                  y.data(), workspace, 1);
    dense_backward_input(layer.shape, layer.d.data(), layer.w.data(), DenseActivation::tanh, layer.h.data(), dx.data(),
                         workspace, 1);
    dense_backward_params(layer.shape, layer.d.data(), layer.x.data(), layer.stride, dw.data(), db.data(), workspace,
                          1);
  };
  pass();
  const float* const memory = workspace.floats(1);
  pass();
  EXPECT_EQ(workspace.floats(1), memory);
}

/// Numbers that end at a page which no access may touch, or begin behind one.
class FencedFloats {
 public:
  FencedFloats(const Floats& values, bool at_end) : page_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))) {
    const std::size_t bytes = values.size() * sizeof(float);
    size_ = 2 * page_ + (bytes + page_ - 1) / page_ * page_;
    void* const memory = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    memory_ = static_cast<std::byte*>(memory);
    mprotect(memory_, page_, PROT_NONE);
    mprotect(memory_ + size_ - page_, page_, PROT_NONE);
    first_ = at_end ? memory_ + size_ - page_ - bytes : memory_ + page_;
    std::memcpy(first_, values.data(), bytes);
  }
  FencedFloats(const FencedFloats&) = delete;
  FencedFloats& operator=(const FencedFloats&) = delete;
  ~FencedFloats() { munmap(memory_, size_); }

  float* data() const { return reinterpret_cast<float*>(first_); }

 private:
  std::size_t page_, size_ = 0;
  std::byte* memory_ = nullptr;
  std::byte* first_ = nullptr;
};

TEST(DenseLayerTest, NothingOutsideOfTheMatricesIsTouched) {
  each_layer([](const Layer& layer) {
    const DenseShape& s = layer.shape;
    for (const bool at_end : {true, false}) {
      const FencedFloats x(layer.x, at_end), w(layer.w, at_end), b(layer.b, at_end), d(layer.d, at_end);
      const FencedFloats h(layer.h, at_end), y(unwritten(s.rows * s.outputs), at_end);
      const FencedFloats dx(unwritten(s.rows * s.inputs), at_end), dw(unwritten(s.inputs * s.outputs), at_end);
      const FencedFloats db(unwritten(s.outputs), at_end);
      for (const DenseCode* code : dense_codes()) {
        DenseWorkspace workspace(*code);
        dense_forward(s, x.data(), layer.stride, w.data(), b.data(), DenseActivation::tanh, y.data(), workspace, 1);
        dense_backward_input(s, d.data(), w.data(), DenseActivation::tanh, h.data(), dx.data(), workspace, 1);
        dense_backward_params(s, d.data(), x.data(), layer.stride, dw.data(), db.data(), workspace, 1);
      }
    }
  });
}

TEST(DenseTanhTest, IsWithinItsErrorEverywhereAndOdd) {
  // every 499th float from 0 to infinity, in whole and in partial vectors
  Floats x;
  for (std::uint32_t bits = 0; bits <= 0x7F800000U; bits += 499) x.push_back(std::bit_cast<float>(bits));
  for (const float v : {0x1p-149F, 0x1p-126F, 1.0F, 9.0F, 9.1F, 100.0F, 3.4e38F}) x.push_back(v);
  Floats negative = x;
  for (float& v : negative) v = -v;
  const auto count = static_cast<std::int64_t>(x.size());
  Floats first;
  for (const DenseCode* code : dense_codes()) {
    SCOPED_TRACE(code->name);
    Floats y = unwritten(count), mirrored = unwritten(count);
    code->activate(DenseActivation::tanh, count, x.data(), y.data());
    code->activate(DenseActivation::tanh, count, negative.data(), mirrored.data());
    double worst = 0, worst_share = 0;
    bool is_odd = true, is_bounded = true;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double exact = std::tanh(static_cast<double>(x[i]));
      worst = std::max(worst, std::abs(y[i] - exact));
      if (x[i] > 1e-30F) worst_share = std::max(worst_share, std::abs(y[i] - exact) / exact);
      is_odd =
          is_odd && std::bit_cast<std::uint32_t>(mirrored[i]) == (std::bit_cast<std::uint32_t>(y[i]) | 0x80000000U);
      is_bounded = is_bounded && y[i] <= 1 && y[i] >= 0;
    }
    EXPECT_LE(worst, 1e-7);
    EXPECT_LE(worst_share, 4e-7);
    EXPECT_TRUE(is_odd);
    EXPECT_TRUE(is_bounded);
    if (first.empty()) first = y;
    EXPECT_TRUE(has_bits(y, first));
  }
}

TEST(DenseTanhTest, NanStaysNanAndInfinityIsOne) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const DenseCode* code : dense_codes()) {
    float v[] = {std::numeric_limits<float>::quiet_NaN(), kInfinity, -kInfinity, 0.0F, -0.0F};
    code->activate(DenseActivation::tanh, 5, v, v);
    EXPECT_TRUE(std::isnan(v[0])) << code->name;
    EXPECT_EQ(v[1], 1.0F) << code->name;
    EXPECT_EQ(v[2], -1.0F) << code->name;
    EXPECT_EQ(std::bit_cast<std::uint32_t>(v[3]), 0U) << code->name;
    EXPECT_EQ(std::bit_cast<std::uint32_t>(v[4]), 0x80000000U) << code->name;
  }
}

}  // namespace
}  // namespace troupe::kernels
