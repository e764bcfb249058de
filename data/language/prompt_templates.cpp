#include "data/language/prompt_templates.h"

#include <fmt/format.h>

namespace troupe::data {
namespace {

constexpr std::string_view kRobot = "A multi-view video shows that a robot ";
constexpr std::string_view kHuman = "A single view video shows that a human ";

constexpr std::string_view kDroidViews =
    " The video is split into three views: The top view shows the camera view from the robot's wrist, the bottom-left "
    "view shows the camera view from the left exterior camera, and the bottom-right view shows the camera view from "
    "the right exterior camera. During training, one of the two bottom exterior views may be a black screen (dropped "
    "view). The robot ";

constexpr std::string_view kHeadAndHandViews =
    " The video is split into four views: The top-left view shows the camera view from the robot's head, the top-right "
    "view shows the camera view from the right hand, the bottom-left view shows the camera view from the left hand, "
    "and the bottom-right view is a black screen (inactive view). The robot ";

constexpr std::string_view kYamViews =
    " The video is split into four views: The top-left view shows the top camera, the top-right view shows the right "
    "camera, the bottom-left view shows the left camera, and the bottom-right view is a black screen. The robot ";

constexpr std::string_view kExteriorAndWristViews =
    " The video is split into two horizontal views: the left view shows the exterior camera and the right view shows "
    "the wrist camera. The robot ";

constexpr std::string_view kNegative =
    "Vibrant colors, overexposed, static, blurry details, text, subtitles, style, artwork, painting, image, still, "
    "grayscale, dull, worst quality, low quality, JPEG artifacts, ugly, mutilated, extra fingers, bad hands, bad face, "
    "deformed, disfigured, mutated limbs, fused fingers, stagnant image, cluttered background, three legs, many people "
    "in the background, walking backwards.";

/// The reference refuses agibot with a single view and gives every other template whatever the views.
constexpr PromptTemplate kTemplates[] = {
    {"none", "", "", 1},
    {"single_view_human", kHuman, "", 1},
    {"oxe_droid", kRobot, kDroidViews, 1},
    {"agibot", kRobot, kHeadAndHandViews, 2},
    {"xdof", kRobot, kHeadAndHandViews, 1},
    {"yam", kRobot, kYamViews, 1},
    {"gr1_unified", kHuman, "", 1},
    {"mecka_hands", kHuman, "", 1},
    {"libero_sim", kRobot, kExteriorAndWristViews, 1},
    {"franka_pnp", kRobot, kExteriorAndWristViews, 1},
};

}  // namespace

std::span<const PromptTemplate> prompt_templates() { return kTemplates; }

std::string_view negative_prompt() { return kNegative; }

Result<std::string> wrap_instruction(std::string_view name, std::string_view instruction, std::int64_t num_views) {
  std::string known;
  for (const PromptTemplate& entry : kTemplates) {
    if (entry.name != name) {
      known += fmt::format("{}{}", known.empty() ? "" : ", ", entry.name);
      continue;
    }
    if (num_views < entry.min_views) {
      return invalid_argument(
          fmt::format("the prompt template {} describes {} views or more, and there are {}; change "
                      "data.embodiment.prompt or data.embodiment.views",
                      name, entry.min_views, num_views));
    }
    std::string prompt(entry.prefix);
    prompt += instruction;
    if (!entry.layout.empty()) {
      prompt += entry.layout;
      prompt += instruction;
    }
    return prompt;
  }
  return invalid_argument(fmt::format("data.embodiment.prompt is '{}'; known are {}", name, known));
}

}  // namespace troupe::data
