#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "comm/channel/channel.h"
#include "configs/data_config.h"
#include "data/sample/sample.h"
#include "data/sampling/mixture_order.h"
#include "data/sampling/split.h"
#include "model/policy/policy_shape.h"

namespace troupe::workers {

class RecordedSet;

/// One demonstration as a feeder sends it: state f32 [D], action f32 [K,A], counts u8 [K] (1: that action exists),
/// position i64 [1].
SampleLayout demonstration_layout(const PolicyShape& shape);

/// States and actions of LeRobot datasets (v2.0, v2.1, v3.0) as samples for behaviour cloning: column
/// `observation.state` [D] and the K actions of column `action` [A] from the same row on. Every row of an episode
/// begins a sample; actions past its end repeat the last one and do not count. Cameras and all other columns are not
/// read. Everything is in memory: 4 (D + A) bytes a row.
///
/// Training draws dataset, episode and row as a mixture does (MixtureOrder over data.sets' weights, draw_sample in
/// each): position q is the same sample everywhere. Held-out samples are those of data.eval_episodes, spread evenly.
/// Immutable, thread-safe.
class Demonstrations {
 public:
  /// Reads all datasets of data.sets. Errors: those of RecordedSet.
  static Result<std::shared_ptr<const Demonstrations>> open(const DataConfig& data, const PolicyShape& shape);

  const SampleLayout& layout() const noexcept { return layout_; }
  /// Rows that begin a training sample, over all datasets.
  std::int64_t train_size() const noexcept;
  /// Held-out samples when at most `max_samples` are wanted.
  std::int64_t eval_size(std::int64_t max_samples) const noexcept;
  /// 32 hex digits over the values, where episodes begin, which are held out, and the shares: equal fingerprints mean
  /// that position q is the same sample.
  const std::string& fingerprint() const noexcept { return fingerprint_; }
  /// Folders of the datasets, in the order of data.sets.
  std::vector<std::string> roots() const;
  std::int64_t resident_bytes() const noexcept;

  /// Fills `slot`, whose size is layout().bytes. `max_eval` is eval.max_samples, which spreads the held-out ones.
  /// Errors: invalid_argument (a negative position, a held-out position past the last).
  Result<void> build(Split split, std::int64_t position, std::uint64_t seed, std::int64_t max_eval,
                     std::span<std::byte> slot) const;

 private:
  /// A row that begins a sample, and the row past its episode's end.
  struct Anchor {
    std::int64_t row = 0, end = 0;
  };
  struct Source {
    std::string root;
    /// [rows,D], [rows,A].
    std::vector<float> states, actions;
    std::vector<Anchor> train, eval;
  };
  explicit Demonstrations(const PolicyShape& shape);
  Result<void> add(const RecordedSet& set);
  Result<void> finish(const DataConfig& data);
  void write(const Source& source, const Anchor& anchor, std::int64_t position, std::span<std::byte> slot) const;

  const std::int64_t state_dim_, action_dim_, chunk_;
  const SampleLayout layout_;
  std::vector<Source> sources_;
  MixtureOrder order_;
  std::string fingerprint_;
};

}  // namespace troupe::workers
