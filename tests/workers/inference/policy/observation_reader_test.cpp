#include "workers/inference/policy/observation_reader.h"

#include <gmock/gmock.h>

#include <limits>

#include "tests/workers/inference/policy/tiny_policy.h"

namespace troupe::workers {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ObservationReader reader(const PolicySpec& spec = tiny_spec()) {
  auto made = ObservationReader::make(spec, {1, 4, 8, 9});
  return std::move(*made);
}

PreparedObservation read(const Observation& o, const PolicySpec& spec = tiny_spec()) {
  return reader(spec).read(o).value();
}

std::string refused(const Observation& o) {
  const auto made = reader().read(o);
  EXPECT_TRUE(made || made.error().code() == Errc::invalid_argument);
  return made ? "no error" : made.error().message();
}

TEST(ObservationReaderTest, CanvasesAreTheOnesOfAnEvaluation) {
  const PolicySpec spec = tiny_spec();
  Observation o = tiny_observation("e", 4, 7);
  o.images["side"] = image_array(4, 24, 32, 9);  // another camera, another size
  const PreparedObservation p = read(o);
  EXPECT_EQ(p.frames, 4);
  ASSERT_EQ(p.canvases.size(), 4U * 32 * 64 * 3);
  auto chain = ImageChain::make(spec.image, "horizontal", 2);
  std::vector<std::uint8_t> wanted(32 * 64 * 3);
  for (std::size_t f = 0; f < 4; ++f) {
    std::int64_t v = 0;
    for (const char* view : {"front", "side"}) {
      const NdArray& a = o.images[view];
      const std::int64_t h = a.shape[1], w = a.shape[2];
      const Rgb8View image{
          reinterpret_cast<const std::uint8_t*>(a.data.data()) + static_cast<std::ptrdiff_t>(f) * h * w * 3, h, w,
          3 * w};
      ASSERT_TRUE(chain->run_view(v++, image, centre_augmentation(spec.image, h, w), wanted));
    }
    EXPECT_TRUE(
        std::equal(wanted.begin(), wanted.end(), p.canvases.begin() + static_cast<std::ptrdiff_t>(f * wanted.size())))
        << f;
  }
}

TEST(ObservationReaderTest, AnImageWithoutATimeAxisIsOneFrame) {
  const PreparedObservation a = read(tiny_observation("e", 0, 7)), b = read(tiny_observation("e", 1, 7));
  EXPECT_EQ(a.frames, 1);
  EXPECT_EQ(a.canvases, b.canvases);
}

TEST(ObservationReaderTest, StatesAreNormalisedInOrderAndPadded) {
  Observation o = tiny_observation("e", 0, 1);
  o.state["joints"] = vector_array<double>({0.5, 5.0});
  const PreparedObservation p = read(o);
  EXPECT_THAT(p.state, ElementsAre(0.5F, 1.0F, 0.5F, 0.0F, 0.0F)) << "5 lies outside and is clamped";
  EXPECT_THAT(p.newest.at("joints"), ElementsAre(0.5F, 5.0F)) << "as it was given";
}

TEST(ObservationReaderTest, OfSeveralStateRowsTheNewestCount) {
  Observation o = tiny_observation("e", 0, 1);
  o.state["joints"] = vector_array<float>({0.1F, 0.2F, 0.3F, 0.4F});
  o.state["joints"].shape = {2, 2};
  const PreparedObservation p = read(o);
  EXPECT_THAT(p.newest.at("joints"), ElementsAre(0.3F, 0.4F));
  EXPECT_FLOAT_EQ(p.state[0], 0.3F);
  PolicySpec two = tiny_spec();
  two.model.states_per_block = 2;
  const PreparedObservation q = read(o, two);
  ASSERT_EQ(q.state.size(), 10U);
  EXPECT_FLOAT_EQ(q.state[0], 0.1F);
  EXPECT_FLOAT_EQ(q.state[5], 0.3F);
  EXPECT_FLOAT_EQ(q.state[2], 0.5F) << "one gripper row stands for both";
  EXPECT_FLOAT_EQ(q.state[7], 0.5F);
}

TEST(ObservationReaderTest, WhatDoesNotFitIsNamed) {
  Observation o = tiny_observation("e", 0, 1);
  o.images.erase("side");
  EXPECT_THAT(refused(o), HasSubstr("image 'side' is missing"));
  o = tiny_observation("e", 0, 1);
  o.images["top"] = o.images["side"];
  EXPECT_THAT(refused(o), HasSubstr("image 'top' is unknown; wanted front, side"));
  o = tiny_observation("e", 0, 1);
  o.images["side"].dtype = "<f4";
  EXPECT_THAT(refused(o), HasSubstr("image 'side' is <f4 [40, 48, 3]; wanted |u1"));
  o = tiny_observation("e", 0, 1);
  o.images["front"].data.pop_back();
  EXPECT_THAT(refused(o), HasSubstr("image 'front' is |u1 [40, 48, 3] and has 5759 bytes"));
  o = tiny_observation("e", 0, 1);
  o.images["front"].shape = {std::int64_t{1} << 40, std::int64_t{1} << 40, 3};
  EXPECT_THAT(refused(o), HasSubstr("image 'front' is"));
  o = tiny_observation("e", 4, 1);
  o.images["side"] = image_array(1, 40, 48, 1);
  EXPECT_THAT(refused(o), HasSubstr("image 'side' has 1 frames where 'front' has 4"));
  EXPECT_THAT(refused(tiny_observation("e", 5, 1)), HasSubstr("has 5 frames; a call brings 1, 4, 8, 9"));

  o = tiny_observation("e", 0, 1);
  o.state.erase("gripper");
  EXPECT_THAT(refused(o), HasSubstr("state 'gripper' is missing"));
  o = tiny_observation("e", 0, 1);
  o.state["cartesian"] = vector_array<float>({1});
  EXPECT_THAT(refused(o), HasSubstr("state 'cartesian' is unknown; wanted joints, gripper"));
  o = tiny_observation("e", 0, 1);
  o.state["joints"] = vector_array<float>({1, 2, 3});
  EXPECT_THAT(refused(o), HasSubstr("state 'joints' is <f4 [3]; wanted <f4 or <f8 [2]"));
  o = tiny_observation("e", 0, 1);
  o.state["joints"].data.resize(4);
  EXPECT_THAT(refused(o), HasSubstr("state 'joints' is <f4 [2] and has 4 bytes"));
  o = tiny_observation("e", 0, 1);
  o.state["joints"] = vector_array<float>({1, std::numeric_limits<float>::quiet_NaN()});
  EXPECT_THAT(refused(o), HasSubstr("state 'joints' holds a value that is not finite"));
}

}  // namespace
}  // namespace troupe::workers
