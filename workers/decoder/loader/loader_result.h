#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "data/sample/stage_times.h"

namespace troupe::workers {

/// What a run of a loader measured. Times are seconds, sizes bytes.
struct LoaderResult {
  std::int64_t decoders = 0, micro_batch = 0, prefetch = 0;
  /// Delivered in batches, bad ones included.
  std::int64_t samples = 0;
  /// Of those, the ones without data (data.bad_sample: skip).
  std::int64_t bad_samples = 0;
  /// Why the first of them is bad.
  std::string first_bad{};
  /// The user ended it early.
  bool stopped = false;

  /// From the start of the decoders to the last batch.
  double seconds = 0;
  /// From the same start to the first batch.
  double first_batch_seconds = 0;
  /// CPU time of the process, over `seconds`.
  double cpu_seconds = 0;
  /// Summed over the decoders; `collate` is the consumer's.
  StageTimes stages{};
  /// Decoders: checksum and hand-over of a slot.
  double send = 0;
  /// Decoders: what no stage claims.
  double build_other = 0;
  /// Decoders: no slot was free.
  double decoder_wait = 0;
  /// Time of each sample, unordered.
  std::vector<double> build_seconds{};

  /// Samples/s that were asked for; 0: as fast as they come.
  double consume_rate = 0;
  /// Consumer: waited for a batch, after the first.
  double stall_seconds = 0;
  /// From the first batch to the end.
  double consume_seconds = 0;
  std::int64_t sample_bytes = 0;
  /// Resident memory of the process at the first batch, at the end, and at most; bytes.
  std::int64_t resident_first = 0, resident_last = 0, resident_peak = 0;

  double rate() const { return seconds > 0 ? static_cast<double>(samples) / seconds : 0; }
  /// What the decoders could deliver if they never waited for a slot.
  double capacity() const;
  double cores() const { return seconds > 0 ? cpu_seconds / seconds : 0; }
  double stall_share() const { return consume_seconds > 0 ? stall_seconds / consume_seconds : 0; }
  /// Latency of building one sample at quantile q in [0, 1].
  double build_quantile(double q) const;
  /// Name and seconds of everything that decoders do and `collate`, in the order of the pipeline.
  std::vector<std::pair<std::string, double>> stage_list() const;
};

struct Reencodings;

/// The stage that holds the loader back and what to change, such as {"decode", "..."}.
struct Bottleneck {
  /// A name of stage_list(), or "consumer"
  std::string stage;
  /// One sentence.
  std::string advice;
};
/// `cores` are those of the machine; `tried`: what coding the videos anew would bring, null where nobody tried.
Bottleneck find_bottleneck(const LoaderResult& result, std::int64_t cores, const Reencodings* tried = nullptr);
/// Whether the time of a stage depends on how videos are coded.
bool depends_on_videos(const std::string& stage);

}  // namespace troupe::workers
