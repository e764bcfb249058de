#include "model/shard/init.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "tests/support/tensor_checks.h"

namespace troupe::model {
namespace {

UnitSpec one_parameter(std::vector<std::int64_t> shape, Init init, std::string name = "w") {
  return {"unit", "unit", {{std::move(name), std::move(shape), init}}};
}

at::Tensor filled(const UnitSpec& unit, std::uint64_t seed = 5) {
  const auto layout = make_flat_layout(unit.params);
  auto flat = at::zeros({layout.numel}, at::kFloat);
  fill_initial(unit, layout, seed, 0, {flat.data_ptr<float>(), static_cast<std::size_t>(layout.numel)});
  return flat.view(unit.params.front().shape);
}

TEST(InitTest, OrthogonalRowsHaveTheGainAsLength) {
  const auto w = filled(one_parameter({40, 70}, {Init::Kind::orthogonal, 1.5}));
  testing::expect_near(w.matmul(w.t()), 2.25 * at::eye(40), 1e-5, "W W^T");
}

TEST(InitTest, ATallMatrixHasOrthogonalColumns) {
  const auto w = filled(one_parameter({70, 40}, {Init::Kind::orthogonal, 1.0}));
  testing::expect_near(w.t().matmul(w), at::eye(40), 1e-5, "W^T W");
}

TEST(InitTest, ASquareMatrixIsARotationOrReflection) {
  const auto w = filled(one_parameter({64, 64}, {Init::Kind::orthogonal, 1.0}));
  testing::expect_near(w.matmul(w.t()), at::eye(64), 1e-5, "W W^T");
}

TEST(InitTest, ConvolutionsAreMatricesOfTheirOutputs) {
  const auto w = filled(one_parameter({6, 3, 4, 4}, {Init::Kind::orthogonal, 2.0})).flatten(1);
  testing::expect_near(w.matmul(w.t()), 4 * at::eye(6), 1e-5, "W W^T");
}

TEST(InitTest, ShardsOfAnOrthogonalTensorAreCutsOfTheWhole) {
  const auto unit = one_parameter({30, 50}, {Init::Kind::orthogonal, 1.0});
  const auto layout = make_flat_layout(unit.params);
  const auto whole = filled(unit).flatten();
  for (const auto& [begin, count] : {std::pair{0L, 1L}, {1L, 700L}, {1023L, 477L}}) {
    auto part = at::zeros({count}, at::kFloat);
    fill_initial(unit, layout, 5, begin, {part.data_ptr<float>(), static_cast<std::size_t>(count)});
    EXPECT_TRUE(part.equal(whole.narrow(0, begin, count))) << begin;
  }
}

TEST(InitTest, OrthogonalTensorsDependOnSeedAndName) {
  const Init init{Init::Kind::orthogonal, 1.0};
  const auto w = filled(one_parameter({8, 8}, init));
  EXPECT_TRUE(w.equal(filled(one_parameter({8, 8}, init))));
  EXPECT_FALSE(w.equal(filled(one_parameter({8, 8}, init), 6)));
  EXPECT_FALSE(w.equal(filled(one_parameter({8, 8}, init, "other"))));
}

TEST(InitTest, AConstantFillsItsTensor) {
  EXPECT_TRUE(filled(one_parameter({3, 2}, {Init::Kind::constant, -0.5})).equal(at::full({3, 2}, -0.5f)));
}

}  // namespace
}  // namespace troupe::model
