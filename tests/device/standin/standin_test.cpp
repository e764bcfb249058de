// The stand-in of the CUDA runtime: order by streams and events alone, hazards that no wait orders, graphs, memory.
#include "tests/device/standin/standin.h"

#include <cuda_runtime_api.h>
#include <gmock/gmock.h>

#include <functional>
#include <numeric>
#include <vector>

#include "tests/device/standin/kernels/steps.h"

namespace troupe::device::standin {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int kCount = 100;
constexpr std::size_t kBytes = kCount * sizeof(float);

cudaStream_t make_stream() {
  cudaStream_t stream = nullptr;
  EXPECT_EQ(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, 0), cudaSuccess);
  return stream;
}

cudaEvent_t make_event() {
  cudaEvent_t event = nullptr;
  EXPECT_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
  return event;
}

float* make_floats(cudaStream_t stream) {
  void* pointer = nullptr;
  EXPECT_EQ(cudaMalloc(&pointer, kBytes), cudaSuccess);
  EXPECT_EQ(cudaMemsetAsync(pointer, 0, kBytes, stream), cudaSuccess);
  return static_cast<float*>(pointer);
}

float* make_pinned() {
  void* pointer = nullptr;
  EXPECT_EQ(cudaHostAlloc(&pointer, kBytes, 0), cudaSuccess);
  return static_cast<float*>(pointer);
}

std::vector<float> read(const float* from, cudaStream_t stream) {
  std::vector<float> values(kCount);
  EXPECT_EQ(cudaMemcpyAsync(values.data(), from, kBytes, cudaMemcpyDeviceToHost, stream), cudaSuccess);
  return values;
}

class StandinTest : public ::testing::Test {
 protected:
  void SetUp() override { reset({}); }
};

TEST_F(StandinTest, AStreamRunsInOrderAndACopyBringsTheResult) {
  const auto stream = make_stream();
  float *x = make_floats(stream), *y = make_floats(stream);
  ASSERT_EQ(launch_add(x, 1, y, kCount, stream), cudaSuccess);
  ASSERT_EQ(launch_add(y, 2, x, kCount, stream), cudaSuccess);
  EXPECT_THAT(read(x, stream), Each(3.0F));
  const auto found = report();
  EXPECT_THAT(found.findings, IsEmpty());
  EXPECT_EQ(found.launches, 2U);
  EXPECT_GT(found.kernels.at("add").all.lanes, 0U);
}

TEST_F(StandinTest, EveryMissingWaitIsFoundInEveryOrder) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    for (const bool waits : {true, false}) {
      reset({.seed = seed});
      const auto first = make_stream(), second = make_stream();
      const auto made = make_event(), event = make_event();
      float *x = make_floats(first), *y = make_floats(first);
      cudaEventRecord(made, first);
      cudaStreamWaitEvent(second, made, 0);
      launch_add(x, 1, y, kCount, first);
      cudaEventRecord(event, first);
      if (waits) cudaStreamWaitEvent(second, event, 0);
      launch_shift(y, 0, x, kCount, second);
      const auto findings = report().findings;
      if (waits) {
        EXPECT_THAT(findings, IsEmpty()) << seed;
      } else {
        // x is read by the one and written by the other, y the other way round
        EXPECT_THAT(findings, Each(AllOf(HasSubstr("hazard"), HasSubstr("add"), HasSubstr("shift_left")))) << seed;
        EXPECT_EQ(findings.size(), 2U) << seed;
      }
    }
  }
}

TEST_F(StandinTest, AWaitIsForTheRecordingBeforeItNotForALaterOne) {
  const auto first = make_stream(), second = make_stream();
  const auto event = make_event();
  float* x = make_floats(first);
  cudaEventRecord(event, first);
  cudaStreamWaitEvent(second, event, 0);
  launch_add(x, 1, x, kCount, first);
  cudaEventRecord(event, first);
  launch_shift(x, 0, x, kCount, second);
  EXPECT_FALSE(report().findings.empty());
}

TEST_F(StandinTest, WhatTheHostWaitedForIsOrderedForWhatItEnqueuesNext) {
  const auto first = make_stream(), second = make_stream();
  float* x = make_floats(first);
  launch_add(x, 1, x, kCount, first);
  ASSERT_EQ(cudaStreamSynchronize(first), cudaSuccess);
  launch_add(x, 1, x, kCount, second);
  EXPECT_THAT(read(x, second), Each(2.0F));
  const auto found = report();
  EXPECT_THAT(found.findings, IsEmpty());
  EXPECT_EQ(found.synchronising.at("cudaStreamSynchronize"), 1U);
}

