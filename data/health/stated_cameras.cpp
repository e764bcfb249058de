#include "data/health/stated_cameras.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "data/lerobot/modality.h"

namespace troupe::data {

namespace {

using Json = nlohmann::ordered_json;

/// The object in which LeRobot keeps what it found in the first video of a camera; ports of v2.0 call it video_info.
Json details_of(const LerobotInfo& info, const std::string& camera) {
  const Json json = Json::parse(info.json, nullptr, false);
  if (!json.is_object() || !json.contains("features") || !json["features"].contains(camera)) return Json::object();
  const Json& feature = json["features"][camera];
  for (const char* key : {"info", "video_info"}) {
    if (feature.is_object() && feature.contains(key) && feature[key].is_object()) return feature[key];
  }
  return Json::object();
}

std::optional<double> number_in(const Json& details, const char* key) {
  if (!details.contains(key) || !details[key].is_number()) return std::nullopt;
  return details[key].get<double>();
}

std::string text_in(const Json& details, const char* key) {
  return details.contains(key) && details[key].is_string() ? details[key].get<std::string>() : std::string();
}

/// FFmpeg's name of a codec that is named after its encoder, its standard or its box in MP4.
std::string codec_of(const std::string& name) {
  static const std::map<std::string, std::string> known = {
      {"libsvtav1", "av1"},   {"libaom-av1", "av1"}, {"av01", "av1"},   {"libx264", "h264"},   {"avc1", "h264"},
      {"avc", "h264"},        {"h.264", "h264"},     {"h265", "hevc"},  {"h.265", "hevc"},     {"libx265", "hevc"},
      {"hvc1", "hevc"},       {"hev1", "hevc"},      {"mp4v", "mpeg4"}, {"libvpx-vp9", "vp9"}, {"vp09", "vp9"},
      {"h264_nvenc", "h264"}, {"hevc_nvenc", "hevc"}};
  const auto it = known.find(name);
  return it == known.end() ? name : it->second;
}

std::string size_text(std::int64_t height, std::int64_t width) { return fmt::format("{}x{}", width, height); }

/// One fact of a camera that files contradict.
class Fact {
 public:
  /// `said`: what info.json says, and under which key; empty: nothing, and nothing is compared.
  Fact(std::string said, const char* key) : said_(std::move(said)), key_(key) {}

  void compare(const std::string& path, const std::string& found, bool same) {
    if (said_.empty() || found.empty() || same) return;
    if (files_++ == 0) {
      path_ = path;
      found_ = found;
    }
  }

  void report(const LerobotDataset& dataset, const NamedColumn& camera, std::vector<HealthFinding>& findings) const {
    if (files_ == 0) return;
    const std::string others = files_ == 1 ? "" : fmt::format(" (and {} more of this camera differ)", files_ - 1);
    findings.push_back({"D02", FindingLevel::warning, path_,
                        fmt::format("{}: its frames are {}{}; {}/meta/info.json says {} for '{}' ({}). What the file "
                                    "has is used; write it into info.json, which other programs believe",
                                    path_, found_, others, dataset.root(), said_, camera.column, key_),
                        -1});
  }

 private:
  std::string said_;
  const char* key_;
  std::int64_t files_ = 0;
  std::string path_, found_;
};

}  // namespace

void compare_with_info(const LerobotDataset& dataset, const NamedColumn& camera, const FoundCamera& found,
                       std::vector<HealthFinding>& findings) {
  const LerobotFeature* feature = dataset.info().find(camera.column);
  if (feature == nullptr) return;
  const Json details = details_of(dataset.info(), camera.column);
  // three numbers without names of the axes may stand in any order
  const auto& shape = feature->shape;
  const bool has_shape = shape.size() == 3 && (shape[2] == 1 || shape[2] == 3 || shape[2] == 4);
  const auto height = number_in(details, "video.height"), width = number_in(details, "video.width");
  const auto fps = number_in(details, "video.fps");
  const std::string codec = codec_of(text_in(details, "video.codec")), pix_fmt = text_in(details, "video.pix_fmt");
  Fact by_shape(has_shape ? size_text(shape[0], shape[1]) : "", "shape");
  Fact by_size(height && width ? size_text(std::llround(*height), std::llround(*width)) : "",
               "video.height, video.width");
  Fact by_codec(codec, "video.codec"), by_format(pix_fmt, "video.pix_fmt");
  Fact by_rate(fps ? fmt::format("{:.6g} a second", *fps) : "", "video.fps");
  const auto compare_size = [&](const std::string& path, std::int64_t h, std::int64_t w) {
    by_shape.compare(path, size_text(h, w), has_shape && shape[0] == h && shape[1] == w);
    by_size.compare(path, size_text(h, w), height && width && std::llround(*height) == h && std::llround(*width) == w);
  };
  for (const auto& [path, file] : found.videos) {
    const VideoInfo& info = file->info;
    compare_size(path, info.height, info.width);
    by_codec.compare(path, info.codec, info.codec == codec);
    by_format.compare(path, info.pix_fmt, info.pix_fmt == pix_fmt || info.pix_fmt == "unknown");
    by_rate.compare(path, info.fps > 0 ? fmt::format("{:.6g} a second", info.fps) : "",
                    fps && std::abs(info.fps - *fps) <= 0.01 * *fps);
  }
  for (const auto& [path, size] : found.images) compare_size(path, size.height, size.width);
  for (const Fact* fact : {&by_shape, &by_size, &by_codec, &by_format, &by_rate})
    fact->report(dataset, camera, findings);
}

void name_depth_maps(const LerobotDataset& dataset, std::vector<HealthFinding>& findings) {
  const auto modality = read_modality(dataset.root(), dataset.info());
  for (const LerobotFeature& feature : dataset.info().features) {
    if (!feature.is_camera() || !feature.is_depth) continue;
    const bool called_view =
        modality && std::any_of(modality->video.begin(), modality->video.end(),
                                [&](const NamedColumn& view) { return view.column == feature.name; });
    const std::string path = dataset.root() + (called_view ? "/meta/modality.json" : "/meta/info.json");
    findings.push_back(
        {"D06", called_view ? FindingLevel::warning : FindingLevel::note, path,
         fmt::format(
             "{}: the camera '{}' is a depth map (is_depth_map in meta/info.json): its frames are distances, and "
             "views are colours. It is left out{}",
             path, feature.name,
             called_view ? "; a job that takes it is refused: take it out of `video`, or name other "
                           "data.embodiment.views"
                         : ""),
         -1});
  }
}

}  // namespace troupe::data
