#include "data/sample/sample_builder.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/stopwatch.h"
#include "base/trace.h"
#include "data/language/instruction_choice.h"
#include "data/language/language.h"
#include "data/language/unicode.h"
#include "data/sampling/window.h"
#include "data/video/nvdec.h"
#include "image/augmentation.h"

namespace troupe::data {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kTablesKept = 16;

/// Adds the time of its life to a stage.
class StageTimer {
 public:
  StageTimer(double& stage, std::string_view name) : stage_(stage), span_(name) {}
  ~StageTimer() { stage_ += seconds_since(start_); }
  StageTimer(const StageTimer&) = delete;
  StageTimer& operator=(const StageTimer&) = delete;

 private:
  double& stage_;
  const Span span_;
  Clock::time_point start_ = Clock::now();
};

/// Asks the index of every dataset for the packets of a file.
FindPacketTable find_in(std::shared_ptr<const Mixture> mixture) {
  return [mixture = std::move(mixture)](const std::string& path,
                                        const FileIdentity& identity) -> std::shared_ptr<const PacketTable> {
    for (const auto& dataset : mixture->datasets()) {
      if (auto table = dataset->packet_table(path, identity)) return table;
    }
    return nullptr;
  };
}

}  // namespace

Result<SampleBuilder> SampleBuilder::make(std::shared_ptr<const Mixture> mixture, const JobConfig& job,
                                          Tokenize tokenize, ReadClip read_clip) {
  // here, and not as a fault of every clip
  if (job.data.decoder.backend == "nvdec" && !read_clip) TROUPE_TRY(check_nvdec());
  DataConfig first = job.data;  // all canvases of a mixture have one size
  first.embodiment = mixture->datasets().front()->spec().embodiment;
  TROUPE_ASSIGN(
      SampleLayout layout,
      sample_layout(first, job.model, static_cast<std::int64_t>(mixture->datasets().front()->columns().views.size())));
  std::vector<Member> members;
  for (std::size_t i = 0; i < mixture->datasets().size(); ++i) {
    const auto& dataset = mixture->datasets()[i];
    const EmbodimentConfig& embodiment = dataset->spec().embodiment;
    const auto views = static_cast<std::int64_t>(dataset->columns().views.size());
    TROUPE_ASSIGN(ImageChain chain, ImageChain::make(job.data.image, embodiment.layout, views));
    TROUPE_ASSIGN(const NormalizationMode mode, normalization_mode(embodiment.normalization));
    TROUPE_ASSIGN([[maybe_unused]] const std::string prompt, make_prompt(embodiment.prompt, "", views));
    members.push_back({.dataset = dataset,
                       .chain = std::move(chain),
                       .vectors = StateActionTransform<float>(dataset->columns(), mode, mixture->statistics(i))});
  }
  return SampleBuilder(std::move(mixture), job, std::move(layout), std::move(members), std::move(tokenize),
                       std::move(read_clip));
}

SampleBuilder::SampleBuilder(std::shared_ptr<const Mixture> mixture, const JobConfig& job, SampleLayout layout,
                             std::vector<Member> members, Tokenize tokenize, ReadClip read_clip)
    : mixture_(std::move(mixture)),
      data_(job.data),
      seed_(static_cast<std::uint64_t>(job.job.seed)),
      eval_samples_(job.eval.max_samples),
      layout_(std::move(layout)),
      members_(std::move(members)),
      tokenize_(std::move(tokenize)),
      image_reader_(
          std::make_unique<ImageReader>(decoder_options(data_.decoder, find_in(mixture_)), std::move(read_clip))) {}

Result<MixtureEntry> SampleBuilder::locate(Split split, std::int64_t position) const {
  if (position < 0) return invalid_argument(fmt::format("position {} is negative", position));
  const auto q = static_cast<std::uint64_t>(position);
  if (split == Split::train) return mixture_->train_entry(seed_, q);
  const std::uint64_t count = mixture_->eval_size(eval_samples_);
  if (q >= count) return invalid_argument(fmt::format("evaluation window {} was asked for; there are {}", q, count));
  return mixture_->eval_entry(q, eval_samples_);
}

Result<void> SampleBuilder::build(Split split, std::int64_t position, std::span<std::byte> slot, bool with_images) {
  TROUPE_CHECK(static_cast<std::int64_t>(slot.size()) == layout_.bytes, "a slot has the size of the layout");
  TROUPE_ASSIGN(const MixtureEntry at, locate(split, position));
  auto built = build_entry({split, position, at, slot, with_images});
  if (built) return {};
  const Dataset& dataset = *members_[at.dataset].dataset;
  const std::string of = members_.size() == 1 ? std::string() : dataset.root() + ", ";
  return built.error().with(fmt::format("{} sample {} ({}episode {}, anchor {})",
                                        split == Split::train ? "training" : "evaluation", position, of,
                                        dataset.episodes()[at.entry.episode].index, at.entry.anchor));
}

