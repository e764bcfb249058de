#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "configs/job_config.h"
#include "data/mixture.h"
#include "data/sample/sample_builder.h"
#include "workers/decoder/loader/loader_result.h"

namespace troupe::workers {

/// How much a loader is asked to do.
struct LoaderOptions {
  /// Rounded up to whole batches.
  std::int64_t samples = 256;
  /// Threads that make samples.
  std::int64_t decoders = 1;
  /// Samples of a batch.
  std::int64_t micro_batch = 4;
  /// Batches in flight beside the one being consumed.
  std::int64_t prefetch = 2;
  /// samples/s taken; 0: as fast as they come.
  double consume_rate = 0;
  /// Longest wait for one batch.
  std::chrono::milliseconds batch_deadline{120'000};
  /// Asked several times a second; true ends the run with what was measured.
  std::function<bool()> stopped{};
};

/// Makes batches as a job's data side does, in this process and without a learner: one SampleBuilder a thread, the
/// credits, slots and order of a learner's feed (workers/stream/feed.h) over an inproc channel, and batches in their
/// final form: one contiguous [B, ...] buffer a field. Training positions 0, 1, 2, ...
///
/// With job.data.bad_sample `skip` bad samples are counted, else the first ends the run with its error. Blocks;
/// starts and joins its own threads. Errors: those of SampleBuilder; data_loss (a bad sample), deadline_exceeded (no
/// batch in time).
Result<LoaderResult> run_loader(const std::shared_ptr<const Mixture>& mixture, const JobConfig& job,
                                const Tokenize& tokenize, const LoaderOptions& options);

}  // namespace troupe::workers
