#include "model/program/unit_program.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "kernels/product.h"
#include "kernels/threads.h"
#include "model/program/operations.h"
#include "model/program/recompute.h"
#include "tests/model/program/program_case.h"
#include "tests/support/tensor_checks.h"

namespace troupe::model {
namespace {

constexpr std::int64_t kRows = 70, kWidth = 48, kHidden = 80;

/// A feed-forward unit: x + gate * W2 gelu(W1 norm(x)), conditioned by c, with adapters on W1.
ProgramCase unit(at::ScalarType dtype) {
  const auto draw = [dtype](at::IntArrayRef sizes, double phase) {
    std::int64_t count = 1;
    for (const auto size : sizes) count *= size;
    return at::arange(count, at::TensorOptions().dtype(at::kDouble))
        .mul(1.3)
        .add(phase)
        .sin()
        .mul(0.2)
        .view(sizes)
        .to(dtype);
  };
  ProgramCase c;
  c.x = draw({2, kRows, kWidth}, 0);
  c.conditioning = {draw({2, kRows, kWidth}, 1)};
  c.parameters = {{"a", draw({4, kWidth}, 2)},       {"b", draw({kHidden, 4}, 3)},       {"g", draw({kWidth}, 4)},
                  {"n", draw({kWidth}, 5)},          {"w1", draw({kHidden, kWidth}, 6)}, {"w1b", draw({kHidden}, 7)},
                  {"w2", draw({kWidth, kHidden}, 8)}};
  c.record = [](Graph& g, ValueId x, const auto& shared, auto& p) {
    const auto h = record_modulated_norm(g, record_add(g, x, shared[0]), p["g"], p["n"], {}, 1e-6);
    const auto update = record_linear(g, record_linear(g, h, p["a"], kNoValue), p["b"], kNoValue);
    const auto u = record_add_scaled(g, record_linear(g, h, p["w1"], p["w1b"]), update, 0.5);
    return record_add(g, x, record_linear(g, record_activation(g, u, Activation::gelu_tanh), p["w2"], kNoValue));
  };
  return c;
}

void expect_same_bits(const testing::CaseResult& got, const testing::CaseResult& want, const std::string& what) {
  EXPECT_TRUE(at::equal(got.y, want.y)) << what;
  EXPECT_TRUE(at::equal(got.dx, want.dx)) << what;
  EXPECT_TRUE(at::equal(got.conditioning[0], want.conditioning[0])) << what;
  for (const auto& [name, gradient] : want.parameters)
    EXPECT_TRUE(at::equal(got.parameters.at(name), gradient)) << what << ": " << name;
}

TEST(UnitProgramTest, KeepingRecomputingRunningTwiceAndThreadsGiveTheSameBits) {
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    const auto c = unit(dtype);
    const auto kept = c.program(RecomputeLevel::none);
    UnitMemory memory;
    const auto want = testing::run_program(c, kept, memory);
    expect_same_bits(testing::run_program(c, kept, memory), want, "twice");
    expect_same_bits(testing::run_program(c, kept, memory, 5), want, "another place");
    for (const auto level : {RecomputeLevel::cheap, RecomputeLevel::attention, RecomputeLevel::full}) {
      UnitMemory other;
      expect_same_bits(testing::run_program(c, c.program(level), other), want, std::string(enum_name(level)));
    }
    for (const int threads : {1, 2, 3, 5}) {
      set_num_threads(threads);
      expect_same_bits(testing::run_program(c, kept, memory), want, std::to_string(threads) + " threads");
    }
    set_num_threads(1);
  }
}

TEST(UnitProgramTest, AFrozenParameterHasNoGradientAndCostsNoOperation) {
  const auto c = unit(at::kFloat);
  const UnitProgram whole = c.program(RecomputeLevel::full), frozen(c.graph(), {{"a", "b"}, {}}, RecomputeLevel::full);
  EXPECT_LT(frozen.backward_pass().operations.size(), whole.backward_pass().operations.size());
  UnitMemory memory;
  const auto want = testing::run_program(c, whole, memory);
  std::vector<at::Tensor> sums(1);
  const testing::Named gradients{{"a", at::full({4, kWidth}, 7.0F)}, {"b", at::full({kHidden, 4}, 7.0F)}};
  const std::vector<at::Tensor> x{c.x};
  const UnitInputs inputs{x, c.conditioning, c.parameters, "", c.data};
  const auto y = frozen.forward(inputs, memory, 0).front();
  const auto dx = frozen.backward(inputs, {testing::seed_like(y)}, {sums, gradients}, memory, 0).front();
  EXPECT_TRUE(at::equal(dx, want.dx));
  EXPECT_TRUE(at::equal(sums[0], want.conditioning[0]));
  for (const auto& [name, gradient] : gradients) EXPECT_TRUE(at::equal(gradient, want.parameters.at(name))) << name;
}

TEST(UnitProgramTest, OnlyWhatTheBackwardReadsIsReplayedOrKept) {
  const auto c = unit(at::kFloat);
  const auto kept = c.program(RecomputeLevel::none), recomputed = c.program(RecomputeLevel::full);
  // the second product and the last sum lead to nothing that the backward reads
  const auto forward = kept.forward_pass().operations.size(), backward = kept.backward_pass().operations.size();
  EXPECT_EQ(recomputed.backward_pass().operations.size(), backward + forward - 2);
  EXPECT_GT(kept.forward_pass().stash_bytes, recomputed.forward_pass().stash_bytes);
  EXPECT_EQ(recomputed.forward_pass().stash_bytes % 64, 0);
  EXPECT_GE(recomputed.forward_pass().stash_bytes, 2 * kRows * kWidth * 4);
}

TEST(UnitProgramTest, TensorsOfAnotherShapeAreRefusedByName) {
  auto c = unit(at::kFloat);
  const auto program = c.program(RecomputeLevel::none);
  UnitMemory memory;
  const auto w1 = c.parameters.at("w1");
  c.parameters["w1"] = w1.narrow(0, 0, 3);
  EXPECT_THROW(testing::run_program(c, program, memory), c10::Error);
  c.parameters.erase("w1");
  EXPECT_THROW(testing::run_program(c, program, memory), c10::Error);
}

/// Counts the bytes that tensors take while it stands.
class CountingAllocator final : public c10::Allocator {
 public:
  CountingAllocator() : base_(c10::GetCPUAllocator()) { c10::SetCPUAllocator(this, 255); }
  ~CountingAllocator() override { c10::SetCPUAllocator(base_, 255); }
  c10::DataPtr allocate(std::size_t bytes) override {
    taken += bytes;
    return base_->allocate(bytes);
  }
  c10::DeleterFnPtr raw_deleter() const override { return base_->raw_deleter(); }
  void copy_data(void* to, const void* from, std::size_t count) const override { base_->copy_data(to, from, count); }
  std::size_t taken = 0;

 private:
  c10::Allocator* base_;
};

TEST(UnitProgramTest, AWarmMemoryIsNotAllocatedAgain) {
  // LibTorch's own bf16 products take memory inside
  const auto form = product_form();
  set_product_form(ProductForm::widened);
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    const auto c = unit(dtype);
    const auto program = c.program(RecomputeLevel::none);
    UnitMemory memory;
    auto result = testing::run_program(c, program, memory);
    const auto bytes = memory.bytes();
    const std::vector<at::Tensor> x{c.x}, seeds{testing::seed_like(result.y)};
    const UnitInputs inputs{x, c.conditioning, c.parameters, "", c.data};
    const auto taken = [&] {
      const CountingAllocator counter;
      program.forward(inputs, memory, 1);
      program.backward(inputs, seeds, {result.conditioning, result.parameters}, memory, 1);
      return counter.taken;
    }();
    // less than the smallest activation: numbers that ATen makes tensors of
    EXPECT_LT(taken, 256U);
    EXPECT_EQ(memory.bytes(), bytes);
  }
  set_product_form(form);
}

}  // namespace
}  // namespace troupe::model
