#include "env/batch_env.h"

#include <fmt/format.h>

#include <utility>

namespace troupe::env {

namespace {

class BatchOfOne final : public BatchEnv {
 public:
  explicit BatchOfOne(std::unique_ptr<Env> env) : env_(std::move(env)) {}
  const EnvSpec& spec() const noexcept override { return env_->spec(); }
  std::int64_t lanes() const noexcept override { return 1; }
  Result<void> reset(std::span<const std::int64_t>, std::span<const std::uint64_t> seeds,
                     std::span<const StepSlot> out) override {
    return env_->reset(seeds[0], out[0]);
  }
  Result<void> step(std::span<const std::int64_t>, std::span<const float> actions,
                    std::span<const StepSlot> out) override {
    return env_->step(actions, out[0]);
  }
  Result<void> observe(std::int64_t, StepSlot out) override { return env_->observe(out); }
  Result<void> render(std::int64_t, const std::string& camera, RenderTarget out) override {
    return env_->render(camera, out);
  }
  Result<void> advise(std::int64_t, std::span<float> action) override { return env_->advise(action); }
  std::uint64_t state_hash(std::int64_t) const override { return env_->state_hash(); }

 private:
  const std::unique_ptr<Env> env_;
};

class EnvOfLane final : public Env {
 public:
  explicit EnvOfLane(std::unique_ptr<BatchEnv> batch) : batch_(std::move(batch)) {}
  const EnvSpec& spec() const noexcept override { return batch_->spec(); }
  Result<void> reset(std::uint64_t seed, StepSlot out) override {
    return batch_->reset({&kLane, 1}, {&seed, 1}, {&out, 1});
  }
  Result<void> step(std::span<const float> action, StepSlot out) override {
    return batch_->step({&kLane, 1}, action, {&out, 1});
  }
  Result<void> observe(StepSlot out) override { return batch_->observe(kLane, out); }
  Result<void> render(const std::string& camera, RenderTarget out) override {
    return batch_->render(kLane, camera, out);
  }
  Result<void> advise(std::span<float> action) override { return batch_->advise(kLane, action); }
  std::uint64_t state_hash() const override { return batch_->state_hash(kLane); }

 private:
  static constexpr std::int64_t kLane = 0;
  const std::unique_ptr<BatchEnv> batch_;
};

}  // namespace

std::unique_ptr<BatchEnv> as_batch(std::unique_ptr<Env> env) { return std::make_unique<BatchOfOne>(std::move(env)); }

std::unique_ptr<Env> as_env(std::unique_ptr<BatchEnv> batch) { return std::make_unique<EnvOfLane>(std::move(batch)); }

Result<void> check_actions(const EnvSpec& spec, std::span<const std::int64_t> lanes, std::span<const float> actions) {
  const std::size_t wanted = lanes.size() * static_cast<std::size_t>(spec.action_numbers());
  if (actions.size() == wanted) return {};
  return invalid_argument(
      fmt::format("{}: {} numbers of actions, wants {} for {} lanes", spec.id, actions.size(), wanted, lanes.size()));
}

}  // namespace troupe::env
