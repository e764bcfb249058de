#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"

namespace troupe::device {

/// A point in a stream's work that other streams wait for. Used over and over: recording it forgets the point before.
class Event {
 public:
  virtual ~Event() = default;
};

/// Work in order. Streams of one device run beside each other where the device can do so, and are ordered by events
/// alone. One thread calls a stream; the work runs on whatever thread or engine the device has for it.
///
/// After a failure the stream skips all work until synchronize() has returned it. Events are recorded nevertheless, and
/// hand the failure on to the streams that wait for them.
class Stream {
 public:
  /// Returns its failure; must not throw.
  using Work = std::function<Result<void>()>;

  virtual ~Stream() = default;
  virtual void enqueue(Work work) = 0;
  /// The event happens when everything enqueued so far is done.
  virtual void record(Event& event) = 0;
  /// What is enqueued from here on begins after the event, which was recorded before this call. Without a deadline of
  /// its own: what the event's stream does has one.
  virtual void wait(Event& event) = 0;
  /// Returns when everything enqueued is done. Errors: the first of the work since the last call.
  virtual Result<void> synchronize() = 0;
};

/// What a stream is for, which decides how a device runs it.
enum class StreamUse : std::uint8_t {
  /// Arithmetic: cores do it in the calling thread, at once.
  compute,
  /// Moving bytes, beside arithmetic: cores give it a thread.
  transfer,
};

/// Bytes on a device, zero at first, at an address that is a multiple of kMemoryAlignment; released with the last copy
/// of the pointer. Only device/ and kernels/, and what hands the address to them, may look behind it.
class Memory {
 public:
  virtual ~Memory() = default;
  virtual std::byte* address() const noexcept = 0;
  virtual std::int64_t bytes() const noexcept = 0;
};
inline constexpr std::int64_t kMemoryAlignment = 64;

/// What computes and remembers. Thread-safe; lives longer than what it made.
class Device {
 public:
  virtual ~Device() = default;
  /// Throws std::bad_alloc.
  virtual std::shared_ptr<Memory> allocate(std::int64_t bytes) = 0;
  /// Larger and slower memory behind the device's own, which the host reaches too: for cores a file without a name in
  /// `folder` that is mapped, so that the kernel writes it out and reads it in. Errors: those of make_unnamed_file;
  /// resource_exhausted (address space).
  virtual Result<std::shared_ptr<Memory>> allocate_behind(std::int64_t bytes, const std::string& folder) = 0;
  virtual std::unique_ptr<Stream> make_stream(StreamUse use) = 0;
  virtual std::unique_ptr<Event> make_event() = 0;
};

}  // namespace troupe::device
