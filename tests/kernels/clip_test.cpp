#include "kernels/clip.h"

#include <gtest/gtest.h>

namespace troupe::kernels {
namespace {

TEST(ClipTest, ScalesLongGradientsOnly) {
  EXPECT_EQ(clip_factor(0.5, 1.0), 1.0f);
  EXPECT_EQ(clip_factor(1e9, 0.0), 1.0f);
  EXPECT_FLOAT_EQ(clip_factor(4.0, 1.0), 0.25f);
}

}  // namespace
}  // namespace troupe::kernels
