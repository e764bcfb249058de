#include "env/arm7/arm7_env.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"

namespace troupe::env {

Arm7Env::Arm7Env(std::shared_ptr<const Arm7Shared> shared, MujocoData data)
    : shared_(std::move(shared)), data_(std::move(data)), painter_(shared_->arm) {}

Result<void> Arm7Env::reset(std::uint64_t seed, StepSlot out) {
  episode_ = make_arm7_episode(arm().task, seed);
  mjData& d = *data_;
  mj_resetData(&model(), &d);
  for (std::size_t j = 0; j < kArm7Joints; ++j) d.qpos[j] = d.ctrl[j] = episode_.joints[j];
  d.qpos[kFirstFinger] = d.qpos[kFirstFinger + 1] = d.ctrl[kArm7Joints] = kFingerOpen;
  if (has_cube(arm().task)) {
    mjtNum* cube = d.qpos + kCubePos;
    std::copy(episode_.cube.begin(), episode_.cube.end(), cube);
    const mjtNum turn[] = {std::cos(episode_.cube_yaw / 2), 0, 0, std::sin(episode_.cube_yaw / 2)};
    std::copy(std::begin(turn), std::end(turn), cube + 3);
    painter_.set_cube_color(arm7_colors()[episode_.color].rgb);
  }
  if (arm().goal_mocap >= 0) std::copy(episode_.goal.begin(), episode_.goal.end(), d.mocap_pos + 3 * arm().goal_mocap);
  mj_kinematics(&model(), &d);
  steps_ = 0;
  closes_ = was_solved_ = false;
  write_observation(out);
  return {};
}

Result<void> Arm7Env::step(std::span<const float> action, StepSlot out) {
  if (static_cast<std::int64_t>(action.size()) != spec().action.size) {
    return invalid_argument(fmt::format("{}: {} actions, wants {}", spec().id, action.size(), spec().action.size));
  }
  closes_ = apply_arm7_action(arm(), *data_, shared_->profile.control, action);
  clear_divergence(*data_);
  for (std::int64_t i = 0; i < spec().frame_skip; ++i) mj_step(&model(), data_.get());
  // own tasks look at the final state, not at the one before the last integration
  mj_kinematics(&model(), data_.get());
  ++steps_;

  const bool diverged = has_diverged(*data_);
  const Arm7TaskState state = task_state();
  const bool solved = !diverged && arm7_success(arm().task, state);
  const bool newly = solved && !was_solved_;
  was_solved_ = solved;
  *out.reward = diverged ? 0.0 : shared_->profile.is_sparse ? (newly ? 1.0 : 0.0) : arm7_reward(arm().task, state);
  *out.terminated = diverged || (solved && shared_->profile.ends_on_success);
  if (out.success != nullptr) *out.success = solved;
  if (out.info.size() == 3) {
    out.info[0] = diverged ? 0 : arm7_distance(arm().task, state);
    out.info[1] = state.is_grasped ? 1 : 0;
    out.info[2] = diverged ? 1 : 0;
  }
  write_observation(out);
  return {};
}

Result<void> Arm7Env::observe(StepSlot out) {
  write_observation(out);
  return {};
}

std::uint64_t Arm7Env::state_hash() const { return mujoco_state_hash(model(), *data_); }

Result<void> Arm7Env::set_positions(std::span<const double> qpos) {
  if (qpos.size() != static_cast<std::size_t>(model().nq)) {
    return invalid_argument(fmt::format("{}: {} positions, wants {}", spec().id, qpos.size(), model().nq));
  }
  std::copy(qpos.begin(), qpos.end(), data_->qpos);
  std::fill(data_->qvel, data_->qvel + model().nv, 0.0);
  for (std::size_t j = 0; j < kArm7Joints; ++j) data_->ctrl[j] = qpos[j];
  mj_forward(&model(), data_.get());
  return {};
}

bool Arm7Env::is_grasped() const {
  if (arm().cube_geom < 0) return false;
  return holds(arm().left_pad) && holds(arm().right_pad);
}

bool Arm7Env::holds(int pad) const {
  const mjData& d = *data_;
  std::array<double, 3> on_cube{};
  for (int i = 0; i < d.ncon; ++i) {
    const mjContact& contact = d.contact[i];
    const bool cube_is_second = contact.geom[0] == pad && contact.geom[1] == arm().cube_geom;
    if (!cube_is_second && !(contact.geom[0] == arm().cube_geom && contact.geom[1] == pad)) continue;
    mjtNum force[6];
    mj_contactForce(&model(), &d, i, force);
    // the normal leads from the first shape to the second
    for (std::size_t k = 0; k < 3; ++k) on_cube[k] += (cube_is_second ? force[0] : -force[0]) * contact.frame[k];
  }
  // a finger opens along the y axis of its pad
  double closing = 0;
  for (std::size_t k = 0; k < 3; ++k) closing -= on_cube[k] * d.geom_xmat[9 * pad + 3 * static_cast<int>(k) + 1];
  return closing >= kArm7GraspForce && closing >= kArm7GraspCosine * mju_norm3(on_cube.data());
}

Arm7TaskState Arm7Env::task_state() const {
  const mjData& d = *data_;
  Arm7TaskState state;
  std::copy_n(d.site_xpos + 3 * arm().tcp_site, 3, state.tcp.begin());
  state.goal = episode_.goal;
  if (has_cube(arm().task)) {
    std::copy_n(d.qpos + kCubePos, 3, state.object.begin());
    std::copy_n(d.qpos + kCubePos + 3, 4, state.object_quat.begin());
  }
  for (std::size_t j = 0; j < kArm7Joints; ++j)
    state.max_joint_speed = std::max(state.max_joint_speed, std::abs(d.qvel[j]));
  state.is_grasped = is_grasped();
  return state;
}

void Arm7Env::write_observation(const StepSlot& out) {
  const auto& outputs = shared_->profile.outputs;
  if (out.observation.size() != outputs.size()) return;
  bool has_images = false;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].width > 0)
      has_images = true;
    else if (outputs[i].kind == Arm7Output::Kind::text)
      out.write_text(i, kArm7InstructionBytes, instruction());
    else
      write_vector(outputs[i], out.field<float>(i, static_cast<std::size_t>(spec().observation[i].numel())));
  }
  if (has_images) write_images(out);
}

