#include <fmt/format.h>

#include <array>
#include <utility>

#include "env/arm7/arm7_env.h"

namespace troupe::env {
namespace {

constexpr std::array kTasks = {Arm7Task::reach, Arm7Task::push, Arm7Task::lift, Arm7Task::pick_place};

class Arm7Factory final : public EnvFactory {
 public:
  explicit Arm7Factory(std::shared_ptr<const Arm7Shared> shared) : shared_(std::move(shared)) {}
  const EnvSpec& spec() const noexcept override { return shared_->profile.spec; }
  Result<std::unique_ptr<Env>> make() const override {
    TROUPE_ASSIGN(auto data, make_mujoco_data(*shared_->arm.model));
    return std::unique_ptr<Env>(std::make_unique<Arm7Env>(shared_, std::move(data)));
  }

 private:
  std::shared_ptr<const Arm7Shared> shared_;
};

}  // namespace

Result<std::shared_ptr<const EnvFactory>> make_arm7_factory(std::string_view id, const EnvOptions& options) {
  for (const Arm7Task task : kTasks) {
    if (id != fmt::format("arm7/{}-v1", enum_name(task))) continue;
    auto shared = std::make_shared<Arm7Shared>();
    TROUPE_ASSIGN(shared->profile, make_arm7_profile(std::string(id), task, options));
    TROUPE_ASSIGN(shared->arm, make_arm7_model(task, shared->profile.timestep));
    return std::shared_ptr<const EnvFactory>(std::make_shared<Arm7Factory>(std::move(shared)));
  }
  return Error{Errc::not_found,
               fmt::format("there is no environment '{}'; arm7 has reach, push, lift and pick_place, each -v1", id)};
}

}  // namespace troupe::env
