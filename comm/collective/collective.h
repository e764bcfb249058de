#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/namespaces.h"
#include "base/result.h"

namespace troupe::comm {

/// Element type of a collective's buffers.
/// bf16: the upper 16 bits of an f32; numbers lie in memory as the machine has them, all ranks alike.
enum class DType : std::uint8_t { f32, bf16, f64, u8, i64 };

/// Bytes of one element.
std::size_t size_of(DType dtype) noexcept;

/// A contiguous buffer that a collective reads or writes. Does not own; must stay valid until the operation is done.
struct Buffer {
  void* data = nullptr;
  /// Elements.
  std::int64_t count = 0;
  DType dtype = DType::f32;
};

/// An operation under way. Destroying it does not cancel.
class PendingCollective {
 public:
  virtual ~PendingCollective() = default;
  /// Waits until the operation is done.
  /// Errors: deadline_exceeded (names the operation, its sequence number and the ranks that are missing, if known),
  ///         aborted (a peer was lost or abort() was called).
  virtual Result<void> wait() = 0;
  /// Never waits; true after success and after failure alike.
  virtual bool is_done() const = 0;
};

/// A group of learner ranks. Operations are issued by one thread, in the same order on every rank.
/// Sums are formed in rank order in f32 (f64 for f64 buffers), whatever the backend, so that results do not depend on
/// it:
///     out = (((x_0 + x_1) + x_2) + ...)
/// Sum only; the caller scales.
class Collective {
 public:
  virtual ~Collective() = default;
  /// 0 to world() - 1; fixed.
  virtual int rank() const noexcept = 0;
  virtual int world() const noexcept = 0;
  /// "thread" or "gloo".
  virtual std::string backend() const = 0;

  /// full.count = world * shard.count; rank r's shard lands at [r * shard.count, (r + 1) * shard.count).
  /// Errors come from wait(): invalid_argument when counts or types do not fit, and those of PendingCollective. Both
  /// buffers belong to the operation until then.
  virtual std::unique_ptr<PendingCollective> all_gather(Buffer full, Buffer shard) = 0;
  /// shard = sum over ranks of their full[rank * shard.count, ...). `full` may be overwritten only after wait().
  /// `shard` may be this rank's own part of `full`, exactly; the rest of `full` is left as it is.
  virtual std::unique_ptr<PendingCollective> reduce_scatter(Buffer shard, Buffer full) = 0;
  /// buffer = sum over ranks, on every rank.
  virtual Result<void> all_reduce_sum(Buffer buffer) = 0;
  /// buffer = maximum over ranks, on every rank.
  virtual Result<void> all_reduce_max(Buffer buffer) = 0;
  /// Rank `root`'s bytes on every rank, all of them with equal count and dtype. Errors: invalid_argument (no such
  /// rank, thread backend), those of wait().
  virtual Result<void> broadcast(Buffer buffer, int root) = 0;
  /// Returns when every rank has called it. Errors: those of wait().
  virtual Result<void> barrier() = 0;

  /// Makes every pending and later operation of this rank fail with `aborted`, and wakes its waiters. Any thread.
  /// Peers find out by their own failure (thread backend: at once; gloo: when this process closes its connections).
  /// Under gloo an operation cut short may use its buffers until this object is destroyed: destroy it before reusing
  /// them.
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
