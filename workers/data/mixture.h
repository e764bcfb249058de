#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "configs/job_config.h"
#include "workers/data/dataset.h"
#include "workers/data/sampling/mixture_order.h"

namespace troupe {

/// One sample of a mixture before its data are read.
struct MixtureEntry {
  std::size_t dataset = 0;  ///< place in Mixture::datasets()
  SampleEntry entry;
  std::uint64_t epoch = 0;  ///< of that dataset
};

/// The datasets of a job and the order of their samples. One dataset is a mixture of one. The same files and configuration
/// give the same object everywhere. Immutable: any thread.
class Mixture {
 public:
  /// Opens every entry of data.sets. Errors: those of Dataset::open, in front of them the entry; invalid_argument when the
  /// datasets cannot share one batch (number of views or canvas, dimensions).
  static Result<std::shared_ptr<const Mixture>> open(const DataConfig& data, const ModelConfig& model,
                                                     const DatasetOptions& options = {});
  /// A mixture of one open dataset, for tools and tests.
  static std::shared_ptr<const Mixture> of(std::shared_ptr<const Dataset> dataset, const DataConfig& data);

  const std::vector<std::shared_ptr<const Dataset>>& datasets() const { return datasets_; }
  /// Share of each dataset, summing to 1, as mixture_order realises it.
  const std::vector<double>& shares() const { return shares_; }

  /// Training samples of all datasets together.
  std::uint64_t train_size() const;
  /// The sample at global position q: a pure function of (mixture, seed, q).
  MixtureEntry train_entry(std::uint64_t seed, std::uint64_t position) const;
  /// Windows evaluated when at most `max_samples` are wanted: spread evenly over the held-out windows of all datasets.
  std::uint64_t eval_size(std::int64_t max_samples) const;
  MixtureEntry eval_entry(std::uint64_t i, std::int64_t max_samples) const;

  /// Over the datasets' fingerprints, shares and what orders samples. A mixture of one with a full shuffle has its dataset's.
  const std::string& fingerprint() const { return fingerprint_; }
  /// GEAR's experiment metadata, one entry a tag; datasets of one tag are merged (data.md 2.4).
  const std::string& metadata_json() const { return metadata_json_; }
  std::vector<DatasetProblem> problems() const;
  std::vector<DatasetProblem> warnings() const;
  std::int64_t skipped_episodes() const;

 private:
  Mixture() = default;
  std::vector<std::shared_ptr<const Dataset>> datasets_;
  std::vector<double> shares_;
  MixtureOrder order_;
  std::int64_t locality_block_ = 1, shuffle_buffer_ = 256;
  std::string fingerprint_, metadata_json_;
};

}  // namespace troupe
