#include "env/mujoco/mujoco_model.h"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <chrono>
#include <mutex>

#include "base/check.h"
#include "base/log.h"
#include "env/mujoco/mujoco_version.h"

namespace troupe::env {
namespace {

std::atomic<std::uint64_t> warnings{0};
std::atomic<std::int64_t> last_warning_second{-1};

void on_warning(const char* text) {
  warnings.fetch_add(1, std::memory_order_relaxed);
  // only what is logged depends on the clock
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  const std::int64_t second = std::chrono::duration_cast<std::chrono::seconds>(now).count();
  if (last_warning_second.exchange(second) != second)
    log::warn("MuJoCo: {} ({} warnings so far)", text, warnings.load());
}

void on_error(const char* text) { TROUPE_CHECK(false, fmt::format("MuJoCo: {}", text)); }

/// The file's name inside the compiler's virtual file system.
constexpr const char* kFile = "model.xml";

struct VirtualFiles {
  VirtualFiles() { mj_defaultVFS(&vfs); }
  ~VirtualFiles() { mj_deleteVFS(&vfs); }
  VirtualFiles(const VirtualFiles&) = delete;
  VirtualFiles& operator=(const VirtualFiles&) = delete;
  mjVFS vfs;
};

constexpr std::array kDivergence = {mjWARN_BADQPOS, mjWARN_BADQVEL, mjWARN_BADQACC};

std::uint64_t fnv1a(std::uint64_t hash, const mjtNum* values, std::size_t count) noexcept {
  const auto* bytes = reinterpret_cast<const unsigned char*>(values);
  for (std::size_t i = 0; i < count * sizeof(mjtNum); ++i) hash = (hash ^ bytes[i]) * 0x100000001B3ULL;
  return hash;
}

}  // namespace

Result<MujocoModel> compile_mjcf(const std::string& xml) {
  if (mj_version() != mjVERSION_HEADER) {
    return Error{Errc::failed_precondition,
                 fmt::format("libmujoco is version {}; Troupe was built for {} (run scripts/setup, then build again)",
                             mj_version(), mjVERSION_HEADER)};
  }
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  mju_user_warning = on_warning;
  mju_user_error = on_error;
  VirtualFiles files;
  if (mj_addBufferVFS(&files.vfs, kFile, xml.data(), static_cast<int>(xml.size())) != 0) {
    return Error{Errc::resource_exhausted, "MuJoCo did not take the model's text"};
  }
  std::array<char, 1024> message{};
  MujocoModel model(mj_loadXML(kFile, &files.vfs, message.data(), static_cast<int>(message.size())));
  if (!model) return invalid_argument(fmt::format("MuJoCo refuses the model: {}", message.data()));
  return model;
}

Result<MujocoData> make_mujoco_data(const mjModel& model) {
  MujocoData data(mj_makeData(&model));
  if (!data) return Error{Errc::resource_exhausted, "MuJoCo has no memory for another simulation"};
  return data;
}

std::uint64_t mujoco_warnings() noexcept { return warnings.load(std::memory_order_relaxed); }

bool has_diverged(const mjData& data) noexcept {
  for (const mjtWarning w : kDivergence) {
    if (data.warning[w].number > 0) return true;
  }
  return false;
}

void clear_divergence(mjData& data) noexcept {
  for (const mjtWarning w : kDivergence) data.warning[w].number = 0;
}

std::uint64_t mujoco_state_hash(const mjModel& model, const mjData& data) noexcept {
  std::uint64_t hash = 0xCBF29CE484222325ULL;
  hash = fnv1a(hash, data.qpos, static_cast<std::size_t>(model.nq));
  hash = fnv1a(hash, data.qvel, static_cast<std::size_t>(model.nv));
  hash = fnv1a(hash, data.act, static_cast<std::size_t>(model.na));
  return fnv1a(hash, &data.time, 1);
}

const char* mujoco_version() noexcept { return mj_versionString(); }

}  // namespace troupe::env
