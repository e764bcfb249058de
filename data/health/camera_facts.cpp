#include "data/health/camera_facts.h"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>

#include "data/video/packet_table.h"

namespace troupe::data {

namespace {

std::string names_of(const std::map<std::string, std::int64_t>& counts) {
  std::string out;
  for (const auto& [name, files] : counts) out += fmt::format("{}{} ({} files)", out.empty() ? "" : ", ", name, files);
  return out;
}

std::string first_of(const std::map<std::string, std::int64_t>& counts) {
  return counts.empty() ? std::string() : counts.begin()->first;
}

std::vector<double> group_lengths(const PacketTable& table) {
  std::vector<double> out;
  for (const VideoSample& s : table.samples) {
    if (s.key) out.push_back(0);
    if (!out.empty()) ++out.back();
  }
  return out;
}

}  // namespace

Result<ProbedVideos::File> ProbedVideos::look_at(const std::string& path) const {
  File out;
  std::error_code absent;  // the probe says what is wrong with the file
  const auto bytes = std::filesystem::file_size(path, absent);
  out.bytes = absent ? 0 : static_cast<std::int64_t>(bytes);
  if (probe_) {
    TROUPE_ASSIGN(out.info, probe_(path));
    return out;
  }
  TROUPE_ASSIGN(out.info, probe_video(path));
  TROUPE_ASSIGN(const auto table,
                read_packet_table(path, false, std::chrono::steady_clock::now() + std::chrono::seconds(10)));
  out.groups = group_lengths(*table);
  return out;
}

Result<VideoInfo> ProbedVideos::probe(const std::string& path) {
  std::shared_ptr<const Result<File>> known;
  {
    const std::lock_guard lock(mutex_);
    if (const auto it = seen_.find(path); it != seen_.end()) known = it->second;
  }
  if (!known) {  // two threads may look at one file at once; both see the same
    known = std::make_shared<const Result<File>>(look_at(path));
    const std::lock_guard lock(mutex_);
    known = seen_.try_emplace(path, known).first->second;
  }
  if (!*known) return known->error();
  return (*known)->info;
}

std::map<std::string, ProbedVideos::File> ProbedVideos::files() const {
  std::map<std::string, File> out;
  const std::lock_guard lock(mutex_);
  for (const auto& [path, file] : seen_) {
    if (*file) out.emplace(path, **file);
  }
  return out;
}

CameraReport describe_camera(const NamedColumn& camera, const std::vector<const ProbedVideos::File*>& files) {
  CameraReport out;
  out.name = camera.name;
  out.feature = camera.column;
  std::vector<double> groups;
  for (const ProbedVideos::File* file : files) {
    const VideoInfo& info = file->info;
    ++out.files;
    out.frames += info.frames;
    out.bytes += file->bytes;
    out.reordered = out.reordered || info.has_b_frames;
    if (!info.codec.empty()) ++out.codecs[info.codec];
    ++out.sizes[fmt::format("{}x{}", info.width, info.height)];
    ++out.rates[fmt::format("{:.6g}", info.fps)];
    groups.insert(groups.end(), file->groups.begin(), file->groups.end());
  }
  out.gop = spread_of(std::move(groups));
  return out;
}

void compare_cameras(const std::string& root, const std::vector<CameraReport>& cameras,
                     std::vector<HealthFinding>& findings) {
  const auto warn = [&](std::string text) {
    findings.push_back({"D09", FindingLevel::warning, root, std::move(text), -1});
  };
  using Counts = std::map<std::string, std::int64_t> CameraReport::*;
  const std::pair<const char*, Counts> facts[] = {
      {"codec", &CameraReport::codecs}, {"size", &CameraReport::sizes}, {"rate", &CameraReport::rates}};
  for (const auto& [what, counts] : facts) {
    const CameraReport* first = nullptr;
    for (const CameraReport& camera : cameras) {
      if ((camera.*counts).empty()) continue;
      if ((camera.*counts).size() > 1) {
        warn(fmt::format("{}: the files of {} differ in {}: {}", root, camera.feature, what, names_of(camera.*counts)));
      }
      if (first == nullptr) first = &camera;
      if (first_of(camera.*counts) == first_of(first->*counts)) continue;
      warn(fmt::format("{}: {} and {} differ in {}: {}, {}; views of one sample share one size", root, first->feature,
                       camera.feature, what, first_of(first->*counts), first_of(camera.*counts)));
    }
  }
}

}  // namespace troupe::data
