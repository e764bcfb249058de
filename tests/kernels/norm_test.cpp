// Modulated layer norm and rotated RMS norm against compositions of ATen's operators in f64, values and gradients.
#include <gtest/gtest.h>

#include "kernels/modulated_norm.h"
#include "kernels/rms_norm.h"
#include "tests/kernels/kernel_checks.h"

namespace troupe::kernels {
namespace {

constexpr double kEps = 1e-6;

/// Batch, tokens, channels, rows of the table, samples that the table has.
struct NormShape {
  std::int64_t batch, tokens, channels, table_rows, table_samples;
  friend std::ostream& operator<<(std::ostream& out, const NormShape& s) {
    return out << s.batch << "x" << s.tokens << "x" << s.channels << " rows " << s.table_rows;
  }
};

class ModulatedNormTest : public ::testing::TestWithParam<NormShape> {
 protected:
  void SetUp() override {
    at::manual_seed(5);
    const auto& s = GetParam();
    const auto f64 = at::TensorOptions().dtype(at::kDouble);
    inputs_ = {at::randn({s.batch, s.tokens, s.channels}, f64) * 2 + 0.5,
               at::randn({s.table_samples, s.table_rows, s.channels}, f64) + 1,
               at::randn({s.table_samples, s.table_rows, s.channels}, f64)};
    // runs of equal rows that come back later, as in a decoupled layout
    if (s.table_rows > 1) {
      rows_ = (at::arange(s.tokens, at::TensorOptions().dtype(at::kLong)).div(3, "floor") % s.table_rows).to(at::kInt);
    }
  }
  at::Tensor fused(const Tensors& in) const { return modulated_layer_norm(in[0], in[1], in[2], rows_, kEps); }
  at::Tensor composed(const Tensors& in) const {
    const auto rows = rows_.defined() ? rows_ : at::zeros({in[0].size(1)}, at::TensorOptions().dtype(at::kInt));
    return at::layer_norm(in[0], {in[0].size(2)}, {}, {}, kEps) * in[1].index_select(1, rows) +
           in[2].index_select(1, rows);
  }
  Tensors inputs_;
  at::Tensor rows_;
};

TEST_P(ModulatedNormTest, ValuesAndGradientsMatchAutogradInF64) {
  expect_matches_f64([this](const Tensors& in) { return fused(in); },
                     [this](const Tensors& in) { return composed(in); }, inputs_);
}

TEST_P(ModulatedNormTest, TheNumberOfThreadsChangesNoBit) {
  expect_same_bits_for_any_threads([this](const Tensors& in) { return fused(in); }, inputs_);
}

INSTANTIATE_TEST_SUITE_P(Shapes, ModulatedNormTest,
                         ::testing::Values(NormShape{1, 1, 1, 1, 1}, NormShape{2, 5, 24, 1, 1},
                                           NormShape{3, 37, 131, 4, 3}, NormShape{2, 100, 768, 6, 2},
                                           NormShape{1, 67, 1040, 5, 1}));

TEST(ModulatedNormShapesTest, ATableOfAnotherWidthIsRefused) {
  EXPECT_THROW(modulated_layer_norm(at::ones({1, 2, 8}), at::ones({1, 1, 7}), at::ones({1, 1, 7}), {}, kEps),
               c10::Error);
  EXPECT_THROW(modulated_layer_norm(at::ones({1, 2, 8}), at::ones({1, 1, 8}), at::ones({1, 1, 8}),
                                    at::zeros({3}, at::TensorOptions().dtype(at::kInt)), kEps),
               c10::Error);
}

/// Batch, tokens, heads, head size; rotated or not.
struct RmsShape {
  std::int64_t batch, tokens, heads, head_dim;
  bool rotated;
  friend std::ostream& operator<<(std::ostream& out, const RmsShape& s) {
    return out << s.batch << "x" << s.tokens << "x" << s.heads << "x" << s.head_dim << (s.rotated ? " rotated" : "");
  }
};

class RotatedRmsNormTest : public ::testing::TestWithParam<RmsShape> {
 protected:
  void SetUp() override {
    at::manual_seed(6);
    const auto& s = GetParam();
    const auto f64 = at::TensorOptions().dtype(at::kDouble);
    inputs_ = {at::randn({s.batch, s.tokens, s.heads * s.head_dim}, f64) * 3,
               at::randn({s.heads * s.head_dim}, f64) + 1};
    if (s.rotated) angles_ = at::randn({s.tokens, s.head_dim / 2}, f64) * 5;
  }
  at::Tensor fused(const Tensors& in) const {
    const auto dtype = in[0].scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    if (!angles_.defined()) return rms_norm_rotated(in[0], in[1], kEps, {}, {});
    return rms_norm_rotated(in[0], in[1], kEps, angles_.cos().to(dtype), angles_.sin().to(dtype));
  }
  at::Tensor composed(const Tensors& in) const {
    const auto v = in[0] * at::rsqrt(in[0].square().mean(-1, true) + kEps) * in[1];
    if (!angles_.defined()) return v;
    const auto pairs =
        at::view_as_complex(v.unflatten(-1, {GetParam().heads, GetParam().head_dim / 2, 2}).contiguous());
    const auto turn = at::complex(angles_.cos(), angles_.sin()).unsqueeze(1);
    return at::view_as_real(pairs * turn).flatten(2);
  }
  Tensors inputs_;
  at::Tensor angles_;
};

TEST_P(RotatedRmsNormTest, ValuesAndGradientsMatchAutogradInF64) {
  expect_matches_f64([this](const Tensors& in) { return fused(in); },
                     [this](const Tensors& in) { return composed(in); }, inputs_);
}

TEST_P(RotatedRmsNormTest, TheNumberOfThreadsChangesNoBit) {
  expect_same_bits_for_any_threads([this](const Tensors& in) { return fused(in); }, inputs_);
}

INSTANTIATE_TEST_SUITE_P(Shapes, RotatedRmsNormTest,
                         ::testing::Values(RmsShape{1, 1, 1, 2, true}, RmsShape{2, 5, 3, 10, true},
                                           RmsShape{2, 70, 2, 12, true}, RmsShape{1, 67, 6, 128, true},
                                           RmsShape{2, 33, 6, 128, false}, RmsShape{1, 7, 1, 131, false}));

TEST(RotatedRmsNormRoundingTest, RoundsAfterTheNormAndAfterTheGain) {
  at::manual_seed(7);
  const auto x = at::randn({1, 9, 96}).to(at::kBFloat16), gain = at::randn({96}).to(at::kBFloat16);
  const auto wide = x.to(at::kFloat);
  const auto want = (wide * at::rsqrt(wide.square().mean(-1, true) + kEps)).to(at::kBFloat16) * gain;
  // the statistic's last f32 bit may differ, which moves few of the rounded values by one step
  const auto same = rms_norm_rotated(x, gain, kEps, {}, {}).eq(want).sum().item<std::int64_t>();
  EXPECT_GE(same, want.numel() - 3);
}

}  // namespace
}  // namespace troupe::kernels
