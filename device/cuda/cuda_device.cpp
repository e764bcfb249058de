#include "device/cuda/cuda_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "base/check.h"

namespace troupe::device {
namespace {

Errc code_of(cudaError_t status) {
  switch (status) {
    case cudaErrorMemoryAllocation:
      return Errc::resource_exhausted;
    case cudaErrorNoDevice:
    case cudaErrorInvalidDevice:
      return Errc::not_found;
    case cudaErrorInsufficientDriver:
    case cudaErrorHostMemoryAlreadyRegistered:
      return Errc::failed_precondition;
    default:
      return Errc::internal;
  }
}

Result<void> to_result(cudaError_t status, int ordinal, std::string_view name) {
  if (status == cudaSuccess) return {};
  // launchers ask for the thread's last error, which is no longer this one
  cudaGetLastError();
  return Error{code_of(status), fmt::format("CUDA device {}: {}: {}", ordinal, name, cudaGetErrorString(status))};
}

/// Calls the runtime with that device chosen for the thread.
template <class Call>
Result<void> on_device(int ordinal, std::string_view name, const Call& call) {
  TROUPE_TRY(to_result(cudaSetDevice(ordinal), ordinal, "cudaSetDevice"));
  return to_result(call(), ordinal, name);
}

/// The std::bad_alloc that says what failed.
class AllocationFailure final : public std::bad_alloc {
 public:
  explicit AllocationFailure(const Error& error) : text_(error.message()) {}
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  const std::string text_;
};

template <class T>
T value_or_throw(Result<T> made) {
  if (!made) throw AllocationFailure(made.error());
  return *std::move(made);
}

class CudaMemory final : public Memory {
 public:
  CudaMemory(int ordinal, void* address, std::int64_t bytes, cudaError_t (*release)(void*))
      : ordinal_(ordinal), address_(static_cast<std::byte*>(address)), bytes_(bytes), release_(release) {}
  ~CudaMemory() override {
    if (address_ != nullptr) (void)on_device(ordinal_, "release", [this] { return release_(address_); });
  }
  CudaMemory(const CudaMemory&) = delete;
  CudaMemory& operator=(const CudaMemory&) = delete;
  std::byte* address() const noexcept override { return address_; }
  std::int64_t bytes() const noexcept override { return bytes_; }

 private:
  const int ordinal_;
  std::byte* const address_;
  const std::int64_t bytes_;
  cudaError_t (*const release_)(void*);
};

/// Memory of the GPU that no one has written.
Result<std::shared_ptr<Memory>> make_device_memory(int ordinal, std::int64_t bytes) {
  TROUPE_CHECK(bytes >= 0, "memory has a size");
  void* address = nullptr;
  if (bytes > 0)
    TROUPE_TRY(on_device(ordinal, fmt::format("cudaMalloc of {} bytes", bytes),
                         [&] { return cudaMalloc(&address, static_cast<std::size_t>(bytes)); }));
  return std::shared_ptr<Memory>(std::make_shared<CudaMemory>(ordinal, address, bytes, cudaFree));
}

/// Zeros.
Result<std::shared_ptr<Memory>> make_pinned_memory(int ordinal, std::int64_t bytes) {
  TROUPE_CHECK(bytes >= 0, "memory has a size");
  void* address = nullptr;
  const auto size = static_cast<std::size_t>(bytes);
  if (bytes > 0) {
    TROUPE_TRY(on_device(ordinal, fmt::format("cudaHostAlloc of {} bytes", bytes),
                         [&] { return cudaHostAlloc(&address, size, cudaHostAllocPortable); }));
    std::memset(address, 0, size);
  }
  return std::shared_ptr<Memory>(std::make_shared<CudaMemory>(ordinal, address, bytes, cudaFreeHost));
}

class CudaPin final : public Pin {
 public:
  CudaPin(int ordinal, void* address) : ordinal_(ordinal), address_(address) {}
  ~CudaPin() override {
    (void)on_device(ordinal_, "cudaHostUnregister", [this] { return cudaHostUnregister(address_); });
  }
  CudaPin(const CudaPin&) = delete;
  CudaPin& operator=(const CudaPin&) = delete;

