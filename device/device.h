#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"

namespace troupe::device {

/// A point in a stream's work that other streams wait for. Used over and over: recording it forgets the point before.
class Event {
 public:
  virtual ~Event() = default;
};

/// Work that a stream has captured: the same kernels, copies and fills between the same addresses, which stay valid as
/// long as it is launched. Outlives the work.
class Graph {
 public:
  virtual ~Graph() = default;
};

/// Work in order. Streams of one device run beside each other where the device can do so, and are ordered by events
/// alone. One thread calls a stream; the work runs on the thread or the engine that the device has for it. The end of
/// a stream waits for its work.
///
/// After a failure the stream skips all work until synchronize() has returned it. Events are recorded nevertheless, and
/// hand the failure on to the streams that wait for them.
class Stream {
 public:
  /// Returns its failure; must not throw.
  using Work = std::function<Result<void>()>;

  virtual ~Stream() = default;
  /// On cores the stream does the work when its turn comes. A stream of CUDA calls `work` at once in the calling
  /// thread, for which its device is chosen: `work` enqueues kernels and copies on the stream, and does not wait.
  virtual void enqueue(Work work) = 0;
  /// Copies in the stream's order, between memory of the device, pinned memory and other host memory. Both ranges are
  /// left alone until the copy is done, and do not overlap. With CUDA the host waits in this call where one of them is
  /// host memory that is not pinned, or where both are host memory.
  virtual void copy(std::byte* to, const std::byte* from, std::int64_t bytes) = 0;
  /// Writes zeros in the stream's order, to memory of the device or pinned memory.
  virtual void clear(std::byte* to, std::int64_t bytes) = 0;
  /// The event happens when everything enqueued so far is done.
  virtual void record(Event& event) = 0;
  /// What is enqueued from here on begins after the event, which was recorded before this call. Without a deadline of
  /// its own: what the event's stream does has one.
  virtual void wait(Event& event) = 0;
  /// Keeps what `work` enqueues on this stream, without doing it. Null on cores, which keep nothing. The work does not
  /// wait or allocate, and leaves other streams and host memory that is not pinned alone. Errors: those of the work;
  /// failed_precondition (it did what a graph cannot hold).
  virtual Result<std::unique_ptr<Graph>> capture(const Work& work) {
    (void)work;
    return std::unique_ptr<Graph>();
  }
  /// Enqueues what was captured on a stream of the same device.
  virtual void launch(Graph& graph) = 0;
  /// Returns when everything enqueued is done. Errors: the first of the work since the last call.
  virtual Result<void> synchronize() = 0;
};

/// What a stream is for, which decides how a device runs it. With CUDA both are streams of the GPU that run beside each
/// other, and the work that is enqueued is called at once (Stream::enqueue).
enum class StreamUse : std::uint8_t {
  /// Arithmetic: cores do it in the calling thread, at once.
  compute,
  /// Moving bytes, beside arithmetic: cores give it a thread.
  transfer,
};

/// Bytes of a device or for it, zero at first, at an address that is a multiple of kMemoryAlignment, null for no bytes.
/// Released with the last copy of the pointer, which outlives the work on them. Only device/ and kernels/, and what
/// hands the address to them, may look behind it.
class Memory {
 public:
  virtual ~Memory() = default;
  virtual std::byte* address() const noexcept = 0;
  virtual std::int64_t bytes() const noexcept = 0;
};
inline constexpr std::int64_t kMemoryAlignment = 64;

/// Host memory is pinned while this lives.
class Pin {
 public:
  virtual ~Pin() = default;
};

/// What computes and remembers. Thread-safe; lives longer than what it made.
class Device {
 public:
  virtual ~Device() = default;
  /// Whether the host's cores do the work of its streams, which then reads and writes the memory by itself.
  virtual bool is_host() const noexcept = 0;
  /// Throws std::bad_alloc.
  virtual std::shared_ptr<Memory> allocate(std::int64_t bytes) = 0;
  /// Larger and slower memory behind the device's own, which the host reaches too: for cores a file without a name in
  /// `folder` that is mapped, so that the kernel writes it out and reads it in; for CUDA pinned host memory, without
  /// use of `folder`. Errors: those of make_unnamed_file; resource_exhausted (address space, pinned memory).
  virtual Result<std::shared_ptr<Memory>> allocate_behind(std::int64_t bytes, const std::string& folder) = 0;
  /// Host memory that streams copy from and to without making the host wait and without staging; for cores plain
  /// memory. Throws std::bad_alloc.
  virtual std::shared_ptr<Memory> allocate_pinned(std::int64_t bytes) = 0;
  /// Makes host memory what allocate_pinned() gives until the handle is destroyed, before the memory is; for cores
  /// nothing happens. Errors: failed_precondition (pinned already), resource_exhausted.
  virtual Result<std::unique_ptr<Pin>> pin(std::span<std::byte> host) = 0;
  /// These two throw std::bad_alloc.
  virtual std::unique_ptr<Stream> make_stream(StreamUse use) = 0;
  virtual std::unique_ptr<Event> make_event() = 0;
};

}  // namespace troupe::device
