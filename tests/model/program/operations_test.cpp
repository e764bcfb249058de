// Values and gradients of every operation against ATen's operators and autograd, in f64.
#include <gtest/gtest.h>

#include "tests/model/program/operation_cases.h"
#include "tests/support/tensor_checks.h"

namespace troupe::model {
namespace {

using testing::draw;
using testing::joined_columns;
using testing::joined_parameters;
using testing::kTwoHeads;

constexpr double kExact = 1e-11;

void expect_same(const ProgramCase& c) {
  const auto want = testing::run_function(c);
  for (const auto level :
       {RecomputeLevel::none, RecomputeLevel::cheap, RecomputeLevel::attention, RecomputeLevel::full}) {
    UnitMemory memory;
    const auto got = testing::run_program(c, c.program(level), memory);
    testing::expect_near(got.y, want.y, kExact, "result");
    testing::expect_near(got.dx, want.dx, kExact, "gradient of x");
    for (std::size_t i = 0; i < want.conditioning.size(); ++i) {
      ASSERT_EQ(got.conditioning[i].defined(), want.conditioning[i].defined()) << "conditioning " << i;
      if (want.conditioning[i].defined())
        testing::expect_near(got.conditioning[i], want.conditioning[i], kExact, "conditioning " + std::to_string(i));
    }
    for (const auto& [name, gradient] : want.parameters)
      testing::expect_near(got.parameters.at(name), gradient, kExact, name);
  }
}

class ProgramOperationsTest : public ::testing::TestWithParam<testing::OperationCase> {};

TEST_P(ProgramOperationsTest, AgreesWithAutograd) { expect_same(GetParam().unit); }

INSTANTIATE_TEST_SUITE_P(Operations, ProgramOperationsTest, ::testing::ValuesIn(testing::operation_cases()),
                         [](const auto& c) { return std::string(c.param.name); });

TEST(ProgramColumnsTest, ColumnsThatNothingIsAskedOfGetNoGradient) {
  const ProgramCase c{draw({2, 4, kTwoHeads}, 0),
                      {draw({2, 5, kTwoHeads}, 4)},
                      joined_parameters(),
                      [](Graph& g, ValueId x, const auto& shared, auto&) {
                        const auto columns = joined_columns(g, shared[0]);
                        return record_attention(g, x, columns[0], columns[2], 2, {{{0, 4}, {{0, 5}}}});
                      },
                      {}};
  const UnitProgram program(c.graph(), {{}, {false}}, RecomputeLevel::none);
  const std::vector<at::Tensor> x{c.x};
  const UnitInputs inputs{x, c.conditioning, c.parameters, "", c.data};
  UnitMemory memory;
  std::vector<at::Tensor> sums(1);
  const auto y = program.forward(inputs, memory, 1).front();
  const auto dx = program.backward(inputs, {testing::seed_like(y)}, {sums, {}}, memory, 1).front();
  EXPECT_FALSE(sums[0].defined());
  EXPECT_GT(dx.abs().sum().item<double>(), 0);
}

TEST(ProgramColumnsTest, ParametersThatDoNotLieTogetherAreRefused) {
  auto parameters = joined_parameters();
  parameters["w1"] = parameters["w1"].clone();
  const ProgramCase c{draw({2, 3, kTwoHeads}, 0),
                      {},
                      parameters,
                      [](Graph& g, ValueId x, const auto&, auto&) {
                        const auto columns = joined_columns(g, x);
                        return record_attention(g, columns[0], columns[1], columns[2], 2, {{{0, 3}, {{0, 3}}}});
                      },
                      {}};
  UnitMemory memory;
  try {
    testing::run_program(c, c.program(RecomputeLevel::none), memory);
    FAIL() << "no error";
  } catch (const c10::Error& e) {
    EXPECT_NE(std::string(e.what()).find("parameter w1 does not lie right behind the one before it"), std::string::npos)
        << e.what();
  }
}

TEST(ProgramColumnsTest, LinearOfAConditioningAddsToItsSum) {
  const ProgramCase c{draw({2, 3, 6}, 0),
                      {draw({2, 3, 5}, 4)},
                      {{"w", draw({6, 5}, 1)}, {"v", draw({6, 5}, 2)}},
                      [](Graph& g, ValueId x, const auto& shared, auto& p) {
                        const auto a = record_linear(g, shared[0], p["w"], kNoValue);
                        return record_add(g, record_add(g, x, a), record_linear(g, shared[0], p["v"], kNoValue));
                      },
                      [](const at::Tensor& x, const auto& shared, auto& p) {
                        return x + at::linear(shared[0], p["w"]) + at::linear(shared[0], p["v"]);
                      }};
  expect_same(c);
  // a second unit adds to what the first has left
  UnitMemory memory;
  const auto program = c.program(RecomputeLevel::none);
  const std::vector<at::Tensor> x{c.x};
  const UnitInputs inputs{x, c.conditioning, c.parameters, "", c.data};
  const auto once = testing::run_program(c, program, memory);
  std::vector<at::Tensor> sums{once.conditioning[0].clone()};
  auto gradients = c.parameters;
  for (auto& [name, tensor] : gradients) tensor = at::empty_like(tensor);
  const auto y = program.forward(inputs, memory, 2).front();
  program.backward(inputs, {testing::seed_like(y)}, {sums, gradients}, memory, 2);
  testing::expect_near(sums[0], 2 * once.conditioning[0], kExact, "sum");
}

}  // namespace
}  // namespace troupe::model
