#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/namespaces.h"
#include "base/result.h"
#include "device/device.h"

namespace troupe::comm {

/// A group of learner ranks, which moves bytes between them. Operations are called by one thread at a time, in the same
/// order on every rank with the same sizes, and return when this rank's buffers are free again.
/// Errors of all operations: deadline_exceeded (names the operation, its sequence number and the ranks that are
/// missing, if known), aborted (a peer was lost or abort() was called), invalid_argument (sizes that do not fit).
class Collective {
 public:
  virtual ~Collective() = default;
  /// 0 to world() - 1; fixed.
  virtual int rank() const noexcept = 0;
  virtual int world() const noexcept = 0;
  /// "thread", "gloo" or "nccl".
  virtual std::string backend() const = 0;

  /// `full` holds world shards; rank r's lands at place r. `shard` may be this rank's own place in `full`, exactly.
  virtual Result<void> all_gather(std::span<std::byte> full, std::span<const std::byte> shard) = 0;
  /// Both hold world parts of one size: part r of `sent` goes to rank r, part r of `received` came from rank r. The
  /// two do not overlap.
  virtual Result<void> all_to_all(std::span<std::byte> received, std::span<const std::byte> sent) = 0;
  /// The same of memory of the stream's device, in the stream's order: enqueued by its work, without waiting. Backends
  /// that move memory of the host do it at once.
  virtual Result<void> enqueue_all_gather(std::span<std::byte> full, std::span<const std::byte> shard,
                                          device::Stream& stream) {
    (void)stream;
    return all_gather(full, shard);
  }
  virtual Result<void> enqueue_all_to_all(std::span<std::byte> received, std::span<const std::byte> sent,
                                          device::Stream& stream) {
    (void)stream;
    return all_to_all(received, sent);
  }
  /// `whole` holds world parts of one size, f32: the sum over ranks of part r lands in rank r's `part`, in an order of
  /// the backend's own, the same in every call of these sizes. The two do not overlap. Errors: also failed_precondition
  /// (a backend without a reduce-scatter: all but nccl).
  virtual Result<void> enqueue_reduce_scatter(std::span<float> part, std::span<const float> whole,
                                              device::Stream& stream) {
    (void)part, (void)whole, (void)stream;
    return Error{Errc::failed_precondition, backend() + " has no reduce-scatter: write parallelism.reduce=ranks"};
  }
  /// Memory of a device that operations on streams will use again and again, which lives as long as the group. Errors:
  /// resource_exhausted, aborted.
  virtual Result<void> register_memory(std::span<std::byte> memory) {
    (void)memory;
    return {};
  }
  /// Whether all that was enqueued so far went well: asked when the streams are done, whose own errors do not say it.
  virtual Result<void> status() { return {}; }
  /// For a few numbers: sum over ranks, in rank order whatever the backend, on every rank.
  virtual Result<void> all_reduce_sum(std::span<double> values) = 0;
  /// The same of the maximum; a NaN on any rank gives NaN.
  virtual Result<void> all_reduce_max(std::span<double> values) = 0;
  /// Rank `root`'s bytes on every rank.
  virtual Result<void> broadcast(std::span<std::byte> bytes, int root) = 0;
  /// Returns when every rank has called it.
  virtual Result<void> barrier() = 0;

  /// Ranks that give one colour become a group of their own, in their order; an operation of all ranks. The new group
  /// is aborted with this one.
  virtual Result<std::unique_ptr<Collective>> split(int colour) = 0;

  /// Makes the operation under way, and every later one, of this rank fail with `aborted`. Any thread. Peers find out
  /// by their own failure (thread backend: at once; gloo: when this process closes its connections). Under gloo an
  /// operation cut short may use its buffers until this object is destroyed: destroy it before reusing them.
  virtual void abort(const std::string& why) = 0;
};

/// Ranks as threads of one process; bitwise deterministic.
/// Make one group and hand rank r's collective to thread r.
class ThreadGroup;
/// `timeout` bounds every operation, from its issue to its end. Aborts for world < 1.
std::shared_ptr<ThreadGroup> make_thread_group(int world, std::chrono::milliseconds timeout);
/// Each rank joins once; its collective keeps the group alive. Destroying it with operations open aborts the group.
std::unique_ptr<Collective> join_thread_group(std::shared_ptr<ThreadGroup> group, int rank);

/// How a gloo group finds its members: a fresh store file per membership epoch, on a path that all ranks reach.
struct GlooOptions {
  /// A file that does not exist yet, of torch's FileStore, on a file system that all ranks see.
  std::string store_path;
  /// 0 to world - 1, each once.
  int rank = 0;
  int world = 1;
  /// Address this rank binds.
  std::string host = "127.0.0.1";
  /// Of connecting and of every operation.
  std::chrono::milliseconds timeout{60'000};
};
/// Blocks until all ranks have joined. Where SIGPIPE still has its default, which a write to a lost peer would end the
/// process by, it is ignored from here on. Errors: deadline_exceeded, aborted, unavailable.
Result<std::unique_ptr<Collective>> join_gloo_group(const GlooOptions& options);

}  // namespace troupe::comm
