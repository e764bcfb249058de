#include "data/toy/toy_dataset.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "base/durable_file.h"
#include "base/new_folder.h"
#include "base/random.h"
#include "data/lerobot/lerobot_writer.h"
#include "data/toy/toy_arm.h"
#include "image/raster.h"

namespace troupe::data {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kStampFile = "meta/toy_dataset.json";
constexpr int kGeneratorVersion = 2;  // raise it when the same options give other tables or frames

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
  return invalid_argument(fmt::format(
      "toy dataset of {} episodes of {} frames, {}x{} pixels at {} per second, a key every {}; wanted 1 to 100000 "
      "episodes, 8 to 10000 frames, even sides of 16 to 2048",
      o.episodes, o.frames, o.height, o.width, o.fps, o.gop));
}

std::int64_t length_of(const ToyDatasetOptions& o, std::int64_t episode) {
  // its own counter, far from the scene's, so that lengths do not depend on how many numbers a scene draws
  CounterRng rng(o.seed, rng_stream::toy_scene, static_cast<std::uint64_t>(episode) | std::uint64_t{1} << 63);
  const std::int64_t spread = o.frames / 8;
  return o.frames - spread + rng.below(static_cast<std::uint32_t>(2 * spread + 1));
}

LerobotDescription description_of(const ToyDatasetOptions& o) {
  const std::vector<std::string> joints = {"shoulder", "elbow", "wrist", "gripper"};
  LerobotDescription d{.robot_type = "toy_arm",
                       .fps = o.fps,
                       .columns = {{.name = "observation.state", .width = joints.size(), .names = joints},
                                   {.name = "action", .width = joints.size(), .names = joints}},
                       .height = o.height,
                       .width = o.width,
                       .gop = o.gop,
                       .crf = 15};
  for (const View& view : kViews) d.cameras.emplace_back(view.key);
  return d;
}

Json modality() {
  const Json parts = {{"arm", {{"start", 0}, {"end", 3}}}, {"gripper", {{"start", 3}, {"end", 4}}}};
  return {{"state", parts},
          {"action", parts},
          {"video",
           {{"front", {{"original_key", "observation.images.front"}}},
            {"side", {{"original_key", "observation.images.side"}}}}},
          {"annotation", {{"task", {{"original_key", "task_index"}}}}}};
}

/// The numbers of all poses, row by row.
std::span<const float> numbers_of(const std::vector<ToyPose>& poses) {
  return {poses.front().data(), poses.size() * poses.front().size()};
}

/// Everything but the rename.
Result<void> write_files(const std::string& dir, const ToyDatasetOptions& o, const Progress& progress) {
  TROUPE_ASSIGN(LerobotWriter writer, LerobotWriter::begin(dir, description_of(o)));
  for (std::size_t c = 0; c < kToyColors.size(); ++c) {
    for (const bool left : {true, false}) writer.task_index(toy_task(static_cast<std::int64_t>(c), left));
  }
  image::Raster raster(o.height, o.width);
  for (std::int64_t e = 0; e < o.episodes; ++e) {
    const ToyEpisode episode = plan_toy_episode(o.seed, e, length_of(o, e));
    TROUPE_TRY(writer.append(
        {.length = static_cast<std::int64_t>(episode.states.size()),
         .task_index = writer.task_index(episode.task()),
         .columns = {numbers_of(episode.states), numbers_of(episode.actions)},
         .image = [&](std::size_t view, std::int64_t step) -> Result<Rgb8View> {
           if (step == 0)
             raster = image::Raster(o.height,
                                    o.width);  // a scene keeps a little of the one before at the horizon
           draw_toy_scene(episode, step, kViews[view].camera, o.height, o.width, raster);
           return raster.bytes();
         }}));
    if (progress) progress(e + 1, o.episodes);
  }
  TROUPE_TRY(writer.finish());
  TROUPE_TRY(write_file_synced(dir + "/meta/modality.json", modality().dump(2) + "\n"));
  return write_file_synced(dir + "/" + kStampFile, stamp_of(o).dump(2) + "\n");
}

}  // namespace

Result<void> write_toy_dataset(const std::string& dir, const ToyDatasetOptions& options, const Progress& progress) {
  TROUPE_TRY(check_options(options));
  const Json stamp = stamp_of(options);
  if (holds_stamp(dir, stamp)) return {};
  auto folder = NewFolder::begin(dir);
  std::error_code absent;
  if (!folder && fs::exists(dir, absent)) {
    return folder.error().with(fmt::format("{} is not that of a toy dataset with these options", kStampFile));
  }
  if (!folder) return folder.error();
  TROUPE_TRY(write_files(folder->path(), options, progress));
  auto published = folder->publish();
  // another process may have been faster
  if (published || holds_stamp(dir, stamp)) return {};
  return published;
}

}  // namespace troupe::data
