#pragma once

#include <cmath>
#include <ostream>

#include "kernels/dispatch.h"
#include "model/program/operations.h"
#include "tests/model/program/program_case.h"

// A unit for every operation of programs, beside the same function by ATen's operators, in f64.

namespace troupe::testing {

using namespace model;

inline constexpr double kEps = 1e-6;
/// Two heads of 16 channels.
inline constexpr std::int64_t kTwoHeads = 32;

inline at::Tensor draw(at::IntArrayRef sizes, double phase) {
  std::int64_t count = 1;
  for (const auto size : sizes) count *= size;
  return at::arange(count, at::TensorOptions().dtype(at::kDouble)).mul(1.3).add(phase).sin().mul(1.1).view(sizes);
}

/// A constant in what the values of x are computed in.
inline ValueId add_angles(Graph& g, ValueId x, const at::Tensor& angles) {
  return g.add_constant(angles.to(kernels::accumulate_dtype(g.value(x).dtype)));
}

inline at::Tensor rms(const at::Tensor& x, const at::Tensor& gain) {
  return x * at::rsqrt(x.square().mean(-1, true) + kEps) * gain;
}

inline at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  const auto heads = [](const at::Tensor& x) { return x.unflatten(-1, {2, -1}).transpose(1, 2); };
  const auto scores = at::matmul(heads(q), heads(k).transpose(-1, -2)) / std::sqrt(static_cast<double>(q.size(2) / 2));
  return at::matmul(scores.softmax(-1), heads(v)).transpose(1, 2).flatten(2);
}

/// Parameters over one buffer, as the layout of a unit puts them: three square weights, then three biases.
inline Named joined_parameters() {
  const auto flat = draw({3 * kTwoHeads * kTwoHeads + 3 * kTwoHeads}, 1);
  Named parameters;
  for (std::int64_t i = 0; i < 3; ++i) {
    parameters["w" + std::to_string(i)] =
        flat.narrow(0, kTwoHeads * kTwoHeads * i, kTwoHeads * kTwoHeads).view({kTwoHeads, kTwoHeads});
    parameters["b" + std::to_string(i)] = flat.narrow(0, kTwoHeads * (3 * kTwoHeads + i), kTwoHeads);
  }
  return parameters;
}

/// The columns of x [B, N, d] by the three of them as one product.
inline std::vector<ValueId> joined_columns(Graph& g, ValueId x) {
  const auto w = g.add_joined_parameters({"w0", "w1", "w2"}, {kTwoHeads, kTwoHeads}, g.value(x).dtype);
  const auto b = g.add_joined_parameters({"b0", "b1", "b2"}, {kTwoHeads}, g.value(x).dtype);
  return g.split_columns(record_linear(g, x, w, b), 3);
}

inline at::Tensor spread(const at::Tensor& table, const at::Tensor& row) { return table.index_select(1, row); }

inline ProgramCase linear() {
  return {draw({2, 5, 7}, 0),
          {},
          {{"w", draw({4, 7}, 1)}, {"b", draw({4}, 2)}, {"v", draw({3, 4}, 3)}},
          [](Graph& g, ValueId x, const auto&, auto& p) {
            return record_linear(g, record_linear(g, x, p["w"], p["b"]), p["v"], kNoValue);
          },
          [](const at::Tensor& x, const auto&, auto& p) { return at::linear(at::linear(x, p["w"], p["b"]), p["v"]); }};
}

inline ProgramCase linear_of_a_weight_that_lies_inputs_first() {
  return {draw({2, 5, 7}, 0),
          {},
          {{"w", draw({1, 7, 4}, 1)}, {"b", draw({1, 4}, 2)}, {"p", draw({3, 2, 1, 2}, 3)}},
          [](Graph& g, ValueId x, const auto&, auto& p) {
            const auto y = record_linear(g, x, p["w"], p["b"], LinearLayout::in_out);
            return record_linear(g, y, p["p"], kNoValue);
          },
          [](const at::Tensor& x, const auto&, auto& p) {
            return at::linear(at::matmul(x, p["w"][0]) + p["b"][0], p["p"].flatten(1));
          }};
}

