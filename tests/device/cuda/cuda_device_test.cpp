#include "device/cuda/cuda_device.h"

#include <new>
#include <thread>

#include "device/host_device.h"
#include "tests/device/conformance.h"
#include "tests/device/standin/standin.h"

namespace troupe::device {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::unique_ptr<Device> make_device(const standin::Options& options = {}) {
  standin::reset(options);
  return make_cuda_device(0).value();
}

/// Each test meets another order of what streams do.
std::shared_ptr<Device> make_next_device() {
  static std::uint64_t seed = 0;
  return make_device({.seed = ++seed});
}
void expect_no_findings() { EXPECT_THAT(standin::report().findings, IsEmpty()); }
INSTANTIATE_TEST_SUITE_P(Cuda, DeviceConformanceTest,
                         ::testing::Values(DeviceUnderTest{"cuda", make_next_device, expect_no_findings}));

TEST(CudaDeviceTest, ADeviceThatIsNotThereIsRefused) {
  standin::reset({.devices = 2});
  const auto refused = make_cuda_device(2).error();
  EXPECT_EQ(refused.code(), Errc::not_found);
  EXPECT_EQ(refused.message(), "CUDA device 2: cudaSetDevice: invalid device ordinal");
}

TEST(CudaDeviceTest, AddressesAreMultiplesOf256ThatTheHostMustNotTouch) {
  const auto device = make_device();
  EXPECT_FALSE(device->is_host());
  for (const std::int64_t bytes : {1, 255, 10'000}) {
    const auto memory = device->allocate(bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory->address()) % 256, 0U);
  }
}

TEST(CudaDeviceTest, OutOfMemoryIsThrownAndForgotten) {
  const auto device = make_device({.memory_bytes = 1000});
  auto memory = device->allocate(800);
  try {
    device->allocate(201);
    FAIL() << "more than there is was allocated";
  } catch (const std::bad_alloc& e) {
    EXPECT_STREQ(e.what(), "CUDA device 0: cudaMalloc of 201 bytes: out of memory");
  }
  // else the next kernel's launcher would find it
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  memory.reset();
  EXPECT_EQ(device->allocate(1000)->bytes(), 1000);
}

TEST(CudaDeviceTest, MemoryBehindNeedsNoFolder) {
  const auto device = make_device();
  EXPECT_EQ(device->allocate_behind(10, "/proc/none").value()->bytes(), 10);
}

TEST(CudaDeviceTest, WorkRunsAtOnceInTheCallersThread) {
  const auto device = make_device();
  for (const auto use : {StreamUse::compute, StreamUse::transfer}) {
    const auto stream = device->make_stream(use);
    std::thread::id worked;
    stream->enqueue([&] { return worked = std::this_thread::get_id(), Result<void>(); });
    EXPECT_EQ(worked, std::this_thread::get_id());
    EXPECT_NE(cuda_stream(*stream).handle(), nullptr);
  }
}

TEST(CudaDeviceTest, OnlyMemoryThatIsNotPinnedMakesTheHostWait) {
  const auto device = make_device();
  auto stream = device->make_stream(StreamUse::transfer);
  const auto memory = device->allocate(1000), other = device->allocate(1000);
  const auto pinned = device->allocate_pinned(1000), behind = device->allocate_behind(1000, "").value();
  auto host = counting(1000);
  const auto event = device->make_event();
  const auto waits = [] { return standin::report().synchronising; };
  const auto before = waits();

  stream->copy(memory->address(), pinned->address(), 1000);
  stream->copy(behind->address(), memory->address(), 1000);
  stream->copy(other->address(), memory->address(), 1000);
  stream->clear(memory->address(), 1000);
  stream->enqueue([] { return Result<void>(); });
  stream->record(*event);
  stream->wait(*event);
  {
    const auto pin = device->pin(host).value();
    stream->copy(memory->address(), host.data(), 1000);
    stream->copy(host.data(), memory->address(), 1000);
    EXPECT_EQ(waits(), before);
  }
  stream->copy(memory->address(), host.data(), 1000);
  stream->copy(host.data(), memory->address(), 1000);
  auto after = before;
  after["copy from memory that is not pinned"] = 1;
  after["copy to memory that is not pinned"] = 1;
  EXPECT_EQ(waits(), after);
  EXPECT_TRUE(stream->synchronize());
  stream.reset();
  after["cudaStreamSynchronize"] += 2;
  EXPECT_EQ(waits(), after);
  EXPECT_EQ(host, counting(1000));
}

TEST(CudaDeviceTest, WhatIsPinnedIsNotPinnedTwice) {
  const auto device = make_device();
  Bytes host(100);
  const auto pin = device->pin(host).value();
  const auto refused = device->pin(host).error();
  EXPECT_EQ(refused.code(), Errc::failed_precondition);
  EXPECT_THAT(refused.message(), HasSubstr("cudaHostRegister of 100 bytes: part or all of the requested memory"));
}

TEST(CudaDeviceTest, AMissingWaitIsFoundInEveryOrder) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    for (const bool waits : {true, false}) {
      const auto device = make_device({.seed = seed});
      const auto transfers = device->make_stream(StreamUse::transfer);
      const auto compute = device->make_stream(StreamUse::compute);
      const auto memory = device->allocate(100), pinned = device->allocate_pinned(100);
      const auto arrived = device->make_event();
      transfers->copy(memory->address(), pinned->address(), 100);
      transfers->record(*arrived);
      if (waits) compute->wait(*arrived);
      compute->clear(memory->address(), 100);
      const auto findings = standin::report().findings;
      if (waits) {
        EXPECT_THAT(findings, IsEmpty()) << seed;
      } else {
        EXPECT_THAT(findings,
                    ElementsAre(AllOf(HasSubstr("hazard"), HasSubstr("cudaMemcpyAsync"), HasSubstr("cudaMemsetAsync"))))
            << seed;
      }
    }
  }
}

