#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "configs/job_config.h"
#include "data/dataset.h"
#include "data/sampling/block_order.h"
#include "data/sampling/mixture_order.h"

namespace troupe::data {

/// One sample of a mixture before its data are read.
struct MixtureEntry {
  std::size_t dataset = 0;  ///< place in Mixture::datasets()
  SampleEntry entry;
  std::uint64_t epoch = 0;  ///< of that dataset; 0 for evaluation
  std::uint64_t index = 0;  ///< in that dataset's train() or eval()
};

/// The datasets of a job and the order of their samples. One dataset is a mixture of one. The same files and
/// configuration give the same object everywhere. Immutable: any thread.
class Mixture {
 public:
  /// Opens every entry of data.sets. Errors: those of Dataset::open, in front of them the entry; invalid_argument when
  /// the datasets cannot share one batch (size of the canvas) or one normalisation (keys of datasets of one tag).
  static Result<std::shared_ptr<const Mixture>> open(const DataConfig& data, const ModelConfig& model,
                                                     const DatasetOptions& options = {});
  /// A mixture of one open dataset, for tools and tests.
  static std::shared_ptr<const Mixture> of(std::shared_ptr<const Dataset> dataset, const DataConfig& data);
  /// A mixture of open datasets, one per entry of data.sets. Errors: invalid_argument as open.
  static Result<std::shared_ptr<const Mixture>> of(std::vector<std::shared_ptr<const Dataset>> datasets,
                                                   const DataConfig& data);

  const std::vector<std::shared_ptr<const Dataset>>& datasets() const { return datasets_; }
  /// Share of each dataset, summing to 1, as mixture_order realises it.
  const std::vector<double>& shares() const { return shares_; }
  /// What normalises a dataset's samples: its own statistics, or those of all datasets of its tag together, which the
  /// metadata of a checkpoint carry.
  const KeyStatistics& statistics(std::size_t dataset) const { return statistics_[dataset]; }
  const Locality& locality() const { return locality_; }

  /// Training samples of all datasets together.
  std::uint64_t train_size() const;
  /// The sample at global position q: a pure function of (mixture, seed, q).
  MixtureEntry train_entry(std::uint64_t seed, std::uint64_t position) const;
  /// How many of the positions below q draw from a dataset, without counting them.
  std::uint64_t draws_before(std::uint64_t seed, std::size_t dataset, std::uint64_t position) const {
    return order_.count_before(seed, dataset, position);
  }
  /// Windows evaluated when at most `max_samples` are wanted: spread evenly over the held-out windows of all datasets.
  std::uint64_t eval_size(std::int64_t max_samples) const;
  /// Evaluation window i of eval_size(max_samples). Requires i < eval_size(max_samples).
  MixtureEntry eval_entry(std::uint64_t i, std::int64_t max_samples) const;

  /// Over the datasets' fingerprints, shares and what orders samples. A mixture of one with a full shuffle has its
  /// dataset's.
  const std::string& fingerprint() const { return fingerprint_; }
  /// GEAR's experiment metadata, one entry a tag; datasets of one tag are merged (merge_features).
  const std::string& metadata_json() const { return metadata_json_; }
  /// Of all datasets; with several, each text names its dataset.
  std::vector<DatasetProblem> problems() const;
  std::vector<DatasetProblem> warnings() const;
  std::int64_t skipped_episodes() const;

  /// What a checkpoint keeps of the data at global position q, as JSON: seed, position, fingerprint, locality and, of
  /// each dataset, root, tag, fingerprint, share, samples, how many were drawn and the dataset epoch of the next draw
  /// (docs/data.md).
  std::string state_json(std::uint64_t seed, std::uint64_t position) const;

 private:
  Mixture() = default;
  void set_order(const DataConfig& data);

  std::vector<std::shared_ptr<const Dataset>> datasets_;
  std::vector<double> shares_;
  std::vector<KeyStatistics> statistics_;
  MixtureOrder order_;
  Locality locality_;
  std::string fingerprint_, metadata_json_;
};

/// Video rows of the samples that are drawn together with training sample `index` of a dataset and lie in its episode:
/// what is decoded once for all of them. Ascending, each once; empty without locality. Pure.
std::vector<std::int64_t> block_rows(const Dataset& dataset, std::uint64_t index, const Locality& locality);

}  // namespace troupe::data
