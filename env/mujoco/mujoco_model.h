#pragma once

#include <mujoco/mujoco.h>

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"

namespace troupe::env {

/// So that MuJoCo's C objects have owners.
struct MujocoModelDeleter {
  void operator()(mjModel* model) const noexcept { mj_deleteModel(model); }
};
struct MujocoDataDeleter {
  void operator()(mjData* data) const noexcept { mj_deleteData(data); }
};
/// A compiled model. After it is made it is only read, by any number of threads, each with an mjData of its own.
using MujocoModel = std::unique_ptr<mjModel, MujocoModelDeleter>;
/// The state of one simulation; one thread at a time.
using MujocoData = std::unique_ptr<mjData, MujocoDataDeleter>;

/// Compiles MJCF text. The first call of a process also installs MuJoCo's two handlers: a warning is counted and logged
/// (at most one line a second), in place of MuJoCo's log file; an error, after which the simulation's memory is
/// undefined, is logged and aborts the process, which is then restarted. Thread-safe; compiles one model at a time.
/// Errors: invalid_argument with MuJoCo's words; failed_precondition when the library loaded is not the version of the
/// headers.
Result<MujocoModel> compile_mjcf(const std::string& xml);

/// A new simulation of the model, which must outlive it. Errors: resource_exhausted.
Result<MujocoData> make_mujoco_data(const mjModel& model);

/// Warnings of all simulations of this process so far.
std::uint64_t mujoco_warnings() noexcept;

/// True when MuJoCo found NaN or huge numbers in position, velocity or acceleration since the last clear_divergence();
/// it has then put the simulation back to its initial state. mj_resetData clears it too.
bool has_diverged(const mjData& data) noexcept;
void clear_divergence(mjData& data) noexcept;

/// FNV-1a 64 over the bits of qpos, qvel, act and time: equal for equal states.
std::uint64_t mujoco_state_hash(const mjModel& model, const mjData& data) noexcept;

}  // namespace troupe::env
