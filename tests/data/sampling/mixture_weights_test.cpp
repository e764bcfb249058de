#include "data/sampling/mixture_weights.h"

#include <gmock/gmock.h>

namespace troupe::data {
namespace {

using ::testing::DoubleEq;
using ::testing::DoubleNear;
using ::testing::ElementsAre;

DataConfig config(std::vector<double> weights, MixtureConfig mixture) {
  DataConfig data;
  for (const double weight : weights) data.sets.emplace_back().weight = weight;
  data.mixture = std::move(mixture);
  return data;
}

const std::vector<std::uint64_t> kSamples = {100, 900};

TEST(MixtureWeightsTest, WeightsAreTakenAsTheyAre) {
  EXPECT_THAT(mixture_weights(config({1, 4}, {.share = "weight", .temperature = 1}), kSamples),
              ElementsAre(DoubleEq(0.25), DoubleEq(1)));
}

TEST(MixtureWeightsTest, SamplesMultiplyThem) {
  EXPECT_THAT(mixture_weights(config({1, 1}, {.share = "samples", .temperature = 1}), kSamples),
              ElementsAre(DoubleNear(1.0 / 9, 1e-15), DoubleEq(1)));
}

TEST(MixtureWeightsTest, ATemperatureEvensThemOut) {
  EXPECT_THAT(mixture_weights(config({1, 1}, {.share = "samples", .temperature = 2}), kSamples),
              ElementsAre(DoubleNear(1.0 / 3, 1e-15), DoubleEq(1)));
}

TEST(MixtureWeightsTest, WhatCannotBeHeldStaysPositive) {
  EXPECT_GT(mixture_weights(config({1e-300, 1}, {.share = "weight", .temperature = 0.5}), kSamples)[0], 0);
}

TEST(MixtureWeightsTest, ADatasetThatNoSetNamesHasWeightOne) {
  EXPECT_THAT(mixture_weights(config({}, {.share = "weight", .temperature = 1}), std::vector<std::uint64_t>{5}),
              ElementsAre(DoubleEq(1)));
}

}  // namespace
}  // namespace troupe::data
