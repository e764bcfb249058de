#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "model/step/op.h"

namespace troupe::model {

/// What an operation takes, in seconds of each kind, one after the other.
struct OpSeconds {
  double launch = 0, products = 0, attention = 0, moving = 0, sending = 0, offloading = 0;
  double sum() const { return launch + products + attention + moving + sending + offloading; }
};

/// Whether streams run beside each other, or take turns on the same cores in the order of the operations.
enum class StreamSharing : std::uint8_t { beside, in_turn };

/// One operation in time, in seconds from the step's begin.
struct TimedOp {
  double begin = 0, end = 0;
};

/// A step that was played on rates.
struct StepTiming {
  std::vector<TimedOp> operations;
  double seconds = 0;
  /// seconds that each stream works, by OpStream
  std::array<double, kOpStreams> busy{};
  /// seconds in which neither compute nor the optimizer works: they wait for what ranks send
  double exposed_communication = 0;
  /// of compute's and the optimizer's work: seconds of products, of attention, of moving bytes
  double products = 0, attention = 0, moving = 0;
  /// operations by index, each of which began when the one before it ended, from the step's begin to its end
  std::vector<int> critical_path;
};

/// A discrete-event run: a stream's operations follow each other, and each begins when what it waits for has ended.
/// Streams do not slow each other down. Of an operation: its products, attention and bytes one after the other. Pure.
StepTiming time_step(std::span<const Op> operations, const std::function<OpSeconds(const Op&)>& times_of,
                     StreamSharing sharing);

/// The same as a Chrome trace (JSON, microseconds), a track for each stream: chrome://tracing or ui.perfetto.dev.
std::string to_chrome_trace(const StepTiming& timing, std::span<const Op> operations, const ArenaPlan& plan);

}  // namespace troupe::model
