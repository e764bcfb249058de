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
    transfers.settle(/*succeeded=*/true);
    return found;
  };
  const auto three = addresses(3);
  EXPECT_EQ(addresses(3), three);
  EXPECT_THAT(addresses(1), ::testing::ElementsAre(three[0])) << "an evaluation brings less";
  EXPECT_EQ(addresses(3), three);
  EXPECT_THAT(device::standin::report().findings, ::testing::IsEmpty());
}

TEST_F(HostTransfersTest, MicroBatchesThatTheHostRunsAheadOfHaveTheirOwnValues) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    device::standin::reset({.seed = seed});
    const auto device = device::make_cuda_device(0).value();
    const auto stream = device->make_stream(device::StreamUse::compute);
    HostTransfers transfers(*device, *stream);
    std::vector<at::Tensor> back;
    for (int round = 0; round < 2; ++round) {
      back.clear();
      for (int micro = 0; micro < 4; ++micro) {
        transfers.begin();
        auto host = at::full({64}, micro);
        back.push_back(transfers.download(transfers.upload(host)));
        host.fill_(-1);  // the host's own again
      }
      EXPECT_TRUE(stream->synchronize());
      transfers.settle(/*succeeded=*/true);
      for (int micro = 0; micro < 4; ++micro) EXPECT_TRUE(at::all(back[micro] == micro).item<bool>());
    }
    EXPECT_THAT(device::standin::report().findings, ::testing::IsEmpty());
  }
}

TEST_F(HostTransfersTest, AFailureIsForgottenOnceTheComputationHasToldOfIt) {
  const auto device = device::make_cuda_device(0).value();
  const auto stream = device->make_stream(device::StreamUse::compute);
  HostTransfers transfers(*device, *stream);
  const auto host = at::full({8}, 3.0f);
  (void)transfers.upload(host);
  stream->enqueue([] { return Result<void>(Error{Errc::internal, "a launch failed"}); });
  transfers.begin();
  (void)transfers.upload(host);
  transfers.begin();
  (void)transfers.upload(host);
  EXPECT_FALSE(stream->synchronize());
  transfers.settle(/*succeeded=*/false);
  transfers.begin();
  const auto back = transfers.download(transfers.upload(host));
  EXPECT_TRUE(stream->synchronize());
  EXPECT_TRUE(at::all(back == 3).item<bool>());
}

TEST_F(HostTransfersTest, AConstantWhoseCopyWasSkippedIsCopiedAgain) {
  const auto device = device::make_cuda_device(0).value();
  const auto stream = device->make_stream(device::StreamUse::compute);
  HostTransfers transfers(*device, *stream);
  stream->enqueue([] { return Result<void>(Error{Errc::internal, "a launch failed"}); });
  const auto constant = at::full({8}, 3.0f);
  const auto there = transfers.keep(constant);
  EXPECT_FALSE(stream->synchronize());
  transfers.settle(/*succeeded=*/false);
  transfers.begin();
  const auto back = transfers.download(there);
  EXPECT_TRUE(stream->synchronize());
  EXPECT_TRUE(at::all(back == 3).item<bool>());
}

}  // namespace
}  // namespace troupe::model
