#include "workers/data/toy/toy_dataset.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/random.h"
#include "workers/data/image/raster.h"
#include "workers/data/toy/toy_arm.h"
#include "workers/data/toy/toy_tables.h"
#include "workers/data/video/video_encoder.h"

namespace troupe {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kStampFile = "meta/toy_dataset.json";
constexpr int kGeneratorVersion = 1;  // raise it when the same options give other tables or pictures

struct View {
  const char* key;
  ToyCamera camera;
};
constexpr View kViews[] = {{"observation.images.front", ToyCamera::front},
                           {"observation.images.side", ToyCamera::side}};

Json stamp_of(const ToyDatasetOptions& o) {
  return {{"generator", "toy_arm"}, {"version", kGeneratorVersion}, {"episodes", o.episodes}, {"frames", o.frames},
          {"fps", o.fps},           {"height", o.height},           {"width", o.width},       {"gop", o.gop},
          {"seed", o.seed}};
}

bool holds_stamp(const fs::path& dir, const Json& stamp) {
  std::ifstream in(dir / kStampFile);
  if (!in) return false;
  const Json found = Json::parse(in, nullptr, false);
  return !found.is_discarded() && found == stamp;
}

Result<void> check_options(const ToyDatasetOptions& o) {
  const bool good = o.episodes >= 1 && o.episodes <= 100'000 && o.frames >= 8 && o.frames <= 10'000 && o.fps > 0 &&
                    o.height >= 16 && o.width >= 16 && o.height <= 2048 && o.width <= 2048 && o.height % 2 == 0 &&
                    o.width % 2 == 0 && o.gop >= 1;
  if (good) return {};
  return Error{
      Errc::invalid_argument,
      fmt::format(
          "toy dataset of {} episodes of {} frames, {}x{} pixels at {} per second, a key every {}; wanted 1 to 100000 "
          "episodes, 8 to 10000 frames, even sides of 16 to 2048",
          o.episodes, o.frames, o.height, o.width, o.fps, o.gop)};
}

Result<void> write_text(const fs::path& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.close();
  if (!out) return Error{Errc::failed_precondition, fmt::format("{} could not be written", path.string())};
  return {};
}

std::int64_t length_of(const ToyDatasetOptions& o, std::int64_t episode) {
  // its own counter, far from the scene's, so that lengths do not depend on how many numbers a scene draws
  CounterRng rng(o.seed, rng_stream::toy_scene, static_cast<std::uint64_t>(episode) | std::uint64_t{1} << 63);
  const std::int64_t spread = o.frames / 8;
  return o.frames - spread + rng.below(static_cast<std::uint32_t>(2 * spread + 1));
}

Result<Json> write_video(const fs::path& path, const ToyEpisode& episode, ToyCamera camera,
                         const ToyDatasetOptions& o) {
  TROUPE_ASSIGN(
      const auto video,
      VideoEncoder::open(path.string(), {.width = o.width, .height = o.height, .fps = o.fps, .gop = o.gop, .crf = 15}));
  Raster raster(o.height, o.width);
  ToyImageSums sums;
  for (std::int64_t t = 0; t < static_cast<std::int64_t>(episode.states.size()); ++t) {
    draw_toy_scene(episode, t, camera, o.height, o.width, raster);
    const Rgb8View picture = raster.bytes();
    sums.add(picture);
    TROUPE_TRY(video->write(picture));
  }
  TROUPE_TRY(video->finish());
  return sums.to_json();
}

/// Everything but the rename.
Result<void> write_files(const fs::path& dir, const ToyDatasetOptions& o) {
  std::string episodes, stats, tasks;
  ToyEpisodeRows rows{.fps = o.fps};
  for (std::int64_t e = 0; e < o.episodes; ++e) {
    const ToyEpisode episode = plan_toy_episode(o.seed, e, length_of(o, e));
    const std::string chunk = fmt::format("chunk-{:03d}", e / 1000), name = fmt::format("episode_{:06d}", e);
    rows.episode_index = e;
    Json episode_stats = Json::object();
    for (const View& view : kViews) {
      const fs::path folder = dir / "videos" / chunk / view.key;
      fs::create_directories(folder);
      TROUPE_ASSIGN(episode_stats[view.key], write_video(folder / (name + ".mp4"), episode, view.camera, o));
    }
    fs::create_directories(dir / "data" / chunk);
    TROUPE_TRY(write_toy_table((dir / "data" / chunk / (name + ".parquet")).string(), episode, rows));
    episode_stats.update(toy_table_stats(episode, rows));
    const Json listed = {{"episode_index", e}, {"tasks", {episode.task()}}, {"length", episode.states.size()}};
    episodes += listed.dump() + "\n";
    stats += Json{{"episode_index", e}, {"stats", episode_stats}}.dump() + "\n";
    rows.first_index += static_cast<std::int64_t>(episode.states.size());
  }
  for (std::size_t c = 0; c < kToyColors.size(); ++c) {
    tasks += Json{{"task_index", c}, {"task", toy_task(static_cast<std::int64_t>(c))}}.dump() + "\n";
  }
  TROUPE_TRY(write_text(dir / "meta/episodes.jsonl", episodes));
  TROUPE_TRY(write_text(dir / "meta/episodes_stats.jsonl", stats));
  TROUPE_TRY(write_text(dir / "meta/tasks.jsonl", tasks));
  TROUPE_TRY(write_text(dir / "meta/modality.json", toy_modality().dump(2) + "\n"));
  TROUPE_TRY(write_text(dir / "meta/info.json", toy_info(o, rows.first_index).dump(2) + "\n"));
  return write_text(dir / kStampFile, stamp_of(o).dump(2) + "\n");
}

/// One call makes everything written so far durable before the folder gets its name.
void sync_filesystem(const fs::path& dir) {
  const int fd = ::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  ::syncfs(fd);
  ::close(fd);
}

Result<void> publish(const fs::path& made, const fs::path& dir, const Json& stamp) {
  sync_filesystem(made);
  std::error_code failed;
  fs::rename(made, dir, failed);
  if (!failed) return {};
  std::error_code ignored;
  fs::remove_all(made, ignored);
  // another process may have been faster
  if (holds_stamp(dir, stamp)) return {};
  return Error{Errc::failed_precondition,
               fmt::format("{} could not be renamed to {}: {}", made.string(), dir.string(), failed.message())};
}

}  // namespace

Result<void> write_toy_dataset(const std::string& dir, const ToyDatasetOptions& options) {
  TROUPE_TRY(check_options(options));
  const Json stamp = stamp_of(options);
  fs::path target(dir);
  if (!target.has_filename()) target = target.parent_path();  // a trailing slash
  if (holds_stamp(target, stamp)) return {};
  const fs::path made = target.string() + fmt::format(".tmp-{}", ::getpid());
  try {
    if (fs::exists(target) && !fs::is_empty(target)) {
      return Error{
          Errc::failed_precondition,
          fmt::format(
              "{} exists and is not a toy dataset with these options ({} differs); remove it or name another folder",
              target.string(), kStampFile)};
    }
    fs::remove_all(made);
    fs::create_directories(made / "meta");
    if (auto written = write_files(made, options); !written) {
      fs::remove_all(made);
      return written;
    }
  } catch (const fs::filesystem_error& e) {
    return Error{Errc::failed_precondition, fmt::format("writing the toy dataset failed: {}", e.what())};
  }
  return publish(made, target, stamp);
}

}  // namespace troupe