TEST_F(StandinTest, PinnedCopiesDoNotSynchroniseAndOthersAreCounted) {
  const auto stream = make_stream();
  float *x = make_floats(stream), *pinned = make_pinned();
  std::iota(pinned, pinned + kCount, 0.0F);
  ASSERT_EQ(cudaMemcpyAsync(x, pinned, kBytes, cudaMemcpyHostToDevice, stream), cudaSuccess);
  launch_add(x, 1, x, kCount, stream);
  ASSERT_EQ(cudaMemcpyAsync(pinned, x, kBytes, cudaMemcpyDeviceToHost, stream), cudaSuccess);
  EXPECT_THAT(report().synchronising, IsEmpty());
  EXPECT_EQ(pinned[kCount - 1], kCount);
  read(x, stream);
  EXPECT_EQ(report().synchronising.size(), 1U);
  ASSERT_EQ(cudaFreeHost(pinned), cudaSuccess);
}

TEST_F(StandinTest, APinnedBufferThatACopyStillReadsIsSeenByAnotherStream) {
  const auto first = make_stream(), second = make_stream();
  float *x = make_floats(first), *pinned = make_pinned();
  std::fill(pinned, pinned + kCount, 1.0F);
  cudaMemcpyAsync(x, pinned, kBytes, cudaMemcpyHostToDevice, first);
  float* y = make_floats(second);
  cudaMemcpyAsync(pinned, y, kBytes, cudaMemcpyDeviceToHost, second);
  EXPECT_THAT(report().findings, ElementsAre(HasSubstr("cudaMemcpyAsync")));
  ASSERT_EQ(cudaFreeHost(pinned), cudaSuccess);
}

TEST_F(StandinTest, KernelsAreCheckedAsTheyRun) {
  const auto stream = make_stream();
  float *x = make_floats(stream), *y = make_floats(stream);
  launch_shift(x, 1, y, kCount, stream);
  EXPECT_THAT(report().findings,
              ElementsAre(AllOf(HasSubstr("out_of_bounds"), HasSubstr("shift_left"), HasSubstr("steps.cu:"))));
}

TEST_F(StandinTest, ReadsOfUninitialisedOrFreedMemoryAreFound) {
  const auto stream = make_stream();
  void* pointer = nullptr;
  ASSERT_EQ(cudaMalloc(&pointer, kBytes), cudaSuccess);
  read(static_cast<float*>(pointer), stream);
  EXPECT_THAT(report().findings, ElementsAre(HasSubstr("never written")));
  float* y = make_floats(stream);
  ASSERT_EQ(cudaFree(pointer), cudaSuccess);
  EXPECT_EQ(cudaMemcpyAsync(y, pointer, kBytes, cudaMemcpyDeviceToDevice, stream), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(pointer), cudaErrorInvalidValue);
  EXPECT_DEATH(static_cast<volatile float*>(static_cast<void*>(y))[0] = 1, "");
}

