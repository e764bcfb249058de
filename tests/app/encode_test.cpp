// `troupe encode`, and jobs whose samples are encoded in the learner, in encoders, or long before.
#include "tests/app/run_fixture.h"

namespace troupe::app {
namespace {

using ::testing::HasSubstr;

class EncodeTest : public RunTest {
 protected:
  using Words = std::vector<std::string>;
  static Words cached() { return fixed_images() + Words{"data.features.cache=features"}; }
  static Words encoders() { return {"data.features.encode=encoder", "cluster.isolation.encoder=thread"}; }

  ProgramEnd encode(const Words& words, std::map<std::string, std::string> env = {}) const {
    return troupe(Words{"encode", small_job()} + cached() + words, std::move(env));
  }
  void train(const std::string& root, const Words& words) {
    ASSERT_TRUE(succeeded(run_small(Words{"metrics.every=1", "job.run_root=" + root} + words)));
    expect_verified(80, 0, root);
  }
  std::size_t files_of_cache(const std::string& extension) const {
    return files_of(dir_ / "features", extension).size();
  }
};

TEST_F(EncodeTest, WhereSamplesAreEncodedDoesNotChangeWhatIsTrained) {
  train("learner", fixed_images());
  train("encoder", fixed_images() + encoders());
  train("processes", fixed_images() + in_processes() +
                         Words{"data.features.encode=encoder", "cluster.component_placement.encoder=0:0-1"});
  // a learner encodes its micro-batch at once, an encoder each sample by itself: sums of another order
  expect_close(curve("train/loss", "learner"), curve("train/loss", "encoder"));
  const auto weights = exported("encoder");
  EXPECT_TRUE(weights == exported("processes"));
  train("threads", fixed_images() + encoders() + Words{"cluster.threads.encoder=3"});
  EXPECT_TRUE(weights == exported("threads"));
  // with a cache the learner encodes each sample by itself, too
  train("cached-learner", cached());
  train("cached-encoder", cached() + encoders());
  EXPECT_TRUE(weights == exported("cached-learner"));
  EXPECT_TRUE(weights == exported("cached-encoder"));
}

TEST_F(EncodeTest, OneSampleAtATimeIsEqualToTheBit) {
  const Words single = fixed_images() + Words{"training.micro_batch_size=1", "training.steps=10"};
  ASSERT_TRUE(succeeded(run_small(single + Words{"job.run_root=learner"})));
  ASSERT_TRUE(succeeded(run_small(single + Words{"job.run_root=encoder"} + encoders())));
  EXPECT_TRUE(exported("learner") == exported("encoder"));
}

TEST_F(EncodeTest, AFilledCacheServesEncodersAndLearners) {
  expect_end(encode({"--check"}), 8, {"INCOMPLETE"});
  ASSERT_TRUE(succeeded(encode({})));
  expect_end(encode({"--check"}), 0, {"COMPLETE"});
  const std::size_t writers = files_of_cache(".index");
  EXPECT_GE(writers, 1u);
  EXPECT_EQ(files_of_cache(".part"), 0u);
  expect_end(encode({}), 0, {"written   0 entries"});
  train("cached-encoder", cached() + encoders());
  train("cached-learner", cached());
  EXPECT_EQ(files_of_cache(".index"), writers) << "training found all it wanted and wrote nothing";
  EXPECT_TRUE(exported("cached-encoder") == exported("cached-learner"));
}

TEST_F(EncodeTest, AKilledEncodeIsResumed) {
  for (const char* fault :
       {"features.data:kill:1:50", "features.index:kill:1:31", "features.header:kill", "features.rename:kill"}) {
    const ProgramEnd killed = encode({}, {{"TROUPE_FAULT", fault}});
    EXPECT_NE(killed.exit_code, 0) << fault << killed.text();
  }
  const ProgramEnd end = encode({});
  ASSERT_TRUE(succeeded(end));
  EXPECT_THAT(end.out, ::testing::Not(HasSubstr("damaged")));
  EXPECT_EQ(encode({"--check"}).exit_code, 0);
  EXPECT_EQ(files_of_cache(".part"), 0u);
}

TEST_F(EncodeTest, MaxSamplesBoundsTheWork) {
  expect_end(encode({"--max-samples", "40"}), 0, {"windows   40 of 40 windows"});
  EXPECT_EQ(encode({"--check"}).exit_code, 8);
}

TEST_F(EncodeTest, RandomImagesAreRefusedUnlessTextAloneIsKept) {
  expect_end(troupe({"encode", small_job(), "data.features.cache=features"}), 2, {},
             {"data.features.keep", "data.image.crop=1"});
  const ProgramEnd text = troupe({"encode", small_job(), "data.features.cache=features", "data.features.keep=text"});
  EXPECT_EQ(text.exit_code, 0) << text.text();
  train("text", {"data.features.cache=features", "data.features.keep=text"});
}

TEST_F(EncodeTest, ACacheMustBeNamed) {
  expect_end(troupe({"encode", small_job()}), 2, {}, {"data.features.cache is empty"});
}

TEST_F(EncodeTest, EvaluationAndPredictionsWorkOnEncodedSamples) {
  const Words words = fixed_images() + Words{"training.steps=10", "eval.every=5", "eval.max_samples=3"};
  ASSERT_TRUE(succeeded(run_small(words + Words{"job.run_root=learner"})));
  ASSERT_TRUE(succeeded(run_small(words + Words{"job.run_root=encoder"} + encoders())));
  expect_close(curve("eval/loss", "learner"), curve("eval/loss", "encoder"));
  bool predicted = false;
  for (const auto& file : std::filesystem::recursive_directory_iterator(dir_ / "encoder/latest/eval")) {
    predicted |= file.path().filename() == "prediction.safetensors";
  }
  EXPECT_TRUE(predicted);
}

}  // namespace
}  // namespace troupe::app
