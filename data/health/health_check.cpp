#include "data/health/health_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <map>
#include <set>

#include "base/parallel.h"
#include "data/health/camera_facts.h"
#include "data/health/closeup.h"
#include "data/health/dataset_keys.h"
#include "data/health/decode_check.h"
#include "data/health/episode_notes.h"
#include "data/health/episode_stats_check.h"
#include "data/health/index_check.h"
#include "data/health/metadata_check.h"
#include "data/health/motion.h"
#include "data/health/stated_cameras.h"
#include "data/health/statistics_check.h"
#include "data/health/thumbnails.h"
#include "data/lerobot/template_hint.h"
#include "data/sampling/sample_index.h"
#include "data/sampling/window.h"
#include "data/statistics/dataset_statistics.h"

namespace troupe::data {

namespace {

namespace fs = std::filesystem;

/// One examination in progress.
class Examination {
 public:
  Examination(const HealthOptions& options, std::shared_ptr<const LerobotDataset> files)
      : options_(options), files_(std::move(files)), videos_(std::make_shared<ProbedVideos>(options.probe)) {
    report_.root = files_->root();
    report_.version = files_->info().codebase_version;
    report_.robot_type = files_->info().robot_type;
    report_.fps = files_->info().fps;
    report_.tasks = static_cast<std::int64_t>(files_->tasks().size());
    report_.texts = files_->tasks();
    report_.horizon = options.horizon;
    report_.verify = options.decode ? "full" : "index";
  }

  Result<HealthReport> run() {
    for (const DatasetProblem& p : files_->findings()) add(FindingLevel::warning, p, -1);
    const std::string modality_path = report_.root + "/meta/modality.json";
    const auto modality = read_modality(files_->root(), files_->info());
    if (!modality) {
      add(FindingLevel::problem, {"D01", modality_path, modality.error().message()}, -1);
      return std::move(report_);
    }
    if (auto nothing = find_nothing_listed(*files_); !nothing.empty()) {
      report_.findings.insert(report_.findings.end(), nothing.begin(), nothing.end());
      return std::move(report_);
    }
    auto keys = dataset_keys(*files_, options_.embodiment, options_.relative_keys);
    if (!keys) return keys.error();
    report_.keys = std::move(*keys);
    check_modality_names(*files_, *modality, report_.findings);
    if (!options_.embodiment) check_default_keys(*files_, *modality, report_.findings);
    check_step_filter(*files_, report_.findings);
    note_names(*files_, report_.findings);
    hints_ = template_hints(*files_);
    std::error_code code;
    const CameraFiles cameras =
        check_camera_files(*files_, *modality, fs::exists(modality_path, code), report_.findings);
    drop_cameras(cameras.never_recorded);
    name_cameras(cameras.gone);
    const auto videos = videos_;
    source_ =
        EpisodeSource::make(files_, report_.keys, [videos](const std::string& path) { return videos->probe(path); });
    name_depth_maps(*files_, report_.findings);
    check_index(report_.root, options_.index, report_.findings);
    check_episodes();
    TROUPE_TRY(check_windows());
    describe_cameras();
    TROUPE_TRY(compute_statistics(source_, tables_, options_, report_));
    TROUPE_TRY(measure());
    if (options_.decode) decode();
    group_findings(report_.findings);
    if (options_.pictures) {
      draw_thumbnails();
      report_.closeups = make_closeups(*files_, tables_of(source_, tables_), tables_, report_);
    }
    return std::move(report_);
  }

 private:
  void add(FindingLevel level, const DatasetProblem& p, std::int64_t episode) {
    report_.findings.push_back({p.code, level, p.path, p.text, episode});
  }

  /// A feature table may name cameras that were never recorded beside others that were: they are no views, unless an
  /// embodiment asks for them.
  void drop_cameras(const std::vector<std::string>& never_recorded) {
    if (options_.embodiment) return;
    std::erase_if(report_.keys.views, [&](const NamedColumn& view) {
      return std::find(never_recorded.begin(), never_recorded.end(), view.column) != never_recorded.end();
    });
  }

  /// Cameras whose files are gone and that are no views are named here; those of views are problems of their episodes.
  void name_cameras(const std::vector<std::string>& gone) {
    for (const std::string& camera : gone) {
      const auto& views = report_.keys.views;
      if (std::any_of(views.begin(), views.end(), [&](const NamedColumn& v) { return v.column == camera; })) continue;
      const std::string path = report_.root + "/meta/info.json";
      add(FindingLevel::warning,
          {"D02", path, fmt::format("{} lists the camera '{}', of which no file is there", path, camera)}, -1);
    }
  }

  /// Is this problem a file that a wrong template of info.json looks for?
  bool is_hinted(const DatasetProblem& p) const {
    return std::any_of(hints_.begin(), hints_.end(), [&](const TemplateHint& hint) { return hint.explains(p); });
  }

