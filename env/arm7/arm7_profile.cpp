#include "env/arm7/arm7_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <utility>

#include "env/arm7/arm7_cameras.h"

namespace troupe::env {
namespace {

using Kind = Arm7Output::Kind;

constexpr std::int64_t kDecimation = 10, kDroidDecimation = 13;
constexpr double kTimestep = 0.005, kDroidTimestep = 1.0 / 195;  // s: 20 Hz, 15 Hz
constexpr std::int64_t kPixelSide = 84, kViewSide = 64, kLiberoSide = 256, kDroidWidth = 320, kDroidHeight = 180;
constexpr std::int64_t kSmallestSide = 8, kLargestSide = 1024;

void add_vector(Arm7Profile& profile, std::string name, Kind kind, std::int64_t size) {
  profile.spec.observation.push_back({.name = std::move(name), .shape = {size}, .unit = {}});
  profile.outputs.push_back({.kind = kind, .camera = {}});
}

void add_image(Arm7Profile& profile, Kind kind, const std::string& camera, std::int64_t width, std::int64_t height) {
  EnvField field;
  field.name = (kind == Kind::rgb ? "rgb." : kind == Kind::depth ? "depth." : "seg.") + camera;
  field.shape = {height, width};
  field.low = 0;
  if (kind == Kind::rgb) field.shape.push_back(3);
  if (kind == Kind::depth) {
    field.unit = "m";
  } else {
    field.high = 255;
    field.dtype = EnvDType::u8;
  }
  profile.spec.observation.push_back(std::move(field));
  profile.outputs.push_back({.kind = kind, .camera = camera, .width = width, .height = height});
  profile.spec.observes_on_demand = true;
}

/// In the order of names.
void add_instruction(Arm7Profile& profile) {
  auto& fields = profile.spec.observation;
  const auto after =
      std::find_if(fields.begin(), fields.end(), [](const EnvField& f) { return f.name > "instruction"; });
  profile.outputs.insert(profile.outputs.begin() + (after - fields.begin()), {.kind = Kind::text, .camera = {}});
  fields.insert(after, EnvField{.name = "instruction",
                                .shape = {kArm7InstructionBytes},
                                .low = 0,
                                .high = 255,
                                .unit = {},
                                .dtype = EnvDType::u8,
                                .reader = EnvReader::text});
}

/// What a profile's options say about its images.
struct ImageOptions {
  std::int64_t side = 0;  ///< 0: the profile's own
  std::int64_t supersample = 1;
  bool has_labels = false;
};

/// Images of each camera; names in order: depth before rgb before seg, vectors between the first two.
void add_views(Arm7Profile& profile, std::initializer_list<const char*> cameras, std::int64_t width,
               std::int64_t height, bool has_labels) {
  for (const char* camera : cameras) add_image(profile, Kind::rgb, camera, width, height);
  if (!has_labels) return;
  for (const char* camera : cameras) add_image(profile, Kind::labels, camera, width, height);
}

/// Fields in the order of their names.
void add_fields(Arm7Profile& profile, Arm7Task task, const std::string& name, const ImageOptions& images) {
  const auto proprio = static_cast<std::int64_t>(kArm7Proprio);
  if (name == "state") {
    add_vector(profile, "state", Kind::state, proprio + arm7_task_part_size(task));
  } else if (name == "pixel") {
    const std::int64_t side = images.side > 0 ? images.side : kPixelSide;
    add_image(profile, Kind::depth, "front", side, side);
    add_vector(profile, "proprio", Kind::proprio, proprio);
    add_views(profile, {"front"}, side, side, images.has_labels);
  } else if (name == "views") {
    const std::int64_t side = images.side > 0 ? images.side : kViewSide;
    add_vector(profile, "proprio", Kind::proprio, proprio);
    add_views(profile, {"front", "side"}, side, side, images.has_labels);
    add_vector(profile, "task", Kind::task, arm7_task_part_size(task));
    profile.spec.observation.back().reader = EnvReader::critic;
  } else if (name == "frames") {
    const std::int64_t side = images.side > 0 ? images.side : kViewSide;
    add_views(profile, {"front"}, side, side, images.has_labels);
    add_vector(profile, "state", Kind::state, proprio + arm7_task_part_size(task));
  } else if (name == "libero") {
    const std::int64_t side = images.side > 0 ? images.side : kLiberoSide;
    add_vector(profile, "proprio", Kind::tool, 8);
    add_views(profile, {"front", "wrist"}, side, side, images.has_labels);
    profile.control = Arm7Control::ee;
  } else {
    add_vector(profile, "gripper_position", Kind::gripper, 1);
    add_vector(profile, "joint_position", Kind::joints, 7);
    add_views(profile, {"ext0", "ext1", "wrist"}, kDroidWidth, kDroidHeight, images.has_labels);
    profile.control = Arm7Control::joint_abs;
    profile.timestep = kDroidTimestep;
    profile.spec.frame_skip = kDroidDecimation;
  }
}

Result<bool> read_switch(const std::string& id, const EnvOptions& options, const std::string& name) {
  const auto found = options.options.find(name);
  if (found == options.options.end() || found->second == "false") return false;
  if (found->second == "true") return true;
  return invalid_argument(
      fmt::format("{}: option {} is '{}', wants true or false (env.options)", id, name, found->second));
}

Result<std::int64_t> read_supersample(const std::string& id, const std::string& profile, const EnvOptions& options) {
  const auto found = options.options.find("supersample");
  if (found == options.options.end()) return std::int64_t{1};
  const std::string& text = found->second;
  if (text != "1" && text != "2" && text != "4") {
    return invalid_argument(fmt::format("{}: option supersample is '{}', wants 1, 2 or 4 (env.options)", id, text));
  }
  if (profile == "state") {
    return invalid_argument(
        fmt::format("{}: option supersample is for profiles with images; env.profile is state", id));
  }
  return std::int64_t{text.front() - '0'};
}

Result<ImageOptions> read_image_options(const std::string& id, const std::string& profile, const EnvOptions& options) {
  ImageOptions images;
  TROUPE_ASSIGN(images.has_labels, read_switch(id, options, "seg"));
  const auto found = options.options.find("image_size");
  if (found != options.options.end()) {
    const std::string& text = found->second;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), images.side);
    if (error != std::errc() || end != text.data() + text.size() || images.side < kSmallestSide ||
        images.side > kLargestSide) {
      return invalid_argument(fmt::format("{}: option image_size is '{}', wants {} to {} pixels (env.options)", id,
                                          text, kSmallestSide, kLargestSide));
    }
    if (profile == "state" || profile == "droid") {
      return invalid_argument(fmt::format(
          "{}: option image_size is for the profiles pixel, views, frames and libero; env.profile is {}", id, profile));
    }
  }
  TROUPE_ASSIGN(images.supersample, read_supersample(id, profile, options));
  if (images.has_labels && profile == "state") {
    return invalid_argument(fmt::format("{}: option seg is for profiles with images; env.profile is state", id));
  }
  return images;
}

}  // namespace