inline ProgramCase columns_of_one_product_are_normed_and_attended_to() {
  const auto angle = draw({7, kTwoHeads / 4}, 9);
  const auto cos = angle.cos(), sin = angle.sin();
  const std::vector<AttentionPart> parts{{{0, 3}, {{0, 2}}}, {{3, 6}, {{0, 2}, {3, 7}}}, {{6, 7}, {{6, 7}}}};
  auto parameters = joined_parameters();
  parameters["g"] = draw({kTwoHeads}, 5), parameters["h"] = draw({kTwoHeads}, 6);
  return {draw({2, 7, kTwoHeads}, 0),
          {},
          parameters,
          [=](Graph& g, ValueId x, const auto&, auto& p) {
            const auto columns = joined_columns(g, x);
            const auto q = record_rms_norm(g, columns[0], p["g"], kEps, add_angles(g, x, cos), add_angles(g, x, sin));
            const auto k = record_rms_norm(g, columns[1], p["h"], kEps, kNoValue, kNoValue);
            return record_attention(g, q, k, columns[2], 2, parts);
          },
          [=](const at::Tensor& x, const auto&, auto& p) {
            const auto linear = [&](const std::string& i) { return at::linear(x, p["w" + i], p["b" + i]); };
            const auto pairs = rms(linear("0"), p["g"]).unflatten(-1, {-1, kTwoHeads / 4, 2});
            const auto even = pairs.select(-1, 0), odd = pairs.select(-1, 1);
            const auto c = cos.unsqueeze(1), s = sin.unsqueeze(1);
            const auto q = at::stack({even * c - odd * s, even * s + odd * c}, -1).flatten(2);
            const auto k = rms(linear("1"), p["h"]), v = linear("2");
            const auto joined = [](const at::Tensor& t) { return at::cat({t.narrow(1, 0, 2), t.narrow(1, 3, 4)}, 1); };
            return at::cat({attend(q.narrow(1, 0, 3), k.narrow(1, 0, 2), v.narrow(1, 0, 2)),
                            attend(q.narrow(1, 3, 3), joined(k), joined(v)), v.narrow(1, 6, 1)},
                           1);
          }};
}

inline ProgramCase modulated_norm_gate_and_modulation() {
  const auto row = at::tensor({0, 0, 1, 2, 2}, at::TensorOptions().dtype(at::kInt));
  return {draw({2, 5, 8}, 0),
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
          }};
}

inline ProgramCase one_table_for_all_modulations() {
  const auto row = at::tensor({0, 0, 1, 2, 2}, at::TensorOptions().dtype(at::kInt));
  return {draw({2, 5, 8}, 0),
          {draw({2, 3, 8}, 3)},
          {{"m", draw({1, 2, 8}, 5)}},
          [row](Graph& g, ValueId x, const auto& shared, auto& p) {
            const auto e = record_modulation(g, p["m"], shared[0], {false, true});
            return record_modulated_norm(g, x, e[1], e[0], row, kEps);
          },
          [row](const at::Tensor& x, const auto& shared, auto& p) {
            const auto e = p["m"].unsqueeze(1) + shared[0].unsqueeze(2);
            return at::layer_norm(x, {8}, {}, {}, kEps) * spread(1 + e.select(2, 1), row) + spread(e.select(2, 0), row);
          }};
}

inline ProgramCase affine_norm() {
  return {
      draw({2, 3, 8}, 0),
      {},
      {{"w", draw({8}, 1)}, {"b", draw({8}, 2)}},
      [](Graph& g, ValueId x, const auto&, auto& p) { return record_modulated_norm(g, x, p["w"], p["b"], {}, kEps); },
      [](const at::Tensor& x, const auto&, auto& p) { return at::layer_norm(x, {8}, p["w"], p["b"], kEps); }};
}

inline ProgramCase rms_norm_with_and_without_rotation() {
  const auto angle = draw({3, 2}, 9);
  const auto cos = angle.cos(), sin = angle.sin();
  return {draw({2, 3, 8}, 0),
          {},
          {{"g", draw({8}, 1)}, {"h", draw({8}, 2)}},
          [cos, sin](Graph& g, ValueId x, const auto&, auto& p) {
            const auto y = record_rms_norm(g, x, p["g"], kEps, add_angles(g, x, cos), add_angles(g, x, sin));
            return record_rms_norm(g, y, p["h"], kEps, kNoValue, kNoValue);
          },
          [cos, sin](const at::Tensor& x, const auto&, auto& p) {
            const auto pairs = rms(x, p["g"]).unflatten(-1, {-1, 2, 2});
            const auto even = pairs.select(-1, 0), odd = pairs.select(-1, 1);
            const auto c = cos.unsqueeze(1), s = sin.unsqueeze(1);
            return rms(at::stack({even * c - odd * s, even * s + odd * c}, -1).flatten(2), p["h"]);
          }};
}

inline ProgramCase gelu_and_scaled_sum() {
  return {draw({2, 3, 8}, 0),
          {},
          {},
          [](Graph& g, ValueId x, const auto&, auto&) {
            return record_add_scaled(g, record_activation(g, x, Activation::gelu_tanh), x, 0.375);
          },
          [](const at::Tensor& x, const auto&, auto&) { return at::gelu(x, "tanh") + x * 0.375; }};
}

