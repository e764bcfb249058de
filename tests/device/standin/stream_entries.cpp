// Streams, events and graphs.
#include <cuda_runtime_api.h>

#include <memory>
#include <thread>

#include "tests/device/standin/runtime.h"

namespace troupe::device::standin {
namespace {

Event* event_of(cudaEvent_t handle) { return reinterpret_cast<Event*>(handle); }

/// A stream joins the capture that an event was recorded in.
void join_capture(Stream& stream, const std::shared_ptr<Capture>& capture) {
  stream.capture = capture;
  stream.list = capture->graph.lists.size();
  capture->graph.lists.emplace_back();
  capture->streams.push_back(&stream);
  capture->clocks.emplace_back();
}

}  // namespace
}  // namespace troupe::device::standin

using troupe::device::standin::Capture;
using troupe::device::standin::current_device;
using troupe::device::standin::Event;
using troupe::device::standin::event_of;
using troupe::device::standin::fail;
using troupe::device::standin::Graph;
using troupe::device::standin::join_capture;
using troupe::device::standin::Point;
using troupe::device::standin::Runtime;

extern "C" {

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* handle, unsigned flags, int) {
  if (flags != cudaStreamNonBlocking) return fail(cudaErrorNotSupported);
  auto& runtime = Runtime::get();
  const auto lock = runtime.lock();
  *handle = reinterpret_cast<cudaStream_t>(runtime.make_stream(current_device()));
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  auto& runtime = Runtime::get();
  const auto lock = runtime.lock();
  auto* stream = runtime.stream(handle);
  if (stream == nullptr) return fail(cudaErrorInvalidResourceHandle);
  runtime.run_until("cudaStreamDestroy", [&] { return stream->items.empty(); });
  runtime.destroy(stream);
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  auto& runtime = Runtime::get();
  const auto lock = runtime.lock();
  auto* stream = runtime.stream(handle);
  if (stream == nullptr) return fail(cudaErrorInvalidResourceHandle);
  if (runtime.breaks_capture()) return fail(cudaErrorStreamCaptureUnsupported);
  runtime.synchronise(*stream, "cudaStreamSynchronize");
  return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event_handle, unsigned) {
  auto& runtime = Runtime::get();
  const auto lock = runtime.lock();
  auto* stream = runtime.stream(handle);
  if (stream == nullptr || event_handle == nullptr) return fail(cudaErrorInvalidResourceHandle);
  if (stream->device == 0 && runtime.report().waits++ == runtime.options().lost_wait) return cudaSuccess;
  auto& event = *event_of(event_handle);
  if (event.capture != nullptr && event.capture->is_over) return fail(cudaErrorCapturedEvent);
  if (event.capture != nullptr && stream->capture == nullptr) join_capture(*stream, event.capture);
  // an event of before the capture is another matter than the graph
  if (stream->capture != nullptr && event.capture != stream->capture) {
    stream->capture->is_broken = true;
    return fail(cudaErrorStreamCaptureIsolation);
  }
  if (event.point) runtime.enqueue(*stream, {.name = "wait", .awaits = event.point});
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* handle, unsigned flags) {
  if ((flags & cudaEventDisableTiming) == 0) return fail(cudaErrorNotSupported);
  *handle = reinterpret_cast<cudaEvent_t>(new Event);
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t handle) {
  delete event_of(handle);
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t handle, cudaStream_t stream_handle) {
  auto& runtime = Runtime::get();
  const auto lock = runtime.lock();
  auto* stream = runtime.stream(stream_handle);
  if (stream == nullptr || handle == nullptr) return fail(cudaErrorInvalidResourceHandle);
  auto& event = *event_of(handle);
  event.point = std::make_shared<Point>();
  event.capture = stream->capture;
  runtime.enqueue(*stream, {.name = "record", .records = event.point});
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t handle) {
  auto& runtime = Runtime::get();
  const auto lock = runtime.lock();
  auto& event = *event_of(handle);
  if (runtime.breaks_capture()) return fail(cudaErrorStreamCaptureUnsupported);
  if (!event.point) return cudaSuccess;
  runtime.try_run_one();
  if (!event.point->is_done) return cudaErrorNotReady;
  runtime.host_sees(event.point->clock);
  return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  auto& runtime = Runtime::get();
  const auto lock = runtime.lock();
  const auto point = event_of(handle)->point;
  if (runtime.breaks_capture()) return fail(cudaErrorStreamCaptureUnsupported);
  ++runtime.report().synchronising["cudaEventSynchronize"];
  if (!point) return cudaSuccess;
  runtime.run_until("cudaEventSynchronize", [&] { return point->is_done; });
  runtime.host_sees(point->clock);
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode) {
  auto& runtime = Runtime::get();
  const auto lock = runtime.lock();
  auto* stream = runtime.stream(handle);
  if (stream == nullptr) return fail(cudaErrorInvalidResourceHandle);
  if (mode != cudaStreamCaptureModeThreadLocal) return fail(cudaErrorNotSupported);
  if (stream->capture != nullptr) return fail(cudaErrorIllegalState);
  join_capture(*stream, std::make_shared<Capture>());
  stream->capture->thread = std::this_thread::get_id();
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
  auto& runtime = Runtime::get();
  const auto lock = runtime.lock();
  auto* stream = runtime.stream(handle);
  *graph = nullptr;
  if (stream == nullptr) return fail(cudaErrorInvalidResourceHandle);
  if (stream->capture == nullptr || stream->list != 0) return fail(cudaErrorStreamCaptureUnmatched);
  const std::shared_ptr<Capture> capture = stream->capture;
  capture->is_over = true;
  for (auto* one : capture->streams) one->capture = nullptr;
  if (capture->is_broken) return fail(cudaErrorStreamCaptureInvalidated);
  // what forked off must have been waited for
  for (std::uint32_t list = 1; list < capture->graph.lists.size(); ++list) {
    const auto items = static_cast<std::uint32_t>(capture->graph.lists[list].size());
    // its last item must be a recording that was waited for; a list of one wait did nothing
    if (items > 1 && !capture->clocks[0].has_seen({list, items})) return fail(cudaErrorStreamCaptureUnjoined);
  }
  *graph = reinterpret_cast<cudaGraph_t>(new Graph(std::move(capture->graph)));
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* made, cudaGraph_t graph, unsigned long long) {
  *made = reinterpret_cast<cudaGraphExec_t>(new Graph(*reinterpret_cast<Graph*>(graph)));
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete reinterpret_cast<Graph*>(graph);
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  delete reinterpret_cast<Graph*>(graph);
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t handle) {
  auto& runtime = Runtime::get();
  const auto lock = runtime.lock();
  auto* stream = runtime.stream(handle);
  if (stream == nullptr || graph == nullptr) return fail(cudaErrorInvalidResourceHandle);
  if (stream->capture != nullptr) return fail(cudaErrorNotSupported);
  runtime.launch(*reinterpret_cast<Graph*>(graph), *stream);
  return cudaSuccess;
}

}  // extern "C"
