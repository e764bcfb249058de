// The units' programs against autograd: each unit in f64, whole micro-batches through the tape in f32 and bf16.
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>

#include "kernels/product.h"
#include "kernels/threads.h"
#include "model/program/unit_program.h"
#include "model/shard/unit_tape.h"
#include "model/wan/block_program.h"
#include "model/wan/dit.h"
#include "model/wan/dit_parts.h"
#include "model/wan/layers.h"
#include "model/wan/lora.h"
#include "model/wan/unit_memory_cost.h"
#include "tests/model/wan/network_run.h"
#include "tests/model/wan/tiny_model.h"
#include "tests/support/tensor_checks.h"

namespace troupe::model {
namespace {

using testing::NamedTensors;

/// The same network, whose units run by autograd.
class ByAutograd final : public Network {
 public:
  explicit ByAutograd(const DitNetwork& network) : network_(network) {}
  const std::vector<UnitSpec>& units() const override { return network_.units(); }
  Carry prologue(const ParamView& params, const Batch& batch) const override {
    return network_.prologue(params, batch);
  }
  at::Tensor block(std::int64_t index, const ParamView& params, const Carry& carry, const Batch& batch) const override {
    return network_.block(index, params, carry, batch);
  }
  Outputs epilogue(const ParamView& params, const Carry& carry, const Batch& batch) const override {
    return network_.epilogue(params, carry, batch);
  }

 private:
  const DitNetwork& network_;
};

struct TapeRun {
  double loss = 0;
  NamedTensors gradients;
};

/// Of the prologue, the blocks and the head.
const std::vector<std::vector<RecomputeLevel>> kLevels = {
    {RecomputeLevel::none},
    {RecomputeLevel::cheap},
    {RecomputeLevel::attention},
    {RecomputeLevel::full, RecomputeLevel::attention, RecomputeLevel::cheap, RecomputeLevel::none}};

std::string text_of(const std::vector<RecomputeLevel>& levels) {
  std::string text;
  for (const auto level : levels) text += std::string(enum_name(level)) + " ";
  return text;
}

/// Which parameters are differentiated.
enum class Trained { all, replicated, all_but_blocks };

/// One micro-batch; `memory` null: the tape's own. Gradients start as NaN so that a miss shows.
TapeRun run_tape(const Network& network, const NamedTensors& parameters, const Batch& batch,
                 const std::vector<RecomputeLevel>& levels, Trained trained = Trained::all,
                 UnitMemory* memory = nullptr) {
  TapeRun run;
  std::vector<ParamView> params, gradients;
  for (const auto& unit : network.units()) {
    params.emplace_back();
    gradients.emplace_back();
    params.back().set_adapter_scale(unit.adapter_scale);
    const auto add = [&](const std::vector<ParamSpec>& specs, bool leaf) {
      const auto dtype = accumulate_type(parameters.begin()->second.scalar_type());
      const auto slot = testing::laid_out(specs, dtype, std::nan(""));
      for (const auto& spec : specs) {
        params.back().set(spec.name, parameters.at(spec.name).detach().requires_grad_(leaf), spec.follows);
        if (!leaf) continue;
        run.gradients[spec.name] = slot[spec.name];
        gradients.back().set(spec.name, slot[spec.name]);
      }
    };
    const bool is_block = unit.name.starts_with("blocks.");
    const bool whole = trained == Trained::all || (trained == Trained::all_but_blocks && !is_block);
    add(unit.params, whole);
    add(unit.replicated, trained != Trained::all_but_blocks);
  }
  UnitTape tape(network, batch, 0.5, levels, memory);
  const int units = static_cast<int>(network.units().size());
  for (int u = 0; u < units; ++u) tape.forward(u, params[static_cast<std::size_t>(u)]);
  if (!levels.empty()) {
    for (int u = units - 1; u >= 0; --u)
      tape.backward(u, params[static_cast<std::size_t>(u)], gradients[static_cast<std::size_t>(u)]);
  }
  run.loss = tape.result().loss;
  return run;
}

void expect_same_bits(const TapeRun& got, const TapeRun& want, const std::string& what) {
  EXPECT_EQ(got.loss, want.loss) << what;
  for (const auto& [name, gradient] : want.gradients)
    EXPECT_TRUE(at::equal(got.gradients.at(name), gradient)) << what << ": " << name;
}

/// The same values, of which numbers are f64.
NamedTensors in_f64(NamedTensors tensors) {
  for (auto& [name, tensor] : tensors) tensor = tensor.is_floating_point() ? tensor.to(at::kDouble) : tensor;
  return tensors;
}

void expect_close(const TapeRun& got, const TapeRun& want, double tolerance) {
  EXPECT_NEAR(got.loss, want.loss, tolerance * std::abs(want.loss));
  for (const auto& [name, gradient] : want.gradients)
    EXPECT_LE(testing::relative_l2(got.gradients.at(name), gradient), tolerance) << name;
}

double cosine(const TapeRun& a, const TapeRun& b) {
  double dot = 0, aa = 0, bb = 0;
  for (const auto& [name, g] : a.gradients) {
    const auto x = g.to(at::kDouble), y = b.gradients.at(name).to(at::kDouble);
    dot += (x * y).sum().item<double>();
    aa += x.square().sum().item<double>();
    bb += y.square().sum().item<double>();
  }
  return dot / std::sqrt(aa * bb);
}

struct ProgramShape {
  testing::TinyShape shape;
  bool trim = true;
  std::int64_t micro_batch = 1;
  bool lora = false;
  /// of each sample; empty: other text for each, none padded
  std::vector<testing::TinyPrompt> prompts = {};

