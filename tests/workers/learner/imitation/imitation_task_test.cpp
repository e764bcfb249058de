// Items of demonstrations as batches of a policy's loss.
#include "workers/learner/imitation/imitation_task.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <list>

#include "model/loss/rl_keys.h"
#include "model/policy/flow_imitation.h"
#include "tests/model/policy/policy_fixture.h"
#include "workers/learner/imitation/demonstrations.h"

namespace troupe::workers {
namespace {

JobConfig reach_job() {
  JobConfig job;
  job.job.seed = 5;
  job.env.id = "arm7/reach-v1";
  job.env.chunk = 2;
  job.policy.kind = PolicyKind::flow;
  job.policy.hidden = {16};
  job.algorithm.name = Algorithm::grpo;
  return job;
}

class ImitationTaskTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto agent = make_agent(reach_job());
    layout_ = demonstration_layout(reach_job().policy, agent->shape);
    auto made = ImitationTask::make(reach_job(), agent->env);
    task_ = std::move(*made);
  }

  /// A sample whose numbers tell its position; its second action counts unless `last`.
  Feed::Sample sample(std::int64_t position, bool last = false) {
    bytes_.emplace_back(static_cast<std::size_t>(layout_.bytes));
    const std::span<std::byte> slot(bytes_.back());
    for (const char* field : {"state", "action"}) {
      const auto values = field_values<float>(slot, layout_.field(field));
      for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = 0.01F * static_cast<float>(position) + 0.001F * static_cast<float>(i);
    }
    const auto counts = field_values<std::uint8_t>(slot, layout_.field("counts"));
    counts[0] = 1;
    counts[1] = last ? 0 : 1;
    return {.position = position, .bytes = slot, .xxh3 = 0, .void_reason = {}};
  }
  double loss(const Batch& batch) {
    const auto params = testing_parameters();
    return testing::run_tape(*task_->network(), params, batch, 1.0, testing::empty_gradients(task_->network()->units()))
        .loss;
  }
  std::vector<ParamView> testing_parameters() const { return testing::start_parameters(task_->network()->units(), 7); }

  SampleLayout layout_;
  std::unique_ptr<ImitationTask> task_;
  std::list<std::vector<std::byte>> bytes_;
};

TEST_F(ImitationTaskTest, RowsAreTheItemsFields) {
  const auto batch = task_->train_batch({sample(4), sample(9, /*last=*/true)});
  EXPECT_EQ(batch->at(rl_keys::kState).sizes().vec(), (std::vector<std::int64_t>{2, layout_.field("state").shape[0]}));
  EXPECT_EQ(batch->at(rl_keys::kAction).sizes().vec(), (std::vector<std::int64_t>{2, 16}));
  EXPECT_FLOAT_EQ(batch->at(rl_keys::kAction)[1][3].item<float>(), 0.093F);
  EXPECT_TRUE(batch->at(rl_keys::kMask).to(at::kInt).equal(at::tensor({1, 1, 1, 0}, at::kInt).view({2, 2})));
}

TEST_F(ImitationTaskTest, ATextIsAnItemsField) {
  JobConfig job = reach_job();
  job.env.options = {{"instruction", "true"}};
  job.policy.text = TextReader::words;
  const auto agent = make_agent(job).value();
  layout_ = demonstration_layout(job.policy, agent.shape);
  task_ = ImitationTask::make(job, agent.env).value();
  Feed::Sample told = sample(1), untold = sample(2);
  field_values<std::uint8_t>(std::span(bytes_.front()), layout_.field("text.instruction"))[0] = 'x';
  const auto batch = task_->train_batch({told, untold});
  const at::Tensor& texts = batch->at("text.instruction");
  EXPECT_EQ(texts.sizes().vec(), (std::vector<std::int64_t>{2, 64}));
  EXPECT_EQ(texts[0][0].item<int>(), 'x');
  EXPECT_EQ(texts.sum().item<std::int64_t>(), 'x');
  EXPECT_TRUE(std::isfinite(loss(*batch)));
}

TEST_F(ImitationTaskTest, ABatchOfPartsHasTheMeanOfTheirLosses) {
  const std::vector<Feed::Sample> samples{sample(1), sample(2, true), sample(3), sample(4, true)};
  const double whole = loss(*task_->train_batch(samples));
  const double halves =
      0.5 * (loss(*task_->train_batch({samples[0], samples[1]})) + loss(*task_->train_batch({samples[2], samples[3]})));
  EXPECT_NEAR(whole, halves, 1e-6);
}

TEST_F(ImitationTaskTest, VoidSamplesAndFillersCountNothing) {
  Feed::Sample bad = sample(2);
  bad.bytes = {};
  bad.void_reason = "unreadable";
  EXPECT_NEAR(loss(*task_->train_batch({sample(1), bad})), 0.5 * loss(*task_->train_batch({sample(1)})), 1e-6);
  EXPECT_NEAR(loss(*task_->eval_batch({sample(1), sample(1)}, 1)), 0.5 * loss(*task_->eval_batch({sample(1)}, 1)),
              1e-6);
}

TEST_F(ImitationTaskTest, HeldOutSamplesHaveDrawsOfTheirOwn) {
  const auto train = *task_->train_batch({sample(3)}), again = *task_->train_batch({sample(3)}),
             held_out = *task_->eval_batch({sample(3)}, 1);
  EXPECT_TRUE(train.at(rl_keys::kActionNoise).equal(again.at(rl_keys::kActionNoise)));
  EXPECT_FALSE(train.at(rl_keys::kActionNoise).equal(held_out.at(rl_keys::kActionNoise)));
  EXPECT_FALSE(train.at(flow_keys::kTime).equal(held_out.at(flow_keys::kTime)));
}

}  // namespace
}  // namespace troupe::workers
