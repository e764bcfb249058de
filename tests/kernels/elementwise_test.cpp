// Gated residual, tanh-GELU, linear layers and attention against ATen in f64, values and gradients.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/attention.h"
#include "kernels/gated_residual.h"
#include "kernels/gelu.h"
#include "kernels/linear.h"
#include "tests/kernels/kernel_checks.h"

namespace troupe::kernels {
namespace {

at::Tensor draw(at::IntArrayRef shape) { return at::randn(shape, at::TensorOptions().dtype(at::kDouble)); }

class KernelDtypeTest : public ::testing::TestWithParam<DtypeCase> {
 protected:
  void SetUp() override { at::manual_seed(8); }
  /// `slack` widens the dtype's tolerance.
  static void expect_matches(const Operator& fused, const Operator& composed, const Tensors& inputs, double slack = 1) {
    expect_matches_f64(fused, composed, inputs, GetParam().dtype, slack * GetParam().tolerance);
  }
};

TEST_P(KernelDtypeTest, GatedResidualMatchesAutogradInF64) {
  for (const std::int64_t channels : {1, 37, 768}) {
    const auto rows = (at::arange(70, at::TensorOptions().dtype(at::kLong)).div(33, "floor") % 2).to(at::kInt);
    expect_matches([&](const Tensors& in) { return gated_residual(in[0], in[1], in[2], rows); },
                   [&](const Tensors& in) { return in[0] + in[1] * in[2].index_select(1, rows); },
                   {draw({2, 70, channels}), draw({2, 70, channels}), draw({2, 2, channels})});
  }
}

TEST_P(KernelDtypeTest, GeluMatchesAutogradInF64) {
  for (const std::int64_t count : {1, 17, 5000}) {
    expect_matches([](const Tensors& in) { return gelu_tanh(in[0]); },
                   [](const Tensors& in) { return at::gelu(in[0], "tanh"); }, {draw({count}) * 3});
  }
}

TEST_P(KernelDtypeTest, LinearMatchesAutogradInF64) {
  for (const std::int64_t tokens : {1, 67}) {
    expect_matches([](const Tensors& in) { return linear_product(in[0], in[1], in[2]); },
                   [](const Tensors& in) { return at::linear(in[0], in[1], in[2]); },
                   {draw({2, tokens, 48}), draw({131, 48}), draw({131})});
  }
}

TEST_P(KernelDtypeTest, LinearTakesATransposedWeightAndNoBias) {
  expect_matches([](const Tensors& in) { return linear_product(in[0], in[1].t(), {}); },
                 [](const Tensors& in) { return at::matmul(in[0], in[1]); }, {draw({5, 24}), draw({24, 7})});
}

TEST_P(KernelDtypeTest, AttentionMatchesAutogradInF64) {
  const auto composed = [](const Tensors& in) {
    const auto heads = [&](std::size_t i) { return in[i].transpose(1, 2); };
    const auto scores = at::matmul(heads(0), heads(1).transpose(2, 3)) / std::sqrt(static_cast<double>(in[0].size(3)));
    return at::matmul(at::softmax(scores, -1), heads(2)).transpose(1, 2);
  };
  for (const std::int64_t keys : {1, 50, 257}) {
    expect_matches([](const Tensors& in) { return attention(in[0], in[1], in[2]); }, composed,
                   {draw({2, 33, 3, 16}), draw({2, keys, 3, 16}), draw({2, keys, 3, 16})},
                   // q and k get no gradient from one key: noise over zero, so no limit
                   keys == 1 ? 1e45 : 2);
  }
}

/// Rows [begin, end) that a sample sees, the last of them n times.
struct SampleRows {
  std::int64_t begin, end, n;
};

at::Tensor table_of(const std::vector<SampleRows>& samples) {
  std::vector<at::Tensor> rows;
  for (const auto& s : samples) rows.push_back(at::tensor({s.begin, s.end, s.n}, at::TensorOptions().dtype(at::kLong)));
  return at::stack(rows);
}

/// Shared rows, one that stands for 40, a sample with no other row than such a one, and rows that no sample sees.
const std::vector<SampleRows> kSharedRows{{0, 5, 1}, {5, 45, 40}, {0, 5, 1}, {45, 46, 7}, {5, 45, 40}};

/// Every sample with all its keys written out.
at::Tensor attend_written_out(const Tensors& in, const std::vector<SampleRows>& samples) {
  std::vector<at::Tensor> results;
  for (const auto& s : samples) {
    const auto heads = [&](const at::Tensor& x) {
      const auto last = x.narrow(1, s.end - 1, 1).expand({1, s.n, -1, -1});
      return at::cat({x.narrow(1, s.begin, s.end - 1 - s.begin), last}, 1).transpose(1, 2);
    };
    const auto q = in[0].narrow(0, static_cast<std::int64_t>(results.size()), 1).transpose(1, 2);
    const auto scores = at::matmul(q, heads(in[1]).transpose(2, 3)) / std::sqrt(static_cast<double>(q.size(3)));
    results.push_back(at::matmul(at::softmax(scores, -1), heads(in[2])).transpose(1, 2));
  }
  return at::cat(results, 0);
}

TEST_P(KernelDtypeTest, AttentionToSharedRowsMatchesAutogradOverKeysWrittenOutInF64) {
  const auto rows = table_of(kSharedRows);
  expect_matches([&](const Tensors& in) { return attention(in[0], in[1], in[2], rows); },
                 [](const Tensors& in) { return attend_written_out(in, kSharedRows); },
                 {draw({5, 33, 3, 16}), draw({1, 50, 3, 16}), draw({1, 50, 3, 16})}, 2);
}

INSTANTIATE_TEST_SUITE_P(Dtypes, KernelDtypeTest, ::testing::ValuesIn(kDtypes),
                         [](const auto& param_info) { return param_info.param.name; });

TEST(GeluTest, SaturatesWithoutOverflowAndKeepsNan) {
  const auto u = at::tensor({-200.0F, -30.0F, 0.0F, 30.0F, 200.0F, std::nanf("")});
  const auto y = gelu_tanh(u);
  EXPECT_TRUE(at::equal(y.narrow(0, 2, 3), u.narrow(0, 2, 3)));
  EXPECT_LE(y.narrow(0, 0, 2).abs().max().item<float>(), 1e-10F);
  EXPECT_TRUE(y.narrow(0, 5, 1).isnan().all().item<bool>());
}

TEST(GatedResidualTest, TheNumberOfThreadsChangesNoBit) {
  const auto rows = at::arange(300, at::TensorOptions().dtype(at::kInt)).div(60, "floor").to(at::kInt);
  expect_same_bits_for_any_threads([&](const Tensors& in) { return gated_residual(in[0], in[1], in[2], rows); },
                                   {at::randn({1, 300, 64}), at::randn({1, 300, 64}), at::randn({1, 5, 64})});
}

TEST(LinearTest, TheNumberOfThreadsChangesNoBit) {
  expect_same_bits_for_any_threads([](const Tensors& in) { return linear_product(in[0], in[1], in[2]); },
                                   {at::randn({700, 96}), at::randn({300, 96}), at::randn({300})});
}

TEST(AttentionTest, TheNumberOfThreadsChangesNoBit) {
  expect_same_bits_for_any_threads([](const Tensors& in) { return attention(in[0], in[1], in[2]); },
                                   {at::randn({2, 300, 3, 16}), at::randn({2, 70, 3, 16}), at::randn({2, 70, 3, 16})});
  const auto rows = table_of(kSharedRows);
  expect_same_bits_for_any_threads([&](const Tensors& in) { return attention(in[0], in[1], in[2], rows); },
                                   {at::randn({5, 300, 3, 16}), at::randn({1, 50, 3, 16}), at::randn({1, 50, 3, 16})});
}

TEST(AttentionTest, RowsThatStandForOneGiveTheBitsOfASampleWithKeysOfItsOwn) {
  const auto q = at::randn({2, 40, 3, 16}), k = at::randn({2, 30, 3, 16}), v = at::randn({2, 30, 3, 16});
  const auto rows = table_of({{0, 30, 1}, {30, 60, 1}});
  const auto flat = [](const at::Tensor& x) { return x.flatten(0, 1).unsqueeze(0); };
  EXPECT_TRUE(at::equal(attention(q, flat(k), flat(v), rows), attention(q, k, v)));
}

TEST(AttentionTest, ShapesThatDoNotFitAreRefused) {
  EXPECT_THROW(attention(at::ones({1, 2, 3, 4}), at::ones({1, 5, 3, 4}), at::ones({1, 6, 3, 4})), c10::Error);
  EXPECT_THROW(attention(at::ones({1, 2, 3, 4}), at::ones({1, 5, 2, 4}), at::ones({1, 5, 2, 4})), c10::Error);
}

TEST(AttentionTest, RowsThatAreNotThereAreRefused) {
  const auto q = at::ones({1, 2, 3, 4}), k = at::ones({1, 5, 3, 4}), two = at::ones({2, 5, 3, 4});
  for (const auto& wrong : std::vector<SampleRows>{{0, 6, 1}, {-1, 5, 1}, {3, 3, 1}, {0, 5, 0}})
    EXPECT_THROW(attention(q, k, k, table_of({wrong})), c10::Error) << wrong.begin << " " << wrong.end;
  EXPECT_THROW(attention(q, k, k, table_of({{0, 5, 1}, {0, 5, 1}})), c10::Error) << "two samples, q has one";
  EXPECT_THROW(attention(two, two, two, table_of({{0, 5, 1}, {0, 5, 1}})), c10::Error) << "keys of two samples";
  for (const auto& other : std::vector<SampleRows>{{0, 4, 1}, {0, 5, 2}, {4, 5, 1}})
    EXPECT_THROW(attention(two, k, k, table_of({{0, 5, 1}, other})), c10::Error) << "rows that overlap";
}

TEST(LinearTest, FrozenWeightsGetNoGradientAndInputsStillDo) {
  const auto x = at::randn({4, 8}).requires_grad_(true), weight = at::randn({3, 8});
  const auto y = linear_product(x, weight, at::zeros({3}));
  const auto gradients = torch::autograd::grad({y.sum()}, {x});
  EXPECT_LE((gradients[0] - weight.sum(0)).abs().max().item<float>(), 1e-5F);
  EXPECT_FALSE(linear_product(at::randn({4, 8}), weight, {}).requires_grad());
}

TEST(LinearTest, ShapesThatDoNotFitAreRefused) {
  EXPECT_THROW(linear_product(at::ones({2, 3}), at::ones({4, 5}), {}), c10::Error);
  EXPECT_THROW(linear_product(at::ones({2, 3}), at::ones({4, 3}).to(at::kBFloat16), {}), c10::Error);
}

}  // namespace
}  // namespace troupe::kernels
