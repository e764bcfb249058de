#include "env/arm7/arm7_task.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace troupe::env {
namespace {

constexpr double kReached = 0.025, kPushed = 0.03, kLifted = 0.15;  // m
constexpr double kFullHeight = 0.2;                                 // m: more height earns nothing
constexpr double kBehind = 0.045;  // m: from the cube's centre to where the gripper pushes it

Arm7Vec minus(const Arm7Vec& a, const Arm7Vec& b) { return {a[0] - b[0], a[1] - b[1], a[2] - b[2]}; }
double norm(const Arm7Vec& v) { return std::sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]); }
double distance(const Arm7Vec& a, const Arm7Vec& b) { return norm(minus(a, b)); }
double distance_in_plane(const Arm7Vec& a, const Arm7Vec& b) { return std::hypot(a[0] - b[0], a[1] - b[1]); }
/// 1 at distance 0, towards 0 beyond 0.2 m.
double closeness(double d) { return 1 - std::tanh(5 * d); }
double yes(bool b) { return b ? 1.0 : 0.0; }
bool is_static(const Arm7TaskState& s) { return s.max_joint_speed < kArm7StaticSpeed; }
bool is_placed(const Arm7TaskState& s) { return distance(s.object, s.goal) < kReached; }

/// Where the tcp must be to push the cube towards the goal.
Arm7Vec push_point(const Arm7TaskState& s) {
  const Arm7Vec way{s.goal[0] - s.object[0], s.goal[1] - s.object[1], 0};
  const double length = std::max(norm(way), 1e-9);
  return {s.object[0] - kBehind * way[0] / length, s.object[1] - kBehind * way[1] / length, s.object[2]};
}

/// Appends to a row of floats.
struct Writer {
  std::span<float> out;
  std::size_t at = 0;
  void put(double v) { out[at++] = static_cast<float>(v); }
  void put(const Arm7Vec& v) {
    for (const double x : v) put(x);
  }
};

}  // namespace

bool has_cube(Arm7Task task) noexcept { return task != Arm7Task::reach; }
bool has_goal(Arm7Task task) noexcept { return task != Arm7Task::lift; }

std::int64_t arm7_max_steps(Arm7Task task) noexcept {
  return task == Arm7Task::reach ? 50 : task == Arm7Task::pick_place ? 100 : 80;
}

bool arm7_success(Arm7Task task, const Arm7TaskState& s) noexcept {
  switch (task) {
    case Arm7Task::reach:
      return distance(s.goal, s.tcp) < kReached && is_static(s);
    case Arm7Task::push:
      return distance_in_plane(s.object, s.goal) < kPushed;
    case Arm7Task::lift:
      return s.height() >= kLifted && s.is_grasped;
    case Arm7Task::pick_place:
      return is_placed(s) && is_static(s);
  }
  return false;
}

double arm7_reward(Arm7Task task, const Arm7TaskState& s) noexcept {
  const bool success = arm7_success(task, s);
  const double grasped = yes(s.is_grasped);
  switch (task) {
    case Arm7Task::reach:
      return closeness(distance(s.goal, s.tcp)) + yes(success);
    case Arm7Task::push:
      return 0.5 * closeness(distance(s.tcp, push_point(s))) + closeness(distance_in_plane(s.object, s.goal)) +
             yes(success);
    case Arm7Task::lift:
      return closeness(distance(s.object, s.tcp)) + grasped * (1 + std::clamp(s.height() / kFullHeight, 0.0, 1.0)) +
             2 * yes(success);
    case Arm7Task::pick_place: {
      if (success) return 1;
      const double carried = closeness(distance(s.object, s.goal)) * grasped;
      return (closeness(distance(s.object, s.tcp)) + grasped + carried +
              closeness(s.max_joint_speed) * yes(is_placed(s))) /
             5;
    }
  }
  return 0;
}

double arm7_distance(Arm7Task task, const Arm7TaskState& s) noexcept {
  switch (task) {
    case Arm7Task::reach:
      return distance(s.goal, s.tcp);
    case Arm7Task::push:
      return distance_in_plane(s.object, s.goal);
    case Arm7Task::lift:
      return distance(s.object, s.tcp);
    case Arm7Task::pick_place:
      return distance(s.object, s.goal);
  }
  return 0;
}

std::int64_t arm7_task_part_size(Arm7Task task) noexcept {
  switch (task) {
    case Arm7Task::reach:
      return 6;
    case Arm7Task::push:
      return 16;
    case Arm7Task::lift:
      return 12;
    case Arm7Task::pick_place:
      return 17;
  }
  return 0;
}

void write_arm7_task_part(Arm7Task task, const Arm7TaskState& s, std::span<float> out) noexcept {
  TROUPE_CHECK(static_cast<std::int64_t>(out.size()) == arm7_task_part_size(task),
               "a task part is written into its own field");
  Writer w{out};
  if (task == Arm7Task::reach) {
    w.put(s.goal);
    w.put(minus(s.goal, s.tcp));
    return;
  }
  w.put(s.object);
  for (const double q : s.object_quat) w.put(q);
  if (has_goal(task)) w.put(s.goal);
  w.put(minus(s.object, s.tcp));
  if (has_goal(task)) w.put(minus(s.goal, s.object));
  if (task == Arm7Task::lift) w.put(s.height());
  if (task != Arm7Task::push) w.put(yes(s.is_grasped));
}

}  // namespace troupe::env
