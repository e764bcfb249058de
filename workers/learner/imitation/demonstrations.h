#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/result.h"
#include "comm/channel/channel.h"
#include "configs/job_config.h"
#include "data/lerobot/lerobot_dataset.h"
#include "data/lerobot/parquet_table.h"
#include "data/sample/sample.h"
#include "data/sampling/mixture_order.h"
#include "data/sampling/split.h"
#include "model/policy/policy_shape.h"

namespace troupe::workers {

class RecordedSet;

/// The cameras whose pictures samples hold: those that the actor looks at, none without policy.vision.
std::vector<PolicyShape::Image> demonstrated_images(const PolicyConfig& policy, const PolicyShape& shape);

/// One demonstration as a feeder sends it: state f32 [D], what the actor reads of the vectors, action f32 [K,A], counts
/// u8 [K] (1: that action exists), position i64 [1], u8 [H,W,C] of each demonstrated image, under
/// rl_keys::kImagePrefix and its name, and u8 [bytes] of each of shape.texts, under rl_keys::kTextPrefix and its name.
SampleLayout demonstration_layout(const PolicyConfig& policy, const PolicyShape& shape);

/// The row of an episode at which a sample begins.
struct DemonstrationRow {
  /// Index into data.sets, and into that dataset's episodes that are used.
  std::size_t set = 0, episode = 0;
  std::int64_t row = 0;
};

/// States and actions of LeRobot datasets (v2.0, v2.1, v3.0) as samples for behaviour cloning: column
/// `observation.state` [D], behind which may stand what critics alone read, and the K actions of column `action` [A]
/// from the same row on. Every row of an episode begins a sample; actions past its end repeat the last one and do not
/// count. Where the policy looks at pictures, that of camera "rgb.front" is the frame of `observation.images.front`;
/// DemonstrationBuilder reads it. A policy that is told a text is told the row's task. Other columns are not read.
/// States and actions are in memory: 4 (D + A) bytes a row, and 8 more where it is told a text.
///
/// Training draws dataset, episode and row as a mixture does (MixtureOrder over data.sets' weights, draw_sample in
/// each): position q is the same sample everywhere. Held-out samples are those of data.eval_episodes, spread evenly.
/// Immutable, thread-safe.
class Demonstrations {
 public:
  /// Reads all datasets of data.sets. Errors: those of RecordedSet; not_found (a file of pictures).
  static Result<std::shared_ptr<const Demonstrations>> open(const JobConfig& job, const PolicyShape& shape);

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
  const std::vector<PolicyShape::Image>& images() const noexcept { return images_; }
  /// Of the pictures of every row that is used, in the policy's size.
  std::int64_t image_bytes() const noexcept;
  /// Where the frames of images()[image] of an episode are, and how many.
  const ImageSource& frames(const DemonstrationRow& at, std::size_t image) const;
  std::int64_t length(const DemonstrationRow& at) const;

  /// Fills `slot`, whose size is layout().bytes, but for its pictures, which stay zero; returns which row they are of.
  /// `max_eval` is eval.max_samples, which spreads the held-out ones.
  /// Errors: invalid_argument (a negative position, a held-out position past the last).
  Result<DemonstrationRow> build(Split split, std::int64_t position, std::uint64_t seed, std::int64_t max_eval,
                                 std::span<std::byte> slot) const;

 private:
  /// A row that begins a sample, and the row past its episode's end.
  struct Anchor {
    std::int64_t row = 0, end = 0;
  };
  /// An episode that is used, and where its pictures are.
  struct Used {
    /// Of `states`.
    std::int64_t first_row = 0, length = 0;
    /// In the order of images_.
    std::vector<ImageSource> frames;
  };
  struct Source {
    std::string root;
    /// [rows,D], [rows,A].
    std::vector<float> states, actions;
    /// [rows] number of each one's task, and what a policy is told of it; empty where it is told nothing.
    std::vector<std::int64_t> tasks;
    std::map<std::int64_t, std::string> texts;
    std::vector<Anchor> train, eval;
    /// Ascending by first_row.
    std::vector<Used> episodes;
  };
  Demonstrations(const PolicyConfig& policy, const PolicyShape& shape);
  Result<void> add(const RecordedSet& set);
  /// The tasks of an episode's rows.
  static Result<void> add_texts(const RecordedSet& set, const EpisodeTable& table, Source& source);
  Result<void> finish(const DataConfig& data);
  Result<void> hash_images(Xxh3Stream& hash) const;
  DemonstrationRow write(std::size_t set, const Anchor& anchor, std::int64_t position, std::span<std::byte> slot) const;

  const std::int64_t state_dim_, action_dim_, chunk_;
  const std::vector<PolicyShape::Image> images_;
  const std::vector<PolicyShape::Text> texts_;
  const SampleLayout layout_;
  std::vector<Source> sources_;
  MixtureOrder order_;
  std::string fingerprint_;
};

}  // namespace troupe::workers