void Arm7Env::write_vector(const Arm7Output& output, std::span<float> out) const {
  const mjData& d = *data_;
  std::size_t at = 0;
  const auto put = [&](const mjtNum* values, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) out[at++] = static_cast<float>(values[i]);
  };
  const mjtNum* tcp = d.site_xpos + 3 * arm().tcp_site;
  mjtNum quat[4];
  mju_mat2Quat(quat, d.site_xmat + 9 * arm().tcp_site);
  const double sign = quat[0] < 0 ? -1 : 1;
  for (mjtNum& q : quat) q *= sign;
  switch (output.kind) {
    case Arm7Output::Kind::state:
    case Arm7Output::Kind::proprio: {
      put(d.qpos, kArm7Joints);
      put(d.qvel, kArm7Joints);
      put(d.qpos + kFirstFinger, 2);
      put(tcp, 3);
      put(quat, 4);
      out[at++] = closes_ ? 1.0F : -1.0F;
      const double used = static_cast<double>(steps_) / static_cast<double>(spec().max_steps);
      out[at++] = static_cast<float>(std::max(0.0, 1 - used));
      if (output.kind == Arm7Output::Kind::state) write_arm7_task_part(arm().task, task_state(), out.subspan(at));
      break;
    }
    case Arm7Output::Kind::task:
      write_arm7_task_part(arm().task, task_state(), out);
      break;
    case Arm7Output::Kind::tool: {
      mjtNum turn[3];
      mju_quat2Vel(turn, quat, 1);
      put(tcp, 3);
      put(turn, 3);
      put(d.qpos + kFirstFinger, 2);
      break;
    }
    case Arm7Output::Kind::joints:
      put(d.qpos, kArm7Joints);
      break;
    case Arm7Output::Kind::gripper:
      out[0] = static_cast<float>(std::clamp(1 - d.qpos[kFirstFinger] / kFingerOpen, 0.0, 1.0));
      break;
    case Arm7Output::Kind::rgb:
    case Arm7Output::Kind::depth:
    case Arm7Output::Kind::labels:
    case Arm7Output::Kind::text:
      TROUPE_CHECK(false, "images are drawn, and text is no vector");
      break;
  }
}

/// Draws each camera once, whatever is wanted of it.
void Arm7Env::write_images(const StepSlot& out) {
  using Kind = Arm7Output::Kind;
  const auto& outputs = shared_->profile.outputs;
  const auto same_view = [&](std::size_t i, std::size_t k) {
    return outputs[i].camera == outputs[k].camera && outputs[i].width == outputs[k].width &&
           outputs[i].height == outputs[k].height;
  };
  painter_.look(*data_);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].width == 0) continue;
    bool is_drawn = false;
    for (std::size_t k = 0; k < i; ++k) is_drawn = is_drawn || same_view(i, k);
    if (is_drawn) continue;
    RenderImages images{.width = outputs[i].width, .height = outputs[i].height};
    for (std::size_t k = i; k < outputs.size(); ++k) {
      if (!same_view(i, k)) continue;
      auto* memory = out.observation[k];
      if (outputs[k].kind == Kind::rgb) images.rgb = reinterpret_cast<std::uint8_t*>(memory);
      if (outputs[k].kind == Kind::depth) images.depth = reinterpret_cast<float*>(memory);
      if (outputs[k].kind == Kind::labels) images.labels = reinterpret_cast<std::uint8_t*>(memory);
    }
    const auto camera = arm7_camera(arm(), *data_, outputs[i].camera);
    TROUPE_CHECK(camera.has_value(), "profiles name cameras that exist");
    painter_.draw(*camera, images, shared_->profile.supersample);
  }
}

Result<void> Arm7Env::render(const std::string& camera, RenderTarget out) {
  const auto found = arm7_camera(arm(), *data_, camera);
  if (!found) {
    return Error{Errc::not_found,
                 fmt::format("{} has no camera '{}'; it has {}", spec().id, camera, fmt::join(spec().cameras, ", "))};
  }
  if (out.width < 1 || out.height < 1 || static_cast<std::int64_t>(out.rgb.size()) != 3 * out.width * out.height) {
    return invalid_argument(fmt::format("{}: an image of {} x {} in {} bytes, wants width * height * 3", spec().id,
                                        out.width, out.height, out.rgb.size()));
  }
  painter_.look(*data_);
  painter_.draw(*found, {.width = out.width, .height = out.height, .rgb = out.rgb.data()});
  return {};
}

}  // namespace troupe::env
