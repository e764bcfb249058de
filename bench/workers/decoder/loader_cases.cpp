#include "bench/workers/decoder/loader_cases.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "bench/workers/decoder/loader_bench.h"
#include "data/mixture.h"
#include "data/sample/sample_builder.h"
#include "data/sampling/window.h"
#include "image/augmentation.h"

namespace troupe::bench {

namespace fs = std::filesystem;

namespace {

const char* const kViews[] = {"exterior_image_1_left", "exterior_image_2_left", "wrist_image_left"};

std::string droid_job(const std::string& dataset, bool jitter) {
  std::string yaml = fmt::format(
      "version: 1\n"
      "extends: presets/dreamzero_tiny.yaml\n"
      "job: {{name: bench-loader, seed: 42}}\n"
      "model: {{text_encoder: {{max_length: 512}}}}\n"
      "data:\n"
      "  sets: [{{path: {}}}]\n"
      "  embodiment: oxe_droid\n"
      "  window: {{chunks: 4, macro_stride: 24, action_horizon: 24, video_offsets: [0, 3, 6, 9, 12, 15, 18, 21]}}\n"
      "  image: {{height: 176, width: 320, crop: 0.95, brightness: {}, contrast: {}, saturation: {}, hue: {}}}\n"
      "training: {{micro_batch_size: 4, global_batch_size: 4}}\n",
      dataset, jitter ? 0.3 : 0.0, jitter ? 0.4 : 0.0, jitter ? 0.5 : 0.0, jitter ? 0.08 : 0.0);
  return yaml;
}

void write_doubles(const fs::path& file, const std::vector<double>& values) {
  std::ofstream out(file, std::ios::binary);
  out.write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(values.size() * sizeof(double)));
  if (!out) throw std::runtime_error(file.string() + " cannot be written");
}

/// One line a sample: position, crop, jitter, rows.
void write_windows(const fs::path& file, const JobConfig& job, const Mixture& mixture, std::int64_t samples) {
  std::ofstream out(file);
  const Dataset& dataset = *mixture.datasets().front();
  for (std::int64_t n = 0; n < samples; ++n) {
    const auto position = static_cast<std::uint64_t>(n);
    const MixtureEntry entry = mixture.train_entry(static_cast<std::uint64_t>(job.job.seed), position);
    const Episode& episode = dataset.episodes()[entry.entry.episode];
    const SampleWindow window = sample_window(dataset.spec(), episode.row_labels(), entry.entry.anchor);
    const ImageAugmentation a = draw_augmentation(static_cast<std::uint64_t>(job.job.seed), position, job.data.image,
                                                  episode.view_height, episode.view_width);
    const ColorJitter& j = a.jitter;
    const std::vector<int> order(j.order.begin(), j.order.begin() + j.operations);
    out << fmt::format("{}\t{},{},{},{}\t{}\t{:.17g},{:.17g},{:.17g},{:.17g}\t{}\t{}\t{}\n", n, a.top, a.left, a.height,
                       a.width, fmt::join(order, ","), j.brightness_factor, j.contrast_factor, j.saturation_factor,
                       j.hue_shift, fmt::join(window.video, ","), fmt::join(window.states, ","),
                       fmt::join(window.actions, ","));
  }
}

/// What a state or action key is made of: part, column, slice, reference of a relative key, bounds of q99.
std::string norm_line(const char* part, const VectorKey& key, const VectorKey* reference, const FeatureStatistics& s) {
  return fmt::format(
      "{}\t{},{},{}\t{}\t{:.17g}\t{:.17g}\n", part, key.column, key.start, key.end,
      reference != nullptr ? fmt::format("{},{},{}", reference->column, reference->start, reference->end) : "",
      fmt::join(s.q01, ","), fmt::join(s.q99, ","));
}

void write_tables(const fs::path& folder, const Mixture& mixture) {
  const Dataset& dataset = *mixture.datasets().front();
  const EpisodeTable table = must(dataset.read_table(0));
  for (const auto& [name, column] : table.vectors) write_doubles(folder / ("column_" + name + ".f64"), column.values);
  std::ofstream norm(folder / "norm.tsv");
  const KeyStatistics& statistics = mixture.statistics(0);
  const SampleColumns& columns = dataset.columns();
  for (std::size_t i = 0; i < columns.state.size(); ++i)
    norm << norm_line("state", columns.state[i], nullptr, statistics.state[i]);
  for (std::size_t i = 0; i < columns.action.size(); ++i) {
    const ActionKey& key = columns.action[i];
    norm << norm_line("action", key.key, key.relative ? &key.reference : nullptr, statistics.action[i]);
  }
}

}  // namespace

void prepare_droid(const std::string& folder, const LoaderSources& sources, std::int64_t samples) {
  const fs::path root = fs::path(folder) / "droid-mini", golden = fs::path(sources.golden) / "data/droid-mini";
  fs::create_directories(root);
  for (const char* part : {"data", "meta"})
    fs::copy(golden / part, root / part, fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  for (const char* view : kViews) {
    const fs::path at = root / "videos/chunk-000" / fmt::format("observation.images.{}", view);
    fs::create_directories(at);
    fs::copy(fs::path(sources.shared_data) / "droid-views" / fmt::format("{}.mp4", view), at / "episode_000000.mp4",
             fs::copy_options::overwrite_existing);
  }
  for (const bool jitter : {false, true}) {
    const std::string kind = jitter ? "jitter" : "plain", file = folder + "/job_" + kind + ".yaml";
    std::ofstream(file) << droid_job(root.string(), jitter);
    const JobConfig job = load_case(file, {});
    const auto mixture = must(Mixture::open(job.data, job.model));
    write_windows(fs::path(folder) / ("windows_" + kind + ".tsv"), job, *mixture, samples);
    write_tables(folder, *mixture);
  }
}

void write_samples(const std::string& folder, std::int64_t samples) {
  for (const char* kind : {"plain", "jitter"}) {
    const JobConfig job = load_case(folder + "/job_" + kind + ".yaml", {});
    const auto mixture = must(Mixture::open(job.data, job.model));
    SampleBuilder builder = must(SampleBuilder::make(mixture, job, case_tokens()));
    const fs::path out = fs::path(folder) / (std::string("samples_") + kind);
    fs::create_directories(out);
    struct alignas(64) Line {
      std::byte bytes[64];
    };
    std::vector<Line> lines(static_cast<std::size_t>(builder.layout().bytes) / sizeof(Line));
    const std::span<std::byte> slot(lines.front().bytes, static_cast<std::size_t>(builder.layout().bytes));
    for (std::int64_t n = 0; n < samples; ++n) {
      must(builder.build(Split::train, n, slot));
      for (const TensorField& field : builder.layout().fields) {
        std::ofstream file(out / fmt::format("{}.{}", n, field.name), std::ios::binary);
        file.write(reinterpret_cast<const char*>(slot.data() + field.offset),
                   static_cast<std::streamsize>(field.bytes));
      }
    }
  }
}

}  // namespace troupe::bench
