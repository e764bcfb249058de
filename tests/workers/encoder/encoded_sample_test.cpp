// The item that an encoder sends becomes the batch that a learner with its own encoders would have made.
#include "workers/encoder/encoded_sample.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/workers/encoder/tiny_features.h"
#include "workers/encoder/cached_encoder.h"

namespace troupe::workers {
namespace {

namespace key = batch_keys;

JobConfig encoding_job(const std::string& precision, bool first_frame) {
  JobConfig job = tiny_features_job();
  job.precision.encoders = precision;
  job.model.dit.concat_first_frame_latent = first_frame;
  job.data.features.encode = "encoder";
  return job;
}

/// The layout of samples of 9 frames of 32 x 64.
SampleLayout layout_of_samples() {
  SampleLayout layout;
  layout.append("images", FieldType::u8, {9, 32, 64, 3});
  layout.append("text", FieldType::i64, {64});
  layout.append("text_mask", FieldType::i64, {64});
  layout.append("state", FieldType::f32, {4, 3});
  layout.append("action", FieldType::f32, {8, 3});
  return layout;
}

struct EncodedCase {
  std::string precision;
  bool first_frame = false;
  std::string tail = "per_sample";
};
std::ostream& operator<<(std::ostream& out, const EncodedCase& c) {
  return out << c.precision << (c.first_frame ? "FirstFrame" : "") << c.tail;
}

class EncodedSampleTest : public ::testing::TestWithParam<EncodedCase> {};

TEST_P(EncodedSampleTest, ItemsCollateToTheBatchOfTheEncoders) {
  at::set_num_threads(1);
  JobConfig job = encoding_job(GetParam().precision, GetParam().first_frame);
  job.model.text_encoder.tail = GetParam().tail;
  auto made = CachedEncoder::make(job);
  CachedEncoder& encoder = **made;
  const SampleLayout sample = layout_of_samples(), item = encoded_layout(sample, job);
  for (const TensorField& field : item.fields) {
    EXPECT_EQ(field.offset % 64, 0) << field.name;
    EXPECT_NE(field.name, "images");
  }

  constexpr std::int64_t kCount = 3;
  const Batch samples = tiny_samples(0, kCount);
  Batch collated, want;
  for (std::int64_t b = 0; b < kCount; ++b) {
    const Batch one = one_of(samples, b);
    std::vector<std::byte> bytes(static_cast<std::size_t>(sample.bytes)),
        out(static_cast<std::size_t>(item.bytes), std::byte{0x5A});
    const auto fill = [&](const char* field, const char* name) {
      std::memcpy(bytes.data() + sample.field(field).offset, one.at(name).const_data_ptr(),
                  static_cast<std::size_t>(sample.field(field).bytes));
    };
    fill("images", key::kImages);
    fill("text", key::kText);
    fill("text_mask", key::kTextMask);
    fill("state", key::kState);
    fill("action", key::kAction);
    const std::int64_t length = one.at(key::kTextMask).sum().item<std::int64_t>();
    const auto text = encoder.encode_text(one.at(key::kText)[0].narrow(0, 0, length));
    ASSERT_TRUE(write_encoded(sample, bytes, item, encoder.encode_images(one.at(key::kImages)), text, out));
    std::vector<std::byte> again(out.size());
    ASSERT_TRUE(write_encoded(sample, bytes, item, encoder.encode_images(one.at(key::kImages)), text, again));
    EXPECT_TRUE(out == again) << "bytes that were not written";
    for (const TensorField& field : item.fields) {
      const auto type = field.type == FieldType::u8 ? at::kByte : field.type == FieldType::i64 ? at::kLong : at::kFloat;
      auto& all = collated[field.name == "text_mask" ? key::kTextMask : field.name];
      auto shape = field.shape;
      shape.insert(shape.begin(), 1);
      const auto row = at::from_blob(out.data() + field.offset, shape, at::TensorOptions().dtype(type)).clone();
      all = all.defined() ? at::cat({all, row}) : row;
    }
  }
  const Batch got = encoded_batch(job, collated);
  JobConfig plain_job = job;
  plain_job.data.features.encode = "learner";
  auto plain = CachedEncoder::make(plain_job);
  want = (*plain)->encode(samples);
  ASSERT_EQ(want.size(), got.size());
  const double tolerance = GetParam().precision == "bf16" ? 2e-2 : 1e-5;  // batches of another size round otherwise
  for (const auto& [name, tensor] : want) {
    ASSERT_EQ(got.count(name), 1u) << name;
    EXPECT_EQ(got.at(name).sizes(), tensor.sizes()) << name;
    EXPECT_EQ(got.at(name).scalar_type(), tensor.scalar_type()) << name;
    EXPECT_TRUE(at::allclose(got.at(name).to(at::kFloat), tensor.to(at::kFloat), tolerance, tolerance)) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Precision, EncodedSampleTest,
                         ::testing::Values(EncodedCase{"fp32"}, EncodedCase{"fp32", true}, EncodedCase{"bf16"},
                                           EncodedCase{"fp32", false, "batch_min"}));

TEST(EncodedLayoutTest, AFeatureOfAnotherSizeIsRefused) {
  const JobConfig job = encoding_job("fp32", false);
  const SampleLayout sample = layout_of_samples(), item = encoded_layout(sample, job);
  std::vector<std::byte> bytes(static_cast<std::size_t>(sample.bytes)), out(static_cast<std::size_t>(item.bytes));
  const auto written = write_encoded(sample, bytes, item, {at::zeros({1, 5, 16}), at::zeros({1, 12, 3, 2, 5}), {}},
                                     at::zeros({3, 16}), out);
  EXPECT_EQ(written.error().code(), Errc::internal);
  EXPECT_NE(written.error().message().find("clean_latents"), std::string::npos) << written.error().message();
}

}  // namespace
}  // namespace troupe::workers