Result<void> SampleBuilder::build_entry(const Job& job) {
  const Member& member = members_[job.at.dataset];
  const DatasetSpec& spec = member.dataset->spec();
  const Episode& episode = member.dataset->episodes()[job.at.entry.episode];
  TROUPE_ASSIGN(const auto table, this->table(job.at.dataset, job.at.entry.episode));
  if (table->rows != episode.rows) {
    return Error{Errc::data_loss, fmt::format("the table has {} rows now and had {} when the dataset was opened",
                                              table->rows, episode.rows)};
  }
  SampleWindow window;
  std::int64_t label = 0;
  {
    const StageTimer timer(own_.table, "read table");
    const std::vector<std::int64_t> labels = episode.row_labels();
    window = sample_window(spec, labels, job.at.entry.anchor);
    TROUPE_CHECK(is_full(spec, window), "the index holds full windows only");
    label = labels[static_cast<std::size_t>(job.at.entry.anchor)];

    // Everything after the frames starts from zero, so that gaps and padding never carry old bytes.
    const TensorField& images = layout_.field("images");
    const auto rest = job.slot.subspan(static_cast<std::size_t>(images.offset + images.bytes));
    std::fill(rest.begin(), rest.end(), std::byte{0});
    const auto f32 = [&](const char* name) { return field_values<float>(job.slot, layout_.field(name)); };
    const auto u8 = [&](const char* name) { return field_values<std::uint8_t>(job.slot, layout_.field(name)); };
    member.vectors.state(*table, window.states, static_cast<std::size_t>(layout_.field("state").shape[1]), f32("state"),
                         u8("state_mask"));
    member.vectors.action(*table, window.actions, spec.window.action_horizon,
                          static_cast<std::size_t>(layout_.field("action").shape[1]), f32("action"), u8("action_mask"));
    field_values<std::int64_t>(job.slot, layout_.field("embodiment_id"))[0] = spec.embodiment.id;
    field_values<std::int64_t>(job.slot, layout_.field("position"))[0] = job.position;
  }
  TROUPE_TRY(fill_text(job, *table, label));
  return job.with_images ? fill_images(job, window.video) : Result<void>();
}

Result<void> SampleBuilder::fill_text(const Job& job, const EpisodeTable& table, std::int64_t label) {
  const StageTimer timer(own_.text, "text");
  Member& member = members_[job.at.dataset];
  const SampleColumns& columns = member.dataset->columns();
  member.texts.assign(1, member.dataset->task_text(label));
  for (const std::string& column : columns.paraphrase_columns) {
    member.texts.push_back(
        member.dataset->task_text(table.integers.at(column)[static_cast<std::size_t>(job.at.entry.anchor)]));
  }
  const std::string& chosen = job.split == Split::train ? draw_instruction(data_.language, member.texts, seed_,
                                                                           static_cast<std::uint64_t>(job.position))
                                                        : first_instruction(data_.language, member.texts);
  TROUPE_ASSIGN(const Instruction instruction, read_instruction(chosen, data_.language.formalize));
  const auto views = static_cast<std::int64_t>(columns.views.size());
  TROUPE_ASSIGN(std::string prompt, make_prompt(member.dataset->spec().embodiment.prompt, instruction.text, views));
  TROUPE_ASSIGN(prompt, clean_prompt(prompt));
  field_values<std::uint8_t>(job.slot, layout_.field("has_real_action"))[0] = instruction.lapa ? 0 : 1;
  return tokenize_(prompt, field_values<std::int64_t>(job.slot, layout_.field("text")),
                   field_values<std::int64_t>(job.slot, layout_.field("text_mask")));
}

Result<void> SampleBuilder::fill_images(const Job& job, std::span<const std::int64_t> rows) {
  Member& member = members_[job.at.dataset];
  const Dataset& dataset = *member.dataset;
  const Episode& episode = dataset.episodes()[job.at.entry.episode];
  const bool training = job.split == Split::train;
  const ImageAugmentation augmentation =
      training ? draw_augmentation(seed_, static_cast<std::uint64_t>(job.position), data_.image, episode.view_height,
                                   episode.view_width)
               : centre_augmentation(data_.image, episode.view_height, episode.view_width);
  std::vector<std::int64_t> shared;
  if (training) shared = block_rows(dataset, job.at.index, mixture_->locality());
  const auto canvases = field_values<std::uint8_t>(job.slot, layout_.field("images"));
  const auto canvas_bytes = static_cast<std::size_t>(member.chain.canvas_bytes());
  const auto deadline = Clock::now() + to_milliseconds(data_.decode_deadline);
  // View 0 first: it also blackens what no view covers.
  for (std::size_t view = 0; view < dataset.columns().views.size(); ++view) {
    TROUPE_ASSIGN(const ImageSource source, dataset.images(job.at.entry.episode, view));
    const auto place = [&](std::size_t i, const auto& image) -> Result<void> {
      const StageTimer timer(own_.transform, "transform");
      auto placed = member.chain.run_view(static_cast<std::int64_t>(view), image, augmentation,
                                          canvases.subspan(i * canvas_bytes, canvas_bytes));
      if (!placed) return placed.error().with(fmt::format("{} frame {}", source.path, source.first + rows[i]));
      return {};
    };
    TROUPE_TRY(image_reader_->read(source, rows, shared, {.yuv = place, .rgb = place}, deadline));
  }
  return {};
}

Result<std::shared_ptr<const EpisodeTable>> SampleBuilder::table(std::size_t dataset, std::size_t episode) {
  const auto it = std::find_if(tables_.begin(), tables_.end(), [&](const KeptTable& kept) {
    return kept.dataset == dataset && kept.episode == episode;
  });
  if (it != tables_.end()) {
    tables_.splice(tables_.begin(), tables_, it);
    return tables_.front().table;
  }
  const StageTimer timer(own_.table, "read table");
  TROUPE_ASSIGN(EpisodeTable read, members_[dataset].dataset->read_table(episode));
  tables_.push_front({dataset, episode, std::make_shared<const EpisodeTable>(std::move(read))});
  if (tables_.size() > kTablesKept) tables_.pop_back();
  return tables_.front().table;
}

StageTimes SampleBuilder::stage_times() const {
  StageTimes all = image_reader_->times();
  return all += own_;
}

}  // namespace troupe::data
