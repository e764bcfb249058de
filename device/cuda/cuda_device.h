#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/result.h"
#include "device/device.h"

namespace troupe::device {

/// A GPU by its number, through the CUDA runtime. Its memory lies at multiples of 256 bytes. Memory behind it and
/// pinned memory are host memory that is pinned for all GPUs of the process. Each call chooses the GPU for the calling
/// thread, and leaves it chosen.
///
/// The host waits for the GPU in Stream::synchronize(), where memory is allocated or released, at the end of a stream,
/// and in the copies that device.h names; nowhere else.
/// Errors: not_found ("CUDA device 3: cudaSetDevice: invalid device ordinal"), others by the name of the call.
Result<std::unique_ptr<Device>> make_cuda_device(int ordinal);

struct DestroyCudaStream {
  void operator()(cudaStream_t stream) const { cudaStreamDestroy(stream); }
};
using CudaStreamHandle = std::unique_ptr<std::remove_pointer_t<cudaStream_t>, DestroyCudaStream>;

/// A stream of make_cuda_device()'s devices, for what launches kernels. The failure of any call of the runtime is the
/// stream's. What the GPU finds while it works, such as a bad address of a kernel, is the failure of the next call on
/// any stream.
class CudaStream final : public Stream {
 public:
  CudaStream(int ordinal, CudaStreamHandle handle) : ordinal_(ordinal), handle_(std::move(handle)) {}
  ~CudaStream() override;
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;

  void enqueue(Work work) override;
  void copy(std::byte* to, const std::byte* from, std::int64_t bytes) override;
  void clear(std::byte* to, std::int64_t bytes) override;
  void record(Event& event) override;
  void wait(Event& event) override;
  Result<std::unique_ptr<Graph>> capture(const Work& work) override;
  void launch(Graph& graph) override;
  Result<void> synchronize() override;

  cudaStream_t handle() const noexcept { return handle_.get(); }

  /// Memory of the GPU for one operation of this stream at a time: `bytes` at least, at a multiple of 256, not zero.
  /// Valid until the stream ends, also when a later call needs more: then it doubles, so that all that is kept is less
  /// than twice the last. Null while no bytes were asked for. Errors: resource_exhausted.
  Result<std::byte*> scratch(std::int64_t bytes);

 private:
  /// Calls the runtime with the GPU chosen; keeps the failure.
  template <class Call>
  void attempt(const char* name, const Call& call);
  /// Keeps the first failure.
  void keep(const Result<void>& done);

  const int ordinal_;
  const CudaStreamHandle handle_;
  std::optional<Error> failure_;
  /// The last is in use; work that was enqueued may still use the others.
  std::vector<std::shared_ptr<Memory>> scratch_;
};

/// The stream of a CUDA device as what it is.
CudaStream& cuda_stream(Stream& stream);

}  // namespace troupe::device