inline ProgramCase taken_rows() {
  return {draw({2, 7, 4}, 0),
          {},
          {},
          [](Graph& g, ValueId x, const auto&, auto&) {
            return record_take_rows(g, x, {{1, 3}, {5, 6}});
          },
          [](const at::Tensor& x, const auto&, auto&) {
            return at::cat({x.narrow(1, 1, 2), x.narrow(1, 5, 1)}, 1);
          }};
}

inline ProgramCase activations() {
  return {draw({2, 3, 8}, 0),
          {},
          {},
          [](Graph& g, ValueId x, const auto&, auto&) {
            const auto y = record_activation(g, x, Activation::gelu_erf);
            const auto z = record_add(g, y, record_activation(g, x, Activation::silu));
            return record_add(g, z, record_activation(g, x, Activation::relu));
          },
          [](const at::Tensor& x, const auto&, auto&) { return at::gelu(x) + at::silu(x) + at::relu(x); }};
}

inline ProgramCase joined_rows_of_several_values() {
  return {draw({2, 7, 4}, 0),
          {},
          {{"w", draw({4, 4}, 1)}},
          [](Graph& g, ValueId x, const auto&, auto& p) {
            const auto y = record_linear(g, record_take_rows(g, x, {{0, 3}}), p["w"], kNoValue);
            return record_join_rows(g, {{x, 4}, {y, 2}, {x, 3}, {y, 1}});
          },
          [](const at::Tensor& x, const auto&, auto& p) {
            const auto y = at::linear(x.narrow(1, 0, 3), p["w"]);
            return at::cat({x.narrow(1, 0, 4), y.narrow(1, 0, 2), x.narrow(1, 4, 3), y.narrow(1, 2, 1)}, 1);
          }};
}

inline ProgramCase joined_channels() {
  return {draw({2, 3, 4}, 0),
          {},
          {},
          [](Graph& g, ValueId x, const auto&, auto& p) { return record_join_channels(g, x, p["t"]); },
          [](const at::Tensor& x, const auto&, auto& p) {
            return at::cat({x, p["t"]}, 2);
          },
          {{"t", draw({2, 3, 5}, 1)}}};
}

inline ProgramCase squared_error(const std::vector<std::int64_t>& sizes) {
  return {draw({2, 5, 19}, 0),
          {},
          {},
          [](Graph& g, ValueId x, const auto&, auto& p) { return record_squared_error(g, x, p["t"], p["c"]); },
          [](const at::Tensor& x, const auto&, auto& p) {
            const auto c = p["c"].dim() == 3 ? p["c"] : p["c"].unsqueeze(2);
            return (c * (x - p["t"]).square()).sum();
          },
          {{"t", draw({2, 5, 19}, 1)}, {"c", draw(sizes, 2)}}};
}

/// Three rows of two actions of three numbers each, an entry an action, among four blocks of predictions.
inline ProgramCase clipped_ratio() {
  const auto block = at::tensor({0, 2, 3}, at::TensorOptions().dtype(at::kLong));
  auto scale = 0.6 * draw({3, 6}, 1), weight = draw({3, 2}, 5).abs();
  scale[1][2] = 0;
  weight[2][1] = 0;
  const kernels::RatioClip clip{.lower = 0.8, .upper = 1.25, .dual = 1.5};
  return {
      draw({2, 6, 5}, 0),
      {},
      {},
      [clip](Graph& g, ValueId v, const auto&, auto& p) {
        return record_clipped_ratio(g, v, {p["block"], p["scale"], p["offset"], p["base"], p["advantage"], p["weight"]},
                                    /*actions=*/3, /*width=*/3, clip);
      },
      [clip](const at::Tensor& v, const auto&, auto& p) {
        const auto rows = v.reshape({4, 3, 5}).index_select(0, p["block"]).narrow(1, 0, 2).narrow(2, 0, 3).flatten(1);
        const auto z = at::where(p["scale"] == 0, 0.0, p["offset"] + p["scale"] * rows);
        const auto ratio = (p["base"] - z.square().unflatten(1, {2, 3}).sum(2) / 2).clamp(-20, 20).exp();
        const auto loss = at::maximum(-p["advantage"] * ratio, -p["advantage"] * ratio.clamp(clip.lower, clip.upper));
        return (p["weight"] * at::minimum(loss, clip.dual * p["advantage"].abs())).sum();
      },
      {{"block", block},
       {"scale", scale},
       {"offset", draw({3, 6}, 2)},
       {"base", 0.5 + draw({3, 2}, 3)},
       {"advantage", draw({3, 2}, 4)},
       {"weight", weight}}};
}

inline ProgramCase weighted_sum() {
  return {draw({2, 5, 8}, 0),
          {},
          {},
          [](Graph& g, ValueId x, const auto&, auto& p) { return record_weighted_sum(g, x, p["c"]); },
          [](const at::Tensor& x, const auto&, auto& p) { return (p["c"] * x).sum(); },
          {{"c", draw({2, 5, 8}, 2)}}};
}

