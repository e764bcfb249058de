// The form of bf16 products: the processor's, unless measured rates speak clearly for the other.
#include "placement/product_form.h"

#include <gtest/gtest.h>

namespace troupe::placement {
namespace {

TEST(ProductFormTest, AutoLeavesTheProcessorsFormOnlyForMuchMore) {
  const JobConfig job;
  EXPECT_EQ(product_form(job, {}), "widened") << "nothing is known of a pretended cluster";
  EXPECT_EQ(product_form(job, {.native = 129, .widened = 100}), "widened");
  EXPECT_EQ(product_form(job, {.native = 130, .widened = 100}), "native");
  EXPECT_EQ(product_form(job, {.has_tiles = true}), "native");
  EXPECT_EQ(product_form(job, {.has_tiles = true, .native = 100, .widened = 129}), "native");
  EXPECT_EQ(product_form(job, {.has_tiles = true, .native = 100, .widened = 130}), "widened");
}

TEST(ProductFormTest, TheJobsOwnWordCounts) {
  JobConfig job;
  for (const char* form : {"native", "widened"}) {
    job.precision.products = form;
    EXPECT_EQ(product_form(job, {.native = 500, .widened = 100}), form);
    EXPECT_EQ(product_form(job, {.has_tiles = true, .native = 100, .widened = 500}), form);
  }
}

TEST(ProductFormTest, Bf16ComesFromTheLearnerOrTheFrozenEncoders) {
  JobConfig job;
  EXPECT_FALSE(multiplies_bf16(job));
  job.precision.encoders = "bf16";
  EXPECT_TRUE(multiplies_bf16(job));
  job.job.kind = JobKind::rl;
  EXPECT_FALSE(multiplies_bf16(job)) << "a policy has no frozen encoders";
  job.precision.param = "bf16";
  EXPECT_TRUE(multiplies_bf16(job));
}

}  // namespace
}  // namespace troupe::placement