  friend std::ostream& operator<<(std::ostream& out, const ProgramShape& s) { return out << s.shape.name; }
  ModelConfig config() const {
    auto c = testing::tiny_config(shape);
    if (lora) c.train_architecture = "lora", c.lora.alpha = 6;
    return c;
  }
  DitNetwork network() const {
    return {config(),
            shape.max_blocks,
            {.trim = trim, .collapse_text_pads = !prompts.empty(), .decoupled_action_timesteps = shape.decoupled}};
  }
  NamedTensors parameters(at::ScalarType dtype) const {
    return testing::random_parameters(state_units(training_units(config())), 5, dtype);
  }
  Batch batch(at::ScalarType dtype) const {
    const auto batch = testing::tiny_batch(shape, micro_batch, dtype);
    return prompts.empty() ? batch : testing::with_prompts(batch, prompts, testing::kTinyText);
  }
};

std::vector<ProgramShape> program_shapes() {
  return {{{.name = "ti2v"}, true, 1},
          {{.name = "ti2v_whole_of_three"}, false, 3},
          {{.name = "i2v_of_three", .image_to_video = true}, true, 3},
          {{.name = "i2v_whole", .frames_per_block = 1, .image_to_video = true}, false, 1},
          {{.name = "decoupled", .states_per_block = 3, .decoupled = true}, true, 2},
          {{.name = "windowed", .blocks = 3, .frames_per_block = 1, .max_blocks = 1}, false, 1},
          {{.name = "lora"}, true, 2, true},
          {{.name = "prompts_of_three"}, true, 3, false, {{0, 9}, {1, 20}, {0, 9}}},
          {{.name = "lora_with_prompts"}, true, 4, true, {{0, 70}, {1, 0}, {1, 0}, {0, 69}}}};
}

class DitProgramTest : public ::testing::TestWithParam<ProgramShape> {
 protected:
  Trained trained() const { return GetParam().lora ? Trained::replicated : Trained::all; }
};

TEST_P(DitProgramTest, LossAndGradientsMatchTheTapeInF64) {
  const auto network = GetParam().network();
  const auto parameters = GetParam().parameters(at::kDouble);
  const auto batch = GetParam().batch(at::kDouble);
  const auto want = run_tape(ByAutograd(network), parameters, batch, {RecomputeLevel::none}, trained());
  expect_close(run_tape(network, parameters, batch, {RecomputeLevel::none}, trained()), want, 1e-9);
}

TEST_P(DitProgramTest, LossAndGradientsMatchTheTapeInF32) {
  const auto network = GetParam().network();
  const auto parameters = GetParam().parameters(at::kFloat);
  const auto batch = GetParam().batch(at::kFloat);
  const auto want = run_tape(ByAutograd(network), parameters, batch, {RecomputeLevel::full}, trained());
  const auto got = run_tape(network, parameters, batch, {RecomputeLevel::full}, trained());
  const auto exact =
      run_tape(ByAutograd(network), in_f64(parameters), in_f64(batch), {RecomputeLevel::none}, trained());
  EXPECT_NEAR(got.loss, want.loss, 2e-6 * std::abs(want.loss));
  for (const auto& [name, gradient] : want.gradients) {
    // a bias that all keys share acts through their norm alone: its gradient is a small difference of large sums
    const auto rounding = testing::relative_l2(gradient, exact.gradients.at(name));
    EXPECT_LE(testing::relative_l2(got.gradients.at(name), gradient), std::max(4e-6, 2 * rounding)) << name;
  }
  for (const auto& levels : kLevels)
    expect_same_bits(run_tape(network, parameters, batch, levels, trained()), got, text_of(levels));
  EXPECT_EQ(run_tape(network, parameters, batch, {}, trained()).loss, got.loss);
}

TEST_P(DitProgramTest, Bf16GradientsPointTheWayOfTheTapes) {
  const auto network = GetParam().network();
  const auto parameters = GetParam().parameters(at::kBFloat16);
  const auto batch = GetParam().batch(at::kBFloat16);
  const auto form = product_form();
  for (const auto tried : {ProductForm::native, ProductForm::widened}) {
    set_product_form(tried);
    const auto want = run_tape(ByAutograd(network), parameters, batch, {RecomputeLevel::full}, trained());
    const auto got = run_tape(network, parameters, batch, {RecomputeLevel::full}, trained());
    EXPECT_NEAR(got.loss, want.loss, 2e-3 * std::abs(want.loss));
    EXPECT_GE(cosine(got, want), 0.999);
    for (const auto& levels : kLevels)
      expect_same_bits(run_tape(network, parameters, batch, levels, trained()), got, text_of(levels));
  }
  set_product_form(form);
}

INSTANTIATE_TEST_SUITE_P(Shapes, DitProgramTest, ::testing::ValuesIn(program_shapes()),
                         [](const auto& param_info) { return param_info.param.shape.name; });

/// Of three samples with these prompts.
ProgramShape shape_with(const std::vector<testing::TinyPrompt>& prompts) {
  return {{.name = "prompts"}, true, 3, false, prompts};
}

/// The same network without collapsed pads.
DitNetwork with_all_rows(const ProgramShape& shape) { return {shape.config(), shape.shape.max_blocks}; }

/// The run in f64 from the same f32 values, with all rows of text, by autograd.
TapeRun exact_run(const ProgramShape& shape, const NamedTensors& parameters, const Batch& batch) {
  return run_tape(ByAutograd(with_all_rows(shape)), in_f64(parameters), in_f64(batch), {RecomputeLevel::none});
}

TEST(DitProgramsTest, CollapsedPadsChangeNoGradientByMoreThanRounding) {
  for (const auto& prompts : testing::prompt_sets(6)) {
    // keys of equal rows alone get no gradient: noise over noise
    if (std::all_of(prompts.begin(), prompts.end(), [](const auto& p) { return p.tokens == 0; })) continue;
    const auto shape = shape_with(prompts);
    const auto parameters = shape.parameters(at::kFloat);
    const auto batch = shape.batch(at::kFloat);
    const auto exact = exact_run(shape, parameters, batch);
    const auto all_rows = run_tape(with_all_rows(shape), parameters, batch, {RecomputeLevel::none});
    for (const auto& got : {run_tape(shape.network(), parameters, batch, {RecomputeLevel::none}),
                            run_tape(ByAutograd(shape.network()), parameters, batch, {RecomputeLevel::none})}) {
      EXPECT_NEAR(got.loss, exact.loss, 1e-6 * exact.loss);
      for (const auto& [name, gradient] : exact.gradients) {
        // a bias that all keys share acts through their norm alone: its gradient is a small difference of large sums,
        // which f32 has no five digits of with all rows either
        const auto rounding = testing::relative_l2(all_rows.gradients.at(name), gradient);
        EXPECT_LE(testing::relative_l2(got.gradients.at(name), gradient), std::max(1e-5, 2 * rounding)) << name;
      }
    }
  }
}

TEST(DitProgramsTest, CollapsedPadsPointBf16GradientsTheSameWay) {
  const auto shape = shape_with({{0, 9}, {1, 20}, {0, 9}});
  const auto parameters = shape.parameters(at::kBFloat16);
  const auto batch = shape.batch(at::kBFloat16);
  const auto form = product_form();
  for (const auto tried : {ProductForm::native, ProductForm::widened}) {
    set_product_form(tried);
    const auto want = run_tape(with_all_rows(shape), parameters, batch, {RecomputeLevel::none});
    for (const auto& got : {run_tape(shape.network(), parameters, batch, {RecomputeLevel::none}),
                            run_tape(ByAutograd(shape.network()), parameters, batch, {RecomputeLevel::none})}) {
      EXPECT_NEAR(got.loss, want.loss, 2e-3 * std::abs(want.loss));
      EXPECT_GE(cosine(got, want), 0.999);
    }
  }
  set_product_form(form);
}

/// What a policy computes when it predicts the last block: the clean frames before it, each of which sees what came
/// before, and behind them the noisy block with its actions and states. Rows of the training sequence.
struct InferenceRows {
  at::Tensor rows;
  BlockPlan plan;
};

InferenceRows inference_rows(const DitConfig& config, const SequenceLayout& layout) {
  const auto clean = layout.clean_tokens(), group = layout.group_begin(layout.blocks);
  const auto moved = [&](const TokenRange& range) {
    return range.begin < group ? range : TokenRange{range.begin - group + clean, range.end - group + clean};
  };
  InferenceRows inference{at::cat({at::arange(clean), at::arange(group, layout.tokens())}), {}};
  auto& plan = inference.plan;
  plan.num_heads = config.num_heads, plan.eps = config.eps;
  for (const auto& segment : layout.segments()) {
    if (segment.query.begin >= clean && segment.query.begin < group) continue;
    auto& own = plan.segments.emplace_back(AttentionSegment{segment.kind, moved(segment.query), {}});
    for (const auto& keys : segment.keys) own.keys.push_back(moved(keys));
  }
  const auto rope = make_rope_tables(layout, config.dim / config.num_heads, at::kDouble);
  plan.rope = {rope.cos.index_select(0, inference.rows), rope.sin.index_select(0, inference.rows)};
  plan.query_rope = plan.rope;
  plan.time_row = time_row_of(layout, /*decoupled=*/false).index_select(0, inference.rows).contiguous();
  plan.query_time_row = plan.time_row;
  return inference;
}

TEST(DitProgramsTest, TheLayoutOfInferenceRunsForwardAndBackwardAsAutogradDoes) {
  const ProgramShape shape{{.name = "inference", .blocks = 3, .max_blocks = 3}, true, 2};
  const auto network = shape.network();
  const auto parameters = shape.parameters(at::kDouble);
  const auto batch = shape.batch(at::kDouble);
  const auto carry = network.prologue(testing::view_of(network.units()[0], parameters), batch);
  const auto inference = inference_rows(network.config().dit, network.layout(batch));
  const at::AutoGradMode recording(true);
  const auto view = testing::view_of(network.units()[1], testing::recording(parameters));
  const auto x = carry.x.index_select(1, inference.rows).detach().requires_grad_(true);
  const auto y = transformer_block(inference.plan, view, "blocks.0.", x, carry.conditioning);
  const auto seed = at::randn(y.sizes(), y.options().requires_grad(false));
  std::vector<at::Tensor> leaves{x};
  Differentiated wanted{{}, std::vector<bool>(carry.conditioning.size(), false)};
  for (const auto& [name, tensor] : view.tensors()) {
    leaves.push_back(tensor);
    wanted.parameters.insert(name.substr(std::string("blocks.0.").size()));
  }
  const auto gradients = testing::laid_out(network.units()[1].params, at::kDouble, std::nan(""));
  const auto want = torch::autograd::grad({y}, leaves, {seed});

  const auto values = testing::view_of(network.units()[1], parameters);
  const UnitProgram program(record_block(inference.plan, values, "blocks.0.", {x, carry.conditioning}), wanted,
                            RecomputeLevel::cheap);
  const std::vector<at::Tensor> inputs{x};
  const UnitInputs bound{inputs, carry.conditioning, values.tensors(), "blocks.0.", {}};
  UnitMemory memory;
  std::vector<at::Tensor> sums(carry.conditioning.size());
  testing::expect_near(program.forward(bound, memory, 1).front(), y.detach(), 1e-11, "result");
  testing::expect_near(program.backward(bound, {seed}, {sums, gradients.tensors()}, memory, 1).front(), want[0], 1e-10,
                       "x");
  for (std::size_t i = 1; const auto& [name, tensor] : view.tensors())
    testing::expect_near(gradients[name], want[i++], 1e-10, name);
}

/// What the planner counts with for the units of these runs.
std::int64_t planned_bytes(const ProgramShape& shape, at::ScalarType dtype, RecomputeLevel level) {
  auto config = shape.config();
  config.text_encoder.max_length = testing::kTinyText;
  config.image_encoder.image_size = 2, config.image_encoder.patch_size = 1;  // five rows
  config.target_height = 4 * config.codec.stride_hw, config.target_width = 6 * config.codec.stride_hw;
  WindowConfig window;
  window.chunks = shape.shape.blocks, window.action_horizon = shape.shape.actions_per_block;
  const auto cost = unit_memory_cost(config, window, dtype, shape.micro_batch);
  const auto& block = cost.blocks[static_cast<std::size_t>(level)];
  const auto ends = level == RecomputeLevel::none ? cost.ends_kept_bytes : cost.ends_rerun_bytes;
  return block.kept_bytes * (config.dit.num_layers - 1) + block.last_kept_bytes + block.workspace_bytes + ends;
}

TEST(DitProgramsTest, ProgramsTakeThePlannedBytesWherePromptsFillTheTextAndLessElsewhere) {
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    for (const auto level :
         {RecomputeLevel::none, RecomputeLevel::cheap, RecomputeLevel::attention, RecomputeLevel::full}) {
      const auto sets = testing::prompt_sets(6);
      for (std::size_t i = 0; i < sets.size(); ++i) {
        const auto shape = shape_with(sets[i]);
        UnitMemory memory;
        // the prologue of a job runs again unless all blocks keep everything
        const auto first = level == RecomputeLevel::none ? level : RecomputeLevel::full;
        run_tape(shape.network(), shape.parameters(dtype), shape.batch(dtype), {first, level}, Trained::all, &memory);
        const auto planned = planned_bytes(shape, dtype, level);
        EXPECT_LE(memory.bytes(), planned) << "set " << i << ", " << enum_name(level);
        // three prompts that fill the text
        if (i == 0) {
          EXPECT_EQ(memory.bytes(), planned) << enum_name(level);
        }
      }
    }
  }
}

TEST(DitProgramsTest, ThreadsAndAWarmMemoryChangeNoBit) {
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    const ProgramShape shape{{.name = "ti2v", .image_to_video = true}, true, 3};
    const auto network = shape.network();
    const auto parameters = shape.parameters(dtype);
    const auto batch = shape.batch(dtype);
    const auto want = run_tape(network, parameters, batch, {RecomputeLevel::none});
    UnitMemory memory;
    std::int64_t bytes = 0;
    for (const int threads : {1, 2, 3, 5}) {
      set_num_threads(threads);
      const auto level = threads == 3 ? RecomputeLevel::full : RecomputeLevel::none;
      expect_same_bits(run_tape(network, parameters, batch, {level}, Trained::all, &memory), want,
                       std::to_string(threads) + " threads");
      if (threads == 3) bytes = memory.bytes();
    }
    EXPECT_EQ(memory.bytes(), bytes);
    set_num_threads(1);
  }
}