  void tell(const std::string& unit, std::int64_t done, std::int64_t of) const {
    if (options_.progress) options_.progress(unit, done, of);
  }

  void check_episodes() {
    std::vector<EpisodeCheck> checks(files_->episodes().size());
    std::atomic<std::int64_t> done{0};
    parallel_for(checks.size(), options_.threads, [&](std::size_t i) {
      checks[i] = check_episode(source_, i);
      tell("episodes", ++done, static_cast<std::int64_t>(checks.size()));
    });
    for (std::size_t i = 0; i < checks.size(); ++i) {
      EpisodeCheck& check = checks[i];
      const EpisodeRecord& record = files_->episodes()[i];
      if (!options_.embodiment) allow_different_views(check);
      report_.episodes.push_back({.index = record.index,
                                  .rows = check.episode.rows > 0 ? check.episode.rows : record.length,
                                  .problems = static_cast<std::int64_t>(check.problems.size()),
                                  .warnings = static_cast<std::int64_t>(check.warnings.size()),
                                  .content = {}});
      for (const DatasetProblem& p : check.problems) {
        if (!is_hinted(p)) add(FindingLevel::problem, p, record.index);
      }
      for (const DatasetProblem& p : check.warnings) add(FindingLevel::warning, p, record.index);
      for (const auto& [column, size] : check.image_sizes) {
        if (const auto images = files_->images(i, column)) found_[column].images.emplace_back(images->path, size);
      }
      if (check.table_sound) {
        note_labels(check.episode, report_.episodes.back());
        report_.table_rows += check.episode.rows;
        reports_.push_back(i);
        tables_.push_back(check.episode);
      }
      if (!check.problems.empty()) continue;
      report_.frames += check.episode.rows;
      if (report_.view_height == 0) {
        report_.view_height = check.episode.view_height;
        report_.view_width = check.episode.view_width;
      }
      episodes_.push_back(std::move(check.episode));
    }
    std::set<std::string> said;  // two cameras share a template
    for (const TemplateHint& hint : hints_) {
      if (said.insert(hint.key + hint.wanted).second) add(FindingLevel::problem, hint.problem(report_.root), -1);
    }
    if (report_.view_height == 0) take_stated_size();
  }

  /// Without a video to look at, the pixels are those of info.json.
  void take_stated_size() {
    if (report_.keys.views.empty()) return;
    const LerobotFeature* camera = files_->info().find(report_.keys.views.front().column);
    if (camera == nullptr || camera->shape.size() != 3) return;
    report_.view_height = camera->shape[0];
    report_.view_width = camera->shape[1];
  }

  /// Without an embodiment nobody has said that these views share a sample: other sizes are only worth a warning.
  static void allow_different_views(EpisodeCheck& check) {
    for (const DatasetProblem& p : check.problems) {
      if (p.code == "D09") check.warnings.push_back(p);
    }
    std::erase_if(check.problems, [](const DatasetProblem& p) { return p.code == "D09"; });
  }

  void note_labels(const Episode& e, EpisodeReport& out) {
    out.spans = static_cast<std::int64_t>(e.labels.size());
    for (std::size_t i = 0; i < e.labels.size(); ++i) {
      const std::int64_t rows = (i + 1 < e.labels.size() ? e.labels[i + 1].first : e.rows) - e.labels[i].first;
      report_.span_lengths.push_back(static_cast<double>(rows));
      report_.label_rows[e.labels[i].label] += rows;
    }
  }

  /// D14: which episodes have no full window.
  Result<void> check_windows() {
    DatasetSpec spec;
    spec.window = options_.embodiment ? options_.window.of_robot(*options_.embodiment) : options_.window;
    if (const auto defect = window_defect(spec)) return invalid_argument(*defect);
    std::vector<std::int64_t> short_ones;
    for (const Episode& e : episodes_) {
      if (anchor_runs(spec, e.row_labels()).empty()) short_ones.push_back(e.index);
    }
    if (short_ones.empty()) return {};
    std::string list;
    for (std::size_t i = 0; i < std::min<std::size_t>(short_ones.size(), 5); ++i)
      list += fmt::format("{}{}", i == 0 ? "" : ", ", short_ones[i]);
    add(FindingLevel::warning,
        {"D14", report_.root,
         fmt::format("{}: {} of {} episodes ({:.1f}%) have no full window of {} blocks {} rows apart: {}{}",
                     report_.root, short_ones.size(), episodes_.size(),
                     100.0 * static_cast<double>(short_ones.size()) / static_cast<double>(episodes_.size()),
                     spec.window.chunks, spec.window.macro_stride, list, short_ones.size() > 5 ? ", ..." : "")},
        -1);
    return {};
  }

