#include "data/convert/metadata.h"

#include <fmt/format.h>

#include <cmath>
#include <set>

extern "C" {
#include <libavcodec/avcodec.h>
}

#include "data/convert/finished_file.h"
#include "data/convert/packet_copy.h"
#include "data/convert/quantiles.h"

namespace troupe::data {

namespace {

/// LeRobot writes whole rates as integers.
JsonDoc whole(double value) {
  return value == std::floor(value) ? JsonDoc(static_cast<std::int64_t>(value)) : JsonDoc(value);
}

JsonDoc file_size_mb(double asked, std::int64_t shard_bytes) {
  if (asked > 0) return whole(asked);
  return std::max<std::int64_t>(1, shard_bytes / 1048576);
}

/// The numbers of info.discarded_episode_indices in the output.
JsonDoc discarded(const ConvertContext& context) {
  JsonDoc out = JsonDoc::array();
  for (const PlannedEpisode& e : context.plan.episodes) {
    const auto& list = context.sources[e.source].facts.discarded_episodes;
    if (std::count(list.begin(), list.end(), context.source_of(e).index) > 0) out.push_back(e.index);
  }
  return out;
}

void set_counts(const ConvertContext& context, JsonDoc& info) {
  const ConvertPlan& plan = context.plan;
  info["total_episodes"] = plan.episodes.size();
  info["total_frames"] = plan.frames;
  info["total_tasks"] = plan.texts.size();
  if (plan.renumbered) info["splits"] = {{"train", fmt::format("0:{}", plan.episodes.size())}};
  if (info.contains("discarded_episode_indices")) info["discarded_episode_indices"] = discarded(context);
}

/// A camera's shape, its axes in the order of their names.
void set_frame_size(JsonDoc& feature, std::int64_t height, std::int64_t width) {
  if (!feature.contains("shape") || feature["shape"].size() != 3) return;
  const JsonDoc names = feature.contains("names") ? feature["names"] : JsonDoc();
  const char* const usual[] = {"height", "width", "channel"};
  for (std::size_t d = 0; d < 3; ++d) {
    const std::string axis =
        names.is_array() && names.size() == 3 && names[d].is_string() ? names[d].get<std::string>() : usual[d];
    if (axis == "height") feature["shape"][d] = height;
    if (axis == "width") feature["shape"][d] = width;
  }
}

/// Sizes and codecs as the first file of every camera has them.
Result<void> describe_files(const ConvertContext& context, JsonDoc& features) {
  std::set<int> seen;
  for (const PlannedTask& task : context.plan.tasks) {
    if (task.camera < 0 || !seen.insert(task.camera).second) continue;
    TROUPE_ASSIGN(const auto table, inspected_packets(context.out + "/" + task.files.front().path));
    JsonDoc& feature = features[context.plan.cameras[static_cast<std::size_t>(task.camera)]];
    set_frame_size(feature, table->codec->height, table->codec->width);
    for (const char* key : {"info", "video_info"}) {
      if (!feature.contains(key) || !feature[key].is_object()) continue;
      feature[key]["video.codec"] = codec_name(*table);
      feature[key]["video.pix_fmt"] = table->pix_fmt;
      if (feature[key].contains("video.width")) feature[key]["video.width"] = table->codec->width;
      if (feature[key].contains("video.height")) feature[key]["video.height"] = table->codec->height;
      if (feature[key].contains("video.fps")) feature[key]["video.fps"] = whole(context.sources[0].facts.fps);
    }
  }
  return {};
}

/// Sizes and codec of frames that were coded anew.
void describe_frames(const ConvertContext& context, JsonDoc& features) {
  for (const PlannedTask& task : context.plan.tasks) {
    if (task.camera < 0 || !task.files.front().encode || context.request.video != ConvertVideo::reencode) continue;
    JsonDoc& feature = features[context.plan.cameras[static_cast<std::size_t>(task.camera)]];
    const ConvertEncoding& e = context.request.encoding;
    for (const char* key : {"info", "video_info"}) {
      if (!feature.contains(key) || !feature[key].is_object()) continue;
      JsonDoc& video = feature[key];
      video["video.codec"] = e.codec;
      video["video.pix_fmt"] = e.pix_fmt;
      if (e.width > 0) {
        if (video.contains("video.width")) video["video.width"] = e.width;
        if (video.contains("video.height")) video["video.height"] = e.height;
      }
      for (const auto& [name, value] :
           {std::pair<const char*, JsonDoc>{"video.g", e.gop}, {"video.crf", e.crf}, {"video.preset", e.preset}}) {
        if (video.contains(name)) video[name] = value;
      }
    }
    if (e.width > 0) set_frame_size(feature, e.height, e.width);
  }
}

JsonDoc info_v30(const ConvertContext& context, JsonDoc info) {
  for (const char* gone : {"total_chunks", "total_videos", "videos"}) info.erase(gone);
  info["codebase_version"] = "v3.0";
  info["fps"] = whole(context.sources[0].facts.fps);
  set_counts(context, info);
  info["chunks_size"] = kFilesPerChunk;
  info["data_files_size_in_mb"] = file_size_mb(context.request.data_file_mb, context.request.shard_bytes);
  info["video_files_size_in_mb"] = file_size_mb(context.request.video_file_mb, context.request.shard_bytes);
  info["data_path"] = "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet";
  info["video_path"] = context.plan.cameras.empty()
                           ? JsonDoc()
                           : JsonDoc("videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4");
  for (auto& [name, feature] : info["features"].items()) {
    if (feature.value("dtype", "") != "video") feature["fps"] = info["fps"];
  }
  return info;
}

JsonDoc info_v21(const ConvertContext& context, JsonDoc info) {
  for (const char* gone : {"data_files_size_in_mb", "video_files_size_in_mb", "videos"}) info.erase(gone);
  info["codebase_version"] = "v2.1";
  set_counts(context, info);
  const auto episodes = static_cast<std::int64_t>(context.plan.episodes.size());
  info["chunks_size"] = 1000;
  info["total_chunks"] = (episodes + 999) / 1000;
  info["total_videos"] = episodes * static_cast<std::int64_t>(context.plan.cameras.size());
  info["data_path"] = "data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet";
  info["video_path"] = context.plan.cameras.empty()
                           ? JsonDoc()
                           : JsonDoc("videos/chunk-{episode_chunk:03d}/{video_key}/episode_{episode_index:06d}.mp4");
  for (auto& [name, feature] : info["features"].items()) {
    if (feature.value("dtype", "") != "video") feature.erase("fps");
  }
  return info;
}

}  // namespace

Result<void> write_dataset_stats(const ConvertContext& context, const JsonDoc& sum, std::vector<std::string>& notes) {
  JsonDoc out = sum;
  const JsonDoc before = context.sources.size() == 1 ? context.sources[0].dataset_stats : JsonDoc();
  bool quantiles = false;
  if (before.is_object() && context.plan.partial) {
    // those of other episodes; that the file has quantiles still says that its readers want one
    for (const auto& [feature, values] : before.items())
      quantiles = quantiles || (values.is_object() && values.contains("q01"));
  } else if (before.is_object()) {
    for (const auto& [feature, values] : before.items()) {
      if (!values.is_object()) continue;
      quantiles = quantiles || values.contains("q01");
      for (const auto& [stat, value] : values.items()) {
        // quantiles of the whole dataset are better than the envelope of the episodes'
        if (!out.contains(feature) || !out[feature].contains(stat) || stat.starts_with("q")) out[feature][stat] = value;
      }
    }
  }
  const bool v30 = context.request.to == DatasetVersion::v30;
  if (!v30 && !quantiles) return {};
  if (before.is_object() && !v30 && !context.plan.partial) out = before;
  add_quantiles(context, out, notes);
  return write_finished(context.out + "/meta/stats.json", out.dump(4));
}

Result<void> write_info(const ConvertContext& context) {
  JsonDoc info = context.sources[0].info;
  describe_frames(context, info["features"]);
  if (context.request.repair) TROUPE_TRY(describe_files(context, info["features"]));
  const bool v30 = context.request.to == DatasetVersion::v30;
  info = v30 ? info_v30(context, std::move(info)) : info_v21(context, std::move(info));
  return write_finished(context.out + "/meta/info.json", info.dump(4));
}

}  // namespace troupe::data
