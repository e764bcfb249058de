#include "workers/data/sample_builder.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/text/unicode.h"
#include "workers/data/image/augmentation.h"
#include "workers/data/language/language.h"
#include "workers/data/sampling/multi_anchor.h"
#include "workers/data/sampling/sampler.h"

namespace troupe {

namespace {

constexpr std::size_t kTablesKept = 16;

/// A decoder owned by the function that reads with it.
ReadClip own_decoder() {
  auto decoder = std::make_shared<ClipDecoder>();
  return [decoder](const std::string& path, std::span<const std::int64_t> frames, const ClipDecoder::RgbSink& sink,
                   ClipDecoder::Deadline deadline) { return decoder->read(path, frames, sink, deadline); };
}

}  // namespace

Result<SampleBuilder> SampleBuilder::make(std::shared_ptr<const Dataset> dataset, const JobConfig& job,
                                          Tokenize tokenize, ReadClip read_clip) {
  const auto views = static_cast<std::int64_t>(dataset->columns().views.size());
  TROUPE_ASSIGN(SampleLayout layout, sample_layout(job.data, job.model, views));
  TROUPE_ASSIGN(ImageChain chain, ImageChain::make(job.data.image, job.data.embodiment.layout, views));
  TROUPE_ASSIGN(const NormalizationMode mode, normalization_mode(job.data.embodiment.normalization));
  TROUPE_ASSIGN([[maybe_unused]] const std::string prompt, make_prompt(job.data.embodiment.prompt, "", views));
  if (!read_clip) read_clip = own_decoder();
  return SampleBuilder(std::move(dataset), job, std::move(layout), std::move(chain), mode, std::move(tokenize),
                       std::move(read_clip));
}

SampleBuilder::SampleBuilder(std::shared_ptr<const Dataset> dataset, const JobConfig& job, SampleLayout layout,
                             ImageChain chain, NormalizationMode mode, Tokenize tokenize, ReadClip read_clip)
    : dataset_(std::move(dataset)),
      data_(job.data),
      seed_(static_cast<std::uint64_t>(job.job.seed)),
      eval_samples_(job.eval.max_samples),
      layout_(std::move(layout)),
      chain_(std::move(chain)),
      vectors_(dataset_->columns(), mode, dataset_->statistics()),
      tokenize_(std::move(tokenize)),
      read_clip_(std::move(read_clip)) {}

Result<SampleEntry> SampleBuilder::locate(Stream stream, std::int64_t position) const {
  if (position < 0) return Error{Errc::invalid_argument, fmt::format("position {} is negative", position)};
  const auto q = static_cast<std::uint64_t>(position);
  if (stream == Stream::train) return dataset_->train().at(draw_sample(seed_, q, dataset_->train().size()).index);
  const std::uint64_t count = dataset_->eval_size(eval_samples_);
  if (q >= count)
    return Error{Errc::invalid_argument, fmt::format("evaluation window {} was asked for; there are {}", q, count)};
  return dataset_->eval_entry(q, eval_samples_);
}

Result<void> SampleBuilder::build(Stream stream, std::int64_t position, std::span<std::byte> slot) {
  TROUPE_CHECK(static_cast<std::int64_t>(slot.size()) == layout_.bytes, "a slot has the size of the layout");
  TROUPE_ASSIGN(const SampleEntry entry, locate(stream, position));
  auto built = build_entry(stream, position, entry, slot);
  if (built) return {};
  return built.error().with(fmt::format("{} sample {} (episode {}, anchor {})",
                                        stream == Stream::train ? "training" : "evaluation", position,
                                        dataset_->episodes()[entry.episode].index, entry.anchor));
}

Result<void> SampleBuilder::build_entry(Stream stream, std::int64_t position, const SampleEntry& entry,
                                        std::span<std::byte> slot) {
  const Episode& episode = dataset_->episodes()[entry.episode];
  TROUPE_ASSIGN(const auto table, this->table(entry.episode));
  if (table->rows != episode.rows) {
    return Error{Errc::data_loss, fmt::format("the table has {} rows now and had {} when the dataset was opened",
                                              table->rows, episode.rows)};
  }
  const std::vector<std::int64_t> labels = episode.row_labels();
  const SampleWindow window = multi_anchor_window(data_.window, labels, entry.anchor);
  TROUPE_CHECK(is_full(data_.window, window), "the index holds full windows only");

  // Everything after the pictures starts from zero, so that gaps and padding never carry old bytes.
  const TensorField& images = layout_.field("images");
  const auto rest = slot.subspan(static_cast<std::size_t>(images.offset + images.bytes));
  std::fill(rest.begin(), rest.end(), std::byte{0});

  const auto f32 = [&](const char* name) { return field_values<float>(slot, layout_.field(name)); };
  const auto u8 = [&](const char* name) { return field_values<std::uint8_t>(slot, layout_.field(name)); };
  const auto i64 = [&](const char* name) { return field_values<std::int64_t>(slot, layout_.field(name)); };
  vectors_.state(*table, window.states, static_cast<std::size_t>(layout_.field("state").shape[1]), f32("state"),
                 u8("state_mask"));
  vectors_.action(*table, window.actions, data_.window.action_horizon,
                  static_cast<std::size_t>(layout_.field("action").shape[1]), f32("action"), u8("action_mask"));
  i64("embodiment_id")[0] = data_.embodiment.id;
  i64("position")[0] = position;
  TROUPE_TRY(fill_text(dataset_->task_text(labels[static_cast<std::size_t>(entry.anchor)]), slot));

  const ImageAugmentation augmentation =
      stream == Stream::train ? draw_augmentation(seed_, static_cast<std::uint64_t>(position), data_.image,
                                                  episode.view_height, episode.view_width)
                              : centre_augmentation(data_.image, episode.view_height, episode.view_width);
  return fill_images(entry, window.video, augmentation, slot);
}

Result<void> SampleBuilder::fill_text(const std::string& task, std::span<std::byte> slot) {
  TROUPE_ASSIGN(const Instruction instruction, read_instruction(task));
  const auto views = static_cast<std::int64_t>(dataset_->columns().views.size());
  TROUPE_ASSIGN(std::string prompt, make_prompt(data_.embodiment.prompt, instruction.text, views));
  TROUPE_ASSIGN(prompt, clean_prompt(prompt));
  field_values<std::uint8_t>(slot, layout_.field("has_real_action"))[0] = instruction.lapa ? 0 : 1;
  return tokenize_(prompt, field_values<std::int64_t>(slot, layout_.field("text")),
                   field_values<std::int64_t>(slot, layout_.field("text_mask")));
}

Result<void> SampleBuilder::fill_images(const SampleEntry& entry, std::span<const std::int64_t> frames,
                                        const ImageAugmentation& augmentation, std::span<std::byte> slot) {
  const auto canvases = field_values<std::uint8_t>(slot, layout_.field("images"));
  const auto canvas_bytes = static_cast<std::size_t>(chain_.canvas_bytes());
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                             std::chrono::duration<double>(data_.decode_deadline_s));
  // View 0 first: it also blackens what no view covers.
  for (std::size_t view = 0; view < dataset_->columns().views.size(); ++view) {
    TROUPE_ASSIGN(const std::string path, dataset_->video_path(entry.episode, view));
    const auto sink = [&](std::size_t i, const Rgb8View& picture) -> Result<void> {
      auto placed = chain_.run_view(static_cast<std::int64_t>(view), picture, augmentation,
                                    canvases.subspan(i * canvas_bytes, canvas_bytes));
      if (!placed) return placed.error().with(fmt::format("{} frame {}", path, frames[i]));
      return {};
    };
    TROUPE_TRY(read_clip_(path, frames, sink, deadline));
  }
  return {};
}

Result<std::shared_ptr<const EpisodeTable>> SampleBuilder::table(std::size_t episode) {
  const auto it = std::find_if(tables_.begin(), tables_.end(), [&](const auto& kept) { return kept.first == episode; });
  if (it != tables_.end()) {
    tables_.splice(tables_.begin(), tables_, it);
    return tables_.front().second;
  }
  TROUPE_ASSIGN(EpisodeTable read, dataset_->read_table(episode));
  tables_.emplace_front(episode, std::make_shared<const EpisodeTable>(std::move(read)));
  if (tables_.size() > kTablesKept) tables_.pop_back();
  return tables_.front().second;
}

}  // namespace troupe
