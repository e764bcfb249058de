#include "workers/inference/agent/episode_video.h"

#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <exception>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>
#include <system_error>

#include "base/file_io.h"
#include "data/video/video_encoder.h"

namespace troupe::workers {

namespace {

constexpr std::string_view kVideoBegin = "seed_", kVideoEnd = ".mp4";

/// One environment that plays recorded actions, and what it writes into.
class Replay {
 public:
  static Result<Replay> begin(const EnvFactory& envs, const EvaluationEpisode& record) {
    Replay replay;
    TROUPE_ASSIGN(replay.env_, envs.make());
    for (const EnvField& field : envs.spec().observation)
      replay.fields_.emplace_back(static_cast<std::size_t>(field.bytes()));
    for (auto& field : replay.fields_) replay.pointers_.push_back(field.data());
    replay.info_.resize(envs.spec().info.size());
    TROUPE_TRY(replay.env_->reset(evaluation_seed(record.seed), replay.slot(true)));
    return replay;
  }

  Result<void> step(std::span<const float> action) {
    TROUPE_TRY(env_->step(action, slot(!env_->spec().observes_on_demand)));
    total_return_ += reward_;
    return {};
  }
  Result<void> render(const std::string& camera, RenderTarget out) { return env_->render(camera, out); }
  double total_return() const { return total_return_; }

 private:
  StepSlot slot(bool observes) {
    return {.observation = observes ? std::span<std::byte* const>(pointers_) : std::span<std::byte* const>(),
            .reward = &reward_,
            .terminated = &terminated_,
            .success = &success_,
            .info = info_};
  }

  std::unique_ptr<Env> env_;
  std::vector<std::vector<std::byte>> fields_;
  std::vector<std::byte*> pointers_;
  std::vector<double> info_;
  double reward_ = 0, total_return_ = 0;
  bool terminated_ = false, success_ = false;
};

Result<void> film(const EnvFactory& envs, const EvaluationEpisode& record, const std::string& path,
                  const EpisodeVideoOptions& options) {
  const EnvSpec& spec = envs.spec();
  if (spec.cameras.empty()) return Error{Errc::failed_precondition, fmt::format("{} has no camera", spec.id)};
  const auto width = static_cast<std::size_t>(spec.action.size);
  if (record.length <= 0 || record.actions.size() != static_cast<std::size_t>(record.length) * width) {
    return Error{Errc::failed_precondition, fmt::format("seed {} has {} recorded numbers; {} actions of {} were wanted",
                                                        record.seed, record.actions.size(), record.length, width)};
  }
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(options.width * options.height * 3));
  const Rgb8View picture{
      .data = pixels.data(), .height = options.height, .width = options.width, .stride = options.width * 3};
  TROUPE_ASSIGN(const auto encoder, VideoEncoder::open(path, {.width = options.width,
                                                              .height = options.height,
                                                              .fps = spec.control_hz > 0 ? spec.control_hz : 30.0}));
  TROUPE_ASSIGN(Replay replay, Replay::begin(envs, record));
  for (std::int64_t step = 0; step <= record.length; ++step) {
    TROUPE_TRY(replay.render(spec.cameras.front(), {.width = options.width, .height = options.height, .rgb = pixels}));
    TROUPE_TRY(encoder->write(picture));
    if (step < record.length)
      TROUPE_TRY(replay.step(std::span(record.actions).subspan(static_cast<std::size_t>(step) * width, width)));
  }
  TROUPE_TRY(encoder->finish());
  if (replay.total_return() == record.total_return) return {};
  return Error{Errc::failed_precondition,
               fmt::format("{} is not deterministic: seed {} had a return of {} and, with the same actions again, {}",
                           spec.id, record.seed, record.total_return, replay.total_return())};
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
  for (const auto& film : videos) {
    if (code) break;
    std::filesystem::remove(film, code);
  }
  if (code) return file_error(folder, "films of an earlier evaluation cannot be removed", code.value());
  return {};
}

}  // namespace

Result<void> write_episode_video(const EnvFactory& envs, const EvaluationEpisode& record, const std::string& path,
                                 const EpisodeVideoOptions& options) {
  try {
    if (auto written = film(envs, record, path, options); !written) return written.error().with(path);
  } catch (const std::exception& e) {  // environments are other people's code
    return Error{Errc::internal, fmt::format("{}: {}", path, e.what())};
  }
  return {};
}

std::string episode_video_name(const EvaluationEpisode& record) {
  return fmt::format("{}{}{}", kVideoBegin, record.seed, kVideoEnd);
}

Result<std::vector<std::string>> write_episode_videos(const EnvFactory& envs,
                                                      const std::vector<EvaluationEpisode>& records,
                                                      const std::string& folder) {
  std::vector<std::string> names;
  if (envs.spec().cameras.empty()) return names;
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