TEST(CudaDeviceTest, AFailedCallIsAFailureOfItsStream) {
  const auto device = make_device();
  const auto stream = device->make_stream(StreamUse::compute), other = device->make_stream(StreamUse::compute);
  const auto memory = device->allocate(100), pinned = device->allocate_pinned(200);
  const auto event = device->make_event();
  stream->clear(memory->address(), 101);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  stream->copy(memory->address(), pinned->address(), 100);
  stream->record(*event);
  other->wait(*event);
  other->copy(memory->address(), pinned->address(), 100);
  EXPECT_EQ(standin::report().copies, 0U);
  for (const auto& failed : {stream.get(), other.get()}) {
    const auto error = failed->synchronize().error();
    EXPECT_EQ(error.code(), Errc::internal);
    EXPECT_EQ(error.message(), "CUDA device 0: cudaMemsetAsync: invalid argument");
    EXPECT_TRUE(failed->synchronize());
  }
  stream->copy(memory->address(), pinned->address(), 101);
  EXPECT_EQ(stream->synchronize().error().message(), "CUDA device 0: cudaMemcpyAsync: invalid argument");
}

TEST(CudaDeviceTest, ScratchGrowsAndEarlierAddressesStayValid) {
  const auto device = make_device({.memory_bytes = 1000});
  {
    const auto stream = device->make_stream(StreamUse::compute);
    auto& cuda = cuda_stream(*stream);
    const auto pinned = device->allocate_pinned(200);
    EXPECT_EQ(cuda.scratch(0).value(), nullptr);
    std::byte* const first = cuda.scratch(100).value();
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first) % 256, 0U);
    EXPECT_EQ(cuda.scratch(60).value(), first);
    stream->clear(first, 100);
    std::byte* const second = cuda.scratch(101).value();
    EXPECT_NE(second, first);
    EXPECT_EQ(cuda.scratch(200).value(), second);
    stream->copy(second, pinned->address(), 200);
    stream->copy(second, first, 100);
    ASSERT_TRUE(stream->synchronize());
    EXPECT_EQ(cuda.scratch(701).error().code(), Errc::resource_exhausted);
    EXPECT_EQ(cuda.scratch(200).value(), second);
    EXPECT_THAT(standin::report().findings, IsEmpty());
  }
  EXPECT_EQ(device->allocate(1000)->bytes(), 1000);
}

