#include "workers/inference/policy/embodiment_table.h"

#include <algorithm>

namespace troupe::workers {

namespace {

EmbodimentDefaults wrist_and_scene(const char* tag) {
  return {.tag = tag,
          .id = 21,
          .layout = "horizontal",
          .views = {"image", "wrist_image"},
          .state_keys = {"state"},
          .action_keys = {"actions"},
          .image_height = 256,
          .image_width = 256,
          .sign_gripper = true};
}

const std::vector<EmbodimentDefaults>& table() {
  static const std::vector<EmbodimentDefaults> rows = {
      {.tag = "oxe_droid",
       .id = 17,
       .layout = "droid",
       .views = {"exterior_image_1_left", "exterior_image_2_left", "wrist_image_left"},
       .state_keys = {"joint_position", "gripper_position"},
       .action_keys = {"joint_position", "gripper_position"},
       .relative_action_keys = {"joint_position"},
       .sign_gripper = true},
      {.tag = "agibot",
       .id = 26,
       .layout = "grid2x2",
       .views = {"top_head", "hand_left", "hand_right"},
       .state_keys = {"left_arm_joint_position", "right_arm_joint_position", "left_effector_position",
                      "right_effector_position", "head_position", "waist_position"},
       .action_keys = {"left_arm_joint_position", "right_arm_joint_position", "left_effector_position",
                       "right_effector_position", "head_position", "waist_position", "robot_velocity"},
       .relative_action_keys = {"left_arm_joint_position", "right_arm_joint_position", "left_effector_position",
                                "right_effector_position", "head_position", "waist_position"}},
      {.tag = "yam",
       .id = 32,
       .layout = "grid2x2",
       .views = {"top_camera-images-rgb", "left_camera-images-rgb", "right_camera-images-rgb"},
       .state_keys = {"left_joint_pos", "left_gripper_pos", "right_joint_pos", "right_gripper_pos"},
       .action_keys = {"left_joint_pos", "left_gripper_pos", "right_joint_pos", "right_gripper_pos"},
       .relative_action_keys = {"left_joint_pos", "left_gripper_pos", "right_joint_pos", "right_gripper_pos"}},
      {.tag = "xdof", .id = 22, .layout = "grid2x2"},
      {.tag = "gr1_unified", .id = 24, .layout = "grid2x2"},
      {.tag = "mecka_hands", .id = 27, .layout = "grid2x2"},
      wrist_and_scene("libero_sim"),
      wrist_and_scene("franka_pnp"),
  };
  return rows;
}

}  // namespace

const EmbodimentDefaults* find_embodiment(const std::string& tag) {
  const auto it =
      std::find_if(table().begin(), table().end(), [&](const EmbodimentDefaults& e) { return e.tag == tag; });
  return it == table().end() ? nullptr : &*it;
}

std::string known_embodiments() {
  std::string names;
  for (const EmbodimentDefaults& e : table()) names += (names.empty() ? "" : ", ") + e.tag;
  return names;
}

std::string canvas_layout(const std::string& tag, std::size_t num_views) {
  if (num_views == 1) return "single";
  const EmbodimentDefaults* row = find_embodiment(tag);
  return row == nullptr ? "grid2x2" : row->layout;
}

}  // namespace troupe::workers
