#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "base/namespaces.h"
#include "base/result.h"

namespace troupe::comm {

/// The communicators that share a fate: the first failure of any aborts all of them, which lets the streams that wait
/// for peers go on. One call of NCCL at a time. Its thread watches the operations under way.
class NcclWatch {
 public:
  using Clock = std::chrono::steady_clock;

  /// `timeout` bounds every operation from its issue to its end.
  explicit NcclWatch(std::chrono::milliseconds timeout);
  NcclWatch(const NcclWatch&) = delete;
  NcclWatch& operator=(const NcclWatch&) = delete;
  /// All communicators are gone by then.
  ~NcclWatch();

  /// Joins the communicator of `id`, with the device chosen for the calling thread; returns when all ranks have.
  /// `name` is for messages.
  Result<ncclComm_t> join(const std::string& name, const ncclUniqueId& id, int world, int rank);
  /// Lets NCCL reach a device's memory without copies between, for the communicator's life.
  Result<void> register_memory(const std::string& name, ncclComm_t communicator, std::span<std::byte> memory);
  /// Ends a communicator on which nothing is under way.
  void leave(ncclComm_t communicator);

  /// Enqueues one operation on the stream. `call` makes NCCL's calls.
  Result<void> issue(const std::string& name, ncclComm_t communicator, cudaStream_t stream,
                     const std::function<ncclResult_t()>& call);
  /// The first failure of all that was issued so far.
  Result<void> status();
  /// Fails all that is under way and all that comes. The first reason stays.
  void abort(const Error& reason);

 private:
  struct DestroyEvent {
    void operator()(cudaEvent_t event) const { cudaEventDestroy(event); }
  };
  struct Operation {
    std::string name;
    Clock::time_point deadline;
    /// behind it in its stream
    std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, DestroyEvent> end;
  };
  using Lock = std::unique_lock<std::mutex>;

  void watch();
  // under the lock
  void fail(const Error& reason);
  /// Until NCCL has done what it was last told.
  Result<void> settle(Lock& lock, const std::string& name, ncclComm_t communicator, Clock::time_point deadline);
  Result<void> take_errors();
  Error failed(const std::string& name) const;

  const std::chrono::milliseconds timeout_;
  std::mutex mutex_;
  std::condition_variable changed_;
  /// Of the communicators: what asks about them has it chosen, so that no other one is opened.
  int device_ = 0;
  std::vector<ncclComm_t> communicators_;
  std::deque<Operation> under_way_;
  std::optional<Error> failure_;
  bool is_over_ = false;
  std::thread thread_;
};

}  // namespace troupe::comm
