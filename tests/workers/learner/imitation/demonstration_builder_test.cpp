// Pictures of demonstrations against the frames of the videos that they come from.
#include "workers/learner/imitation/demonstration_builder.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "data/toy/toy_dataset.h"
#include "model/loss/rl_keys.h"
#include "tests/support/scratch_folder.h"

namespace troupe::workers {
namespace {

using ::testing::HasSubstr;
using Bytes = std::vector<std::uint8_t>;

/// A toy dataset of two cameras, whose frames of 32x32 a policy looks at in 16x12.
class DemonstrationBuilderTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<ScratchFolder>();
    write_toy_dataset(*folder_ / "toy", {.episodes = 3, .frames = 16, .height = 32, .width = 32}).value();
  }
  static void TearDownTestSuite() { folder_.reset(); }

  static JobConfig job() {
    JobConfig job;
    job.job.seed = 3;
    job.data.sets = {{.path = *folder_ / "toy"}};
    job.data.eval_episodes = {1};
    job.policy.kind = PolicyKind::flow;
    job.policy.vision = Vision::keypoints;
    return job;
  }
  static PolicyShape shape() {
    return {
        .state_dim = 4,
        .images = {{.name = "rgb.side", .height = 12, .width = 16}, {.name = "rgb.front", .height = 12, .width = 16}},
        .action_dim = 4,
        .action_low = {},
        .action_high = {}};
  }
  static std::shared_ptr<const Demonstrations> open(const JobConfig& job) {
    return Demonstrations::open(job, shape()).value();
  }
  static std::string refusal(const JobConfig& job, const PolicyShape& shape) {
    const auto opened = Demonstrations::open(job, shape);
    return opened ? "no error" : opened.error().message();
  }

  /// A sample's pictures of both cameras, in the order of the shape.
  static std::array<Bytes, 2> pictures(DemonstrationBuilder& builder, Split split, std::int64_t position) {
    std::vector<std::byte> slot(static_cast<std::size_t>(builder.layout().bytes), std::byte{7});
    builder.build(split, position, slot).value();
    std::array<Bytes, 2> all;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto field = builder.layout().field(rl_keys::kImagePrefix + shape().images[i].name);
      const auto values = field_values<std::uint8_t>(std::span(slot), field);
      all[i].assign(values.begin(), values.end());
    }
    return all;
  }
  /// The same of the row, decoded alone.
  static Bytes expected(const Demonstrations& data, const DemonstrationRow& at, std::size_t image) {
    const ImageConfig config{
        .height = 12, .width = 16, .crop = 1, .brightness = 0, .contrast = 0, .saturation = 0, .hue = 0};
    auto chain = ImageChain::make(config, "single", 1).value();
    Bytes out(12 * 16 * 3);
    const ImageSource& source = data.frames(at, image);
    ClipDecoder decoder;
    const std::array frames{source.first + at.row};
    decoder
        .read_yuv(
            source.path, frames,
            [&](std::size_t, const Yuv420View& frame) {
              return chain.run_view(0, frame, {.height = 32, .width = 32}, out);
            },
            std::chrono::steady_clock::now() + std::chrono::seconds(60))
        .value();
    return out;
  }

  static std::unique_ptr<ScratchFolder> folder_;
};
std::unique_ptr<ScratchFolder> DemonstrationBuilderTest::folder_;

TEST_F(DemonstrationBuilderTest, APictureIsTheFrameOfItsRowKeptOrNot) {
  JobConfig keeps = job(), decodes = job();
  decodes.data.decoder.shared_frames_gib = 0;
  const auto data = open(keeps);
  ASSERT_GT(DemonstrationBuilder::kept_bytes(*data, keeps), 0);
  ASSERT_EQ(DemonstrationBuilder::kept_bytes(*data, decodes), 0);
  auto keeper = DemonstrationBuilder::make(data, keeps).value(),
       decoder = DemonstrationBuilder::make(data, decodes).value();
  std::vector<std::byte> slot(static_cast<std::size_t>(data->layout().bytes));
  for (const Split split : {Split::train, Split::eval}) {
    for (std::int64_t position = 0; position < 6; ++position) {
      const auto at = data->build(split, position, 3, keeps.eval.max_samples, slot).value();
      const auto kept = pictures(keeper, split, position);
      EXPECT_EQ(kept, pictures(decoder, split, position));
      for (std::size_t image = 0; image < kept.size(); ++image)
        EXPECT_EQ(kept[image], expected(*data, at, image)) << position;
      EXPECT_NE(kept[0], kept[1]);
    }
  }
}