TEST_F(StandinTest, MoreThanADeviceHasIsRefused) {
  reset({.memory_bytes = 1000});
  void* pointer = nullptr;
  ASSERT_EQ(cudaMalloc(&pointer, 800), cudaSuccess);
  void* more = nullptr;
  EXPECT_EQ(cudaMalloc(&more, 201), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST_F(StandinTest, CopiesOfRowsTouchTheirRowsAlone) {
  const auto stream = make_stream(), other = make_stream();
  float *x = make_floats(stream), *y = make_floats(other);
  // 5 rows of 8 values out of rows of 20, into rows of 10
  ASSERT_EQ(cudaMemcpy2DAsync(y, 40, x, 80, 32, 5, cudaMemcpyDeviceToDevice, stream), cudaSuccess);
  EXPECT_EQ(cudaMemcpy2DAsync(y, 16, x, 80, 32, 5, cudaMemcpyDeviceToDevice, stream), cudaErrorInvalidPitchValue);
  launch_add(y + 8, 1, y + 8, 2, other);
  const auto findings = report().findings;
  // the copy does not wait for the fill of y; what `add` writes lies between the rows that the copy touches
  EXPECT_EQ(findings.size(), 5U);
  EXPECT_THAT(findings,
              Each(AllOf(HasSubstr("cudaMemsetAsync"), HasSubstr("cudaMemcpy2DAsync"), HasSubstr("32 bytes"))));
}

TEST_F(StandinTest, EventsTellTheHostAndRegisteredMemoryIsPinned) {
  const auto stream = make_stream();
  std::vector<float> values(kCount, 1.0F);
  ASSERT_EQ(cudaHostRegister(values.data(), kBytes, 0), cudaSuccess);
  EXPECT_EQ(cudaHostRegister(values.data(), kBytes, 0), cudaErrorHostMemoryAlreadyRegistered);
  float* x = make_floats(stream);
  launch_add(x, 5, x, kCount, stream);
  cudaMemcpyAsync(values.data(), x, kBytes, cudaMemcpyDeviceToHost, stream);
  const auto event = make_event();
  cudaEventRecord(event, stream);
  while (cudaEventQuery(event) == cudaErrorNotReady) {
  }
  EXPECT_THAT(values, Each(5.0F));
  EXPECT_THAT(report().synchronising, IsEmpty());
  cudaEventRecord(event, stream);
  ASSERT_EQ(cudaEventSynchronize(event), cudaSuccess);
  EXPECT_EQ(report().synchronising.at("cudaEventSynchronize"), 1U);
  ASSERT_EQ(cudaEventDestroy(event), cudaSuccess);
  ASSERT_EQ(cudaHostUnregister(values.data()), cudaSuccess);
  EXPECT_EQ(cudaHostUnregister(values.data()), cudaErrorHostMemoryNotRegistered);
  ASSERT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorInvalidResourceHandle);
}

TEST_F(StandinTest, DevicesHaveMemoryOfTheirOwn) {
  reset({.devices = 2, .memory_bytes = 1000});
  int count = 0, current = -1;
  ASSERT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
  EXPECT_EQ(count, 2);
  EXPECT_EQ(cudaSetDevice(2), cudaErrorInvalidDevice);
  for (int device = 0; device < 2; ++device) {
    ASSERT_EQ(cudaSetDevice(device), cudaSuccess);
    ASSERT_EQ(cudaGetDevice(&current), cudaSuccess);
    EXPECT_EQ(current, device);
    void* pointer = nullptr;
    ASSERT_EQ(cudaMalloc(&pointer, 800), cudaSuccess);
    EXPECT_EQ(cudaMalloc(&pointer, 800), cudaErrorMemoryAllocation);
  }
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
}

/// Two branches from one stream, joined: x + 1 into y and x + 2 into z, then y + 10 into x.
void enqueue_fork(cudaStream_t stream, cudaStream_t other, float* x, float* y, float* z, bool joins) {
  const auto forked = make_event(), joined = make_event();
  cudaEventRecord(forked, stream);
  cudaStreamWaitEvent(other, forked, 0);
  launch_add(x, 1, y, kCount, stream);
  launch_add(x, 2, z, kCount, other);
  if (joins) {
    cudaEventRecord(joined, other);
    cudaStreamWaitEvent(stream, joined, 0);
  }
  launch_add(y, 10, x, kCount, stream);
}

TEST_F(StandinTest, AGraphDoesWhatItsStreamsDidEachTime) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    reset({.seed = seed});
    const auto stream = make_stream(), other = make_stream();
    float *x = make_floats(stream), *y = make_floats(stream), *z = make_floats(stream);
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t ready = nullptr;
    ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    enqueue_fork(stream, other, x, y, z, /*joins=*/true);
    ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    ASSERT_EQ(cudaGraphInstantiate(&ready, graph, 0), cudaSuccess);
    ASSERT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    for (int i = 0; i < 3; ++i) ASSERT_EQ(cudaGraphLaunch(ready, stream), cudaSuccess);
    EXPECT_THAT(read(x, stream), Each(33.0F));
    EXPECT_THAT(read(z, stream), Each(24.0F));
    const auto found = report();
    EXPECT_THAT(found.findings, IsEmpty()) << seed;
    EXPECT_EQ(found.graph_launches, 3U);
    ASSERT_EQ(cudaGraphExecDestroy(ready), cudaSuccess);
  }
}

TEST_F(StandinTest, CapturesRefuseWhatCudaRefuses) {
  const auto stream = make_stream(), other = make_stream();
  float *x = make_floats(stream), *y = make_floats(stream), *z = make_floats(stream);
  cudaGraph_t graph = nullptr;
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
  enqueue_fork(stream, other, x, y, z, /*joins=*/false);
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureUnjoined);
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
  enqueue_fork(stream, other, x, y, z, /*joins=*/true);
  launch_add(z, 1, z, kCount, other);
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureUnjoined);
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
  EXPECT_EQ(cudaStreamSynchronize(other), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
  // an event of before: the graph would not wait for it
  const auto before = make_event();
  cudaEventRecord(before, other);
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
  EXPECT_EQ(cudaStreamWaitEvent(stream, before, 0), cudaErrorStreamCaptureIsolation);
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureUnmatched);
}

TEST_F(StandinTest, AGraphWithoutAWaitIsAHazardAtItsLaunch) {
  const auto stream = make_stream(), other = make_stream();
  float *x = make_floats(stream), *y = make_floats(stream);
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t ready = nullptr;
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
  launch_add(x, 1, y, kCount, stream);
  cudaStreamEndCapture(stream, &graph);
  cudaGraphInstantiate(&ready, graph, 0);
  cudaGraphLaunch(ready, stream);
  launch_add(y, 1, x, kCount, other);
  EXPECT_FALSE(report().findings.empty());
}

}  // namespace
}  // namespace troupe::device::standin
