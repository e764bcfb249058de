#include "data/health/decode_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <map>
#include <unordered_map>

#include "base/parallel.h"
#include "base/stopwatch.h"
#include "data/health/camera_frames.h"

namespace troupe::data {

namespace {

constexpr double kFrozenShare = 0.95;

/// What decoding one task gave.
struct TaskResult {
  std::int64_t frames = 0, black = 0, commonest = 0;
  std::string error;
};

TaskResult decode(CameraFrames& reader, const DecodeTask& task) {
  TaskResult out;
  std::unordered_map<std::uint64_t, std::int64_t> seen;
  std::vector<bool> got(static_cast<std::size_t>(task.frames));
  const auto read =
      reader.read_facts(task.source, task.frames, [&](std::size_t i, const CameraFrames::Fact& fact) -> Result<void> {
        if (got[i]) return {};  // a second attempt shows the frames again
        got[i] = true;
        ++out.frames;
        out.black += fact.black ? 1 : 0;
        out.commonest = std::max(out.commonest, ++seen[fact.hash]);
        return {};
      });
  if (!read) {
    out.error = read.error().message();
  } else if (out.frames != task.frames) {
    out.error = fmt::format("{}: {} of {} frames were decoded", task.source.path, out.frames, task.frames);
  }
  return out;
}

void judge(const DecodeTask& task, const TaskResult& r, std::vector<HealthFinding>& findings) {
  const auto add = [&](FindingLevel level, std::string text) {
    findings.push_back({"D13", level, task.source.path, std::move(text), task.episode});
  };
  const std::string& path = task.source.path;
  if (!r.error.empty()) {
    return add(FindingLevel::problem,
               fmt::format("{} (episode {}, {} of {} frames decoded; fetch or encode the file again)", r.error,
                           task.episode, r.frames, task.frames));
  }
  if (r.frames == 0) return;
  if (r.black == r.frames) {
    add(FindingLevel::warning,
        fmt::format("{}: all {} frames of episode {} are black ({}); leave it out if the camera was dead", path,
                    r.frames, task.episode, task.camera));
  } else if (r.frames > 1 && static_cast<double>(r.commonest) > kFrozenShare * static_cast<double>(r.frames)) {
    add(FindingLevel::warning,
        fmt::format("{}: {} of {} frames of episode {} are the same one ({}); leave it out if the camera stood still",
                    path, r.commonest, r.frames, task.episode, task.camera));
  }
}

}  // namespace

DecodeReport decode_everything(std::span<const DecodeTask> tasks, std::int64_t threads,
                               std::vector<HealthFinding>& findings, const Progress& progress) {
  const auto start = std::chrono::steady_clock::now();
  std::map<std::pair<std::string, std::string>, std::vector<std::size_t>> by_file;  // path, image column -> tasks
  for (std::size_t i = 0; i < tasks.size(); ++i) by_file[{tasks[i].source.path, tasks[i].source.column}].push_back(i);
  std::vector<const std::vector<std::size_t>*> files;
  for (const auto& [name, places] : by_file) files.push_back(&places);

  std::vector<TaskResult> results(tasks.size());
  std::atomic<std::int64_t> done{0};
  std::int64_t all = 0;
  for (const DecodeTask& task : tasks) all += task.frames;
  parallel_for(files.size(), threads, [&](std::size_t f) {
    CameraFrames reader;
    for (std::size_t i : *files[f]) {
      results[i] = decode(reader, tasks[i]);
      const std::int64_t sum = done += results[i].frames;
      if (progress) progress(sum, all);
    }
  });

  DecodeReport out;
  for (const auto& [name, places] : by_file) {
    DecodedFile file{name.first, tasks[places[0]].camera, 0, 0, ""};
    std::error_code absent;  // a missing file has its error already
    const auto bytes = std::filesystem::file_size(name.first, absent);
    file.bytes = absent ? 0 : static_cast<std::int64_t>(bytes);
    for (std::size_t i : places) {
      file.frames += results[i].frames;
      if (file.error.empty()) file.error = results[i].error;
    }
    out.frames += file.frames;
    out.files.push_back(std::move(file));
  }
  for (std::size_t i = 0; i < tasks.size(); ++i) judge(tasks[i], results[i], findings);
  out.seconds = seconds_since(start);
  return out;
}

}  // namespace troupe::data
