#include "model/shard/flat_layout.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "model/shard/init.h"

namespace troupe::model {
namespace {

const std::vector<ParamSpec> kParams = {{"a", {3, 5}, {Init::Kind::normal, 0.5}},
                                        {"b", {64}, {Init::Kind::ones, 0}},
                                        {"c", {40, 70}, {Init::Kind::uniform, 0.25}}};

TEST(FlatLayoutTest, EntriesStartAtMultiplesOf64AndTheTailIsPaddedPerWorld) {
  const auto layout = make_flat_layout(kParams);
  ASSERT_EQ(layout.entries.size(), 3u);
  EXPECT_EQ(layout.entries[0].offset, 0);
  EXPECT_EQ(layout.entries[1].offset, 64);
  EXPECT_EQ(layout.entries[2].offset, 128);
  EXPECT_EQ(layout.numel, 128 + 2800);
  EXPECT_EQ(layout.padded(1), 3072);
  EXPECT_EQ(layout.padded(2), 4096);
  EXPECT_EQ(layout.shard(2), 2048);
  EXPECT_EQ(layout.padded(8), 8192);
}

TEST(FlatLayoutTest, AParameterThatFollowsBeginsWhereTheOneBeforeItEnds) {
  auto params = kParams;
  params[1].follows = true;
  const auto layout = make_flat_layout(params);
  EXPECT_EQ(layout.entries[1].offset, 15);
  EXPECT_EQ(layout.entries[2].offset, 128);
  EXPECT_NE(layout.hash, make_flat_layout(kParams).hash);
}

TEST(FlatLayoutTest, AUnitWithoutParametersIsEmpty) {
  const auto layout = make_flat_layout({});
  EXPECT_EQ(layout.numel, 0);
  EXPECT_EQ(layout.padded(4), 0);
}

TEST(FlatLayoutTest, TheHashDependsOnNamesShapesAndOrder) {
  const auto hash = make_flat_layout(kParams).hash;
  EXPECT_EQ(make_flat_layout(kParams).hash, hash);
  auto renamed = kParams, reshaped = kParams, reordered = kParams;
  renamed[1].name = "d";
  reshaped[0].shape = {5, 3};
  std::swap(reordered[0], reordered[1]);
  for (const auto& other : {renamed, reshaped, reordered}) EXPECT_NE(make_flat_layout(other).hash, hash);
}

TEST(FlatLayoutTest, ViewsShareTheFlatBufferAndGapsAreWhatNoneCovers) {
  const auto layout = make_flat_layout(kParams);
  const auto flat = at::ones({layout.padded(1)});
  const auto views = views_of(layout, flat, /*leaves=*/true);
  EXPECT_TRUE(views["a"].is_leaf() && views["a"].requires_grad());
  EXPECT_EQ(views["c"].sizes(), (at::IntArrayRef{40, 70}));
  EXPECT_EQ(views["b"].data_ptr<float>(), flat.data_ptr<float>() + 64);
  EXPECT_THROW(views["z"], c10::Error);
  const std::span all(flat.data_ptr<float>(), static_cast<std::size_t>(flat.numel()));
  for (const auto gap : gaps_of(layout, all)) std::fill(gap.begin(), gap.end(), 0.0f);
  EXPECT_EQ(flat.sum().item<double>(), 15 + 64 + 2800);
  EXPECT_EQ(views["a"].sum().item<double>(), 15);
}

TEST(InitTest, EveryPartitionOfTheBufferGivesTheSameValues) {
  const UnitSpec unit{"unit", "unit", kParams};
  const auto layout = make_flat_layout(kParams);
  std::vector<float> whole(static_cast<std::size_t>(layout.padded(8)));
  fill_initial(unit, layout, 5, 0, whole);
  for (const std::size_t world : {2u, 3u, 8u}) {
    std::vector<float> parts;
    for (std::size_t begin = 0; begin < whole.size(); begin += whole.size() / world + 1) {
      std::vector<float> part(std::min(whole.size() / world + 1, whole.size() - begin), -1.0f);
      fill_initial(unit, layout, 5, static_cast<std::int64_t>(begin), part);
      parts.insert(parts.end(), part.begin(), part.end());
    }
    EXPECT_EQ(parts, whole) << world;
  }
}

TEST(InitTest, ValuesFollowTheirKindAndDependOnSeedAndName) {
  const UnitSpec unit{
      "unit", "unit", {{"n", {200, 200}, {Init::Kind::normal, 0.5}}, {"u", {200, 200}, {Init::Kind::uniform, 0.25}}}};
  const auto layout = make_flat_layout(unit.params);
  const auto filled = [&](const UnitSpec& spec, std::uint64_t seed) {
    auto flat = at::empty({layout.numel});
    fill_initial(spec, layout, seed, 0, {flat.data_ptr<float>(), static_cast<std::size_t>(layout.numel)});
    return flat;
  };
  const auto flat = filled(unit, 1);
  const auto normal = flat.narrow(0, 0, 40000), uniform = flat.narrow(0, layout.entries[1].offset, 40000);
  EXPECT_NEAR(normal.std().item<double>(), 0.5, 0.01);
  EXPECT_NEAR(normal.mean().item<double>(), 0.0, 0.01);
  EXPECT_LE(uniform.abs().max().item<double>(), 0.25);
  EXPECT_NEAR(uniform.std().item<double>(), 0.25 / std::sqrt(3.0), 0.005);
  EXPECT_FALSE(at::equal(filled(unit, 2), flat));
  auto renamed = unit;
  renamed.params[0].name = "other";
  EXPECT_FALSE(at::equal(filled(renamed, 1).narrow(0, 0, 40000), normal));
}

}  // namespace
}  // namespace troupe::model
