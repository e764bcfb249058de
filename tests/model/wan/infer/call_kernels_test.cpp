// The work of a policy call against its formulas.
#include "model/wan/infer/call_kernels.h"

#include <gtest/gtest.h>

#include "model/wan/model_cost.h"
#include "tests/model/wan/tiny_model.h"

namespace troupe::model {
namespace {

double product_flops(const std::vector<std::vector<KernelWork>>& programs, bool of_attention) {
  double sum = 0;
  for (const auto& program : programs) {
    for (const KernelWork& work : program) sum += is_attention(work.family) == of_attention ? work.product_flops() : 0;
  }
  return sum;
}

class CallKernelsTest : public ::testing::Test {
 protected:
  CallKernelsTest() {
    window_.chunks = 4;
    window_.action_horizon = 3;
    config_.latent_frames_per_block = 2;
    config_.target_height = config_.target_width = 4 * config_.codec.stride_hw;
    config_.dit.num_layers = 3;
    const SequenceLayout layout = planned_layout(config_, window_, /*trimmed=*/false);
    frame_ = layout.frame_tokens(), video_ = 2 * frame_, states_ = layout.states_per_block;
  }
  double flops(std::int64_t rows, std::int64_t in, std::int64_t out) const {
    return 2.0 * static_cast<double>(rows) * static_cast<double>(in) * static_cast<double>(out);
  }

  ModelConfig config_ = testing::tiny_config({.name = "tiny"});
  WindowConfig window_;
  std::int64_t frame_ = 0, video_ = 0, states_ = 0;
  const PlannedCall call_{.robots = 2, .branches = 2, .seen_blocks = 1, .prompt_rows = 7};
};

TEST_F(CallKernelsTest, AStepMultipliesTokensByLayersOnceAndAttendsToWhatIsSeen) {
  const DitConfig& dit = config_.dit;
  const std::int64_t d = dit.dim, tokens = video_ + 3 + states_, all = 4 * tokens, last = 4 * (video_ + 3);
  double products = 0;
  // tokens: patches, actions (whose second layer reads the sinusoid too), states
  products += flops(2 * video_, 4 * dit.in_dim, d) + flops(2 * 3, dit.action_dim, d) + flops(2 * 3, 2 * d, d) +
              flops(2 * 3, d, d);
  // queries, keys, values and output of self attention: one row of both branches in the first block
  products += flops(2 * tokens, d, 4 * d) + flops(all, d, 4 * d) + flops(all, d, 3 * d) + flops(last, d, d);
  // queries and output of cross attention, feed-forward
  for (const auto rows : {all, all, last}) products += flops(rows, d, 2 * d) + flops(rows, d, 2 * dit.ffn_dim);
  products += flops(4 * video_, d, 4 * dit.out_dim);
  const auto step = call_kernels(config_, window_, at::kFloat, call_).step;
  EXPECT_EQ(step.size(), 5U) << "tokens, three blocks, head";
  const double small = product_flops(step, false) - products;  // hidden layers of states and of the action decoder
  EXPECT_GT(small, 0);
  EXPECT_LT(small, 0.25 * products);

  const std::int64_t seen = frame_ * 3 + tokens, context = 7 + 257;
  const auto attention = [&](std::int64_t queries, std::int64_t keys) { return 2 * flops(queries, keys, d); };
  EXPECT_DOUBLE_EQ(product_flops(step, true), attention(2 * tokens, seen) + attention(all, seen) +
                                                  attention(last, seen) + 2 * attention(all, context) +
                                                  attention(last, context));
}

TEST_F(CallKernelsTest, FramesAreTakenInWithoutAHeadAndWithoutTheLastBlocksQueries) {
  const auto prefill = call_kernels(config_, window_, at::kFloat, call_).prefill;
  ASSERT_EQ(prefill.size(), 4U) << "tokens and three blocks";
  const std::int64_t d = config_.dit.dim;
  EXPECT_DOUBLE_EQ(product_flops({prefill.back()}, false), flops(4 * video_, d, 2 * d));
  EXPECT_EQ(product_flops({prefill.back()}, true), 0);
}

TEST_F(CallKernelsTest, ACallWorksInMemoryInProportionToItsTokens) {
  const auto bytes = [&](at::ScalarType dtype, std::int64_t robots) {
    auto call = call_;
    call.robots = robots;
    return static_cast<double>(call_workspace_bytes(config_, window_, dtype, call));
  };
  const double two = bytes(at::kFloat, 2);
  const auto tokens = static_cast<double>(4 * (video_ + 3 + states_));
  EXPECT_GT(two, 4 * tokens * static_cast<double>(config_.dit.ffn_dim + config_.dit.dim)) << "hidden layer and result";
  EXPECT_LT(two, 4 * tokens * static_cast<double>(2 * config_.dit.ffn_dim + 12 * config_.dit.dim));
  EXPECT_NEAR(bytes(at::kFloat, 4) / two, 2, 0.1);
  EXPECT_LT(bytes(at::kBFloat16, 2), two);
}

}  // namespace
}  // namespace troupe::model
