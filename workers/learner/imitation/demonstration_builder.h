#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <tuple>
#include <vector>

#include "base/result.h"
#include "configs/job_config.h"
#include "data/sample/image_reader.h"
#include "data/sampling/split.h"
#include "image/image_chain.h"
#include "workers/learner/imitation/demonstrations.h"

namespace troupe::workers {

/// Makes the samples of Demonstrations, pictures included. Frames come from the reader that decodes DreamZero's
/// (data/sample/image_reader.h) and are resized as those are, without crop, to the size that the policy looks at. Where
/// the pictures of all rows fit in data.decoder.shared_frames_gib, each row is decoded once, with its neighbours, and
/// its picture is kept; else every sample decodes its own frames. The bytes are the same either way.
///
/// With data.demonstration_jitter the colours of a training sample's resized pictures are then jittered, those of all
/// cameras alike, by draw_augmentation (image/augmentation.h) of the job's seed and the sample's position: who
/// builds the sample makes no difference. Held-out samples are not jittered.
/// Not thread-safe: one thread, one builder.
class DemonstrationBuilder {
 public:
  /// Errors: invalid_argument (data.decoder.backend nvdec on a machine without it); those of ImageChain::make.
  static Result<DemonstrationBuilder> make(std::shared_ptr<const Demonstrations> data, const JobConfig& job);

  const SampleLayout& layout() const noexcept { return data_->layout(); }
  /// Bytes of pictures that a builder of this job comes to keep.
  static std::int64_t kept_bytes(const Demonstrations& data, const JobConfig& job);

  /// Fills `slot`, whose size is layout().bytes. Errors: those of Demonstrations::build; those of ImageReader::read and
  /// ImageChain::run_view, with the sample's position; deadline_exceeded after data.decode_deadline_s.
  Result<void> build(Split split, std::int64_t position, std::span<std::byte> slot);

 private:
  DemonstrationBuilder(std::shared_ptr<const Demonstrations> data, const JobConfig& job, std::vector<ImageChain> chains,
                       std::vector<ImageChain> jitters);
  using Clock = std::chrono::steady_clock;
  Result<void> write_image(const DemonstrationRow& at, std::size_t image, std::span<std::uint8_t> out,
                           Clock::time_point deadline);
  /// Pictures of `rows` of an episode, one after the other.
  Result<void> decode(const DemonstrationRow& at, std::size_t image, std::span<const std::int64_t> rows,
                      std::span<std::uint8_t> out, Clock::time_point deadline);
  /// In place.
  Result<void> jitter(std::int64_t position, std::size_t image, std::span<std::uint8_t> picture);

  std::shared_ptr<const Demonstrations> data_;
  std::uint64_t seed_;
  std::int64_t max_eval_;
  std::chrono::milliseconds deadline_;
  PictureJitterConfig ranges_;
  bool keeps_;
  /// One of each image, from frames; and from pictures to pictures of the same size.
  std::vector<ImageChain> chains_, jitters_;
  /// What jitter() reads.
  std::vector<std::uint8_t> plain_;
  std::unique_ptr<ImageReader> reader_;
  /// Rows of an episode that are decoded together and kept.
  static constexpr std::int64_t kPartRows = 256;
  /// By set, episode, image and part: pictures of kPartRows rows of the episode, fewer in its last part.
  std::map<std::tuple<std::size_t, std::size_t, std::size_t, std::int64_t>, std::vector<std::uint8_t>> kept_;
};

}  // namespace troupe::workers
