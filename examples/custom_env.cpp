// An environment of your own that trains: the class, its row and the program; docs/env.md explains them.
//   custom_env run examples/docking.yaml
#include <algorithm>
#include <cmath>
#include <utility>

#include "app/troupe.h"

using namespace troupe;

/// docking-v1: a cart on a rail is to come to rest at the dock. Action: its acceleration in m/s^2.
class Docking final : public Env {
 public:
  static EnvSpec make_spec() {
    EnvSpec spec;
    spec.id = "docking-v1";
    spec.observation = {{.name = "state", .shape = {2}, .unit = "m, m/s"}};
    spec.action.low = {-1};
    spec.action.high = {1};
    spec.has_success = true;
    spec.max_steps = 100;
    spec.control_hz = 10;
    spec.reward_threshold = -15;
    return spec;
  }
  explicit Docking(EnvSpec spec) : spec_(std::move(spec)) {}
  const EnvSpec& spec() const noexcept override { return spec_; }

  Result<void> reset(std::uint64_t seed, StepSlot out) override {
    CounterRng rng(seed, env_stream::reset, 0);  // the episode's only source of chance
    position_ = rng.uniform(-2.0, 2.0);
    speed_ = rng.uniform(-0.5, 0.5);
    observe_into(out);
    return {};
  }
  Result<void> step(std::span<const float> action, StepSlot out) override {
    if (action.size() != 1) return Error{Errc::invalid_argument, "docking-v1: wants 1 action"};
    const double push = std::clamp(static_cast<double>(action[0]), -1.0, 1.0);
    speed_ += 0.1 * push;
    position_ += 0.1 * speed_;
    *out.reward = -(position_ * position_ + 0.1 * speed_ * speed_ + 0.01 * push * push);
    *out.success = std::abs(position_) < 0.05 && std::abs(speed_) < 0.05;
    *out.terminated = std::abs(position_) > 4;  // off the rail
    observe_into(out);
    return {};
  }

 private:
  void observe_into(const StepSlot& out) const {
    const auto state = out.field<float>(0, 2);
    state[0] = static_cast<float>(position_), state[1] = static_cast<float>(speed_);
  }
  EnvSpec spec_;
  double position_ = 0, speed_ = 0;
};
const EnvRow kDocking{"docking-v1", "bring a cart to rest at its dock", make_simple_env_factory<Docking>};

/// `custom_env run docking.yaml` and every other command of `troupe`, in all processes of a job.
int main(int argc, char** argv) {
  register_env(kDocking);
  return run_command_line(argc, argv);
}
