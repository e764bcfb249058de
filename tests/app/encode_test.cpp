// `troupe encode`, and jobs whose samples are encoded in the learner, in encoders, or long before.
#include "tests/app/run_fixture.h"

namespace troupe::app {
namespace {

using ::testing::HasSubstr;

class EncodeTest : public RunTest {
 protected:
  using Words = std::vector<std::string>;
  static Words fixed_pictures() {
    return {"data.image.crop=1", "data.image.brightness=0", "data.image.contrast=0", "data.image.saturation=0",
            "data.image.hue=0"};
  }
  static Words cached() { return fixed_pictures() + Words{"data.features.cache=features"}; }
  static Words encoders() { return {"data.features.encode=encoder", "cluster.isolation.encoder=thread"}; }

  ProgramEnd encode(const Words& words, std::map<std::string, std::string> env = {}) const {
    return troupe(Words{"encode", small_job()} + cached() + words, std::move(env));
  }
  void train(const std::string& root, const Words& words) {
    const ProgramEnd end = run_small(Words{"metrics.every=1", "job.run_root=" + root} + words);
    ASSERT_TRUE(succeeded(end));
    expect_verified(80, 0, root);
  }
  void expect_close(const std::map<std::int64_t, double>& a, const std::map<std::int64_t, double>& b) const {
    ASSERT_FALSE(a.empty());
    ASSERT_EQ(a.size(), b.size());
    for (const auto& [step, value] : a) EXPECT_NEAR(b.at(step), value, 1e-5 * std::abs(value)) << "step " << step;
  }
  std::size_t files_of_cache(const std::string& extension) const {
    std::size_t count = 0;
    for (const auto& file : std::filesystem::directory_iterator(dir_ / "features"))
      count += file.path().extension() == extension ? 1 : 0;
    return count;
  }
};

TEST_F(EncodeTest, WhereSamplesAreEncodedDoesNotChangeWhatIsTrained) {
  train("learner", fixed_pictures());
  train("encoder", fixed_pictures() + encoders());
  train("processes", fixed_pictures() + in_processes() +
                         Words{"data.features.encode=encoder", "cluster.component_placement.encoder=0:0-1"});
  // a learner encodes its micro-batch at once, an encoder each sample by itself: sums of another order
  expect_close(curve("train/loss", "learner"), curve("train/loss", "encoder"));
  const std::string weights = exported("encoder");
  EXPECT_TRUE(weights == exported("processes"));
  // with a cache the learner encodes each sample by itself, too
  train("cached-learner", cached());
  train("cached-encoder", cached() + encoders());
  EXPECT_TRUE(weights == exported("cached-learner"));
  EXPECT_TRUE(weights == exported("cached-encoder"));
}

TEST_F(EncodeTest, OneSampleAtATimeIsEqualToTheBit) {
  const Words single = fixed_pictures() + Words{"training.micro_batch_size=1", "training.steps=10"};
  ASSERT_TRUE(succeeded(run_small(single + Words{"job.run_root=learner"})));
  ASSERT_TRUE(succeeded(run_small(single + Words{"job.run_root=encoder"} + encoders())));
  EXPECT_TRUE(exported("learner") == exported("encoder"));
}

TEST_F(EncodeTest, AFilledCacheServesEncodersAndLearners) {
  const ProgramEnd empty = encode({"--check"});
  EXPECT_EQ(empty.exit_code, 8) << empty.text();
  EXPECT_THAT(empty.out, HasSubstr("INCOMPLETE"));
  const ProgramEnd filled = encode({});
  ASSERT_TRUE(succeeded(filled));
  const ProgramEnd check = encode({"--check"});
  EXPECT_EQ(check.exit_code, 0) << check.text();
  EXPECT_THAT(check.out, HasSubstr("COMPLETE"));
  const std::size_t writers = files_of_cache(".index");
  EXPECT_GE(writers, 1u);
  EXPECT_EQ(files_of_cache(".part"), 0u);
  const ProgramEnd again = encode({});
  EXPECT_EQ(again.exit_code, 0) << again.text();
  EXPECT_THAT(again.out, HasSubstr("written   0 entries"));
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
  const ProgramEnd end = encode({"--max-samples", "40"});
  ASSERT_TRUE(succeeded(end));
  EXPECT_THAT(end.out, HasSubstr("windows   40 of 40 windows"));
  EXPECT_EQ(encode({"--check"}).exit_code, 8);
}

TEST_F(EncodeTest, RandomPicturesAreRefusedUnlessTextAloneIsKept) {
  const ProgramEnd refused = troupe({"encode", small_job(), "data.features.cache=features"});
  EXPECT_EQ(refused.exit_code, 2) << refused.text();
  EXPECT_THAT(refused.err, HasSubstr("data.features.keep"));
  EXPECT_THAT(refused.err, HasSubstr("data.image.crop=1"));
  const ProgramEnd text = troupe({"encode", small_job(), "data.features.cache=features", "data.features.keep=text"});
  EXPECT_EQ(text.exit_code, 0) << text.text();
  train("text", {"data.features.cache=features", "data.features.keep=text"});
}

TEST_F(EncodeTest, ACacheMustBeNamed) {
  const ProgramEnd end = troupe({"encode", small_job()});
  EXPECT_EQ(end.exit_code, 2) << end.text();
  EXPECT_THAT(end.err, HasSubstr("data.features.cache is empty"));
}

TEST_F(EncodeTest, EvaluationAndPredictionsWorkOnEncodedSamples) {
  const Words words = fixed_pictures() + Words{"training.steps=10", "eval.every=5", "eval.max_samples=3"};
  ASSERT_TRUE(succeeded(run_small(words + Words{"job.run_root=learner"})));
  const ProgramEnd end = run_small(words + Words{"job.run_root=encoder"} + encoders());
  ASSERT_TRUE(succeeded(end));
  expect_close(curve("eval/loss", "learner"), curve("eval/loss", "encoder"));
  bool predicted = false;
  for (const auto& file : std::filesystem::recursive_directory_iterator(dir_ / "encoder/latest/eval")) {
    predicted |= file.path().filename() == "prediction.safetensors";
  }
  EXPECT_TRUE(predicted);
}

}  // namespace
}  // namespace troupe::app