/// The mean of a picture's red, green and blue, each times its share of gray.
double brightness(const Bytes& picture) {
  double sum = 0;
  for (std::size_t i = 0; i < picture.size(); i += 3)
    sum += 0.2989 * picture[i] + 0.587 * picture[i + 1] + 0.114 * picture[i + 2];
  return sum / (static_cast<double>(picture.size()) / 3);
}

TEST_F(DemonstrationBuilderTest, JitterIsOfTheSeedAndThePositionAloneKeptOrNot) {
  JobConfig keeps = job();
  keeps.data.demonstration_jitter = {.brightness = 0.2, .contrast = 0.2, .saturation = 0.2, .hue = 0.1};
  JobConfig decodes = keeps;
  decodes.data.decoder.shared_frames_gib = 0;
  const auto data = open(keeps);
  auto plain = DemonstrationBuilder::make(data, job()).value(),
       keeper = DemonstrationBuilder::make(data, keeps).value(),
       decoder = DemonstrationBuilder::make(data, decodes).value();
  for (std::int64_t position = 0; position < 4; ++position) {
    const auto jittered = pictures(keeper, Split::train, position);
    EXPECT_EQ(jittered, pictures(decoder, Split::train, position)) << position;
    EXPECT_NE(jittered[0], pictures(plain, Split::train, position)[0]) << position;
  }
  // again, behind others
  EXPECT_EQ(pictures(keeper, Split::train, 0), pictures(decoder, Split::train, 0));
  EXPECT_EQ(pictures(keeper, Split::eval, 0), pictures(plain, Split::eval, 0));
}

TEST_F(DemonstrationBuilderTest, BrightnessStaysWithinItsRangeAndDiffersBetweenPositions) {
  JobConfig jitters = job();
  jitters.data.demonstration_jitter.brightness = 0.2;
  const auto data = open(jitters);
  auto plain = DemonstrationBuilder::make(data, job()).value(),
       jittered = DemonstrationBuilder::make(data, jitters).value();
  double least = 2, most = 0;
  for (std::int64_t position = 0; position < 64; ++position) {
    const auto before = pictures(plain, Split::train, position), after = pictures(jittered, Split::train, position);
    const double factor = brightness(after[0]) / brightness(before[0]);
    // truncation takes up to a level, and what is white stays white
    EXPECT_GT(factor, 0.8 - 1 / brightness(before[0])) << position;
    EXPECT_LT(factor, 1.2) << position;
    if (factor < 1) {
      EXPECT_NEAR(brightness(after[1]) / brightness(before[1]), factor, 0.03) << "cameras of a sample share the factor";
    }
    least = std::min(least, factor);
    most = std::max(most, factor);
  }
  EXPECT_LT(least, 0.9);
  EXPECT_GT(most, 1.05);
}

TEST_F(DemonstrationBuilderTest, WithoutVisionThereAreNoPictures) {
  JobConfig blind = job();
  blind.policy.vision = Vision::none;
  const auto data = open(blind);
  EXPECT_TRUE(data->images().empty());
  EXPECT_LT(data->layout().bytes, open(job())->layout().bytes);
  EXPECT_NE(data->fingerprint(), open(job())->fingerprint());
}

TEST_F(DemonstrationBuilderTest, CamerasThatAreNotThereAreNamed) {
  PolicyShape other = shape();
  other.images[0].name = "rgb.wrist";
  EXPECT_THAT(refusal(job(), other), ::testing::AllOf(HasSubstr("no camera 'observation.images.wrist'"),
                                                      HasSubstr("observation.images.front"), HasSubstr("--cameras")));
  other.images[0] = {.name = "depth.front", .height = 12, .width = 16, .channels = 1, .is_depth = true};
  EXPECT_THAT(refusal(job(), other), HasSubstr("'depth.front', and videos of demonstrations hold colours alone"));
  other.images[0].is_for_critic = true;
  EXPECT_EQ(refusal(job(), other), "no error") << "critics are not trained";
}

TEST_F(DemonstrationBuilderTest, AVideoThatCannotBeReadIsNamedWithItsSample) {
  const auto data = open(job());
  auto builder = DemonstrationBuilder::make(data, job()).value();
  std::vector<std::byte> slot(static_cast<std::size_t>(data->layout().bytes));
  const auto at = data->build(Split::train, 0, 3, 8, slot).value();
  const std::string path = data->frames(at, 0).path;
  std::filesystem::rename(path, path + ".away");
  const auto built = builder.build(Split::train, 0, slot);
  std::filesystem::rename(path + ".away", path);
  ASSERT_FALSE(built);
  EXPECT_THAT(built.error().message(), ::testing::AllOf(HasSubstr("training sample 0"), HasSubstr(path)));
}

}  // namespace
}  // namespace troupe::workers