TEST(DitProgramsTest, AFrozenBlockHandsGradientsDownAndHasNoneOfItsOwn) {
  const ProgramShape shape{{.name = "ti2v"}, true, 2};
  const auto network = shape.network();
  const auto parameters = shape.parameters(at::kFloat);
  const auto batch = shape.batch(at::kFloat);
  const auto all = run_tape(network, parameters, batch, {RecomputeLevel::none});
  const auto some = run_tape(network, parameters, batch, {RecomputeLevel::none}, Trained::all_but_blocks);
  EXPECT_LT(some.gradients.size(), all.gradients.size());
  for (const auto& [name, gradient] : some.gradients) EXPECT_TRUE(at::equal(gradient, all.gradients.at(name))) << name;
}

TEST(DitProgramsTest, AnObjectiveMayFreezeABlockAfterItsForward) {
  const ProgramShape shape{{.name = "ti2v"}, true, 1};
  const auto network = shape.network();
  auto parameters = shape.parameters(at::kFloat);
  const auto batch = shape.batch(at::kFloat);
  const auto all = run_tape(network, parameters, batch, {RecomputeLevel::none});
  std::vector<ParamView> views;
  for (auto& [name, tensor] : parameters) tensor.requires_grad_(true);
  for (const auto& unit : network.units()) views.push_back(testing::view_of(unit, parameters));
  UnitTape tape(network, batch, 0.5, std::array{RecomputeLevel::none});
  for (int u = 0; u < 4; ++u) tape.forward(u, views[static_cast<std::size_t>(u)]);
  for (int u = 3; u > 0; --u) tape.backward(u, views[static_cast<std::size_t>(u)], {});
  ParamView embed;
  const auto& weight = parameters.at("patch_embedding.weight");
  embed.set("patch_embedding.weight", at::empty(weight.sizes()));
  tape.backward(0, views[0], embed);
  EXPECT_TRUE(at::equal(embed["patch_embedding.weight"], all.gradients.at("patch_embedding.weight")));
}

TEST(DitProgramsTest, AProgramIsRecordedOnceForBlocksOfOneShape) {
  const ProgramShape shape{{.name = "ti2v"}, /*trim=*/false, 1};
  const auto network = shape.network();
  const auto parameters = shape.parameters(at::kFloat);
  const auto batch = shape.batch(at::kFloat);
  const auto carry = network.prologue(testing::view_of(network.units()[0], parameters), batch);
  const auto program = [&](std::int64_t index, RecomputeLevel level) {
    const auto view = testing::view_of(network.units()[static_cast<std::size_t>(index) + 1], parameters);
    return network.unit_program(static_cast<std::size_t>(index) + 1, view, carry, batch, level, {}).program;
  };
  EXPECT_EQ(program(0, RecomputeLevel::none), program(1, RecomputeLevel::none));
  EXPECT_EQ(program(0, RecomputeLevel::none), program(0, RecomputeLevel::none));
  EXPECT_NE(program(0, RecomputeLevel::none), program(0, RecomputeLevel::full));
}

}  // namespace
}  // namespace troupe::model
