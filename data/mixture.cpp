#include "data/mixture.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "data/mixture_statistics.h"
#include "data/sampling/mixture_weights.h"
#include "data/sampling/window.h"
#include "image/canvas.h"

namespace troupe::data {

namespace {

Result<CanvasLayout> canvas_of(const Dataset& dataset) {
  const DatasetSpec& spec = dataset.spec();
  return CanvasLayout::make(spec.embodiment.layout, static_cast<std::int64_t>(dataset.columns().views.size()),
                            spec.image.height, spec.image.width);
}

/// Samples of all datasets go into one batch, so their canvases have one size.
Result<void> check_canvases(const std::vector<std::shared_ptr<const Dataset>>& datasets) {
  TROUPE_ASSIGN(const CanvasLayout first, canvas_of(*datasets.front()));
  for (const auto& dataset : datasets) {
    TROUPE_ASSIGN(const CanvasLayout canvas, canvas_of(*dataset));
    if (canvas.height == first.height && canvas.width == first.width) continue;
    return invalid_argument(
        fmt::format("{} fills a canvas of {}x{} pixels (layout {}) and {} one of {}x{} (layout {}); samples of one "
                    "job have one size: change the views or layout of an embodiment",
                    datasets.front()->root(), first.height, first.width, datasets.front()->spec().embodiment.layout,
                    dataset->root(), canvas.height, canvas.width, dataset->spec().embodiment.layout));
  }
  return {};
}

std::vector<DatasetProblem> collect(const std::vector<std::shared_ptr<const Dataset>>& datasets,
                                    const std::vector<DatasetProblem>& (Dataset::*part)() const) {
  std::vector<DatasetProblem> all;
  for (const auto& dataset : datasets) {
    for (DatasetProblem problem : ((*dataset).*part)()) {
      if (datasets.size() > 1 && problem.text.find(dataset->root()) == std::string::npos)
        problem.text = dataset->root() + ": " + problem.text;
      all.push_back(std::move(problem));
    }
  }
  return all;
}

}  // namespace

void Mixture::set_order(const DataConfig& data) {
  std::vector<std::uint64_t> samples;
  for (const auto& dataset : datasets_) samples.push_back(dataset->train().size());
  order_ = MixtureOrder(mixture_weights(data, samples));
  for (std::size_t i = 0; i < datasets_.size(); ++i) shares_.push_back(order_.share(i));
  locality_ = {static_cast<std::uint64_t>(data.locality_block), static_cast<std::uint64_t>(data.shuffle_buffer)};
  if (datasets_.size() == 1 && locality_.block <= 1) {
    fingerprint_ = datasets_.front()->fingerprint();
    return;
  }
  std::string definition = "mixture 1\n";
  for (std::size_t i = 0; i < datasets_.size(); ++i)
    definition += fmt::format("{} {:.17g}\n", datasets_[i]->fingerprint(), shares_[i]);
  if (locality_.block > 1) definition += fmt::format("blocks {} {}\n", locality_.block, locality_.window());
  fingerprint_ = xxh3_128_hex(std::as_bytes(std::span(definition.data(), definition.size())));
}

std::shared_ptr<const Mixture> Mixture::of(std::shared_ptr<const Dataset> dataset, const DataConfig& data) {
  std::shared_ptr<Mixture> mixture(new Mixture());
  mixture->statistics_ = {dataset->statistics()};
  mixture->metadata_json_ = dataset->metadata_json();
  mixture->datasets_ = {std::move(dataset)};
  mixture->set_order(data);
  return mixture;
}

Result<std::shared_ptr<const Mixture>> Mixture::of(std::vector<std::shared_ptr<const Dataset>> datasets,
                                                   const DataConfig& data) {
  if (datasets.empty()) return invalid_argument("data.sets names no dataset");
  std::shared_ptr<Mixture> mixture(new Mixture());
  mixture->datasets_ = std::move(datasets);
  TROUPE_TRY(check_canvases(mixture->datasets_));
  mixture->set_order(data);
  TROUPE_ASSIGN(MixtureStatistics statistics, mixture_statistics(mixture->datasets_, mixture->shares_));
  mixture->statistics_ = std::move(statistics.of_dataset);
  mixture->metadata_json_ = std::move(statistics.metadata_json);
  return std::shared_ptr<const Mixture>(std::move(mixture));
}

Result<std::shared_ptr<const Mixture>> Mixture::open(const DataConfig& data, const ModelConfig& model,
                                                     const DatasetOptions& options) {
  std::vector<std::shared_ptr<const Dataset>> datasets;
  for (std::size_t i = 0; i < data.sets.size(); ++i) {
    const auto named = [&](const Error& error) {
      return data.sets.size() == 1 ? error : error.with(fmt::format("data.sets[{}]", i));
    };
    const auto spec = dataset_spec(data, model, i);
    if (!spec) return named(spec.error());
    auto dataset = Dataset::open(*spec, options);
    if (!dataset) return named(dataset.error());
    datasets.push_back(std::move(*dataset));
  }
  return of(std::move(datasets), data);
}

std::uint64_t Mixture::train_size() const {
  std::uint64_t size = 0;
  for (const auto& dataset : datasets_) size += dataset->train().size();
  return size;
}

MixtureEntry Mixture::train_entry(std::uint64_t seed, std::uint64_t position) const {
  const MixtureOrder::Draw draw = order_.draw(seed, position);
  const SampleIndex& samples = datasets_[draw.dataset]->train();
  const SampleDraw sample =
      draw_sample(MixtureOrder::inner_seed(seed, draw.dataset), draw.inner, samples.size(), locality_);
  return {draw.dataset, samples.at(sample.index), sample.epoch, sample.index};
}

std::uint64_t Mixture::eval_size(std::int64_t max_samples) const {
  std::uint64_t size = 0;
  for (const auto& dataset : datasets_) size += dataset->eval().size();
  return std::min(size, static_cast<std::uint64_t>(std::max<std::int64_t>(max_samples, 0)));
}

MixtureEntry Mixture::eval_entry(std::uint64_t i, std::int64_t max_samples) const {
  std::uint64_t total = 0;
  for (const auto& dataset : datasets_) total += dataset->eval().size();
  std::uint64_t at = (2 * i + 1) * total / (2 * eval_size(max_samples));  // as SampleIndex::spread
  std::size_t place = 0;
  while (at >= datasets_[place]->eval().size()) at -= datasets_[place++]->eval().size();
  return {place, datasets_[place]->eval().at(at), 0, at};
}

std::vector<DatasetProblem> Mixture::problems() const { return collect(datasets_, &Dataset::problems); }

std::vector<DatasetProblem> Mixture::warnings() const { return collect(datasets_, &Dataset::warnings); }

std::int64_t Mixture::skipped_episodes() const {
  std::int64_t skipped = 0;
  for (const auto& dataset : datasets_) skipped += dataset->skipped_episodes();
  return skipped;
}

std::string Mixture::state_json(std::uint64_t seed, std::uint64_t position) const {
  nlohmann::ordered_json state = {{"version", 1},
                                  {"seed", seed},
                                  {"next_position", position},
                                  {"dataset_fingerprint", fingerprint_},
                                  {"locality_block", locality_.block},
                                  {"shuffle_buffer", locality_.buffer}};
  for (std::size_t i = 0; i < datasets_.size(); ++i) {
    const std::uint64_t drawn = draws_before(seed, i, position), samples = datasets_[i]->train().size();
    state["datasets"].push_back({{"root", datasets_[i]->root()},
                                 {"tag", datasets_[i]->spec().embodiment.tag},
                                 {"fingerprint", datasets_[i]->fingerprint()},
                                 {"share", shares_[i]},
                                 {"samples", samples},
                                 {"drawn", drawn},
                                 {"epoch", drawn / samples}});
  }
  return state.dump(2);
}

std::vector<std::int64_t> block_rows(const Dataset& dataset, std::uint64_t index, const Locality& locality) {
  if (locality.block <= 1) return {};
  const SampleIndex& samples = dataset.train();
  const std::size_t episode = samples.at(index).episode;
  const std::vector<std::int64_t> labels = dataset.episodes()[episode].row_labels();
  const SampleRange block = block_of(index, samples.size(), locality);
  std::vector<std::int64_t> rows;
  for (std::uint64_t i = block.first; i < block.last; ++i) {
    const SampleEntry entry = samples.at(i);
    if (entry.episode != episode) continue;
    const SampleWindow window = sample_window(dataset.spec(), labels, entry.anchor);
    rows.insert(rows.end(), window.video.begin(), window.video.end());
  }
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  return rows;
}

}  // namespace troupe::data
