// The streaming form of Wan's VAEs against the one-shot form.
#include "model/wan/vae/vae_stream.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "tests/model/wan/vae/random_vae.h"
#include "tests/support/tensor_checks.h"

namespace troupe::model {
namespace {

struct StreamCase {
  const char* type;
  at::ScalarType dtype;
  friend std::ostream& operator<<(std::ostream& out, const StreamCase& c) {
    return out << c.type << "_" << c10::toString(c.dtype);
  }
};

class VaeStreamTest : public ::testing::TestWithParam<StreamCase> {
 protected:
  at::Tensor video(std::int64_t frames, std::int64_t batch = 2) const {
    return noise_video(batch, frames, config_.stride_hw, 2 * config_.stride_hw).to(GetParam().dtype);
  }
  at::Tensor latents(std::int64_t frames, std::int64_t batch = 2) const {
    return noise_latents(config_, batch, frames, 1, 2).to(GetParam().dtype);
  }
  void expect_same(const at::Tensor& got, const at::Tensor& want, const std::string& what) const {
    const double limit = GetParam().dtype == at::kDouble ? 1e-13 : 1e-5;
    EXPECT_LE(max_difference(got, want), limit * want.abs().max().item<double>()) << what;
  }
  /// Pushes runs of frames along time and joins what comes back.
  template <class Stream>
  at::Tensor push_all(Stream& stream, const at::Tensor& x, const std::vector<std::int64_t>& counts) const {
    std::vector<at::Tensor> parts;
    std::int64_t from = 0;
    for (const auto count : counts) {
      parts.push_back(stream.push(x.narrow(2, from, count)));
      from += count;
    }
    EXPECT_EQ(from, x.size(2));
    return at::cat(parts, 2);
  }

  const LatentCodecConfig config_ = small_vae(GetParam().type);
  const FrozenParams params_ = random_vae(config_);
  const VaeNetwork network_{config_, params_.view(), GetParam().dtype, some_norm(config_)};
};

TEST_P(VaeStreamTest, EncodedGroupsAreTheOneShotLatents) {
  const auto clip = video(17);
  const auto want = network_.encode(clip);
  for (const auto& counts : std::vector<std::vector<std::int64_t>>{{1, 4, 4, 4, 4}, {1, 16}, {5, 4, 8}, {9, 8}, {17}}) {
    VaeEncodeStream stream(network_);
    expect_same(push_all(stream, clip, counts), want, std::to_string(counts.size()) + " pushes");
  }
}

TEST_P(VaeStreamTest, DecodedFramesAreTheOneShotVideo) {
  const auto z = latents(5);
  const auto want = network_.decode(z);
  for (const auto& counts : std::vector<std::vector<std::int64_t>>{{1, 1, 1, 1, 1}, {1, 4}, {2, 1, 2}, {5}}) {
    VaeDecodeStream stream(network_);
    expect_same(push_all(stream, z, counts), want, std::to_string(counts.size()) + " pushes");
  }
}

TEST_P(VaeStreamTest, AResetStreamStartsAgain) {
  const auto clip = video(5), z = latents(3);
  VaeEncodeStream encoder(network_);
  VaeDecodeStream decoder(network_);
  const auto encoded = push_all(encoder, clip, {1, 4}), decoded = push_all(decoder, z, {1, 2});
  EXPECT_GT(encoder.bytes(), 0);
  EXPECT_GT(decoder.bytes(), 0);
  encoder.reset();
  decoder.reset();
  EXPECT_EQ(encoder.bytes(), 0);
  EXPECT_TRUE(at::equal(push_all(encoder, clip, {1, 4}), encoded));
  EXPECT_TRUE(at::equal(push_all(decoder, z, {1, 2}), decoded));
}

TEST_P(VaeStreamTest, WhatAStreamGaveOutStaysWhenFramesFollow) {
  const auto clip = video(9);
  VaeEncodeStream a(network_), b(network_);
  (void)a.push(clip.narrow(2, 0, 1));
  (void)b.push(clip.narrow(2, 0, 1));
  const auto first = a.push(clip.narrow(2, 1, 4));
  const auto copy = first.clone();
  (void)a.push(clip.narrow(2, 5, 4));
  EXPECT_TRUE(at::equal(first, copy));
  EXPECT_TRUE(at::equal(b.push(clip.narrow(2, 1, 4)), copy)) << "equal pushes give equal bits";
}

TEST_P(VaeStreamTest, APushThatDoesNotFitChangesNothing) {
  const auto clip = video(9), z = latents(3);
  VaeEncodeStream encoder(network_);
  EXPECT_THROW(encoder.push(clip.narrow(2, 0, 4)), c10::Error) << "frame 0 comes alone or with whole groups";
  const auto start = encoder.push(clip.narrow(2, 0, 5));
  EXPECT_THROW(encoder.push(clip.narrow(2, 5, 3)), c10::Error);
  EXPECT_THROW(encoder.push(video(4, 1)), c10::Error) << "another batch";
  EXPECT_THROW(encoder.push(at::zeros({2, 3, 4, 2 * config_.stride_hw, 2 * config_.stride_hw})), c10::Error);
  const auto rest = encoder.push(clip.narrow(2, 5, 4));
  expect_same(at::cat({start, rest}, 2), network_.encode(clip), "after refusals");

  VaeDecodeStream decoder(network_);
  const auto shown = decoder.push(z.narrow(2, 0, 2));
  EXPECT_THROW(decoder.push(latents(1, 1)), c10::Error) << "another batch";
  EXPECT_THROW(decoder.push(at::zeros({2, 1, 1, 1, 2})), c10::Error) << "another number of channels";
  expect_same(at::cat({shown, decoder.push(z.narrow(2, 2, 1))}, 2), network_.decode(z), "after refusals");
}

INSTANTIATE_TEST_SUITE_P(Types, VaeStreamTest,
                         ::testing::Values(StreamCase{"wan21", at::kFloat}, StreamCase{"wan21", at::kDouble},
                                           StreamCase{"wan22", at::kFloat}, StreamCase{"wan22", at::kDouble}),
                         [](const auto& param_info) { return ::testing::PrintToString(param_info.param); });

}  // namespace
}  // namespace troupe::model
