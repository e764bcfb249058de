#include "workers/inference/agent/episode_video.h"

#include <fmt/format.h>

#include <cstddef>
#include <exception>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>
#include <system_error>

#include "base/file_io.h"
#include "data/video/video_encoder.h"
#include "env/single_env.h"

namespace troupe::workers {

namespace {

constexpr std::string_view kVideoBegin = "seed_", kVideoEnd = ".mp4";

Result<void> write_video(const std::shared_ptr<const EnvFactory>& envs, const EvaluationEpisode& record,
                         const std::string& path, const EpisodeVideoOptions& options) {
  const EnvSpec& spec = envs->spec();
  if (spec.cameras.empty()) return Error{Errc::failed_precondition, fmt::format("{} has no camera", spec.id)};
  const auto width = static_cast<std::size_t>(spec.action_numbers());
  if (record.length <= 0 || record.actions.size() != static_cast<std::size_t>(record.length) * width) {
    return Error{Errc::failed_precondition, fmt::format("seed {} has {} recorded numbers; {} actions of {} were wanted",
                                                        record.seed, record.actions.size(), record.length, width)};
  }
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(options.width * options.height * 3));
  const Rgb8View image{
      .data = pixels.data(), .height = options.height, .width = options.width, .stride = options.width * 3};
  TROUPE_ASSIGN(const auto encoder, VideoEncoder::open(path, {.width = options.width,
                                                              .height = options.height,
                                                              .fps = spec.control_hz > 0 ? spec.control_hz : 30.0}));
  TROUPE_ASSIGN(SingleEnv env, SingleEnv::make(envs));
  TROUPE_TRY(env.begin(evaluation_seed(record.seed)));
  for (std::int64_t step = 0; step <= record.length; ++step) {
    TROUPE_TRY(env.render(spec.cameras.front(), {.width = options.width, .height = options.height, .rgb = pixels}));
    TROUPE_TRY(encoder->write(image));
    if (step == record.length) break;
    const auto action = std::span(record.actions).subspan(static_cast<std::size_t>(step) * width, width);
    TROUPE_TRY(env.step(action));
  }
  TROUPE_TRY(encoder->finish());
  const double total_return = env.view().episode_return()[0];
  if (env.view().done()[0] != 0 && total_return == record.total_return) return {};
  return Error{Errc::failed_precondition,
               fmt::format("{} is not deterministic: seed {} had a return of {} and, with the same actions again, {}",
                           spec.id, record.seed, record.total_return,
                           env.view().done()[0] != 0 ? fmt::format("{}", total_return) : "no end")};
}

/// Removes what episode_video_name named; all else in the folder stays.
Result<void> remove_episode_videos(const std::string& folder) {
  std::error_code code;
  std::vector<std::filesystem::path> videos;
  for (std::filesystem::directory_iterator entry(folder, code), end; !code && entry != end; entry.increment(code)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with(kVideoBegin) && name.ends_with(kVideoEnd)) videos.push_back(entry->path());
  }
  if (code == std::errc::no_such_file_or_directory) return {};
  for (const auto& video : videos) {
    if (code) break;
    std::filesystem::remove(video, code);
  }
  if (code) return file_error(folder, "videos of an earlier evaluation cannot be removed", code.value());
  return {};
}

}  // namespace

Result<void> write_episode_video(const std::shared_ptr<const EnvFactory>& envs, const EvaluationEpisode& record,
                                 const std::string& path, const EpisodeVideoOptions& options) {
  try {
    if (auto written = write_video(envs, record, path, options); !written) return written.error().with(path);
  } catch (const std::exception& e) {  // environments are other people's code
    return Error{Errc::internal, fmt::format("{}: {}", path, e.what())};
  }
  return {};
}

std::string episode_video_name(const EvaluationEpisode& record) {
  return fmt::format("{}{}{}", kVideoBegin, record.seed, kVideoEnd);
}

Result<std::vector<std::string>> write_episode_videos(const std::shared_ptr<const EnvFactory>& envs,
                                                      const std::vector<EvaluationEpisode>& records,
                                                      const std::string& folder) {
  std::vector<std::string> names;
  if (envs->spec().cameras.empty()) return names;
  TROUPE_TRY(remove_episode_videos(folder));
  for (const EvaluationEpisode& record : records) {
    if (record.actions.empty()) continue;
    if (names.empty()) TROUPE_TRY(make_folders(folder));
    names.push_back(episode_video_name(record));
    TROUPE_TRY(write_episode_video(envs, record, fmt::format("{}/{}", folder, names.back())));
  }
  return names;
}

}  // namespace troupe::workers
