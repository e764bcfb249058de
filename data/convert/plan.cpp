#include "data/convert/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <span>

#include "base/hash.h"
#include "data/convert/plan_scan.h"
#include "data/lerobot/defects.h"

namespace troupe::data {

namespace {

constexpr std::size_t kEpisodesPerTask = 32;  // v2.1: files of one journal entry

/// A feature without what may differ between equal datasets: rates, codecs, how it was encoded.
JsonDoc comparable(JsonDoc feature) {
  if (feature.is_object()) {
    for (const char* key : {"fps", "info", "video_info"}) feature.erase(key);
    if (feature.contains("names") && feature["names"].is_null()) feature.erase("names");
  }
  return feature;
}

Result<void> check_match(const DatasetSource& a, const DatasetSource& b) {
  const auto differ = [&](const std::string& what, const std::string& x, const std::string& y) {
    return invalid_argument(fmt::format(
        "{} of {} is {}, of {} it is {}; datasets that are merged have the same fps, robot_type and features", what,
        a.root, x, b.root, y));
  };
  if (a.facts.fps != b.facts.fps) return differ("fps", fmt::format("{}", a.facts.fps), fmt::format("{}", b.facts.fps));
  if (a.facts.robot_type != b.facts.robot_type)
    return differ("robot_type", "'" + a.facts.robot_type + "'", "'" + b.facts.robot_type + "'");
  std::set<std::string> names;
  for (const auto* s : {&a, &b}) {
    for (const auto& [name, feature] : s->info.at("features").items()) names.insert(name);
  }
  for (const std::string& name : names) {
    const JsonDoc &fa = a.info["features"], &fb = b.info["features"];
    const JsonDoc x = fa.contains(name) ? comparable(fa[name]) : JsonDoc();
    const JsonDoc y = fb.contains(name) ? comparable(fb[name]) : JsonDoc();
    // keys may stand in another order
    if (nlohmann::json::parse(x.dump()) != nlohmann::json::parse(y.dump()))
      return differ("feature '" + name + "'", x.dump(), y.dump());
  }
  return {};
}

/// One list of texts for all sources; a single source keeps its numbers.
void merge_tasks(const std::vector<DatasetSource>& sources, ConvertPlan& plan) {
  plan.task_of.resize(sources.size());
  plan.texts = sources[0].tasks;
  std::map<std::string, std::int64_t> of_text;
  for (const auto& [index, text] : plan.texts) of_text.emplace(text, index);
  std::int64_t next = plan.texts.empty() ? 0 : plan.texts.rbegin()->first + 1;
  for (std::size_t s = 1; s < sources.size(); ++s) {
    for (const auto& [index, text] : sources[s].tasks) {
      const auto [it, added] = of_text.emplace(text, next);
      if (added) plan.texts[next++] = text;
      plan.task_of[s][index] = it->second;
    }
  }
}

std::string output_path(const ConvertDatasetRequest& request, const ConvertPlan& plan, int camera, std::int64_t chunk,
                        std::int64_t file, std::int64_t episode) {
  if (request.to == DatasetVersion::v30) {
    return camera < 0 ? fmt::format("data/chunk-{:03d}/file-{:03d}.parquet", chunk, file)
                      : fmt::format("videos/{}/chunk-{:03d}/file-{:03d}.mp4",
                                    plan.cameras[static_cast<std::size_t>(camera)], chunk, file);
  }
  return camera < 0 ? fmt::format("data/chunk-{:03d}/episode_{:06d}.parquet", episode / 1000, episode)
                    : fmt::format("videos/chunk-{:03d}/{}/episode_{:06d}.mp4", episode / 1000,
                                  plan.cameras[static_cast<std::size_t>(camera)], episode);
}

FileLimits limits_of(const ConvertDatasetRequest& request, bool video) {
  const double mb = video ? request.video_file_mb : request.data_file_mb;
  if (request.to == DatasetVersion::v21) return {.episodes = 1, .bytes = 0, .lerobot = false};
  if (mb > 0) return {.episodes = 0, .bytes = std::llround(mb * 1048576.0), .lerobot = true};
  return {.episodes = request.episode_size, .bytes = request.shard_bytes, .lerobot = false};
}

bool encodes(const ConvertDatasetRequest& request, const PlannedSpan& span) {
  return request.video == ConvertVideo::reencode || !span.why_not_copied.empty();
}

/// Where a new file must begin, whatever the limits.
std::vector<bool> forced_breaks(const ConvertDatasetRequest& request, const ConvertPlan& plan, int camera) {
  std::vector<bool> out(plan.episodes.size(), false);
  for (std::size_t i = 1; i < out.size(); ++i) {
    const PlannedEpisode &a = plan.episodes[i - 1], &b = plan.episodes[i];
    if (camera < 0) {
      out[i] = a.schema != b.schema;
      continue;
    }
    const PlannedSpan &x = a.spans[static_cast<std::size_t>(camera)], &y = b.spans[static_cast<std::size_t>(camera)];
    // an episode with a frame more or less than rows stands alone, so that sums of lengths stay right
    out[i] = x.codec != y.codec || encodes(request, x) != encodes(request, y) || x.frames != a.length ||
             y.frames != b.length;
  }
  return out;
}

void plan_files(const ConvertDatasetRequest& request, ConvertPlan& plan, int camera) {
  std::vector<std::int64_t> size;
  for (const PlannedEpisode& e : plan.episodes)
    size.push_back(camera < 0 ? e.bytes : e.spans[static_cast<std::size_t>(camera)].bytes);
  std::int64_t n = 0;
  std::vector<PlannedOutput> files;
  for (const auto& [first, last] :
       pack_files(size, forced_breaks(request, plan, camera), limits_of(request, camera >= 0))) {
    const auto [chunk, file] = place_of_file(n++);
    const PlannedEpisode& e = plan.episodes[first];
    files.push_back({.path = output_path(request, plan, camera, chunk, file, e.index),
                     .chunk = chunk,
                     .file = file,
                     .first = first,
                     .count = last - first,
                     .encode = camera >= 0 && encodes(request, e.spans[static_cast<std::size_t>(camera)])});
  }
  const std::size_t per_task = request.to == DatasetVersion::v30 ? 1 : kEpisodesPerTask;
  for (std::size_t i = 0; i < files.size(); i += per_task) {
    PlannedTask task{.camera = camera, .files = {}};
    for (std::size_t f = i; f < std::min(files.size(), i + per_task); ++f) task.files.push_back(std::move(files[f]));
    plan.tasks.push_back(std::move(task));
  }
}

JsonDoc options_json(const ConvertDatasetRequest& r) {
  const ConvertEncoding& e = r.encoding;
  JsonDoc out = {{"to", r.to == DatasetVersion::v30 ? "v3.0" : "v2.1"},
                 {"episode_size", r.episode_size},
                 {"shard_size", r.shard_bytes},
                 {"data_file_size_in_mb", r.data_file_mb},
                 {"video_file_size_in_mb", r.video_file_mb},
                 {"video_mode", r.video == ConvertVideo::copy       ? "copy"
                                : r.video == ConvertVideo::reencode ? "reencode"
                                                                    : "auto"},
                 {"compression", r.compression},
                 {"row_group", r.row_group},
                 {"gear", r.gear}};
  if (r.gear) out["embodiment_tag"] = r.embodiment_tag;
  if (!r.drop_cameras.empty()) out["drop_cameras"] = r.drop_cameras;
  if (r.repair) out["repair"] = {{"skip_bad", r.skip_bad}};
  for (const NumberRange& range : r.episodes) out["episodes"].push_back({range.first, range.last});
  if (r.video != ConvertVideo::copy) {
    out["encoding"] = {{"codec", e.codec}, {"gop", e.gop},       {"crf", e.crf},        {"preset", e.preset},
                       {"width", e.width}, {"height", e.height}, {"pix_fmt", e.pix_fmt}};
  }
  return out;
}

std::string plan_text(const ConvertDatasetRequest& request, const std::vector<DatasetSource>& sources,
                      const ConvertPlan& plan, const std::string& inputs) {
  JsonDoc head = {{"format", 1},
                  {"options", options_json(request)},
                  {"inputs", JsonDoc::array()},
                  {"files_hash", inputs},
                  {"episodes", plan.episodes.size()},
                  {"frames", plan.frames},
                  {"renumbered", plan.renumbered},
                  {"left_out", JsonDoc::array()}};
  for (const DatasetSource& s : sources)
    head["inputs"].push_back(
        {{"path", s.root}, {"version", s.facts.codebase_version}, {"metadata_hash", s.metadata_hash}});
  for (const DatasetProblem& p : plan.left_out) head["left_out"].push_back(p.text);
  std::string text = head.dump();
  text.back() = ',';
  text += "\"tasks\":[";
  for (std::size_t t = 0; t < plan.tasks.size(); ++t) {
    const PlannedTask& task = plan.tasks[t];
    JsonDoc json = {{"kind", task.camera < 0 ? "table" : "video"}, {"files", JsonDoc::array()}};
    if (task.camera >= 0) json["camera"] = plan.cameras[static_cast<std::size_t>(task.camera)];
    for (const PlannedOutput& f : task.files)
      json["files"].push_back({{"path", f.path}, {"first", f.first}, {"count", f.count}, {"encode", f.encode}});
    text += (t == 0 ? "\n" : ",\n") + json.dump();
  }
  return text + "]}\n";
}

/// What only the user can decide on.
Error not_repaired(const std::vector<DatasetProblem>& left_out) {
  constexpr std::size_t kMost = 20;
  std::string text = fmt::format(
      "{} episodes cannot be repaired; bring their files back, or leave them out with "
      "--skip-bad",
      left_out.size());
  for (std::size_t i = 0; i < std::min(left_out.size(), kMost); ++i)
    text += fmt::format("\n  {} {}", left_out[i].code, left_out[i].text);
  if (left_out.size() > kMost) text += fmt::format("\n  and {} more", left_out.size() - kMost);
  return {Errc::data_loss, text};
}

/// Episodes that can be read, numbered; the others are findings.
Result<void> take_episodes(const ConvertDatasetRequest& request, std::vector<ScannedEpisode>& scanned,
                           const std::vector<DatasetSource>& sources, ConvertPlan& plan) {
  for (ScannedEpisode& s : scanned) {
    if (s.problems.empty()) {
      plan.episodes.push_back(std::move(s.episode));
      continue;
    }
    DatasetProblem p = s.problems.front();
    const std::int64_t index = sources[s.episode.source].episodes[s.episode.place].index;
    p.text = fmt::format("episode {}: {}", index, p.text);
    if (request.strict) return Error{Errc::data_loss, p.text + " (--strict)"};
    plan.left_out.push_back(std::move(p));
  }
  if (request.repair && !request.skip_bad && !plan.left_out.empty()) return not_repaired(plan.left_out);
  if (plan.episodes.empty())
    return Error{Errc::data_loss, fmt::format("no episode can be read; the first: {}", plan.left_out.front().text)};
  plan.partial = request.repair || !request.episodes.empty() || !plan.left_out.empty();
  plan.renumbered = sources.size() > 1 || plan.partial;
  for (std::size_t i = 0; i < plan.episodes.size(); ++i)
    plan.renumbered = plan.renumbered || plan.episodes[i].index != static_cast<std::int64_t>(i);
  for (std::size_t i = 0; i < plan.episodes.size(); ++i) {
    PlannedEpisode& e = plan.episodes[i];
    if (plan.renumbered) e.index = static_cast<std::int64_t>(i);
    e.first_row = plan.frames;
    plan.frames += e.length;
  }
  return {};
}

/// One for each source; a repair has none.
Result<std::vector<SourceCheck>> checks_of(const ConvertDatasetRequest& request,
                                           const std::vector<DatasetSource>& sources) {
  std::vector<SourceCheck> out;
  for (std::size_t s = 0; !request.repair && s < sources.size(); ++s) {
    TROUPE_ASSIGN(SourceCheck check, SourceCheck::make(sources[s], sources.size() > 1));
    out.push_back(std::move(check));
  }
  return out;
}

/// What is said and carried all the same: a note for all episodes with one cause.
Result<void> note_warnings(const ConvertDatasetRequest& request, const std::vector<SourceCheck>& checks,
                           const std::vector<DatasetSource>& sources, const std::vector<ScannedEpisode>& scanned,
                           ConvertPlan& plan) {
  std::vector<DatasetProblem> warnings;
  for (std::size_t s = 0; s < checks.size(); ++s) {
    std::vector<const EpisodeCheck*> own;
    std::vector<Episode> sound;
    for (const ScannedEpisode& e : scanned) {
      if (e.episode.source != s || e.check.episode.rows == 0) continue;
      own.push_back(&e.check);
      sound.push_back(e.check.episode);
      warnings.insert(warnings.end(), e.check.warnings.begin(), e.check.warnings.end());
    }
    const auto named = checks[s].compare_metadata(own);
    warnings.insert(warnings.end(), named.begin(), named.end());
    // of other episodes the statistics of the whole are not carried
    if (sources.size() > 1 || plan.partial || !sources[s].dataset_stats.is_object()) continue;
    TROUPE_ASSIGN(const auto stated, checks[s].compare_statistics(sound, request.jobs));
    warnings.insert(warnings.end(), stated.begin(), stated.end());
  }
  std::vector<std::pair<std::string, std::int64_t>> notes;  // with how many more there are
  std::map<std::string, std::size_t> of_cause;
  for (const DatasetProblem& w : warnings) {
    const auto [it, is_new] = of_cause.emplace(w.code + cause_of(w.text), notes.size());
    if (is_new) notes.emplace_back(fmt::format("{} {}", w.code, w.text), 0);
    if (!is_new) ++notes[it->second].second;
  }
  for (const auto& [text, more] : notes)
    plan.notes.push_back(more == 0 ? text : fmt::format("{} (and {} more of this kind)", text, more));
  return {};
}

Result<void> check_copies(const ConvertDatasetRequest& request, const ConvertPlan& plan) {
  for (const PlannedEpisode& e : plan.episodes) {
    for (const PlannedSpan& span : e.spans) {
      if (request.video == ConvertVideo::copy && !span.why_not_copied.empty())
        return Error{Errc::failed_precondition,
                     fmt::format("episode {}: {} (--video_mode copy; auto codes this episode anew)", e.index,
                                 span.why_not_copied)};
    }
  }
  return {};
}

}  // namespace

std::vector<std::pair<std::size_t, std::size_t>> pack_files(const std::vector<std::int64_t>& size,
                                                            const std::vector<bool>& breaks, const FileLimits& limits) {
  std::vector<std::pair<std::size_t, std::size_t>> out;
  std::size_t first = 0;
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < size.size(); ++i) {
    const bool many = limits.episodes > 0 && static_cast<std::int64_t>(i - first) >= limits.episodes;
    const bool large =
        limits.bytes > 0 && (limits.lerobot ? sum + size[i] >= limits.bytes : sum + size[i] > limits.bytes);
    if (i > first && (many || large || breaks[i])) {
      out.emplace_back(first, i);
      first = i;
      sum = 0;
    }
    sum += size[i];
  }
  if (first < size.size()) out.emplace_back(first, size.size());
  return out;
}