  void describe_cameras() {
    const auto files = videos_->files();
    for (const NamedColumn& view : report_.keys.views) {
      std::set<std::string> paths;
      bool in_parquet = false;
      for (std::size_t i = 0; i < files_->episodes().size(); ++i) {
        const auto images = files_->images(i, view.column);
        if (!images) continue;
        in_parquet = in_parquet || !images->is_video();
        if (images->is_video()) paths.insert(images->path);
      }
      std::vector<const ProbedVideos::File*> found;
      for (const std::string& path : paths) {
        const auto it = files.find(path);
        if (it == files.end()) continue;
        found.push_back(&it->second);
        found_[view.column].videos[path] = &it->second;
      }
      compare_with_info(*files_, view, found_[view.column], report_.findings);
      CameraReport camera = describe_camera(view, found);
      camera.in_parquet = in_parquet;
      if (in_parquet) camera.frames = report_.frames;
      report_.cameras.push_back(std::move(camera));
    }
    compare_cameras(report_.root, report_.cameras, report_.findings);
  }

  Result<void> measure() {
    MotionPlan plan;
    plan.threads = options_.threads;
    const auto has = [&](const std::string& name) { return report_.column(name) != nullptr; };
    for (const VectorKey& k : report_.keys.state) {
      if (has(k.column)) plan.idle.push_back(k.column);
    }
    plan.hashed = report_.keys.vector_columns();
    std::erase_if(plan.hashed, [&](const std::string& name) { return !has(name); });
    std::sort(plan.idle.begin(), plan.idle.end());
    plan.idle.erase(std::unique(plan.idle.begin(), plan.idle.end()), plan.idle.end());
    if (report_.columns.empty()) return {};
    EpisodeStatsCheck stated(*files_, report_.keys.vector_columns());
    plan.on_table = [&](std::size_t i, const EpisodeTable& table) { stated.compare(tables_[i].index, table); };
    TableSource tables = tables_of(source_, tables_);
    tables.progress = [this](std::int64_t done, std::int64_t of) { tell("tables", done, of); };
    TROUPE_ASSIGN(const std::vector<EpisodeMotion> motion, measure_motion(tables, report_.columns, plan));
    for (std::size_t i = 0; i < motion.size(); ++i) {
      EpisodeReport& e = report_.episodes[reports_[i]];
      e.idle_rows = motion[i].idle_rows;
      e.longest_idle = motion[i].longest_idle;
      e.outliers = motion[i].outliers;
      e.jumps = motion[i].jumps;
      e.content = motion[i].content;
    }
    stated.report(report_.findings);
    note_episodes(report_);
    return {};
  }

  void decode() {
    std::vector<DecodeTask> tasks;
    for (const Episode& e : episodes_) {
      for (const NamedColumn& view : report_.keys.views) {
        if (auto images = source_.images(e, view)) tasks.push_back({e.index, view.name, std::move(*images), e.length});
      }
    }
    const std::size_t before = report_.findings.size();
    report_.decoded = decode_everything(tasks, options_.threads, report_.findings,
                                        [this](std::int64_t done, std::int64_t of) { tell("frames", done, of); });
    for (std::size_t i = before; i < report_.findings.size(); ++i) {
      for (EpisodeReport& e : report_.episodes) {
        if (e.index == report_.findings[i].episode)
          ++(report_.findings[i].level == FindingLevel::problem ? e.problems : e.warnings);
      }
    }
  }

  void draw_thumbnails() {
    std::vector<std::size_t> places;
    std::vector<std::int64_t> lengths;
    for (const Episode& e : episodes_) {
      places.push_back(e.place);
      lengths.push_back(e.length);
    }
    report_.thumbnails = make_thumbnails(*files_, report_.keys.views, places, lengths);
  }

  const HealthOptions& options_;
  std::shared_ptr<const LerobotDataset> files_;
  std::shared_ptr<ProbedVideos> videos_;
  EpisodeSource source_;
  std::vector<TemplateHint> hints_;
  std::vector<Episode> episodes_;             ///< usable ones
  std::vector<Episode> tables_;               ///< those whose tables are sound: what statistics are made of
  std::vector<std::size_t> reports_;          ///< place of each of tables_ in report_.episodes
  std::map<std::string, FoundCamera> found_;  ///< by column
  HealthReport report_;
};

}  // namespace

Result<HealthReport> check_health(const HealthOptions& options) {
  auto files = LerobotDataset::open(options.data, options.probe);
  if (!files) {
    std::error_code code;
    if (!fs::is_directory(options.data, code)) return files.error();
    HealthReport report;
    report.root = options.data;
    report.horizon = options.horizon;
    report.findings.push_back({"D01", FindingLevel::problem, options.data, files.error().message(), -1});
    return report;
  }
  return Examination(options, std::make_shared<const LerobotDataset>(std::move(*files))).run();
}

}  // namespace troupe::data
