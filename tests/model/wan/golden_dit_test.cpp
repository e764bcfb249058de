// The DiT's training forward, loss and gradients against the reference's own numbers (golden/dit).
#include <gtest/gtest.h>

#include "model/wan/dit_parts.h"
#include "tests/model/wan/golden_dit_case.h"
#include "tests/model/wan/network_run.h"
#include "tests/support/tensor_checks.h"

namespace troupe::model {
namespace {

std::vector<GoldenCase> training_cases() {
  auto cases = golden_cases("dit", "train");
  for (auto& c : golden_cases("dit", "loss_head")) cases.push_back(c);
  return cases;
}

TEST(GoldenDitFolderTest, EveryKindIsTestedOrNamed) {
  testing::expect_known_kinds("dit", {"train", "loss_head", "bf16", "schedule", "visibility", "init_stats", "keys"},
                              {"infer", "unipc", "skip_logic"});
}

class GoldenDitTest : public ::testing::TestWithParam<GoldenCase> {};

/// The batch that the reference's head handed to its DiT, as far as the case recorded it.
void expect_inputs(const GoldenDitCase& golden, const Batch& batch) {
  const std::map<std::string, const char*> names = {{"dit.x_t", batch_keys::kNoisyLatents},
                                                    {"dit.action_t", batch_keys::kNoisyActions},
                                                    {"dit.context", batch_keys::kContext},
                                                    {"dit.y", batch_keys::kFirstFrame}};
  for (const auto& [recorded, key] : names) {
    if (golden.in.count(recorded) != 0) expect_near(batch.at(key), golden.in.at(recorded), 1e-6, recorded);
  }
  const auto schedule = make_flow_schedule();
  const std::map<std::string, std::pair<at::Tensor, const char*>> tables = {
      {"dit.t_video", {schedule.timesteps, batch_keys::kVideoIds}},
      {"dit.t_action", {schedule.timesteps, batch_keys::kActionIds}}};
  for (const auto& [recorded, source] : tables) {
    if (golden.in.count(recorded) == 0) continue;
    expect_near(source.first.index({batch.at(source.second)}), golden.in.at(recorded), 2e-4, recorded);
  }
}

/// Predictions and losses that the case holds; returns how many.
int expect_outputs(const GoldenDitCase& golden, const Outputs& outputs) {
  int compared = 0;
  for (const auto& [name, value] : testing::outputs_by_name(outputs)) {
    if (golden.out.count(name) == 0) continue;
    expect_near(value, golden.out.at(name), golden.tolerance("out." + name), name);
    ++compared;
  }
  return compared;
}

/// Gradients that the case holds; returns how many. A case whose inputs give no loss has none to compare.
int expect_gradients(const GoldenDitCase& golden, const Outputs& outputs, const testing::NamedTensors& parameters) {
  if (golden.grads.empty() || !outputs.loss.defined()) return 0;
  const auto rule = golden.json.value("recommended_grad_tolerance", nlohmann::json());
  const double tolerance = rule.is_object() ? rule.value("rel_l2", 2e-5) : 2e-5;
  const auto got = testing::gradients(outputs.loss, parameters);
  int compared = 0;
  for (const auto& [name, want] : golden.grads) {
    const auto it = got.find(name);
    if (it == got.end()) {
      ADD_FAILURE() << "no parameter " << name;
      continue;
    }
    EXPECT_LE(testing::relative_l2(it->second, want), tolerance) << name;
    ++compared;
  }
  return compared;
}

TEST_P(GoldenDitTest, InputsOutputsAndGradientsMatchTheReference) {
  const GoldenDitCase golden(GetParam());
  const auto batch = golden.batch();
  expect_inputs(golden, batch);
  for (const bool trim : {true, false}) {
    SCOPED_TRACE(trim ? "trimmed" : "whole");
    const auto network = golden.network(trim);
    const auto parameters = testing::recording(golden.weights);
    const auto outputs = testing::run_network(network, parameters, batch);
    const int compared = expect_outputs(golden, outputs) + expect_gradients(golden, outputs, parameters);
    if (compared == 0 && !testing::with_prefix(golden.out, "act.").empty()) {
      GTEST_SKIP() << GetParam().name << " records activations only";
    }
    EXPECT_GT(compared, 0) << "the case has no output to compare";
  }
}

TEST_P(GoldenDitTest, LossWeightsMatchTheReference) {
  const GoldenDitCase golden(GetParam());
  const auto weights = make_flow_schedule().weights;
  const std::map<std::string, at::Tensor> ids = {{"w_video", golden.video_ids()}, {"w_action", golden.action_ids()}};
  for (const auto& [name, ids_of] : ids) {
    if (golden.out.count(name) == 0) continue;
    expect_near(weights.index({ids_of}), golden.out.at(name), golden.tolerance("out." + name), name);
  }
}

/// Rows in the reference's order [clean V | noisy V | A | S].
at::Tensor to_reference_order(const at::Tensor& x_BNC, const SequenceLayout& layout) {
  return at::empty_like(x_BNC).index_copy(1, at::tensor(layout.reference_rows()), x_BNC);
}

/// Embedded text [B, L, d].
at::Tensor text_by_sample(const Carry& carry) {
  const auto& text = carry.conditioning[dit_conditioning::kText];
  std::vector<at::Tensor> samples;
  for (const auto& rows : carry.conditioning[dit_conditioning::kTextOfSample].unbind(0)) {
    const auto begin = rows[0].item<std::int64_t>(), end = rows[1].item<std::int64_t>();
    samples.push_back(text.narrow(1, begin, end - begin));
  }
  return at::cat(samples, 0);
}

/// What block 0 of the untrimmed network passes through.
BlockSave first_block_activations(const GoldenDitCase& golden, const DitNetwork& network, const Carry& carry,
                                  const SequenceLayout& layout) {
  const auto& dit = network.config().dit;
  const auto rope = make_rope_tables(layout, dit.dim / dit.num_heads, carry.x.scalar_type());
  const auto plan = make_block_plan(dit, layout, rope, golden.decoupled(), /*outputs_only=*/false);
  BlockSave save;
  (void)transformer_block(plan, testing::view_of(network.units()[1], golden.weights), "blocks.0.", carry.x,
                          carry.conditioning, &save);
  return save;
}

/// Activations that the unit interface shows: embeddings, time rows, every block's output and the inside of the first.
TEST_P(GoldenDitTest, ActivationsMatchTheReference) {
  const GoldenDitCase golden(GetParam());
  const auto batch = golden.batch();
  const auto network = golden.network(false);
  const auto layout = network.layout(batch);
  std::vector<at::Tensor> trace;
  const auto carry = network.prologue(testing::view_of(network.units().front(), golden.weights), batch);
  (void)testing::run_network(network, golden.weights, batch, &trace);

  const auto x = to_reference_order(carry.x, layout);
  const auto video = layout.video_tokens(), actions = layout.blocks * layout.actions_per_block;
  const auto states = layout.blocks * layout.states_per_block;
  const auto rest = video + actions + states;
  const auto time_row = time_row_of(layout, golden.decoupled());
  const auto rows_of = [&](std::size_t conditioning) {
    return to_reference_order(carry.conditioning[conditioning].index_select(1, time_row), layout);
  };
  const auto e = rows_of(dit_conditioning::kTimeRows), e0 = rows_of(dit_conditioning::kModulationRows);
  const auto save = first_block_activations(golden, network, carry, layout);
  std::map<std::string, at::Tensor> got = {{"patch_clean", x.narrow(1, 0, video)},
                                           {"patch_noisy", x.narrow(1, video, video)},
                                           {"action_features", x.narrow(1, 2 * video, actions)},
                                           {"state_features", x.narrow(1, 2 * video + actions, states)},
                                           {"ctx_text", text_by_sample(carry)},
                                           {"ctx_img", carry.conditioning[dit_conditioning::kImage]},
                                           {"e_clean", e.narrow(1, 0, video)},
                                           {"e_noisy", e.narrow(1, video, rest)},
                                           {"e0_clean", e0.narrow(1, 0, video)},
                                           {"e0_noisy", e0.narrow(1, video, rest)},
                                           {"block0.self_attn_in", to_reference_order(save.self_in, layout)},
                                           {"block0.q_rope", to_reference_order(save.q, layout)},
                                           {"block0.k_rope", to_reference_order(save.k, layout)},
                                           {"block0.v", to_reference_order(save.v.flatten(2), layout)},
                                           {"block0.self_attn_pre_o", to_reference_order(save.self_attended, layout)},
                                           {"block0.self_attn_out", to_reference_order(save.self_out, layout)},
                                           {"block0.cross_attn_pre_o", to_reference_order(save.cross_attended, layout)},
                                           {"block0.ffn_in", to_reference_order(save.ffn_in, layout)}};
  for (std::size_t i = 0; i < trace.size(); ++i) {
    got["block" + std::to_string(i) + ".out"] = to_reference_order(trace[i], layout);
  }
  int compared = 0;
  for (const auto& [name, value] : got) {
    const auto want = golden.out.find("act." + name);
    if (want == golden.out.end()) continue;
    expect_near(value, want->second, golden.tolerance("out.act." + name), name);
    ++compared;
  }
  if (compared == 0) GTEST_SKIP() << GetParam().name << " records no activations";
}

INSTANTIATE_TEST_SUITE_P(Cases, GoldenDitTest, ::testing::ValuesIn(training_cases()), golden_case_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenDitTest);

class GoldenBf16Test : public ::testing::TestWithParam<GoldenCase> {};

/// ||got - want|| / ||want|| over all tensors of `want` together.
double total_error(const testing::NamedTensors& got, const testing::TensorMap& want) {
  double error = 0, norm = 0;
  for (const auto& [name, exact] : want) {
    const auto it = got.find(name);
    if (it == got.end()) {
      ADD_FAILURE() << "no parameter " << name;
      continue;
    }
    error += (it->second.to(at::kDouble) - exact.to(at::kDouble)).square().sum().item<double>();
    norm += exact.to(at::kDouble).square().sum().item<double>();
  }
  return std::sqrt(error / (norm > 0 ? norm : 1.0));
}

/// Twice the reference's own error: of all gradients together, or of its worst one where the case holds only some.
double gradient_limit(const GoldenDitCase& golden) {
  const bool whole = golden.grads.size() == golden.weights.size();
  const nlohmann::json::json_pointer own(std::string("/against_exact/bf16/grads/") +
                                         (whole ? "total_rel_l2" : "worst_rel_l2/0"));
  return golden.json.contains(own) ? 2 * golden.json.at(own).get<double>() : GoldenDitCase::kUnmeasuredBf16;
}

TEST_P(GoldenBf16Test, Bf16StaysWithinTwiceTheReferencesOwnError) {
  const GoldenDitCase golden(GetParam());
  const auto network = golden.network(true);
  const auto parameters = testing::recording(golden.weights);
  const auto outputs = testing::run_network(network, parameters, golden.batch());
  const auto got = testing::outputs_by_name(outputs);
  int compared = 0;
  for (const char* name : {"v_video", "v_action"}) {
    const auto want = golden.out.find(std::string("fp32.") + name);
    if (want == golden.out.end()) continue;
    EXPECT_LE(testing::relative_l2(got.at(name), want->second), golden.bf16_limit(name)) << name;
    ++compared;
  }
  if (!golden.grads.empty() && outputs.loss.defined()) {
    EXPECT_LE(total_error(testing::gradients(outputs.loss, parameters), golden.grads), gradient_limit(golden));
    ++compared;
  }
  EXPECT_GT(compared, 0) << "the case has no f32 output to compare";
}

INSTANTIATE_TEST_SUITE_P(Cases, GoldenBf16Test, ::testing::ValuesIn(golden_cases("dit", "bf16")), golden_case_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenBf16Test);

}  // namespace
}  // namespace troupe::model