inline ProgramCase attention_by_parts() {
  // keys of one range, of two, a query that copies its value, and one range seen by two parts
  const std::vector<AttentionPart> parts{{{0, 2}, {{0, 2}}}, {{2, 5}, {{0, 2}, {3, 7}}}, {{5, 6}, {{6, 7}}}};
  return {draw({2, 7, kTwoHeads}, 0),
          {},
          {{"q", draw({kTwoHeads, kTwoHeads}, 1)},
           {"k", draw({kTwoHeads, kTwoHeads}, 2)},
           {"v", draw({kTwoHeads, kTwoHeads}, 3)}},
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
          }};
}

inline ProgramCase attention_to_a_conditioning() {
  return {draw({2, 4, kTwoHeads}, 0),
          {draw({2, 5, kTwoHeads}, 4)},
          {{"k", draw({kTwoHeads, kTwoHeads}, 2)}, {"v", draw({kTwoHeads, kTwoHeads}, 3)}},
          [](Graph& g, ValueId x, const auto& shared, auto& p) {
            return record_attention(g, x, record_linear(g, shared[0], p["k"], kNoValue),
                                    record_linear(g, shared[0], p["v"], kNoValue), 2, {{{0, 4}, {{0, 5}}}});
          },
          [](const at::Tensor& x, const auto& shared, auto& p) {
            return attend(x, at::linear(shared[0], p["k"]), at::linear(shared[0], p["v"]));
          }};
}

inline ProgramCase attention_to_rows_that_samples_share() {
  // the first two samples share rows, of which the last stands for 9; the third has one row that stands for 4; no
  // sample sees the other two rows
  const auto rows = at::tensor({0, 4, 9, 0, 4, 9, 4, 5, 4}, at::TensorOptions().dtype(at::kLong)).view({3, 3});
  return {draw({3, 4, kTwoHeads}, 0),
          {draw({1, 7, kTwoHeads}, 4), rows},
          {{"k", draw({kTwoHeads, kTwoHeads}, 2)}, {"v", draw({kTwoHeads, kTwoHeads}, 3)}},
          [](Graph& g, ValueId x, const auto& shared, auto& p) {
            return record_attention(g, x, record_linear(g, shared[0], p["k"], kNoValue),
                                    record_linear(g, shared[0], p["v"], kNoValue), 2, {{{0, 4}, {{0, 7}}}}, shared[1]);
          },
          [](const at::Tensor& x, const auto& shared, auto& p) {
            const auto seen = [&](std::int64_t begin, std::int64_t count, std::int64_t n) {
              const auto last = shared[0].narrow(1, begin + count - 1, 1).expand({1, n, kTwoHeads});
              return at::cat({shared[0].narrow(1, begin, count - 1), last}, 1);
            };
            std::vector<at::Tensor> results;
            for (const auto& text : {seen(0, 4, 9), seen(0, 4, 9), seen(4, 1, 4)}) {
              const auto q = x.narrow(0, static_cast<std::int64_t>(results.size()), 1);
              results.push_back(attend(q, at::linear(text, p["k"]), at::linear(text, p["v"])));
            }
            return at::cat(results, 0);
          }};
}

struct OperationCase {
  const char* name;
  ProgramCase unit;
};
inline void PrintTo(const OperationCase& c, std::ostream* to) { *to << c.name; }

inline std::vector<OperationCase> operation_cases() {
  return {
      {"Linear", linear()},
      {"LinearOfAWeightThatLiesInputsFirst", linear_of_a_weight_that_lies_inputs_first()},
      {"ColumnsOfOneProductAreNormedAndAttendedTo", columns_of_one_product_are_normed_and_attended_to()},
      {"ModulatedNormGateAndModulation", modulated_norm_gate_and_modulation()},
      {"OneTableForAllModulations", one_table_for_all_modulations()},
      {"AffineNorm", affine_norm()},
      {"RmsNormWithAndWithoutRotation", rms_norm_with_and_without_rotation()},
      {"GeluAndScaledSum", gelu_and_scaled_sum()},
      {"TakenRows", taken_rows()},
      {"Activations", activations()},
      {"JoinedRowsOfSeveralValues", joined_rows_of_several_values()},
      {"JoinedChannels", joined_channels()},
      {"SquaredErrorWeightedByRow", squared_error({2, 5})},
      {"SquaredErrorWeightedByElement", squared_error({2, 5, 19})},
      {"ClippedRatio", clipped_ratio()},
      {"WeightedSum", weighted_sum()},
      {"AttentionByParts", attention_by_parts()},
      {"AttentionToAConditioning", attention_to_a_conditioning()},
      {"AttentionToRowsThatSamplesShare", attention_to_rows_that_samples_share()},
  };
}

}  // namespace troupe::testing
