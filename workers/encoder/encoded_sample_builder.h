#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "configs/job_config.h"
#include "data/mixture.h"
#include "data/sample/sample_builder.h"
#include "workers/encoder/cached_encoder.h"

namespace troupe::workers {

/// What the frames (canvases) of a sample are, in words, without decoding them: dataset, episode, rows, views, crop
/// and size. Only for samples whose frames are the same whenever they are drawn: those of evaluation, and those of
/// training without random crop and jitter.
std::string image_identity(const Mixture& mixture, const MixtureEntry& sample, const ImageConfig& image);

/// Makes the encoded sample of a position: what SampleBuilder makes, with features in the place of frames. Frames
/// whose features the cache has are not decoded. Computes on one thread, so that features do not depend on a
/// machine's cores. Not thread-safe: one thread at a time.
class EncodedSampleBuilder {
 public:
  /// What of a sample's features came from the cache, or is there.
  struct Found {
    bool text = false, images = false;
    bool all() const { return text && images; }
  };

  /// `builder` makes samples of `mixture`, in the layout that encoded_layout starts from.
  static Result<EncodedSampleBuilder> make(std::shared_ptr<const Mixture> mixture, const JobConfig& job,
                                           SampleBuilder builder, std::unique_ptr<CachedEncoder> encoder);

  const SampleLayout& layout() const { return item_; }
  const CachedEncoder& encoder() const { return *encoder_; }

  /// Fills `slot`, of the size of layout(). Errors: those of SampleBuilder::build; internal when an encoder throws.
  Result<Found> build(Split split, std::int64_t position, std::span<std::byte> slot);
  /// Which features of a sample the cache has; nothing is decoded or computed.
  Result<Found> look(Split split, std::int64_t position);
  /// Computes and stores what the cache lacks of data.features.keep; says what was there. Errors: those of build, and
  /// the first failure to store.
  Result<Found> fill(Split split, std::int64_t position);

 private:
  EncodedSampleBuilder(std::shared_ptr<const Mixture> mixture, JobConfig job, SampleBuilder builder, SampleLayout item,
                       std::unique_ptr<CachedEncoder> encoder);
  /// image_identity, or empty where frames are drawn at random.
  Result<std::string> identity(Split split, std::int64_t position) const;
  /// Builds into sample_; with `with_images` false, video is not decoded.
  Result<void> build_sample(Split split, std::int64_t position, bool with_images);
  /// Views of sample_: the real ids i64 [L].
  at::Tensor ids() const;
  /// u8 [1, T, H, W, 3].
  at::Tensor canvases() const;
  Result<Found> found_in_cache(Split split, std::int64_t position);

  std::shared_ptr<const Mixture> mixture_;
  JobConfig job_;
  SampleBuilder builder_;
  SampleLayout item_;
  std::unique_ptr<CachedEncoder> encoder_;
  struct Free {
    void operator()(std::byte* bytes) const;
  };
  // Slot of the builder's layout.
  std::unique_ptr<std::byte[], Free> sample_;
};

/// What makes a job's encoded samples: decode, tokenise, then the frozen networks or their cache. Not thread-safe.
/// Errors: those of make_tokenize, SampleBuilder::make and EncodedSampleBuilder::make.
Result<EncodedSampleBuilder> encoded_sample_builder(std::shared_ptr<const Mixture> data, const JobConfig& job,
                                                    std::unique_ptr<CachedEncoder> encoder);

}  // namespace troupe::workers
