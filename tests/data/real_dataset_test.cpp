#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "data/dataset.h"
#include "data/sample/sample_builder.h"
#include "data/toy/toy_dataset.h"
#include "tests/data/data_test_support.h"
#include "tests/data/golden_dataset.h"
#include "tests/support/scratch_folder.h"

namespace troupe::data {
namespace {

/// Real recordings with their quirks: two feature names for one camera and wrong counts (gr1), AV1 and float32 lists
/// (g1).
class RealDatasetTest : public ::testing::Test {
 protected:
  RealDatasetTest() { job_.data.index.path = index_.path(); }
  std::shared_ptr<const Dataset> open(const std::string& name) {
    job_.data.sets = {{shared_data() + "/" + name, 1.0}};
    return Dataset::open(job_.data, job_.model).value();
  }
  static bool present(const std::string& name) { return std::filesystem::exists(shared_data() + "/" + name); }

  void gr1_recipe() {
    auto& e = job_.data.embodiment;
    e.state_keys = e.action_keys = {"left_arm", "left_hand", "right_arm", "right_hand", "waist"};
    e.relative_action_keys = {"left_arm", "right_arm"};
    job_.data.image.height = job_.data.image.width = 64;
  }
  static Result<void> count_bytes(const std::string& prompt, std::span<std::int64_t> ids,
                                  std::span<std::int64_t> mask) {
    ids[0] = static_cast<std::int64_t>(prompt.size());
    mask[0] = 1;
    return {};
  }

  ScratchFolder index_;
  JobConfig job_;
};

std::set<std::string> codes(const std::vector<DatasetProblem>& problems) {
  std::set<std::string> out;
  for (const DatasetProblem& p : problems) out.insert(p.code);
  return out;
}

TEST_F(RealDatasetTest, Gr1OpensWithTheTwentyNineTrainedDimensions) {
  if (!present("gr1-pick-place")) GTEST_SKIP() << "no gr1-pick-place in " << shared_data();
  gr1_recipe();
  const auto set = open("gr1-pick-place");
  EXPECT_EQ(set->columns().state_width(), 29u);
  EXPECT_EQ(set->columns().action_width(), 29u);
  EXPECT_EQ(set->episodes().size(), 5u);
  EXPECT_EQ(codes(set->warnings()), (std::set<std::string>{"D12"}));
  // L - 2 full anchors per episode of at least 120 rows
  EXPECT_EQ(set->train().size(), 2096u - 10u);

  // The pooled relative statistics are those of the golden file.
  for (const auto& [source, file, root] : statistics_cases()) {
    const OrderedJson& right_arm = part_of(part_of(file, "relative_statistics"), "right_arm");
    if (!std::filesystem::equivalent(root, set->root()) || file.contains("episodes") || right_arm.empty()) continue;
    const FeatureStatistics want = statistics_of(right_arm);
    EXPECT_LE(worst_error(set->statistics().action[2].q99, want.q99), 1e-9);
    EXPECT_LE(worst_error(set->statistics().action[2].std, want.std), 1e-9);
  }
}

TEST_F(RealDatasetTest, Gr1SamplesAreBuiltAndRepeatable) {
  if (!present("gr1-pick-place")) GTEST_SKIP() << "no gr1-pick-place in " << shared_data();
  gr1_recipe();
  const auto set = open("gr1-pick-place");
  const auto make = [&](std::int64_t q) {
    auto builder = SampleBuilder::make(Mixture::of(set, job_.data), job_, count_bytes);
    std::vector<std::byte> slot(static_cast<std::size_t>(builder->layout().bytes), std::byte{0x5A});
    builder->build(Split::train, q, slot).value();
    return slot;
  };
  const auto first = make(7);
  EXPECT_EQ(first, make(7));
  EXPECT_NE(first, make(8));
  // A frame, not a blank: the first frame's bytes differ among themselves.
  EXPECT_GT(std::set<std::byte>(first.begin(), first.begin() + 64 * 64 * 3).size(), 20u);
}

TEST_F(RealDatasetTest, G1OpensWithWholeColumnsAndComputedStatistics) {
  if (!present("g1-bottle")) GTEST_SKIP() << "no g1-bottle in " << shared_data();
  const auto set = open("g1-bottle");
  EXPECT_EQ(set->columns().state_width(), 26u);
  EXPECT_EQ(set->episodes().size(), 4u);
  EXPECT_EQ(set->train().size(), 1045u - 8u);
  EXPECT_TRUE(set->statistics().state[0].is_complete(26));
  EXPECT_EQ(set->task_text(0), "Pick up the yellow bottle on the table.");
}

TEST_F(RealDatasetTest, AskingForTheCameraWithoutFilesListsEveryMissingOne) {
  if (!present("gr1-pick-place")) GTEST_SKIP() << "no gr1-pick-place in " << shared_data();
  gr1_recipe();
  job_.data.embodiment.views = {"observation.images.egoview"};
  job_.data.sets = {{shared_data() + "/gr1-pick-place", 1.0}};
  const auto set = Dataset::open(job_.data, job_.model);
  const std::string text = set.error().message();
  std::size_t missing = 0;
  for (std::size_t at = text.find("\n  D06 "); at != std::string::npos; at = text.find("\n  D06 ", at + 1)) ++missing;
  EXPECT_EQ(missing, 5u) << text;
  EXPECT_NE(text.find("D06"), std::string::npos);
}

TEST_F(RealDatasetTest, TheToyDatasetTrainsWithoutFindings) {
  const ScratchFolder folder;
  const std::string root = folder / "toy";
  ASSERT_TRUE(write_toy_dataset(root, {.episodes = 3, .frames = 40}));
  job_.data.sets = {{root, 1.0}};
  job_.data.embodiment.layout = "horizontal";
  job_.data.embodiment.prompt = "none";
  job_.data.window = {.chunks = 2, .macro_stride = 8, .action_horizon = 8, .video_offsets = {0, 2, 4, 6}};
  job_.data.image.height = job_.data.image.width = 32;
  job_.data.eval_episodes = {2};
  const auto set = Dataset::open(job_.data, job_.model);
  EXPECT_TRUE((*set)->warnings().empty()) << (*set)->warnings()[0].text;
  EXPECT_EQ((*set)->columns().views.size(), 2u);
  auto builder = SampleBuilder::make(Mixture::of(*set, job_.data), job_, count_bytes);
  std::vector<std::byte> slot(static_cast<std::size_t>(builder->layout().bytes));
  for (std::int64_t q = 0; q < 3; ++q) {
    builder->build(q == 2 ? Split::eval : Split::train, q, slot).value();
  }
}

}  // namespace
}  // namespace troupe::data
