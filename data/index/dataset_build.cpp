#include "data/index/dataset_build.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/hash.h"
#include "base/parallel.h"
#include "data/index/video_survey.h"
#include "data/lerobot/episode_check.h"
#include "data/lerobot/template_hint.h"
#include "data/sampling/window.h"
#include "data/statistics/dataset_statistics.h"

namespace troupe::data {

namespace {

bool contains(const std::vector<std::int64_t>& values, std::int64_t value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

/// Digest of everything that an episode's check depends on besides its own files: columns, types, rate.
constexpr int kCheckVersion = 3;  ///< raised when the checks change: an index of an older version is checked again

std::uint64_t check_digest(const LerobotInfo& info, const SampleColumns& columns) {
  std::string text =
      fmt::format("{} {} {} {} {}\n", kCheckVersion, info.codebase_version, info.fps, info.data_path, info.video_path);
  for (const LerobotFeature& f : info.features)
    text += fmt::format("{} {} {}\n", f.name, f.dtype, fmt::join(f.shape, ","));
  const auto add = [&](const VectorKey& k) { text += fmt::format("{} {} {} {}\n", k.name, k.column, k.start, k.end); };
  for (const VectorKey& key : columns.state) add(key);
  for (const ActionKey& key : columns.action) {
    add(key.key);
    if (key.relative) add(key.reference);
  }
  for (const NamedColumn& view : columns.views) text += fmt::format("{} {}\n", view.name, view.column);
  for (const std::string& column : columns.label_columns()) text += column + "\n";
  return xxh3_64(text);
}

/// The places of the episodes that a spec asks for.
Result<std::vector<std::size_t>> choose_episodes(const LerobotDataset& dataset, const DatasetSpec& spec) {
  const auto refuse = [&](const char* key, std::int64_t wanted) {
    const auto& all = dataset.episodes();
    const std::string has = all.empty()
                                ? "it has none"
                                : fmt::format("it has {}, {} to {}", all.size(), all.front().index, all.back().index);
    return invalid_argument(fmt::format("{} names {}, which {} does not have: {}", key, wanted, dataset.root(), has));
  };
  std::vector<std::size_t> places;
  const std::set<std::int64_t> wanted(spec.episodes.begin(), spec.episodes.end());
  for (const std::int64_t index : wanted) {
    const auto place = dataset.find(index);
    if (!place) return refuse("data.sets[].episodes", index);
    places.push_back(*place);
  }
  if (wanted.empty()) {
    for (std::size_t place = 0; place < dataset.episodes().size(); ++place) places.push_back(place);
  }
  for (const std::int64_t index : spec.eval_episodes) {
    if (!dataset.find(index)) return refuse("data.eval_episodes", index);
    if (!wanted.empty() && !wanted.contains(index)) {
      return invalid_argument(fmt::format("data.eval_episodes names {}, which is not among data.sets[].episodes of {}",
                                          index, dataset.root()));
    }
  }
  return places;
}

/// The building of one index.
class IndexBuilder {
 public:
  IndexBuilder(LerobotDataset dataset, const IndexInputs& inputs, IndexReport& report)
      : inputs_(inputs),
        report_(report),
        survey_(dataset.root(), inputs.probe, inputs.old_files.get(), *inputs.times),
        source_(EpisodeSource::make(std::make_shared<const LerobotDataset>(std::move(dataset)), inputs.columns,
                                    [this](const std::string& path) { return survey_.probe(path); })) {}

  Result<BuiltIndex> run() {
    TROUPE_ASSIGN(places_, choose_episodes(dataset(), inputs_.spec));
    SampleSummary& summary = out_.samples.summary;
    summary.recipe = recipe_digest(inputs_.spec);
    summary.check_key = check_digest(dataset().info(), inputs_.columns);
    summary.anchor_stride = inputs_.spec.anchor_stride;
    summary.listed_episodes = static_cast<std::int64_t>(places_.size());
    for (const NamedColumn& view : inputs_.columns.views) {
      const LerobotFeature* feature = dataset().info().find(view.column);
      summary.image_columns.push_back(feature != nullptr && feature->is_image() ? view.column : std::string());
    }
    summary.num_views = static_cast<std::int64_t>(summary.image_columns.size());
    out_.samples.metadata = inputs_.metadata;
    out_.samples.tasks = dataset().tasks();
    for (const DatasetProblem& finding : dataset().findings()) summary.warnings.push_back({-1, finding});
    TROUPE_TRY(find_files());
    check_episodes();
    survey_videos();
    TROUPE_TRY(list_samples());
    TROUPE_TRY(load_statistics_of());
    compute_fingerprint();
    return std::move(out_);
  }

 private:
  /// One chosen episode on its way into the index.
  struct Work {
    std::uint32_t data_path = 0;
    std::int64_t first_row = 0;
    std::vector<IndexedEpisode::Images> images{};
    std::optional<std::size_t> reused{};  ///< place in the old index
    EpisodeCheck check{};
  };

  const LerobotDataset& dataset() const { return *source_.files; }
  std::string relative(const std::string& path) const { return path.substr(dataset().root().size() + 1); }

  /// Fills paths, states and where every episode's rows and frames are.
  Result<void> find_files() {
    const std::size_t views = inputs_.columns.views.size();
    std::vector<std::string> names;  // per episode: rows, then views
    work_.resize(places_.size());
    for (std::size_t i = 0; i < places_.size(); ++i) {
      TROUPE_ASSIGN(const RowSource rows, dataset().rows(places_[i]));
      names.push_back(relative(rows.path));
      work_[i].first_row = rows.first_row;
      for (const NamedColumn& view : inputs_.columns.views) {
        TROUPE_ASSIGN(const ImageSource images, dataset().images(places_[i], view.column));
        names.push_back(relative(images.path));
        work_[i].images.push_back({.path = 0, .first = images.first});
      }
    }
    std::vector<std::string>& paths = out_.samples.paths;
    paths = names;
    std::sort(paths.begin(), paths.end());
    paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
    const auto id = [&](const std::string& name) {
      return static_cast<std::uint32_t>(std::lower_bound(paths.begin(), paths.end(), name) - paths.begin());
    };
    for (std::size_t i = 0; i < work_.size(); ++i) {
      work_[i].data_path = id(names[i * (views + 1)]);
      for (std::size_t v = 0; v < views; ++v) work_[i].images[v].path = id(names[i * (views + 1) + 1 + v]);
    }
    out_.samples.states.resize(paths.size());
    parallel_for(paths.size(), inputs_.threads,
                 [&](std::size_t p) { out_.samples.states[p] = inputs_.times->state(paths[p]); });
    return {};
  }

  /// The episode in the old index, when nothing that its check depends on has changed since.
  std::optional<std::size_t> unchanged(std::size_t i) const {
    const SampleTable* old = inputs_.old_samples.get();
    if (old == nullptr || old->summary().check_key != out_.samples.summary.check_key) return std::nullopt;
    const EpisodeRecord& record = dataset().episodes()[places_[i]];
    const auto place = old->find_episode(record.index);
    if (!place) return std::nullopt;
    const Work& work = work_[i];
    std::vector<std::uint32_t> files = {work.data_path};
    for (const auto& p : work.images) files.push_back(p.path);
    const std::vector<std::uint32_t> before = old->files_of(*place);
    if (files.size() != before.size() || old->rows(*place).first_row != work.first_row) return std::nullopt;
    for (std::size_t f = 0; f < files.size(); ++f) {
      const std::string& path = out_.samples.paths[files[f]];
      if (old->path(before[f]) != path || !inputs_.times->is_unchanged(path, old->state(before[f])))
        return std::nullopt;
      if (f > 0 && old->images(*place, f - 1).first != work.images[f - 1].first) return std::nullopt;
    }
    const Episode episode = old->episode(*place);
    if (episode.rows != record.length) return std::nullopt;
    for (const LabelRun& run : episode.labels) {
      const auto task = dataset().tasks().find(run.label);
      const auto text = old->task(run.label);
      if (text.has_value() != (task != dataset().tasks().end()) || (text && *text != task->second)) return std::nullopt;
    }
    return place;
  }

  /// Reads the files of every episode that is not taken over: those of one data file one after the other, so that a
  /// file of many episodes is read once; different files at the same time.
  void check_episodes() {
    std::vector<std::vector<std::size_t>> groups;
    std::map<std::uint32_t, std::size_t> group_of;
    for (std::size_t i = 0; i < work_.size(); ++i) {
      if ((work_[i].reused = unchanged(i))) continue;
      const auto [it, fresh] = group_of.emplace(work_[i].data_path, groups.size());
      if (fresh) groups.emplace_back();
      groups[it->second].push_back(i);
    }
    parallel_for(groups.size(), inputs_.threads, [&](std::size_t g) {
      for (const std::size_t i : groups[g]) work_[i].check = check_episode(source_, places_[i]);
    });
    std::map<std::int64_t, std::vector<const DatasetProblem*>> old_warnings;
    if (inputs_.old_samples) {
      for (const EpisodeFinding& w : inputs_.old_samples->summary().warnings)
        old_warnings[w.episode].push_back(&w.problem);
    }
    SampleSummary& summary = out_.samples.summary;
    std::set<std::uint32_t> watched;
    for (std::size_t i = 0; i < work_.size(); ++i) {
      Work& work = work_[i];
      if (work.reused) {
        ++report_.episodes_reused;
        work.check.episode = inputs_.old_samples->episode(*work.reused);
        work.check.episode.place = places_[i];
        for (const DatasetProblem* w : old_warnings[work.check.episode.index]) {
          if (w->code != "D02") work.check.warnings.push_back(*w);
        }
        // the metadata may be others by now
        if (auto differs = check_listed_tasks(source_, work.check.episode))
          work.check.warnings.push_back(std::move(*differs));
      } else {
        ++report_.episodes_checked;
      }
      const std::int64_t index = work.check.episode.index;
      for (const DatasetProblem& w : work.check.warnings) summary.warnings.push_back({index, w});
      if (work.check.problems.empty()) {
        out_.samples.episodes.push_back({std::move(work.check.episode), work.data_path, work.first_row, work.images});
        continue;
      }
      ++summary.skipped_episodes;
      for (const DatasetProblem& p : work.check.problems) summary.problems.push_back({index, p});
      watched.insert(work.data_path);
      for (const auto& p : work.images) watched.insert(p.path);
    }
    out_.samples.watched.assign(watched.begin(), watched.end());
    join_missing_files();
  }

  /// Files that a wrong template looks for are one problem, which says the right one.
  void join_missing_files() {
    std::vector<EpisodeFinding>& problems = out_.samples.summary.problems;
    if (problems.empty()) return;
    std::set<std::string> said;  // two cameras share a template
    for (const TemplateHint& hint : template_hints(dataset())) {
      const auto explained = [&](const EpisodeFinding& f) { return hint.explains(f.problem); };
      if (std::erase_if(problems, explained) > 0 && said.insert(hint.key + hint.wanted).second)
        problems.push_back({-1, hint.problem(dataset().root())});
    }
  }

  /// Every file gets its entry; videos of episodes that were taken over are read only when the old index lacks them.
  void survey_videos() {
    std::set<std::uint32_t> videos;
    for (const Work& work : work_) {
      for (std::size_t v = 0; v < work.images.size(); ++v) {
        if (out_.samples.summary.image_columns[v].empty()) videos.insert(work.images[v].path);
      }
    }
    const std::vector<std::uint32_t> list(videos.begin(), videos.end());
    const auto full = [&](std::uint32_t p) { return dataset().root() + "/" + out_.samples.paths[p]; };
    parallel_for(list.size(), inputs_.threads, [&](std::size_t i) {
      if (out_.samples.states[list[i]].size > 0) (void)survey_.probe(full(list[i]));  // a bad one has been reported
    });
    report_.videos_read = survey_.videos_read();
    report_.videos_reused = survey_.videos_reused();
    out_.files = survey_.take();
    for (std::size_t p = 0; p < out_.samples.paths.size(); ++p) {
      const auto id = static_cast<std::uint32_t>(p);
      if (!videos.contains(id))
        out_.files.add(out_.samples.paths[p], {.state = out_.samples.states[p], .video = std::nullopt});
    }
  }

  /// The anchors of every episode. Those of one label and without removed rows depend on their length alone, and a
  /// large dataset has far fewer lengths than episodes.
  Result<std::vector<std::vector<AnchorRun>>> find_anchors() const {
    TROUPE_ASSIGN(const auto removed, read_step_filter(dataset().root()));
    const auto& episodes = out_.samples.episodes;
    std::vector<std::vector<AnchorRun>> runs(episodes.size());
    std::map<std::int64_t, std::vector<std::size_t>> of_length;
    std::vector<std::vector<std::size_t>> groups;  // episodes with equal anchors
    for (std::size_t place = 0; place < episodes.size(); ++place) {
      const Episode& e = episodes[place].episode;
      const auto it = removed.lower_bound({e.index, INT64_MIN});
      const bool filtered = it != removed.end() && it->first == e.index;
      if (e.labels.size() <= 1 && !filtered)
        of_length[e.length].push_back(place);
      else
        groups.push_back({place});
    }
    for (auto& [length, places] : of_length) groups.push_back(std::move(places));
    parallel_for(groups.size(), inputs_.threads, [&](std::size_t g) {
      const Episode& e = episodes[groups[g].front()].episode;
      std::vector<std::int64_t> rows;
      for (auto it = removed.lower_bound({e.index, INT64_MIN}); it != removed.end() && it->first == e.index; ++it) {
        rows.push_back(it->second);
      }
      const std::vector<AnchorRun> found = anchor_runs(inputs_.spec, e.row_labels(), rows);
      for (const std::size_t place : groups[g]) runs[place] = found;
    });
    return runs;
  }

  Result<void> list_samples() {
    TROUPE_ASSIGN(const auto runs, find_anchors());
    const auto& episodes = out_.samples.episodes;
    SampleContents& samples = out_.samples;
    samples.train = samples.eval = SampleIndex(inputs_.spec.anchor_stride);
    for (std::size_t place = 0; place < episodes.size(); ++place) {
      const bool held_out = contains(inputs_.spec.eval_episodes, episodes[place].episode.index);
      (held_out ? samples.eval : samples.train).add_runs(place, runs[place]);
      if (runs[place].empty()) ++samples.summary.short_episodes;
    }
    samples.summary.train_size = samples.train.size();
    samples.summary.eval_size = samples.eval.size();
    if (samples.summary.short_episodes > 0) {
      samples.summary.warnings.push_back(
          {-1,
           {"D14", dataset().root(),
            fmt::format("{}: {} of {} episodes are too short for one full window of {} chunks", dataset().root(),
                        samples.summary.short_episodes, episodes.size(), inputs_.spec.window.chunks)}});
    }
    return {};
  }

  Result<void> load_statistics_of() {
    if (out_.samples.summary.train_size == 0) return {};
    std::vector<Episode> episodes;
    for (const IndexedEpisode& e : out_.samples.episodes) episodes.push_back(e.episode);
    TROUPE_ASSIGN(LoadedStatistics loaded, load_statistics(source_, episodes, inputs_.spec.window.action_horizon));
    SampleSummary& summary = out_.samples.summary;
    summary.statistics = std::move(loaded.keys);
    for (DatasetProblem& w : loaded.warnings) summary.warnings.push_back({-1, std::move(w)});
    summary.metadata_json = experiment_metadata(source_, summary.statistics, inputs_.spec.embodiment.tag,
                                                episodes.front().view_height, episodes.front().view_width);
    return {};
  }

  void compute_fingerprint() {
    Xxh3Stream hash;
    const auto add = [&](const std::string& text) { hash.update(std::as_bytes(std::span(text))); };
    for (const MetadataFile& f : inputs_.metadata) add(fmt::format("{} {}\n", f.name, f.digest));
    for (const IndexedEpisode& e : out_.samples.episodes) {
      add(fmt::format("{} {} {:016x}\n", e.episode.index, e.episode.length, e.episode.files_hash));
    }
    const DatasetSpec& spec = inputs_.spec;
    const WindowConfig& w = spec.window;
    const std::set<std::int64_t> held_out(spec.eval_episodes.begin(), spec.eval_episodes.end());
    add(fmt::format("{} {} {} {} {} {}\n", w.chunks, w.macro_stride, w.action_horizon, fmt::join(w.video_offsets, ","),
                    fmt::join(held_out, ","), inputs_.columns.label_column));
    add(fmt::format("{} {} {}\n", spec.sampling, spec.anchors, spec.anchor_stride));
    if (spec.sampling == "fixed_window") add(fmt::format("{} {}\n", w.num_frames, w.state_horizon));
    out_.samples.summary.fingerprint = hash.hex();
  }

  const IndexInputs& inputs_;
  IndexReport& report_;
  VideoSurvey survey_;
  EpisodeSource source_;
  std::vector<std::size_t> places_;
  std::vector<Work> work_;
  BuiltIndex out_;
};

}  // namespace

std::uint64_t recipe_digest(const DatasetSpec& spec) {
  const EmbodimentConfig& e = spec.embodiment;
  const WindowConfig& w = spec.window;
  std::string text =
      fmt::format("{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n", kCheckVersion, e.tag, fmt::join(e.views, "\n"),
                  fmt::join(e.state_keys, "\n"), fmt::join(e.action_keys, "\n"),
                  fmt::join(e.relative_action_keys, "\n"), e.language_key, fmt::join(e.paraphrase_keys, "\n"));
  for (const auto* map : {&e.cameras, &e.slices}) {
    for (const auto& [key, value] : *map) text += fmt::format("{}={}\n", key, value);
    text += "\n";
  }
  text += fmt::format("{} {} {} {} {} {}\n", w.chunks, w.macro_stride, w.action_horizon,
                      fmt::join(w.video_offsets, ","), w.num_frames, w.state_horizon);
  text += fmt::format("{} {} {}\n{}\n{}\n", spec.sampling, spec.anchors, spec.anchor_stride,
                      fmt::join(spec.episodes, ","), fmt::join(spec.eval_episodes, ","));
  return xxh3_64(text);
}

Result<BuiltIndex> build_index(LerobotDataset dataset, const IndexInputs& inputs, IndexReport& report) {
  return IndexBuilder(std::move(dataset), inputs, report).run();
}

}  // namespace troupe::data
