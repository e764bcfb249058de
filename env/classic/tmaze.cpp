#include "env/classic/tmaze.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/hash.h"
#include "base/random.h"
#include "configs/scalar.h"
#include "env/episode_seed.h"

namespace troupe::env {

namespace {

constexpr double kFound = 4, kPenalty = -0.1;
enum Direction { kNorth, kEast, kSouth, kWest };

class TMazeFactory final : public EnvFactory {
 public:
  TMazeFactory(EnvSpec spec, std::int64_t length) : spec_(std::move(spec)), length_(length) {}
  const EnvSpec& spec() const noexcept override { return spec_; }
  Result<std::unique_ptr<Env>> make() const override {
    return std::unique_ptr<Env>(std::make_unique<TMaze>(spec_, length_));
  }

 private:
  EnvSpec spec_;
  std::int64_t length_;
};

}  // namespace

EnvSpec TMaze::make_spec(std::int64_t length) {
  EnvSpec spec;
  spec.id = "tmaze-v1";
  spec.observation = {{.name = "state", .shape = {3}, .low = 0, .high = 1, .unit = {}, .normalise = false}};
  spec.action.choices = 4;
  spec.has_success = true;
  spec.max_steps = 6 * length;
  spec.reward_threshold = 3.8;
  return spec;
}

Result<void> TMaze::reset(std::uint64_t seed, StepSlot out) {
  CounterRng rng(seed, env_stream::reset, 0);
  is_north_ = rng.below(2) == 0;
  place_ = 0;
  observe_into(out);
  return {};
}

Result<void> TMaze::step(std::span<const float> action, StepSlot out) {
  if (action.size() != 1) return invalid_argument(fmt::format("tmaze-v1: {} actions, wants 1", action.size()));
  const auto direction = static_cast<int>(action[0]);
  const bool at_junction = place_ == length_, turns = direction == kNorth || direction == kSouth;
  *out.reward = 0;
  if (at_junction && turns) {
    *out.terminated = true;
    *out.success = (direction == kNorth) == is_north_;
    *out.reward = *out.success ? kFound : kPenalty;
  } else if (direction == kEast && !at_junction) {
    ++place_;
  } else if (direction == kWest && place_ > 0) {
    --place_;
  } else {
    *out.reward = kPenalty;
  }
  observe_into(out);
  return {};
}

void TMaze::observe_into(const StepSlot& out) const {
  static constexpr std::array<float, 3> kNorthSign = {0, 1, 1}, kSouthSign = {1, 1, 0}, kCorridor = {1, 0, 1},
                                        kJunction = {0, 1, 0};
  const auto& seen = place_ == length_ ? kJunction : place_ > 0 ? kCorridor : is_north_ ? kNorthSign : kSouthSign;
  std::ranges::copy(seen, out.field<float>(0, 3).begin());
}

std::uint64_t TMaze::state_hash() const {
  const std::int64_t state[] = {place_, is_north_ ? 1 : 0};
  return xxh3_64(std::as_bytes(std::span(state)));
}

Result<std::shared_ptr<const EnvFactory>> make_tmaze_factory(std::string_view id, const EnvOptions& options) {
  TROUPE_TRY(check_env_options(id, options, {}, {"length"}));
  std::int64_t length = TMaze::kLength;
  if (const auto found = options.options.find("length"); found != options.options.end()) {
    const auto wanted = configs::parse_integer(found->second);
    if (!wanted || *wanted < 1 || *wanted > TMaze::kLongest) {
      return invalid_argument(
          fmt::format("{}: option length is '{}', wants steps of the corridor, 1 to {} (env.options)", id,
                      found->second, TMaze::kLongest));
    }
    length = *wanted;
  }
  EnvSpec spec = TMaze::make_spec(length);
  if (options.max_steps > 0) spec.max_steps = options.max_steps;
  return std::shared_ptr<const EnvFactory>(std::make_shared<TMazeFactory>(std::move(spec), length));
}

}  // namespace troupe::env
