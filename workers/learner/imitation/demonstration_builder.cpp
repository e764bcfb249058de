#include "workers/learner/imitation/demonstration_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "base/seconds.h"
#include "data/video/nvdec.h"
#include "image/augmentation.h"
#include "model/loss/rl_keys.h"

namespace troupe::workers {

namespace {

/// What makes a picture of the policy's size of a frame, or of such a picture.
ImageConfig chain_config(const PolicyShape::Image& image, const PictureJitterConfig& ranges = {}) {
  return {.height = image.height,
          .width = image.width,
          .crop = 1,
          .brightness = ranges.brightness,
          .contrast = ranges.contrast,
          .saturation = ranges.saturation,
          .hue = ranges.hue};
}

}  // namespace

Result<DemonstrationBuilder> DemonstrationBuilder::make(std::shared_ptr<const Demonstrations> data,
                                                        const JobConfig& job) {
  if (!data->images().empty() && job.data.decoder.backend == "nvdec") TROUPE_TRY(check_nvdec());
  std::vector<ImageChain> chains, jitters;
  for (const PolicyShape::Image& image : data->images()) {
    for (auto* list : {&chains, &jitters}) {
      TROUPE_ASSIGN(ImageChain chain, ImageChain::make(chain_config(image), "single", 1));
      list->push_back(std::move(chain));
    }
  }
  return DemonstrationBuilder(std::move(data), job, std::move(chains), std::move(jitters));
}

DemonstrationBuilder::DemonstrationBuilder(std::shared_ptr<const Demonstrations> data, const JobConfig& job,
                                           std::vector<ImageChain> chains, std::vector<ImageChain> jitters)
    : data_(std::move(data)),
      seed_(static_cast<std::uint64_t>(job.job.seed)),
      max_eval_(job.eval.max_samples),
      deadline_(to_milliseconds(job.data.decode_deadline)),
      ranges_(job.data.demonstration_jitter),
      keeps_(kept_bytes(*data_, job) > 0),
      chains_(std::move(chains)),
      jitters_(std::move(jitters)),
      reader_(std::make_unique<ImageReader>(decoder_options(job.data.decoder))) {}

std::int64_t DemonstrationBuilder::kept_bytes(const Demonstrations& data, const JobConfig& job) {
  const std::int64_t bytes = data.image_bytes();
  return bytes <= decoder_options(job.data.decoder).shared_frame_bytes ? bytes : 0;
}

Result<void> DemonstrationBuilder::build(Split split, std::int64_t position, std::span<std::byte> slot) {
  TROUPE_ASSIGN(const DemonstrationRow at, data_->build(split, position, seed_, max_eval_, slot));
  const auto deadline = std::chrono::steady_clock::now() + deadline_;
  for (std::size_t image = 0; image < data_->images().size(); ++image) {
    const auto field = layout().field(rl_keys::kImagePrefix + data_->images()[image].name);
    const std::span<std::uint8_t> picture = field_values<std::uint8_t>(slot, field);
    auto written = write_image(at, image, picture, deadline);
    if (written && split == Split::train && ranges_.is_on()) written = jitter(position, image, picture);
    if (!written) {
      return written.error().with(
          fmt::format("{} sample {}", split == Split::train ? "training" : "evaluation", position));
    }
  }
  return {};
}

Result<void> DemonstrationBuilder::write_image(const DemonstrationRow& at, std::size_t image,
                                               std::span<std::uint8_t> out, Clock::time_point deadline) {
  if (!keeps_) return decode(at, image, std::array{at.row}, out, deadline);
  const std::int64_t part = at.row / kPartRows, first = part * kPartRows;
  const std::tuple key{at.set, at.episode, image, part};
  auto found = kept_.find(key);
  if (found == kept_.end()) {
    std::vector<std::int64_t> rows(static_cast<std::size_t>(std::min(kPartRows, data_->length(at) - first)));
    std::iota(rows.begin(), rows.end(), first);
    std::vector<std::uint8_t> pictures(rows.size() * out.size());
    TROUPE_TRY(decode(at, image, rows, pictures, deadline));
    found = kept_.emplace(key, std::move(pictures)).first;
  }
  std::copy_n(found->second.begin() + static_cast<std::ptrdiff_t>(out.size()) * (at.row - first), out.size(),
              out.begin());
  return {};
}

Result<void> DemonstrationBuilder::decode(const DemonstrationRow& at, std::size_t image,
                                          std::span<const std::int64_t> rows, std::span<std::uint8_t> out,
                                          Clock::time_point deadline) {
  const ImageConfig config = chain_config(data_->images()[image]);
  const std::size_t bytes = out.size() / rows.size();
  const auto place = [&](std::size_t i, const auto& frame) {
    return chains_[image].run_view(0, frame, centre_augmentation(config, frame.height, frame.width),
                                   out.subspan(i * bytes, bytes));
  };
  return reader_->read(data_->frames(at, image), rows, {}, {.yuv = place, .rgb = place}, deadline);
}

Result<void> DemonstrationBuilder::jitter(std::int64_t position, std::size_t image, std::span<std::uint8_t> picture) {
  const PolicyShape::Image& size = data_->images()[image];
  plain_.assign(picture.begin(), picture.end());
  const Rgb8View view{plain_.data(), size.height, size.width, static_cast<std::ptrdiff_t>(3 * size.width)};
  const ImageAugmentation drawn = draw_augmentation(seed_, static_cast<std::uint64_t>(position),
                                                    chain_config(size, ranges_), size.height, size.width);
  return jitters_[image].run_view(0, view, drawn, picture);
}

}  // namespace troupe::workers
