#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::workers {

/// What GEAR and RLinf fix in code for an embodiment tag, and what a folder without experiment_cfg/conf.yaml therefore
/// cannot say: layout of views, prompt template, keys, image sizes, sign of the gripper.
struct EmbodimentDefaults {
  /// Also the value of data.embodiment.prompt.
  std::string tag;
  std::int64_t id = 0;
  /// A value of data.embodiment.layout, for more than one view.
  std::string layout;
  /// Used where conf.yaml is absent. Empty: as the metadata lists them, nothing relative.
  std::vector<std::string> views{}, state_keys{}, action_keys{}, relative_action_keys{};
  /// Pixels of one view, where conf.yaml is absent.
  std::int64_t image_height = 176, image_width = 320;
  /// RLinf sends the sign of the last action value as the gripper's command.
  bool sign_gripper = false;
};

/// The row of a tag, or null.
const EmbodimentDefaults* find_embodiment(const std::string& tag);
/// Every tag of the table, for messages.
std::string known_embodiments();

/// The canvas of `num_views` views: "single" for one, else the tag's layout (the generic 2x2 for unknown tags).
std::string canvas_layout(const std::string& tag, std::size_t num_views);

}  // namespace troupe::workers