TEST(CudaDeviceTest, TwoDevicesHaveMemoryAndStreamsOfTheirOwn) {
  standin::reset({.devices = 2, .memory_bytes = 1000});
  const auto first = make_cuda_device(0).value(), second = make_cuda_device(1).value();
  const auto here = first->allocate(800), there = second->allocate(800);
  EXPECT_THROW(first->allocate(800), std::bad_alloc);
  EXPECT_THROW(second->allocate(800), std::bad_alloc);
  const auto pinned = first->allocate_pinned(800);
  fill_counting(host_bytes(*pinned));
  const auto copies = first->make_stream(StreamUse::transfer), uses = second->make_stream(StreamUse::compute);
  const auto arrived = first->make_event();
  copies->copy(here->address(), pinned->address(), 800);
  copies->record(*arrived);
  // another thread, whose own choice is the first device until then
  std::thread([&] {
    uses->wait(*arrived);
    uses->copy(there->address(), here->address(), 800);
    EXPECT_EQ(read(*uses, there->address(), 800), counting(800));
  }).join();
  EXPECT_THAT(standin::report().findings, IsEmpty());
}

TEST(CudaDeviceTest, ACapturedGraphDoesItsWorkEachTimeItIsLaunched) {
  standin::reset();
  const auto device = make_cuda_device(0).value();
  const auto stream = device->make_stream(StreamUse::compute);
  const auto pinned = device->allocate_pinned(16), memory = device->allocate(32);
  const auto copied = stream->capture([&] {
    stream->copy(memory->address(), pinned->address(), 16);
    stream->copy(memory->address() + 16, memory->address(), 16);
    return Result<void>();
  });
  ASSERT_TRUE(copied);
  EXPECT_EQ(read(*stream, memory->address(), 32), Bytes(32)) << "nothing was done yet";
  for (const int first : {1, 50}) {
    fill_counting(host_bytes(*pinned), first);
    stream->launch(**copied);
    Bytes want = counting(16, first);
    want.insert(want.end(), want.begin(), want.begin() + 16);
    EXPECT_EQ(read(*stream, memory->address(), 32), want);
  }
  EXPECT_EQ(standin::report().graph_launches, 2U);
  EXPECT_THAT(standin::report().findings, IsEmpty());
}

TEST(CudaDeviceTest, WhatNoGraphHoldsIsAnErrorOfTheCapture) {
  standin::reset();
  const auto device = make_cuda_device(0).value();
  const auto stream = device->make_stream(StreamUse::compute);
  const auto memory = device->allocate(16);
  Bytes pageable(16);
  // the stream itself fails where the runtime refuses a call of it
  const auto waits = stream->capture([&] {
    stream->copy(memory->address(), pageable.data(), 16);
    return stream->synchronize();
  });
  EXPECT_FALSE(waits);
  EXPECT_THROW((void)stream->capture([&] { return device->allocate(16), Result<void>(); }), std::bad_alloc);
  const auto refused = stream->capture([] { return Result<void>(Error{Errc::invalid_argument, "no such kernel"}); });
  EXPECT_EQ(refused.error().message(), "no such kernel");
  EXPECT_EQ(read(*stream, memory->address(), 16), Bytes(16)) << "the stream goes on";
}

TEST(CudaDeviceTest, WorkFindsItsDeviceChosen) {
  standin::reset({.devices = 2});
  const std::unique_ptr<Device> devices[] = {make_cuda_device(0).value(), make_cuda_device(1).value()};
  const std::unique_ptr<Stream> streams[] = {devices[0]->make_stream(StreamUse::compute),
                                             devices[1]->make_stream(StreamUse::compute)};
  for (const int ordinal : {0, 1, 0}) {
    int chosen = -1;
    streams[ordinal]->enqueue([&] { return cudaGetDevice(&chosen), Result<void>(); });
    EXPECT_EQ(chosen, ordinal);
  }
}

TEST(CudaDeviceDeathTest, AStreamOfCoresIsNoneOfCuda) {
  const auto stream = host_device().make_stream(StreamUse::compute);
  EXPECT_DEATH(cuda_stream(*stream), "streams of CUDA devices");
}

}  // namespace
}  // namespace troupe::device
