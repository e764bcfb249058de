#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

// Spans of time that a job's processes record into files of one folder while a switch in that folder is on, all on the
// host's monotonic clock. A process writes through shared memory, so that what it recorded outlives its end.
namespace troupe::base {

enum class SpanKind : std::uint8_t {
  work,
  /// For something that another thread, process or device has to do first.
  wait,
};

namespace trace_detail {
/// Off, for processes without a folder.
inline constinit std::atomic<std::uint32_t> never{0};
/// The folder's switch. Set once, before a process has threads.
inline const std::atomic<std::uint32_t>* is_on = &never;
/// Whether this thread trains a step that is not traced, while others still trace theirs.
inline constinit thread_local bool is_outside = false;
std::int64_t now() noexcept;
void record(std::string_view name, std::string_view detail, SpanKind kind, std::int64_t begin) noexcept;
}  // namespace trace_detail

/// Records the time of its life while tracing is on; else it costs one relaxed load. `name` and `detail` live longer
/// than the span; the trace shows "name detail", cut to 47 bytes. Spans of one thread nest.
class Span {
 public:
  explicit Span(std::string_view name, SpanKind kind = SpanKind::work) noexcept : Span(name, {}, kind) {}
  Span(std::string_view name, std::string_view detail, SpanKind kind = SpanKind::work) noexcept {
    if (trace_detail::is_on->load(std::memory_order_relaxed) == 0 || trace_detail::is_outside) return;
    name_ = name;
    detail_ = detail;
    kind_ = kind;
    begin_ = trace_detail::now();
  }
  ~Span() {
    if (begin_ != 0) trace_detail::record(name_, detail_, kind_, begin_);
  }
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

  /// Whether it began while tracing was on.
  bool is_traced() const noexcept { return begin_ != 0; }

 private:
  std::string_view name_, detail_;
  SpanKind kind_ = SpanKind::work;
  /// Nanoseconds; 0: tracing was off.
  std::int64_t begin_ = 0;
};

/// Steps of a job that are traced, counted from 1, both included.
struct TracedSteps {
  std::int64_t first = 0, last = 0;
};

/// Makes `folder`, empty, with its switch off. What an earlier attempt recorded is deleted.
Result<void> prepare_tracing(const std::string& folder, TracedSteps steps);

/// Lets this process record into `folder` as `process`; does nothing where prepare_tracing did not make it. At most
/// once a process, before it has threads. Errors: those of file_error; data_loss for a switch that is damaged.
Result<void> start_tracing(const std::string& folder, const std::string& process);

/// Says which step the calling thread begins: it turns the folder's switch on, and off again one step behind the last
/// traced one, when every rank has left that; on this thread spans of other steps are not recorded. The ranks of a job
/// are at most one step apart.
void trace_step(std::int64_t step) noexcept;

/// One span as it was recorded.
struct RecordedSpan {
  /// Nanoseconds of the host's monotonic clock.
  std::int64_t begin = 0, end = 0;
  std::int32_t thread = 0;
  SpanKind kind = SpanKind::work;
  std::string thread_name, name;
};

/// What one process recorded, in the order in which its spans ended.
struct ProcessSpans {
  std::string process;
  std::vector<RecordedSpan> spans;
  /// Spans that found the file full.
  std::int64_t dropped = 0;
};

/// Reads what all processes have recorded until now, by name. Errors: those of file_error; data_loss for a foreign
/// file.
Result<std::vector<ProcessSpans>> read_spans(const std::string& folder);

/// Deletes the switch and what was recorded; processes that start from now on record nothing. A folder that is missing
/// is no error. Errors: those of file_error.
Result<void> end_tracing(const std::string& folder);

}  // namespace troupe::base
