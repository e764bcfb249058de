#include "env/registry/expert.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <initializer_list>
#include <utility>

#include "env/arm7/arm7_task.h"
#include "env/arm7/scripted.h"

namespace troupe::env {

namespace {

class Arm7Expert final : public Expert {
 public:
  Arm7Expert(Arm7Task task, ScriptedArm7 script) : task_(task), script_(std::move(script)) {}

  void reset() override { script_.reset(); }
  std::span<const float> act(std::span<const float> state) override { return action_ = script_.act(state); }
  std::string robot() const override { return "arm7"; }
  std::string instruction(std::uint64_t seed) const override {
    return arm7_instruction(task_, make_arm7_episode(task_, seed));
  }

  std::vector<std::string> action_names() const override {
    std::vector<std::string> names;
    add(names, "q{}_step", {"0", "1", "2", "3", "4", "5", "6"});
    names.emplace_back("gripper");
    return names;
  }

  /// Proprioception, then what write_arm7_task_part writes.
  std::vector<std::string> state_names() const override {
    const auto xyz = {"x", "y", "z"};
    const auto wxyz = {"w", "x", "y", "z"};
    std::vector<std::string> names;
    add(names, "q{}", {"0", "1", "2", "3", "4", "5", "6"});
    add(names, "q{}_speed", {"0", "1", "2", "3", "4", "5", "6"});
    add(names, "finger{}", {"0", "1"});
    add(names, "tcp_{}", xyz);
    add(names, "tcp_q{}", wxyz);
    names.insert(names.end(), {"gripper_told", "time_left"});
    if (has_cube(task_)) {
      add(names, "cube_{}", xyz);
      add(names, "cube_q{}", wxyz);
    }
    if (has_goal(task_)) add(names, "goal_{}", xyz);
    add(names, has_cube(task_) ? "tcp_to_cube_{}" : "tcp_to_goal_{}", xyz);
    if (has_cube(task_) && has_goal(task_)) add(names, "cube_to_goal_{}", xyz);
    if (task_ == Arm7Task::lift) names.emplace_back("cube_height");
    if (task_ == Arm7Task::lift || task_ == Arm7Task::pick_place) names.emplace_back("grasped");
    return names;
  }

 private:
  static void add(std::vector<std::string>& names, const char* form, std::initializer_list<const char*> parts) {
    for (const char* part : parts) names.push_back(fmt::format(fmt::runtime(form), part));
  }

  Arm7Task task_;
  ScriptedArm7 script_;
  std::array<float, kArm7Joints + 1> action_{};
};

template <Arm7Task task>
Result<std::unique_ptr<Expert>> make_arm7_expert() {
  TROUPE_ASSIGN(ScriptedArm7 script, ScriptedArm7::make(task));
  return std::unique_ptr<Expert>(std::make_unique<Arm7Expert>(task, std::move(script)));
}

struct ExpertRow {
  std::string_view env_id;
  Result<std::unique_ptr<Expert>> (*make)();
};

/// The table. A row here is all that gives an environment its expert; nothing else branches on a name.
constexpr ExpertRow kExperts[] = {
    {"arm7/reach-v1", make_arm7_expert<Arm7Task::reach>},
    {"arm7/lift-v1", make_arm7_expert<Arm7Task::lift>},
    {"arm7/pick_place-v1", make_arm7_expert<Arm7Task::pick_place>},
};

}  // namespace

Result<std::unique_ptr<Expert>> make_expert(std::string_view env_id) {
  for (const ExpertRow& row : kExperts) {
    if (row.env_id == env_id) return row.make();
  }
  return Error{Errc::not_found, fmt::format("{} has no scripted controller to record; those that have one: {}", env_id,
                                            fmt::join(expert_ids(), ", "))};
}

std::vector<std::string_view> expert_ids() {
  std::vector<std::string_view> ids;
  for (const ExpertRow& row : kExperts) ids.push_back(row.env_id);
  return ids;
}

}  // namespace troupe::env
