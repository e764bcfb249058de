#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace troupe::base {

/// A name keeps the kind of its first use; the other kind later is a broken invariant and aborts.
enum class MetricKind {
  /// A value that is set, such as train/loss.
  gauge,
  /// A total that only grows, such as data/skipped_samples.
  counter,
};

/// One metric as read out.
/// A copy: it does not follow the registry.
struct MetricValue {
  std::string name;
  MetricKind kind = MetricKind::gauge;
  double value = 0;
};

/// The metrics of a process by name, such as "train/loss" or "time/stall_s". Safe from any thread.
class MetricRegistry {
 public:
  /// Sets a gauge, made on first use.
  void set(std::string_view name, double value);
  /// Adds to a counter, made at 0 on first use. `by` >= 0.
  void add(std::string_view name, double by = 1);
  /// The value, or 0 for a name not seen yet.
  double value(std::string_view name) const;
  /// All values by name, for a MetricSink.
  /// A copy of one moment: no metric changes while it is made.
  ///
  std::map<std::string, double> snapshot() const;
  /// All values with their kinds, sorted by name.
  std::vector<MetricValue> list() const;

 private:
  /// Guarded by mutex_.
  struct Entry {
    MetricKind kind;
    double value;
  };
  /// The entry, made at 0 when absent. With mutex_ held.
  Entry& entry(std::string_view name, MetricKind kind);

  mutable std::mutex mutex_;
  std::map<std::string, Entry, std::less<>> entries_;
};

/// A file that metrics are written to. Not thread-safe; one writer.
/// Made by make_jsonl_sink, make_csv_sink (base/metric_sinks.h) and make_tensorboard_sink (base/tensorboard.h).
class MetricSink {
 public:
  virtual ~MetricSink() = default;
  /// Appends the values of one step. `wall`: seconds since 1970; `samples`: consumed by the job so far.
  /// Errors: resource_exhausted when the disk is full, data_loss when the file cannot be written.
  /// Steps are written in the order of the calls; the sink neither sorts nor drops any.
  virtual Result<void> write(std::int64_t step, double wall, std::int64_t samples,
                             const std::map<std::string, double>& values) = 0;
  /// Everything written so far has reached the kernel: a killed process loses nothing of it.
  /// Errors: as write().
  virtual Result<void> flush() = 0;
};

}  // namespace troupe::base
