// `troupe` with an environment, far-v1, that only simulators (and whoever plays it) can make: in every other process
// its factory refuses, as one whose simulator is not installed there.
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include "app/troupe.h"

using namespace troupe;
using env::EnvDType;
using env::EnvReader;

namespace {

/// Whether this process may make the environment: an actor that steps it, or `env describe`.
bool is_here = false;

/// Counts its steps; the reward is 1 for action 0. It allows action 0 after even numbers of steps only, and an action
/// that it does not allow is an error. FAR_ENV_SIZE: how many numbers it shows, else 3.
class FarEnv final : public Env {
 public:
  static EnvSpec make_spec() {
    const char* size = std::getenv("FAR_ENV_SIZE");
    EnvSpec spec;
    spec.id = "far-v1";
    spec.observation = {{.name = "state", .shape = {size == nullptr ? 3 : std::atoi(size)}},
                        {.name = "allowed", .shape = {3}, .dtype = EnvDType::u8, .reader = EnvReader::action_mask},
                        {.name = "seed", .shape = {}, .dtype = EnvDType::f64, .reader = EnvReader::critic},
                        {.name = "task", .shape = {16}, .dtype = EnvDType::u8, .reader = EnvReader::text}};
    spec.action.choices = 3;
    spec.max_steps = 8;
    return spec;
  }
  explicit FarEnv(EnvSpec spec) : spec_(std::move(spec)) {}
  const EnvSpec& spec() const noexcept override { return spec_; }
  Result<void> reset(std::uint64_t seed, StepSlot out) override {
    step_ = 0;
    seed_ = static_cast<double>(seed % 100);
    observe_into(out);
    return {};
  }
  Result<void> step(std::span<const float> action, StepSlot out) override {
    if (action[0] == 2 || (action[0] == 0 && step_ % 2 == 1)) return Error{Errc::internal, "it is not allowed"};
    ++step_;
    *out.reward = action[0] == 0 ? 1 : 0;
    *out.terminated = false;
    observe_into(out);
    return {};
  }

 private:
  void observe_into(const StepSlot& out) const {
    for (float& value : out.field<float>(0, static_cast<std::size_t>(spec_.observation[0].numel())))
      value = static_cast<float>(step_);
    const auto allowed = out.field<std::uint8_t>(1, 3);
    allowed[0] = step_ % 2 == 0 ? 1 : 0;
    allowed[1] = 1;
    allowed[2] = 0;
    out.field<double>(2, 1)[0] = seed_;
    out.write_text(3, 16, "take action 0");
  }
  EnvSpec spec_;
  int step_ = 0;
  double seed_ = 0;
};

Result<std::shared_ptr<const env::EnvFactory>> make_far(std::string_view id, const env::EnvOptions& options) {
  if (!is_here) return Error{Errc::internal, "far-v1 is not installed in this process"};
  return make_simple_env_factory<FarEnv>(id, options);
}

}  // namespace

int main(int argc, char** argv) {
  std::string words;
  for (int i = 1; i < argc; ++i) words += std::string(argv[i]) + " ";
  for (const char* role : {"--role env ", "--role evaluator "})
    is_here = is_here || words.find(role) != std::string::npos;
  is_here = is_here || words.starts_with("env describe ");
  register_env({"far-v1", "an environment of tests", make_far});
  return run_command_line(argc, argv);
}