 private:
  const int ordinal_;
  void* const address_;
};

struct DestroyCudaEvent {
  void operator()(cudaEvent_t event) const { cudaEventDestroy(event); }
};
using CudaEventHandle = std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, DestroyCudaEvent>;

struct CudaEvent final : Event {
  explicit CudaEvent(CudaEventHandle with_handle) : handle(std::move(with_handle)) {}
  const CudaEventHandle handle;
  /// Of the stream, when it recorded the event.
  std::optional<Error> failure;
};

struct DestroyCudaGraph {
  void operator()(cudaGraph_t graph) const { cudaGraphDestroy(graph); }
  void operator()(cudaGraphExec_t graph) const { cudaGraphExecDestroy(graph); }
};

using CudaGraphHandle = std::unique_ptr<std::remove_pointer_t<cudaGraph_t>, DestroyCudaGraph>;

struct CudaGraph final : Graph {
  explicit CudaGraph(cudaGraphExec_t with_handle) : handle(with_handle) {}
  const std::unique_ptr<std::remove_pointer_t<cudaGraphExec_t>, DestroyCudaGraph> handle;
};

CudaEvent& cuda(Event& event) { return static_cast<CudaEvent&>(event); }

Result<CudaStreamHandle> make_stream_handle(int ordinal) {
  cudaStream_t made = nullptr;
  TROUPE_TRY(on_device(ordinal, "cudaStreamCreateWithPriority",
                       [&] { return cudaStreamCreateWithPriority(&made, cudaStreamNonBlocking, 0); }));
  return CudaStreamHandle(made);
}

Result<CudaEventHandle> make_event_handle(int ordinal) {
  cudaEvent_t made = nullptr;
  TROUPE_TRY(on_device(ordinal, "cudaEventCreateWithFlags",
                       [&] { return cudaEventCreateWithFlags(&made, cudaEventDisableTiming); }));
  return CudaEventHandle(made);
}

class CudaDevice final : public Device {
 public:
  CudaDevice(int ordinal, CudaStreamHandle fills) : ordinal_(ordinal), fills_(std::move(fills)) {}

  bool is_host() const noexcept override { return false; }
  std::shared_ptr<Memory> allocate(std::int64_t bytes) override { return value_or_throw(make_zeros(bytes)); }
  Result<std::shared_ptr<Memory>> allocate_behind(std::int64_t bytes, const std::string&) override {
    return make_pinned_memory(ordinal_, bytes);
  }
  std::shared_ptr<Memory> allocate_pinned(std::int64_t bytes) override {
    return value_or_throw(make_pinned_memory(ordinal_, bytes));
  }
  Result<std::unique_ptr<Pin>> pin(std::span<std::byte> host) override {
    if (host.empty()) return std::make_unique<Pin>();
    TROUPE_TRY(on_device(ordinal_, fmt::format("cudaHostRegister of {} bytes", host.size()),
                         [&] { return cudaHostRegister(host.data(), host.size(), cudaHostRegisterPortable); }));
    return std::unique_ptr<Pin>(std::make_unique<CudaPin>(ordinal_, host.data()));
  }
  std::unique_ptr<Stream> make_stream(StreamUse) override {
    return std::make_unique<CudaStream>(ordinal_, value_or_throw(make_stream_handle(ordinal_)));
  }
  std::unique_ptr<Event> make_event() override {
    return std::make_unique<CudaEvent>(value_or_throw(make_event_handle(ordinal_)));
  }

 private:
  Result<std::shared_ptr<Memory>> make_zeros(std::int64_t bytes) const {
    TROUPE_ASSIGN(auto memory, make_device_memory(ordinal_, bytes));
    if (bytes == 0) return memory;
    TROUPE_TRY(on_device(ordinal_, "cudaMemsetAsync", [&] {
      return cudaMemsetAsync(memory->address(), 0, static_cast<std::size_t>(bytes), fills_.get());
    }));
    // the streams that will use the memory are not known here: none of them runs before this call returns
    TROUPE_TRY(on_device(ordinal_, "cudaStreamSynchronize", [&] { return cudaStreamSynchronize(fills_.get()); }));
    return memory;
  }

