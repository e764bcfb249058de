#include "comm/collective/nccl_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace troupe::comm {
namespace {

/// How often the host asks: neither NCCL nor CUDA tells by itself.
constexpr std::chrono::milliseconds kPoll{1};

Error nccl_error(const std::string& name, ncclResult_t status) {
  // a peer was lost, or this rank told them so
  const auto code = status == ncclInvalidArgument || status == ncclInvalidUsage ? Errc::internal : Errc::aborted;
  return {code, fmt::format("{}: NCCL: {}", name, ncclGetErrorString(status))};
}

/// What NCCL says of a communicator.
ncclResult_t state_of(ncclComm_t communicator) {
  ncclResult_t state = ncclSuccess;
  const auto asked = ncclCommGetAsyncError(communicator, &state);
  return asked == ncclSuccess ? state : asked;
}

}  // namespace

NcclWatch::NcclWatch(std::chrono::milliseconds timeout) : timeout_(timeout), thread_([this] { watch(); }) {}

NcclWatch::~NcclWatch() {
  {
    const Lock lock(mutex_);
    is_over_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

Result<ncclComm_t> NcclWatch::join(const std::string& name, const ncclUniqueId& id, int world, int rank) {
  Lock lock(mutex_);
  if (failure_) return failed(name);
  if (const auto found = cudaGetDevice(&device_); found != cudaSuccess)
    return Error{Errc::unavailable, fmt::format("{}: CUDA: {}", name, cudaGetErrorString(found))};
  // calls return at once, so that a rank that waits for a lost peer can abort
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclComm_t made = nullptr;
  const auto status = ncclCommInitRankConfig(&made, world, id, rank, &config);
  if (status != ncclSuccess && status != ncclInProgress) return nccl_error(name, status);
  communicators_.push_back(made);
  TROUPE_TRY(settle(lock, name, made, Clock::now() + timeout_));
  return made;
}

Result<void> NcclWatch::register_memory(const std::string& name, ncclComm_t communicator, std::span<std::byte> memory) {
  Lock lock(mutex_);
  if (failure_) return failed(name);
  void* handle = nullptr;  // ends with the communicator
  const auto status = ncclCommRegister(communicator, memory.data(), memory.size(), &handle);
  if (status == ncclSuccess || status == ncclInProgress)
    return settle(lock, name, communicator, Clock::now() + timeout_);
  return Error{Errc::resource_exhausted,
               fmt::format("{}: {} bytes: NCCL: {}", name, memory.size(), ncclGetErrorString(status))};
}

void NcclWatch::leave(ncclComm_t communicator) {
  const Lock lock(mutex_);
  if (std::erase(communicators_, communicator) == 0) return;  // aborted
  // not finalised, which waits for peers
  ncclCommAbort(communicator);
}

Result<void> NcclWatch::issue(const std::string& name, ncclComm_t communicator, cudaStream_t stream,
                              const std::function<ncclResult_t()>& call) {
  Lock lock(mutex_);
  if (failure_) return failed(name);
  const auto deadline = Clock::now() + timeout_;
  if (const auto status = call(); status != ncclSuccess && status != ncclInProgress) {
    fail(nccl_error(name, status));
    return *failure_;
  }
  TROUPE_TRY(settle(lock, name, communicator, deadline));
  cudaEvent_t end = nullptr;
  auto recorded = cudaEventCreateWithFlags(&end, cudaEventDisableTiming);
  Operation operation{name, deadline, {}};
  operation.end.reset(end);
  if (recorded == cudaSuccess) recorded = cudaEventRecord(end, stream);
  if (recorded != cudaSuccess) {
    fail({Errc::internal, fmt::format("{}: CUDA: {}", name, cudaGetErrorString(recorded))});
    return *failure_;
  }
  under_way_.push_back(std::move(operation));
  changed_.notify_all();
  return {};
}

Result<void> NcclWatch::status() {
  const Lock lock(mutex_);
  if (!failure_) (void)take_errors();
  return failure_ ? Result<void>(*failure_) : Result<void>();
}

void NcclWatch::abort(const Error& reason) {
  const Lock lock(mutex_);
  fail(reason);
}

void NcclWatch::watch() {
  Lock lock(mutex_);
  const auto has_work = [this] { return is_over_ || !under_way_.empty(); };
  changed_.wait(lock, has_work);
  cudaSetDevice(device_);
  while (!is_over_) {
    if (under_way_.empty()) {
      changed_.wait(lock, has_work);
      continue;
    }
    const auto& first = under_way_.front();
    // work that failed is known to its stream
    if (cudaEventQuery(first.end.get()) != cudaErrorNotReady) {
      under_way_.pop_front();
      continue;
    }
    if (!take_errors()) continue;
    if (Clock::now() > first.deadline) {
      fail({Errc::deadline_exceeded, fmt::format("{} did not finish in {} ms", first.name, timeout_.count())});
      continue;
    }
    changed_.wait_for(lock, kPoll);
  }
}

Result<void> NcclWatch::settle(Lock& lock, const std::string& name, ncclComm_t communicator,
                               Clock::time_point deadline) {
  while (true) {
    const auto state = state_of(communicator);
    if (state == ncclSuccess) return {};
    if (state != ncclInProgress) fail(nccl_error(name, state));
    if (Clock::now() > deadline)
      fail({Errc::deadline_exceeded, fmt::format("{} did not begin in {} ms", name, timeout_.count())});
    if (!failure_) changed_.wait_for(lock, kPoll);
    if (failure_) return failed(name);
  }
}

Result<void> NcclWatch::take_errors() {
  for (const auto communicator : communicators_) {
    const auto state = state_of(communicator);
    if (state == ncclSuccess || state == ncclInProgress) continue;
    fail(nccl_error(under_way_.empty() ? "an operation" : under_way_.front().name, state));
    return *failure_;
  }
  return {};
}

void NcclWatch::fail(const Error& reason) {
  if (failure_) return;
  failure_ = reason;
  // all of them, before anything is freed: a stream may wait for any
  for (const auto communicator : std::exchange(communicators_, {})) ncclCommAbort(communicator);
  under_way_.clear();
  changed_.notify_all();
}

Error NcclWatch::failed(const std::string& name) const {
  // a failure names its operation
  return failure_->code() == Errc::aborted ? Error{Errc::aborted, fmt::format("{}: {}", name, failure_->message())}
                                           : *failure_;
}

}  // namespace troupe::comm
