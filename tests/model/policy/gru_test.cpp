#include "model/policy/gru.h"

#include "tests/model/policy/policy_fixture.h"

namespace troupe::model {
namespace {

/// Three sequences of five steps, of four numbers each; a memory of six.
struct GruTest : ::testing::Test {
  static constexpr std::int64_t kSteps = 5, kSequences = 3, kInputs = 4, kWidth = 6;
  GruTest() {
    const std::vector<UnitSpec> units{make_group_unit("actor", gru_.params())};
    view_ = testing::start_parameters(units, 3, 0.3).front();
  }
  static at::Tensor draw(at::IntArrayRef sizes, std::uint64_t seed) {
    return at::randn(sizes, at::detail::createCPUGenerator(seed), at::kFloat);
  }
  /// ATen's own cell, step by step.
  at::Tensor by_cells(const at::Tensor& memory, const at::Tensor& begins) const {
    std::vector<at::Tensor> all;
    at::Tensor h = memory;
    for (std::int64_t t = 0; t < kSteps; ++t) {
      if (begins.defined()) h = at::where(begins.view({kSteps, kSequences, 1})[t], at::zeros_like(h), h);
      h = at::gru_cell(x_.view({kSteps, kSequences, kInputs})[t], h, view_["m.input.weight"], view_["m.memory.weight"],
                       view_["m.input.bias"], view_["m.memory.bias"]);
      all.push_back(h);
    }
    return at::cat(all);
  }

  const Gru gru_{"m", kInputs, kWidth};
  ParamView view_;
  const at::Tensor x_ = draw({kSteps * kSequences, kInputs}, 1), memory_ = draw({kSequences, kWidth}, 2);
};

TEST_F(GruTest, IsTheUnitOfTheLiteratureStepByStep) {
  const c10::NoGradGuard no_grad;
  testing::expect_near(gru_.forward(view_, x_, memory_, {}), by_cells(memory_, {}), 1e-6, "no episode begins");
}

TEST_F(GruTest, AnEpisodeBeginsWithoutAMemory) {
  const c10::NoGradGuard no_grad;
  auto begins = at::zeros({kSteps * kSequences, 1}, at::kBool);
  for (const std::int64_t row : {0 * kSequences + 2, 2 * kSequences + 0, 3 * kSequences + 1}) begins[row] = true;
  const auto all = gru_.forward(view_, x_, memory_, begins);
  testing::expect_near(all, by_cells(memory_, begins), 1e-6, "three begin");
  const auto later = at::randn({kSequences, kWidth}, at::detail::createCPUGenerator(9), at::kFloat);
  EXPECT_TRUE(at::equal(gru_.forward(view_, x_, later, begins)[4 * kSequences], all[4 * kSequences]))
      << "what was remembered before the episode has no part in it";
}

TEST_F(GruTest, GradientsGoThroughAllStepsOfAnEpisode) {
  auto begins = at::zeros({kSteps * kSequences, 1}, at::kBool);
  begins[3 * kSequences] = true;
  std::vector<at::Tensor> mine, theirs;
  for (const bool own : {true, false}) {
    const auto last = own ? gru_.forward(view_, x_, memory_, begins) : by_cells(memory_, begins);
    (last * draw(last.sizes(), 7)).sum().backward();
    for (const auto& param : gru_.params()) {
      auto& gradient = view_[param.name].mutable_grad();
      (own ? mine : theirs).push_back(gradient.clone());
      gradient.reset();
    }
  }
  for (std::size_t i = 0; i < mine.size(); ++i)
    testing::expect_near(mine[i], theirs[i], 1e-5, gru_.params()[i].name.c_str());
}

TEST_F(GruTest, AMemoryThatDoesNotFitIsRefused) {
  EXPECT_THROW(gru_.forward(view_, x_, draw({kSequences, kWidth + 1}, 2), {}), c10::Error);
  EXPECT_THROW(gru_.forward(view_, x_, draw({2, kWidth}, 2), {}), c10::Error) << "15 rows are not 2 sequences";
}

}  // namespace
}  // namespace troupe::model
