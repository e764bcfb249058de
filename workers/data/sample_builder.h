#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "base/result.h"
#include "comm/channel.h"
#include "configs/job_config.h"
#include "workers/data/video/clip_decoder.h"
#include "workers/data/dataset.h"
#include "workers/data/image/image_chain.h"
#include "workers/data/sample.h"

namespace troupe {

/// Writes token ids and mask of a cleaned prompt (model/text/unicode.h), padded or truncated to their length.
using Tokenize =
    std::function<Result<void>(const std::string& prompt, std::span<std::int64_t> ids, std::span<std::int64_t> mask)>;

/// Delivers chosen pictures of a video file, as ClipDecoder::read does.
using ReadClip = std::function<Result<void>(const std::string& path, std::span<const std::int64_t> frames,
                                            const ClipDecoder::RgbSink& sink, ClipDecoder::Deadline deadline)>;

/// Makes the sample of a position of a stream (train: the endless shuffled order; eval: the list of windows): sampler,
/// window, prompt, state and action, pictures, written straight into a slot. The bytes are a pure function of (dataset,
/// configuration, seed, stream, position), padding included. Not thread-safe: one thread, one builder. Keeps the tables
/// of the last 16 episodes.
class SampleBuilder {
 public:
  /// Errors: invalid_argument (a layout that does not take the dataset's views, an unknown normalisation or prompt).
  static Result<SampleBuilder> make(std::shared_ptr<const Dataset> dataset, const JobConfig& job, Tokenize tokenize,
                                    ReadClip read_clip = {});

  const SampleLayout& layout() const { return layout_; }

  /// Episode and anchor of a position. Errors: invalid_argument (a negative position, an evaluation position past
  /// the last window).
  Result<SampleEntry> locate(Stream stream, std::int64_t position) const;

  /// Fills `slot`, whose size is layout().bytes and whose start is 64-byte aligned. Training draws crop and jitter from
  /// the seed and the position; evaluation takes the centre and no jitter. Errors: those of the table, the tokenizer
  /// and the decoder, in front of them the position, episode and anchor;
  ///         deadline_exceeded after data.decode_deadline_s.
  Result<void> build(Stream stream, std::int64_t position, std::span<std::byte> slot);

 private:
  SampleBuilder(std::shared_ptr<const Dataset> dataset, const JobConfig& job, SampleLayout layout, ImageChain chain,
                NormalizationMode mode, Tokenize tokenize, ReadClip read_clip);

  Result<void> build_entry(Stream stream, std::int64_t position, const SampleEntry& entry, std::span<std::byte> slot);
  Result<std::shared_ptr<const EpisodeTable>> table(std::size_t episode);
  Result<void> fill_text(const std::string& task, std::span<std::byte> slot);
  Result<void> fill_images(const SampleEntry& entry, std::span<const std::int64_t> frames,
                           const ImageAugmentation& augmentation, std::span<std::byte> slot);

  std::shared_ptr<const Dataset> dataset_;
  DataConfig data_;
  std::uint64_t seed_;
  std::int64_t eval_samples_;
  SampleLayout layout_;
  ImageChain chain_;
  StateActionTransform<float> vectors_;
  Tokenize tokenize_;
  ReadClip read_clip_;
  std::list<std::pair<std::size_t, std::shared_ptr<const EpisodeTable>>> tables_;  // most recently used first
};

}  // namespace troupe