Result<Arm7Profile> make_arm7_profile(const std::string& id, Arm7Task task, const EnvOptions& options) {
  TROUPE_TRY(check_env_options(id, options, {"state", "pixel", "views", "frames", "libero", "droid"},
                               {"terminate_on_success", "sparse", "seg", "image_size", "supersample", "instruction"}));
  const std::string name = options.profile.empty() ? "state" : options.profile;
  TROUPE_ASSIGN(const auto images, read_image_options(id, name, options));
  Arm7Profile profile;
  EnvSpec& spec = profile.spec;
  spec.id = id;
  spec.info = {"distance", "grasped", "diverged"};
  spec.has_success = true;
  spec.max_steps = options.max_steps > 0 ? options.max_steps : arm7_max_steps(task);
  spec.frame_skip = kDecimation;
  for (const std::string_view camera : arm7_camera_names()) spec.cameras.emplace_back(camera);
  profile.timestep = kTimestep;
  profile.supersample = images.supersample;
  add_fields(profile, task, name, images);
  TROUPE_ASSIGN(const bool tells, read_switch(id, options, "instruction"));
  if (tells) add_instruction(profile);
  spec.action = arm7_action_space(profile.control);
  spec.control_hz = 1 / (profile.timestep * static_cast<double>(spec.frame_skip));
  TROUPE_ASSIGN(profile.is_sparse, read_switch(id, options, "sparse"));
  TROUPE_ASSIGN(profile.ends_on_success, read_switch(id, options, "terminate_on_success"));
  profile.ends_on_success = profile.ends_on_success || profile.is_sparse;
  return profile;
}

}  // namespace troupe::env
