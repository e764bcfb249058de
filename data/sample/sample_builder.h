#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "configs/job_config.h"
#include "data/mixture.h"
#include "data/sample/image_reader.h"
#include "data/sample/sample.h"
#include "data/sample/stage_times.h"
#include "data/sampling/split.h"
#include "image/image_chain.h"

namespace troupe::data {

/// Writes token ids and mask of a cleaned prompt (data/language/unicode.h), padded or truncated to their length.
using Tokenize =
    std::function<Result<void>(const std::string& prompt, std::span<std::int64_t> ids, std::span<std::int64_t> mask)>;

/// Makes the sample of a position of a stream (train: the endless order of the mixture; eval: the list of windows):
/// dataset, window, prompt, state and action, frames, written straight into a slot. The bytes are a pure function of
/// (mixture, configuration, seed, split, position), padding included. Not thread-safe: one thread, one builder. Keeps
/// the tables of the last 16 episodes, and what data.decoder says of files and frames.
class SampleBuilder {
 public:
  /// `tokenize` and `read_clip` are called on the thread that calls build(); an empty `read_clip` decodes videos
  /// itself.
  /// Errors: invalid_argument (a layout that does not take a dataset's views, an unknown normalisation or prompt).
  static Result<SampleBuilder> make(std::shared_ptr<const Mixture> mixture, const JobConfig& job, Tokenize tokenize,
                                    ReadClip read_clip = {});

  /// Where the fields of a slot lie: that of sample_layout for the mixture's embodiments.
  const SampleLayout& layout() const { return layout_; }

  /// Dataset, episode and anchor of a position. Errors: invalid_argument (a negative position, an evaluation position
  /// past the last window).
  Result<MixtureEntry> locate(Split split, std::int64_t position) const;

  /// Fills `slot`, whose size is layout().bytes and whose start is 64-byte aligned. Training draws instruction, crop
  /// and jitter from the seed and the position; evaluation takes the first instruction, the centre and no jitter.
  /// Errors: those of the table, the tokenizer and the decoder, in front of them the position, dataset, episode and
  /// anchor;
  ///         deadline_exceeded after data.decode_deadline_s.
  /// Without `with_images` the images keep the slot's bytes, and nothing is decoded. After an error the slot
  /// holds a part of the sample: it must not be used.
  Result<void> build(Split split, std::int64_t position, std::span<std::byte> slot, bool with_images = true);

  /// Call it on the builder's thread. Where the time of all build() calls went; `convert` and `collate` stay zero:
  /// conversion is a part of `transform`, batches are made elsewhere.
  StageTimes stage_times() const;

 private:
  /// A dataset and what its embodiment makes of a sample.
  /// One per dataset of the mixture, in its order.
  struct Member {
    std::shared_ptr<const Dataset> dataset;
    ImageChain chain;
    StateActionTransform<float> vectors;
    /// Candidates of the sample being built; kept for its memory.
    std::vector<std::string> texts{};
  };
  /// One call of build().
  struct Job {
    Split split;
    std::int64_t position;
    MixtureEntry at;
    std::span<std::byte> slot;
    bool with_images;
  };

  SampleBuilder(std::shared_ptr<const Mixture> mixture, const JobConfig& job, SampleLayout layout,
                std::vector<Member> members, Tokenize tokenize, ReadClip read_clip);

  Result<void> build_entry(const Job& job);
  Result<std::shared_ptr<const EpisodeTable>> table(std::size_t dataset, std::size_t episode);
  Result<void> fill_text(const Job& job, const EpisodeTable& table, std::int64_t label);
  Result<void> fill_images(const Job& job, std::span<const std::int64_t> rows);

  std::shared_ptr<const Mixture> mixture_;
  DataConfig data_;
  // Of the job: orders samples and draws instruction, crop and jitter.
  std::uint64_t seed_;
  std::int64_t eval_samples_;
  SampleLayout layout_;
  std::vector<Member> members_;
  Tokenize tokenize_;
  std::unique_ptr<ImageReader> image_reader_;
  // The stages table, text and transform; the reader counts the others.
  StageTimes own_;
  /// A table of the last 16 episodes; what was returned stays valid when it is dropped.
  struct KeptTable {
    std::size_t dataset, episode;
    std::shared_ptr<const EpisodeTable> table;
  };
  // Most recently used first.
  std::list<KeptTable> tables_;
};

}  // namespace troupe::data
