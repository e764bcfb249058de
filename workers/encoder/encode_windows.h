#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

#include "base/result.h"
#include "configs/job_config.h"
#include "data/mixture.h"
#include "workers/encoder/feature_cache.h"

namespace troupe::workers {

/// What came of a job's windows so far.
struct WindowCounts {
  /// All there are to work through; worked through.
  std::int64_t total = 0, windows = 0;
  /// Of those: whose features were in the cache already, by kind and all of them.
  std::int64_t text_there = 0, images_there = 0, all_there = 0;
  /// Left out, as data.bad_sample skip allows.
  std::int64_t bad = 0;
  /// Since the first window.
  double seconds = 0;
};

/// How encode_windows works and what it tells. All three functions must be set.
struct EncodeWindowsOptions {
  /// Only looks which features are there: nothing is decoded, computed or stored, and no weights are kept.
  bool check = false;
  /// At most; 0: all.
  std::int64_t max_samples = 0;
  /// Asked before every window, by several threads: whether to end early.
  std::function<bool()> stopped;
  /// A bad window was left out. Called by one thread at a time.
  std::function<void(const Error&)> left_out;
  /// Called on the caller's thread every `progress_every` until the end, while the others wait for it.
  std::function<void(const WindowCounts&)> progress;
  std::chrono::milliseconds progress_every{10'000};
};

/// Puts the features of a job's training windows, each once, and of its evaluation windows into `cache`, on every core.
/// What is there is not computed again, so that a call that was ended early is continued by the next. Errors: those of
/// FrozenEncoders::load, encoded_sample_builder and EncodedSampleBuilder::fill.
Result<WindowCounts> encode_windows(const JobConfig& job, const std::shared_ptr<const Mixture>& data,
                                    const std::shared_ptr<FeatureCache>& cache, const EncodeWindowsOptions& options);

}  // namespace troupe::workers
