#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace troupe {

/// What GEAR and RLinf fix in code for an embodiment tag, and what a folder without experiment_cfg/conf.yaml therefore
/// cannot say (dreamzero-model.md 1.3, 4.2, 6.9; data.md 2.6, 4.7).
struct EmbodimentDefaults {
  std::string tag;
  std::int64_t id = 0;
  std::string layout;  ///< of data.embodiment.layout, for more than one view
  std::string prompt;  ///< of data.embodiment.prompt
  /// Used where conf.yaml is absent. Empty: as the metadata lists them, nothing relative.
  std::vector<std::string> views{}, state_keys{}, action_keys{}, relative_action_keys{};
  std::int64_t image_height = 176, image_width = 320;  ///< of one view, where conf.yaml is absent
  bool sign_gripper = false;  ///< RLinf sends the sign of the last action value as the gripper's command
};

/// The row of a tag, or null.
const EmbodimentDefaults* find_embodiment(const std::string& tag);
/// Every tag of the table, for messages.
std::string known_embodiments();

/// The canvas of `num_views` views: "single" for one, else the tag's layout (the generic 2x2 for unknown tags).
std::string canvas_layout(const std::string& tag, std::size_t num_views);

}  // namespace troupe
