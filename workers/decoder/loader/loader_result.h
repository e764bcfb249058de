#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "data/sample/stage_times.h"

namespace troupe {

/// What a run of a loader measured. Times are seconds, sizes bytes.
struct LoaderResult {
  std::int64_t decoders = 0, micro_batch = 0, prefetch = 0;
  std::int64_t samples = 0;      ///< delivered in batches, bad ones included
  std::int64_t bad_samples = 0;  ///< of those, the ones without data (data.bad_sample: skip)
  std::string first_bad{};       ///< why, of the first
  bool stopped = false;          ///< the user ended it early

  double seconds = 0;                   ///< from the start of the decoders to the last batch
  double first_batch_seconds = 0;       ///< from the same start to the first batch
  double cpu_seconds = 0;               ///< of the process, over `seconds`
  StageTimes stages{};                  ///< summed over the decoders; `collate`: the consumer's
  double send = 0;                      ///< decoders: checksum and hand-over of a slot
  double build_other = 0;               ///< decoders: what no stage claims
  double decoder_wait = 0;              ///< decoders: no slot was free
  std::vector<double> build_seconds{};  ///< one per sample, unordered

  double consume_rate = 0;     ///< asked for; 0: as fast as they come
  double stall_seconds = 0;    ///< consumer: waited for a batch, after the first
  double consume_seconds = 0;  ///< from the first batch to the end
  std::int64_t sample_bytes = 0;
  std::int64_t resident_first = 0, resident_last = 0, resident_peak = 0;  ///< at the first batch, at the end, highest

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

/// The stage that holds the loader back and what to change, such as {"decode", "..."}. `cores` are those of the
/// machine.
struct Bottleneck {
  std::string stage;   ///< a name of stage_list(), or "consumer"
  std::string advice;  ///< one sentence
};
Bottleneck find_bottleneck(const LoaderResult& result, std::int64_t cores);

}  // namespace troupe
