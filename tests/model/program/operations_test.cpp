// Values and gradients of every operation against ATen's operators and autograd, in f64.
#include "model/program/operations.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/model/program/program_case.h"
#include "tests/support/tensor_checks.h"

namespace troupe::model {
namespace {

constexpr double kExact = 1e-11;
constexpr double kEps = 1e-6;

at::Tensor draw(at::IntArrayRef sizes, double phase) {
  std::int64_t count = 1;
  for (const auto size : sizes) count *= size;
  return at::arange(count, at::TensorOptions().dtype(at::kDouble)).mul(1.3).add(phase).sin().mul(1.1).view(sizes);
}

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

TEST(ProgramOperationsTest, Linear) {
  expect_same(
      {draw({2, 5, 7}, 0),
       {},
       {{"w", draw({4, 7}, 1)}, {"b", draw({4}, 2)}, {"v", draw({3, 4}, 3)}},
       [](Graph& g, ValueId x, const auto&, auto& p) {
         return record_linear(g, record_linear(g, x, p["w"], p["b"]), p["v"], kNoValue);
       },
       [](const at::Tensor& x, const auto&, auto& p) { return at::linear(at::linear(x, p["w"], p["b"]), p["v"]); }});
}

TEST(ProgramOperationsTest, LinearOfAWeightThatLiesInputsFirst) {
  expect_same({draw({2, 5, 7}, 0),
               {},
               {{"w", draw({1, 7, 4}, 1)}, {"b", draw({1, 4}, 2)}, {"p", draw({3, 2, 1, 2}, 3)}},
               [](Graph& g, ValueId x, const auto&, auto& p) {
                 const auto y = record_linear(g, x, p["w"], p["b"], LinearLayout::in_out);
                 return record_linear(g, y, p["p"], kNoValue);
               },
               [](const at::Tensor& x, const auto&, auto& p) {
                 return at::linear(at::matmul(x, p["w"][0]) + p["b"][0], p["p"].flatten(1));
               }});
}

at::Tensor rms(const at::Tensor& x, const at::Tensor& gain) {
  return x * at::rsqrt(x.square().mean(-1, true) + kEps) * gain;
}

at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  const auto heads = [](const at::Tensor& x) { return x.unflatten(-1, {2, -1}).transpose(1, 2); };
  const auto scores = at::matmul(heads(q), heads(k).transpose(-1, -2)) / std::sqrt(static_cast<double>(q.size(2) / 2));
  return at::matmul(scores.softmax(-1), heads(v)).transpose(1, 2).flatten(2);
}

/// Parameters over one buffer, as the layout of a unit puts them: three weights [8, 8], then three biases.
testing::Named joined_parameters() {
  const auto flat = draw({3 * 64 + 3 * 8}, 1);
  testing::Named parameters;
  for (std::int64_t i = 0; i < 3; ++i) {
    parameters["w" + std::to_string(i)] = flat.narrow(0, 64 * i, 64).view({8, 8});
    parameters["b" + std::to_string(i)] = flat.narrow(0, 192 + 8 * i, 8);
  }
  return parameters;
}

/// The columns of x [B, N, d] by the three of them as one product.
std::vector<ValueId> joined_columns(Graph& g, ValueId x) {
  const auto w = g.add_joined_parameters({"w0", "w1", "w2"}, {8, 8}, at::kDouble);
  const auto b = g.add_joined_parameters({"b0", "b1", "b2"}, {8}, at::kDouble);
  return g.split_columns(record_linear(g, x, w, b), 3);
}

TEST(ProgramOperationsTest, ColumnsOfOneProductAreNormedAndAttendedTo) {
  const auto angle = draw({7, 2}, 9);
  const auto cos = angle.cos(), sin = angle.sin();
  const std::vector<AttentionPart> parts{{{0, 3}, {{0, 2}}}, {{3, 6}, {{0, 2}, {3, 7}}}, {{6, 7}, {{6, 7}}}};
  auto parameters = joined_parameters();
  parameters["g"] = draw({8}, 5), parameters["h"] = draw({8}, 6);
  expect_same({draw({2, 7, 8}, 0),
               {},
               parameters,
               [=](Graph& g, ValueId x, const auto&, auto& p) {
                 const auto columns = joined_columns(g, x);
                 const auto q = record_rms_norm(g, columns[0], p["g"], kEps, g.add_constant(cos), g.add_constant(sin));
                 const auto k = record_rms_norm(g, columns[1], p["h"], kEps, kNoValue, kNoValue);
                 return record_attention(g, q, k, columns[2], 2, parts);
               },
               [=](const at::Tensor& x, const auto&, auto& p) {
                 const auto linear = [&](const std::string& i) { return at::linear(x, p["w" + i], p["b" + i]); };
                 const auto pairs = rms(linear("0"), p["g"]).unflatten(-1, {-1, 2, 2});
                 const auto even = pairs.select(-1, 0), odd = pairs.select(-1, 1);
                 const auto c = cos.unsqueeze(1), s = sin.unsqueeze(1);
                 const auto q = at::stack({even * c - odd * s, even * s + odd * c}, -1).flatten(2);
                 const auto k = rms(linear("1"), p["h"]), v = linear("2");
                 const auto joined = [](const at::Tensor& t) {
                   return at::cat({t.narrow(1, 0, 2), t.narrow(1, 3, 4)}, 1);
                 };
                 return at::cat({attend(q.narrow(1, 0, 3), k.narrow(1, 0, 2), v.narrow(1, 0, 2)),
                                 attend(q.narrow(1, 3, 3), joined(k), joined(v)), v.narrow(1, 6, 1)},
                                1);
               }});
}

TEST(ProgramOperationsTest, ColumnsThatNothingIsAskedOfGetNoGradient) {
  const ProgramCase c{draw({2, 4, 8}, 0),
                      {draw({2, 5, 8}, 4)},
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

TEST(ProgramOperationsTest, ParametersThatDoNotLieTogetherAreRefused) {
  auto parameters = joined_parameters();
  parameters["w1"] = parameters["w1"].clone();
  const ProgramCase c{draw({2, 3, 8}, 0),
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

TEST(ProgramOperationsTest, LinearOfAConditioningAddsToItsSum) {
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

at::Tensor spread(const at::Tensor& table, const at::Tensor& row) { return table.index_select(1, row); }

TEST(ProgramOperationsTest, ModulatedNormGateAndModulation) {
  const auto row = at::tensor({0, 0, 1, 2, 2}, at::TensorOptions().dtype(at::kInt));
  expect_same({draw({2, 5, 8}, 0),
               {draw({2, 3, 4, 8}, 3)},
               {{"m", draw({1, 4, 8}, 5)}},
               [row](Graph& g, ValueId x, const auto& shared, auto& p) {
                 // no operation reads the last table
                 const auto e = record_modulation(g, p["m"], shared[0], {false, true, false, false});
                 const auto h = record_modulated_norm(g, x, e[1], e[0], row, kEps);
                 return record_gated_residual(g, x, h, e[2], row);
               },
               [row](const at::Tensor& x, const auto& shared, auto& p) {
                 const auto e = p["m"].unsqueeze(1) + shared[0];
                 const auto normed = at::layer_norm(x, {8}, {}, {}, kEps);
                 const auto h = normed * spread(1 + e.select(2, 1), row) + spread(e.select(2, 0), row);
                 return x + h * spread(e.select(2, 2), row) + 0 * e.sum();
               }});
}

TEST(ProgramOperationsTest, OneTableForAllModulations) {
  const auto row = at::tensor({0, 0, 1, 2, 2}, at::TensorOptions().dtype(at::kInt));
  expect_same({draw({2, 5, 8}, 0),
               {draw({2, 3, 8}, 3)},
               {{"m", draw({1, 2, 8}, 5)}},
               [row](Graph& g, ValueId x, const auto& shared, auto& p) {
                 const auto e = record_modulation(g, p["m"], shared[0], {false, true});
                 return record_modulated_norm(g, x, e[1], e[0], row, kEps);
               },
               [row](const at::Tensor& x, const auto& shared, auto& p) {
                 const auto e = p["m"].unsqueeze(1) + shared[0].unsqueeze(2);
                 return at::layer_norm(x, {8}, {}, {}, kEps) * spread(1 + e.select(2, 1), row) +
                        spread(e.select(2, 0), row);
               }});
}

TEST(ProgramOperationsTest, AffineNorm) {
  expect_same(
      {draw({2, 3, 8}, 0),
       {},
       {{"w", draw({8}, 1)}, {"b", draw({8}, 2)}},
       [](Graph& g, ValueId x, const auto&, auto& p) { return record_modulated_norm(g, x, p["w"], p["b"], {}, kEps); },
       [](const at::Tensor& x, const auto&, auto& p) { return at::layer_norm(x, {8}, p["w"], p["b"], kEps); }});
}

TEST(ProgramOperationsTest, RmsNormWithAndWithoutRotation) {
  const auto angle = draw({3, 2}, 9);
  const auto cos = angle.cos(), sin = angle.sin();
  expect_same({draw({2, 3, 8}, 0),
               {},
               {{"g", draw({8}, 1)}, {"h", draw({8}, 2)}},
               [cos, sin](Graph& g, ValueId x, const auto&, auto& p) {
                 const auto y = record_rms_norm(g, x, p["g"], kEps, g.add_constant(cos), g.add_constant(sin));
                 return record_rms_norm(g, y, p["h"], kEps, kNoValue, kNoValue);
               },
               [cos, sin](const at::Tensor& x, const auto&, auto& p) {
                 const auto pairs = rms(x, p["g"]).unflatten(-1, {-1, 2, 2});
                 const auto even = pairs.select(-1, 0), odd = pairs.select(-1, 1);
                 const auto c = cos.unsqueeze(1), s = sin.unsqueeze(1);
                 return rms(at::stack({even * c - odd * s, even * s + odd * c}, -1).flatten(2), p["h"]);
               }});
}

TEST(ProgramOperationsTest, GeluAndScaledSum) {
  expect_same({draw({2, 3, 8}, 0),
               {},
               {},
               [](Graph& g, ValueId x, const auto&, auto&) {
                 return record_add_scaled(g, record_activation(g, x, Activation::gelu_tanh), x, 0.375);
               },
               [](const at::Tensor& x, const auto&, auto&) { return at::gelu(x, "tanh") + x * 0.375; }});
}

TEST(ProgramOperationsTest, TakenRows) {
  expect_same({draw({2, 7, 4}, 0),
               {},
               {},
               [](Graph& g, ValueId x, const auto&, auto&) {
                 return record_take_rows(g, x, {{1, 3}, {5, 6}});
               },
               [](const at::Tensor& x, const auto&, auto&) {
                 return at::cat({x.narrow(1, 1, 2), x.narrow(1, 5, 1)}, 1);
               }});
}

TEST(ProgramOperationsTest, Activations) {
  expect_same({draw({2, 3, 8}, 0),
               {},
               {},
               [](Graph& g, ValueId x, const auto&, auto&) {
                 const auto y = record_activation(g, x, Activation::gelu_erf);
                 const auto z = record_add(g, y, record_activation(g, x, Activation::silu));
                 return record_add(g, z, record_activation(g, x, Activation::relu));
               },
               [](const at::Tensor& x, const auto&, auto&) { return at::gelu(x) + at::silu(x) + at::relu(x); }});
}

TEST(ProgramOperationsTest, JoinedRowsOfSeveralValues) {
  expect_same({draw({2, 7, 4}, 0),
               {},
               {{"w", draw({4, 4}, 1)}},
               [](Graph& g, ValueId x, const auto&, auto& p) {
                 const auto y = record_linear(g, record_take_rows(g, x, {{0, 3}}), p["w"], kNoValue);
                 return record_join_rows(g, {{x, 4}, {y, 2}, {x, 3}, {y, 1}});
               },
               [](const at::Tensor& x, const auto&, auto& p) {
                 const auto y = at::linear(x.narrow(1, 0, 3), p["w"]);
                 return at::cat({x.narrow(1, 0, 4), y.narrow(1, 0, 2), x.narrow(1, 4, 3), y.narrow(1, 2, 1)}, 1);
               }});
}

TEST(ProgramOperationsTest, JoinedChannels) {
  expect_same({draw({2, 3, 4}, 0),
               {},
               {},
               [](Graph& g, ValueId x, const auto&, auto& p) { return record_join_channels(g, x, p["t"]); },
               [](const at::Tensor& x, const auto&, auto& p) {
                 return at::cat({x, p["t"]}, 2);
               },
               {{"t", draw({2, 3, 5}, 1)}}});
}

TEST(ProgramOperationsTest, SquaredErrorWeightedByRowOrByElement) {
  for (const auto& sizes : {std::vector<std::int64_t>{2, 5}, std::vector<std::int64_t>{2, 5, 19}}) {
    expect_same({draw({2, 5, 19}, 0),
                 {},
                 {},
                 [](Graph& g, ValueId x, const auto&, auto& p) { return record_squared_error(g, x, p["t"], p["c"]); },
                 [](const at::Tensor& x, const auto&, auto& p) {
                   const auto c = p["c"].dim() == 3 ? p["c"] : p["c"].unsqueeze(2);
                   return (c * (x - p["t"]).square()).sum();
                 },
                 {{"t", draw({2, 5, 19}, 1)}, {"c", draw(sizes, 2)}}});
  }
}

TEST(ProgramOperationsTest, WeightedSum) {
  expect_same({draw({2, 5, 8}, 0),
               {},
               {},
               [](Graph& g, ValueId x, const auto&, auto& p) { return record_weighted_sum(g, x, p["c"]); },
               [](const at::Tensor& x, const auto&, auto& p) { return (p["c"] * x).sum(); },
               {{"c", draw({2, 5, 8}, 2)}}});
}

TEST(ProgramOperationsTest, AttentionByParts) {
  // keys of one range, of two, a query that copies its value, and one range seen by two parts
  const std::vector<AttentionPart> parts{{{0, 2}, {{0, 2}}}, {{2, 5}, {{0, 2}, {3, 7}}}, {{5, 6}, {{6, 7}}}};
  expect_same(
      {draw({2, 7, 8}, 0),
       {},
       {{"q", draw({8, 8}, 1)}, {"k", draw({8, 8}, 2)}, {"v", draw({8, 8}, 3)}},
       [parts](Graph& g, ValueId x, const auto&, auto& p) {
         const auto rows = record_take_rows(g, x, {{0, 6}});
         return record_attention(g, record_linear(g, rows, p["q"], kNoValue), record_linear(g, x, p["k"], kNoValue),
                                 record_linear(g, x, p["v"], kNoValue), 2, parts);
       },
       [](const at::Tensor& x, const auto&, auto& p) {
         const auto q = at::linear(x.narrow(1, 0, 6), p["q"]), k = at::linear(x, p["k"]);
         const auto v = at::linear(x, p["v"]);
         const auto joined = [](const at::Tensor& t) { return at::cat({t.narrow(1, 0, 2), t.narrow(1, 3, 4)}, 1); };
         return at::cat({attend(q.narrow(1, 0, 2), k.narrow(1, 0, 2), v.narrow(1, 0, 2)),
                         attend(q.narrow(1, 2, 3), joined(k), joined(v)), v.narrow(1, 6, 1)},
                        1);
       }});
}

TEST(ProgramOperationsTest, AttentionToAConditioning) {
  expect_same({draw({2, 4, 8}, 0),
               {draw({2, 5, 8}, 4)},
               {{"k", draw({8, 8}, 2)}, {"v", draw({8, 8}, 3)}},
               [](Graph& g, ValueId x, const auto& shared, auto& p) {
                 return record_attention(g, x, record_linear(g, shared[0], p["k"], kNoValue),
                                         record_linear(g, shared[0], p["v"], kNoValue), 2, {{{0, 4}, {{0, 5}}}});
               },
               [](const at::Tensor& x, const auto& shared, auto& p) {
                 return attend(x, at::linear(shared[0], p["k"]), at::linear(shared[0], p["v"]));
               }});
}

TEST(ProgramOperationsTest, AttentionToRowsThatSamplesShare) {
  // the first two samples share rows, of which the last stands for 9; the third has one row that stands for 4; no
  // sample sees the other two rows
  const auto rows = at::tensor({0, 4, 9, 0, 4, 9, 4, 5, 4}, at::TensorOptions().dtype(at::kLong)).view({3, 3});
  expect_same({draw({3, 4, 8}, 0),
               {draw({1, 7, 8}, 4), rows},
               {{"k", draw({8, 8}, 2)}, {"v", draw({8, 8}, 3)}},
               [](Graph& g, ValueId x, const auto& shared, auto& p) {
                 return record_attention(g, x, record_linear(g, shared[0], p["k"], kNoValue),
                                         record_linear(g, shared[0], p["v"], kNoValue), 2, {{{0, 4}, {{0, 7}}}},
                                         shared[1]);
               },
               [](const at::Tensor& x, const auto& shared, auto& p) {
                 const auto seen = [&](std::int64_t begin, std::int64_t count, std::int64_t n) {
                   const auto last = shared[0].narrow(1, begin + count - 1, 1).expand({1, n, 8});
                   return at::cat({shared[0].narrow(1, begin, count - 1), last}, 1);
                 };
                 std::vector<at::Tensor> results;
                 for (const auto& text : {seen(0, 4, 9), seen(0, 4, 9), seen(4, 1, 4)}) {
                   const auto q = x.narrow(0, static_cast<std::int64_t>(results.size()), 1);
                   results.push_back(attend(q, at::linear(text, p["k"]), at::linear(text, p["v"])));
                 }
                 return at::cat(results, 0);
               }});
}

}  // namespace
}  // namespace troupe::model
