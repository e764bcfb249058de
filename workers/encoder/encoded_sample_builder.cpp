#include "workers/encoder/encoded_sample_builder.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <cstdlib>
#include <utility>

#include "base/trace.h"
#include "data/sample/tokenize.h"
#include "data/sampling/window.h"
#include "model/wan/batch_keys.h"
#include "workers/encoder/encoded_sample.h"

namespace troupe::workers {

namespace {

namespace key = batch_keys;

constexpr std::size_t kSlotAlignment = 64;

/// A leaf that throws, with its exception as a Result.
template <class Work>
auto caught(Work work) -> Result<decltype(work())> {
  const Span span("encode");
  try {
    return work();
  } catch (const c10::Error& e) {
    return Error{Errc::internal, fmt::format("the frozen encoders: {}", e.what_without_backtrace())};
  }
}

/// ATen's threads are set for each thread that computes: one for ours, whatever thread serves a feed.
void compute_alone() {
  thread_local bool set = false;
  if (set) return;
  at::set_num_threads(1);
  set = true;
}

}  // namespace

std::string image_identity(const Mixture& mixture, const MixtureEntry& sample, const ImageConfig& image) {
  const Dataset& dataset = *mixture.datasets()[sample.dataset];
  const Episode& episode = dataset.episodes()[sample.entry.episode];
  const SampleWindow window = sample_window(dataset.spec(), episode.row_labels(), sample.entry.anchor);
  std::string views;
  for (const NamedColumn& view : dataset.columns().views) views += " " + view.column;
  return fmt::format("dataset {} episode {} rows {} views{} source {}x{} layout {} crop {} size {}x{}",
                     dataset.fingerprint(), episode.index, fmt::join(window.video, ","), views, episode.view_height,
                     episode.view_width, dataset.spec().embodiment.layout, image.crop, image.height, image.width);
}

void EncodedSampleBuilder::Free::operator()(std::byte* bytes) const { std::free(bytes); }

Result<EncodedSampleBuilder> EncodedSampleBuilder::make(std::shared_ptr<const Mixture> mixture, const JobConfig& job,
                                                        SampleBuilder builder, std::unique_ptr<CachedEncoder> encoder) {
  SampleLayout item = encoded_layout(builder.layout(), job);
  return EncodedSampleBuilder(std::move(mixture), job, std::move(builder), std::move(item), std::move(encoder));
}

EncodedSampleBuilder::EncodedSampleBuilder(std::shared_ptr<const Mixture> mixture, JobConfig job, SampleBuilder builder,
                                           SampleLayout item, std::unique_ptr<CachedEncoder> encoder)
    : mixture_(std::move(mixture)),
      job_(std::move(job)),
      builder_(std::move(builder)),
      item_(std::move(item)),
      encoder_(std::move(encoder)) {
  // sizes of layouts are multiples of the alignment
  sample_.reset(
      static_cast<std::byte*>(std::aligned_alloc(kSlotAlignment, static_cast<std::size_t>(builder_.layout().bytes))));
  TROUPE_CHECK(sample_ != nullptr, "memory for one sample");
}

Result<std::string> EncodedSampleBuilder::identity(Split split, std::int64_t position) const {
  const bool repeats = split == Split::eval || !job_.data.image.is_random();
  if (!repeats || encoder_->cache() == nullptr || job_.data.features.keep != "all") return std::string();
  TROUPE_ASSIGN(const MixtureEntry sample, builder_.locate(split, position));
  return image_identity(*mixture_, sample, job_.data.image);
}

Result<void> EncodedSampleBuilder::build_sample(Split split, std::int64_t position, bool with_images) {
  const auto bytes = static_cast<std::size_t>(builder_.layout().bytes);
  return builder_.build(split, position, std::span(sample_.get(), bytes), with_images);
}

at::Tensor EncodedSampleBuilder::ids() const {
  const TensorField &text = builder_.layout().field("text"), &mask = builder_.layout().field("text_mask");
  const auto options = at::TensorOptions().dtype(at::kLong);
  const at::Tensor all = at::from_blob(sample_.get() + text.offset, text.shape, options);
  const auto real = at::from_blob(sample_.get() + mask.offset, mask.shape, options).sum().item<std::int64_t>();
  return all.narrow(0, 0, real);
}

at::Tensor EncodedSampleBuilder::canvases() const {
  const TensorField& images = builder_.layout().field(key::kImages);
  return at::from_blob(sample_.get() + images.offset, images.shape, at::TensorOptions().dtype(at::kByte)).unsqueeze(0);
}

Result<EncodedSampleBuilder::Found> EncodedSampleBuilder::found_in_cache(Split split, std::int64_t position) {
  TROUPE_ASSIGN(const std::string identity, this->identity(split, position));
  TROUPE_TRY(build_sample(split, position, false));
  // what is not kept is not missed
  const bool images = job_.data.features.keep != "all" || encoder_->has_images(identity);
  return Found{.text = encoder_->has_text(ids()), .images = images};
}

Result<EncodedSampleBuilder::Found> EncodedSampleBuilder::build(Split split, std::int64_t position,
                                                                std::span<std::byte> slot) {
  TROUPE_CHECK(static_cast<std::int64_t>(slot.size()) == item_.bytes, "a slot has the size of the layout");
  compute_alone();
  TROUPE_ASSIGN(const std::string identity, this->identity(split, position));
  TROUPE_ASSIGN(auto images, caught([&] { return encoder_->find_images(identity); }));
  Found found{.text = false, .images = images.has_value()};
  TROUPE_TRY(build_sample(split, position, !found.images));
  found.text = encoder_->has_text(ids());
  TROUPE_ASSIGN(const at::Tensor text, caught([&] { return encoder_->encode_text(ids()); }));
  if (!images) {
    TROUPE_ASSIGN(images, caught([&] { return std::optional(encoder_->encode_images(canvases(), identity)); }));
  }
  TROUPE_TRY(write_encoded(builder_.layout(), {sample_.get(), static_cast<std::size_t>(builder_.layout().bytes)}, item_,
                           *images, text, slot));
  return found;
}

Result<EncodedSampleBuilder::Found> EncodedSampleBuilder::look(Split split, std::int64_t position) {
  return found_in_cache(split, position);
}

Result<EncodedSampleBuilder::Found> EncodedSampleBuilder::fill(Split split, std::int64_t position) {
  compute_alone();
  TROUPE_ASSIGN(const Found found, found_in_cache(split, position));
  if (!found.text) {
    TROUPE_ASSIGN([[maybe_unused]] const at::Tensor text, caught([&] { return encoder_->encode_text(ids()); }));
  }
  if (!found.images) {
    TROUPE_ASSIGN(const std::string identity, this->identity(split, position));
    TROUPE_TRY(build_sample(split, position, true));
    TROUPE_ASSIGN([[maybe_unused]] const auto images,
                  caught([&] { return encoder_->encode_images(canvases(), identity); }));
  }
  if (encoder_->store_error()) return *encoder_->store_error();
  return found;
}

Result<EncodedSampleBuilder> encoded_sample_builder(std::shared_ptr<const Mixture> data, const JobConfig& job,
                                                    std::unique_ptr<CachedEncoder> encoder) {
  TROUPE_ASSIGN(Tokenize tokenize, make_tokenize(job.model.text_encoder));
  TROUPE_ASSIGN(SampleBuilder builder, SampleBuilder::make(data, job, std::move(tokenize)));
  return EncodedSampleBuilder::make(std::move(data), job, std::move(builder), std::move(encoder));
}

}  // namespace troupe::workers
