// The blocks' programs against autograd: one block in f64, whole micro-batches through the tape in f32 and bf16.
#include "model/wan/dit_program.h"

#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>

#include "kernels/product.h"
#include "kernels/threads.h"
#include "model/shard/unit_tape.h"
#include "model/wan/dit.h"
#include "model/wan/lora.h"
#include "tests/model/wan/network_run.h"
#include "tests/model/wan/tiny_model.h"
#include "tests/support/tensor_checks.h"

namespace troupe::model {
namespace {

using testing::NamedTensors;

/// The same network, whose blocks run by autograd.
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
    const auto add = [&](const ParamSpec& spec, bool leaf) {
      params.back().set(spec.name, parameters.at(spec.name).detach().requires_grad_(leaf));
      if (!leaf) return;
      run.gradients[spec.name] = at::full(spec.shape, std::nan(""), at::kFloat);
      gradients.back().set(spec.name, run.gradients[spec.name]);
    };
    const bool is_block = unit.name.starts_with("blocks.");
    const bool whole = trained == Trained::all || (trained == Trained::all_but_blocks && !is_block);
    for (const auto& spec : unit.params) add(spec, whole);
    for (const auto& spec : unit.replicated) add(spec, trained != Trained::all_but_blocks);
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

  friend std::ostream& operator<<(std::ostream& out, const ProgramShape& s) { return out << s.shape.name; }
  ModelConfig config() const {
    auto c = testing::tiny_config(shape);
    if (lora) c.train_architecture = "lora", c.lora.alpha = 6;
    return c;
  }
  DitNetwork network() const {
    return {config(), shape.max_blocks, {.trim = trim, .decoupled_action_timesteps = shape.decoupled}};
  }
  NamedTensors parameters(at::ScalarType dtype) const {
    return testing::random_parameters(state_units(training_units(config())), 5, dtype);
  }
  Batch batch(at::ScalarType dtype) const { return testing::tiny_batch(shape, micro_batch, dtype); }
};

std::vector<ProgramShape> program_shapes() {
  return {{{.name = "ti2v"}, true, 1},
          {{.name = "ti2v_whole_of_three"}, false, 3},
          {{.name = "i2v_of_three", .image_to_video = true}, true, 3},
          {{.name = "i2v_whole", .frames_per_block = 1, .image_to_video = true}, false, 1},
          {{.name = "decoupled", .states_per_block = 3, .decoupled = true}, true, 2},
          {{.name = "windowed", .blocks = 3, .frames_per_block = 1, .max_blocks = 1}, false, 1},
          {{.name = "lora"}, true, 2, true}};
}

class DitProgramTest : public ::testing::TestWithParam<ProgramShape> {
 protected:
  Trained trained() const { return GetParam().lora ? Trained::replicated : Trained::all; }
};

TEST_P(DitProgramTest, ABlockAndAllItsGradientsMatchAutogradInF64) {
  const auto network = GetParam().network();
  const auto parameters = GetParam().parameters(at::kDouble);
  const auto batch = GetParam().batch(at::kDouble);
  const at::AutoGradMode recording(true);
  auto carry = network.prologue(testing::view_of(network.units()[0], parameters), batch);
  for (std::int64_t index = 0; index < 2; ++index) {
    std::vector<at::Tensor> leaves{carry.x.detach().requires_grad_(true)};
    for (const auto& c : carry.conditioning) leaves.push_back(c.detach().requires_grad_(true));
    const Carry leaf_carry{leaves[0], {leaves.begin() + 1, leaves.end()}};
    const auto view =
        testing::view_of(network.units()[static_cast<std::size_t>(index) + 1], testing::recording(parameters));
    for (const auto& [name, tensor] : view.tensors()) leaves.push_back(tensor);
    const auto y = network.block(index, view, leaf_carry, batch);
    const auto seed = at::randn(y.sizes(), y.options().requires_grad(false));
    const auto want = torch::autograd::grad({y}, leaves, {seed}, std::nullopt, false, /*allow_unused=*/true);

    std::set<std::string> names;
    NamedTensors gradients;
    for (const auto& [name, tensor] : view.tensors()) {
      names.insert(name);
      gradients[name] = at::full(tensor.sizes(), std::nan(""), at::kDouble);
    }
    UnitMemory memory;
    const auto [program, prefix] = network.block_program(index, view, leaf_carry, batch, RecomputeLevel::none, names);
    ASSERT_NE(program, nullptr);
    const UnitInputs inputs{leaf_carry.x, leaf_carry.conditioning, view.tensors(), prefix};
    std::vector<at::Tensor> sums(carry.conditioning.size());
    testing::expect_near(program->forward(inputs, memory, 0), y.detach(), 1e-11, "result");
    const auto dx = program->backward(inputs, seed, {sums, gradients}, memory, 0);
    testing::expect_near(dx, want[0], 1e-10, "gradient of x");
    for (std::size_t i = 0; i < sums.size(); ++i) {
      ASSERT_EQ(sums[i].defined(), want[1 + i].defined()) << "conditioning " << i;
      if (sums[i].defined()) testing::expect_near(sums[i], want[1 + i], 1e-10, "conditioning " + std::to_string(i));
    }
    std::size_t next = 1 + sums.size();
    for (const auto& [name, tensor] : view.tensors())
      testing::expect_near(gradients.at(name), want[next++], 1e-10, name);
    carry.x = y.detach();
  }
}

TEST_P(DitProgramTest, LossAndGradientsMatchTheTapeInF32) {
  const auto network = GetParam().network();
  const auto parameters = GetParam().parameters(at::kFloat);
  const auto batch = GetParam().batch(at::kFloat);
  const auto want = run_tape(ByAutograd(network), parameters, batch, {RecomputeLevel::full}, trained());
  const auto got = run_tape(network, parameters, batch, {RecomputeLevel::full}, trained());
  expect_close(got, want, 2e-6);
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
  const auto parameters = shape.parameters(at::kFloat);
  const auto batch = shape.batch(at::kFloat);
  const auto all = run_tape(network, parameters, batch, {RecomputeLevel::none});
  std::vector<ParamView> views;
  for (const auto& unit : network.units()) views.push_back(testing::view_of(unit, testing::recording(parameters)));
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
    return network.block_program(index, view, carry, batch, level, {}).program;
  };
  EXPECT_EQ(program(0, RecomputeLevel::none), program(1, RecomputeLevel::none));
  EXPECT_EQ(program(0, RecomputeLevel::none), program(0, RecomputeLevel::none));
  EXPECT_NE(program(0, RecomputeLevel::none), program(0, RecomputeLevel::full));
}

}  // namespace
}  // namespace troupe::model