Result<ConvertPlan> make_plan(const ConvertDatasetRequest& request, std::vector<DatasetSource>& sources) {
  ConvertPlan plan;
  for (std::size_t s = 1; s < sources.size(); ++s) {
    TROUPE_TRY(check_match(sources[0], sources[s]));
    if (sources[s].cameras != sources[0].cameras)
      return invalid_argument(fmt::format("{} and {} list their cameras in different orders in info.json",
                                          sources[0].root, sources[s].root));
  }
  plan.cameras = sources[0].cameras;
  plan.rate = FrameRate::of(sources[0].facts.fps);
  for (const DatasetSource& s : sources) plan.notes.insert(plan.notes.end(), s.notes.begin(), s.notes.end());
  merge_tasks(sources, plan);
  TROUPE_ASSIGN(const std::vector<SourceCheck> checks, checks_of(request, sources));
  TROUPE_ASSIGN(std::vector<ScannedEpisode> scanned, scan_episodes(request, sources, checks));
  Xxh3Stream inputs;
  for (const ScannedEpisode& s : scanned) inputs.update(std::as_bytes(std::span(s.files_hash)));
  TROUPE_TRY(take_episodes(request, scanned, sources, plan));
  TROUPE_TRY(note_warnings(request, checks, sources, scanned, plan));
  TROUPE_TRY(check_copies(request, plan));
  if (plan.renumbered)
    plan.notes.push_back(fmt::format("episodes, rows and `index` are numbered anew, 0 to {} and 0 to {}",
                                     plan.episodes.size() - 1, plan.frames - 1));
  for (int camera = -1; camera < static_cast<int>(plan.cameras.size()); ++camera) plan_files(request, plan, camera);
  plan.text = plan_text(request, sources, plan, inputs.hex());
  return plan;
}

}  // namespace troupe::data