  const int ordinal_;
  /// Zeros for new memory, of all threads.
  const CudaStreamHandle fills_;
};

}  // namespace

Result<std::unique_ptr<Device>> make_cuda_device(int ordinal) {
  TROUPE_ASSIGN(auto fills, make_stream_handle(ordinal));
  return std::unique_ptr<Device>(std::make_unique<CudaDevice>(ordinal, std::move(fills)));
}

template <class Call>
void CudaStream::attempt(const char* name, const Call& call) {
  keep(on_device(ordinal_, name, call));
}

void CudaStream::keep(const Result<void>& done) {
  if (!done && !failure_) failure_ = done.error();
}

CudaStream::~CudaStream() {
  // before the scratch memory goes, and host memory that copies of this stream use
  attempt("cudaStreamSynchronize", [this] { return cudaStreamSynchronize(handle()); });
}

void CudaStream::enqueue(Work work) {
  if (failure_) return;
  keep(to_result(cudaSetDevice(ordinal_), ordinal_, "cudaSetDevice"));
  if (!failure_) keep(work());
}

void CudaStream::copy(std::byte* to, const std::byte* from, std::int64_t bytes) {
  if (failure_ || bytes == 0) return;
  attempt("cudaMemcpyAsync",
          [&] { return cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDefault, handle()); });
}

void CudaStream::clear(std::byte* to, std::int64_t bytes) {
  if (failure_ || bytes == 0) return;
  attempt("cudaMemsetAsync", [&] { return cudaMemsetAsync(to, 0, static_cast<std::size_t>(bytes), handle()); });
}

// A stream that failed records and waits too: what it enqueued before may still run.
void CudaStream::record(Event& event) {
  auto& mine = cuda(event);
  attempt("cudaEventRecord", [&] { return cudaEventRecord(mine.handle.get(), handle()); });
  mine.failure = failure_;
}

void CudaStream::wait(Event& event) {
  auto& mine = cuda(event);
  if (mine.failure && !failure_) failure_ = mine.failure;
  attempt("cudaStreamWaitEvent", [&] { return cudaStreamWaitEvent(handle(), mine.handle.get(), 0); });
}

Result<std::unique_ptr<Graph>> CudaStream::capture(const Work& work) {
  if (failure_) return *failure_;
  // other threads go on calling the runtime meanwhile
  TROUPE_TRY(on_device(ordinal_, "cudaStreamBeginCapture",
                       [&] { return cudaStreamBeginCapture(handle(), cudaStreamCaptureModeThreadLocal); }));
  CudaGraphHandle captured;
  const auto end = [&] {
    cudaGraph_t made = nullptr;
    const auto ended =
        on_device(ordinal_, "cudaStreamEndCapture", [&] { return cudaStreamEndCapture(handle(), &made); });
    captured.reset(made);
    return ended;
  };
  Result<void> done;
  try {
    done = work();
  } catch (...) {
    (void)end();
    throw;
  }
  const auto ended = end();
  if (!done) return done.error();
  if (!ended) return Error{Errc::failed_precondition, ended.error().message()};
  cudaGraphExec_t ready = nullptr;
  TROUPE_TRY(
      on_device(ordinal_, "cudaGraphInstantiate", [&] { return cudaGraphInstantiate(&ready, captured.get(), 0); }));
  return std::unique_ptr<Graph>(std::make_unique<CudaGraph>(ready));
}

void CudaStream::launch(Graph& graph) {
  if (failure_) return;
  auto& mine = static_cast<CudaGraph&>(graph);
  attempt("cudaGraphLaunch", [&] { return cudaGraphLaunch(mine.handle.get(), handle()); });
}

Result<void> CudaStream::synchronize() {
  attempt("cudaStreamSynchronize", [this] { return cudaStreamSynchronize(handle()); });
  if (!failure_) return {};
  return *std::exchange(failure_, std::nullopt);
}

Result<std::byte*> CudaStream::scratch(std::int64_t bytes) {
  const auto held = scratch_.empty() ? 0 : scratch_.back()->bytes();
  if (bytes > held) {
    TROUPE_ASSIGN(auto more, make_device_memory(ordinal_, std::max(bytes, 2 * held)));
    scratch_.push_back(std::move(more));
  }
  return scratch_.empty() ? nullptr : scratch_.back()->address();
}

CudaStream& cuda_stream(Stream& stream) {
  auto* const found = dynamic_cast<CudaStream*>(&stream);
  TROUPE_CHECK(found != nullptr, "kernels of CUDA are enqueued on streams of CUDA devices");
  return *found;
}

}  // namespace troupe::device
