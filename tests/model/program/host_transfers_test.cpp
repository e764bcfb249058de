// What crosses to a device, on the stand-in of the CUDA runtime, or with label gpu on hardware.
#include "model/program/host_transfers.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include "device/cuda/cuda_device.h"
#include "tests/device/standin/standin.h"

namespace troupe::model {
namespace {

class HostTransfersTest : public ::testing::Test {
 protected:
  void SetUp() override { device::standin::reset(); }
};

TEST_F(HostTransfersTest, AMicroBatchFindsTheAddressesOfTheLastOneLikeIt) {
  const auto device = device::make_cuda_device(0).value();
  const auto stream = device->make_stream(device::StreamUse::compute);
  HostTransfers transfers(*device, *stream);
  /// Of one size each.
  const auto addresses = [&](int uploads) {
    transfers.begin();
    std::vector<const void*> found;
    for (int i = 0; i < uploads; ++i) found.push_back(transfers.upload(at::full({8}, i)).const_data_ptr());
    EXPECT_TRUE(stream->synchronize());
    return found;
  };
  const auto three = addresses(3);
  EXPECT_EQ(addresses(3), three);
  EXPECT_THAT(addresses(1), ::testing::ElementsAre(three[0])) << "an evaluation brings less";
  EXPECT_EQ(addresses(3), three);
  EXPECT_THAT(device::standin::report().findings, ::testing::IsEmpty());
}

}  // namespace
}  // namespace troupe::model
