// `troupe` with faulty-v1, an environment that fails as simulators do. Processes of one role share their counts in the
// file that TROUPE_FAULTY_COUNTS names, so that a fault comes at its rate however often a process is started again.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <stdexcept>
#include <string_view>

#include "app/troupe.h"
#include "base/file_io.h"
#include "env/episode_seed.h"

namespace troupe::testing {
namespace {

using namespace troupe::env;

/// Simulators count their steps apart from everybody else.
bool is_simulator = false;

struct Counts {
  std::atomic<std::int64_t> simulator_steps, other_steps, hangs;
  std::atomic<std::int64_t>& steps() { return is_simulator ? simulator_steps : other_steps; }
};

Counts& counts() {
  static Counts* shared = [] {
    const char* path = std::getenv("TROUPE_FAULTY_COUNTS");
    if (path == nullptr) throw std::runtime_error("TROUPE_FAULTY_COUNTS names no file");
    const auto file = base::open_file(path, O_RDWR);
    if (!file) throw std::runtime_error(file.error().message());
    void* memory = ::mmap(nullptr, sizeof(Counts), PROT_READ | PROT_WRITE, MAP_SHARED, file->get(), 0);
    if (memory == MAP_FAILED) throw std::runtime_error("TROUPE_FAULTY_COUNTS: the file cannot be mapped");
    return static_cast<Counts*>(memory);
  }();
  return *shared;
}

/// A signal that is raised would wait, as stepping threads block all.
void segfault() {
  volatile std::uintptr_t nowhere = 0;
  *reinterpret_cast<volatile int*>(nowhere) = 1;
}

[[noreturn]] void hang() {
  for (;;) ::pause();
}

/// Episodes of 50 steps, each worth 1. It throws in 1 of 200 steps and in every episode of kBadSeed, ends its process
/// in 1 of 5,000 steps, and hangs once, in an episode of kHangingSeed.
class FaultyEnv final : public Env {
 public:
  static constexpr std::uint64_t kBadSeed = 1'000'003, kHangingSeed = 1'000'001;

  static EnvSpec make_spec() {
    EnvSpec spec;
    spec.id = "faulty-v1";
    spec.observation = {{.name = "state", .shape = {2}}};
    spec.action = {.choices = 2, .size = 1, .low = {}, .high = {}};
    spec.max_steps = 50;
    spec.control_hz = 10;
    return spec;
  }
  explicit FaultyEnv(EnvSpec spec) : spec_(std::move(spec)) {}
  const EnvSpec& spec() const noexcept override { return spec_; }

  Result<void> reset(std::uint64_t seed, StepSlot out) override {
    seed_ = seed;
    step_ = 0;
    observe_into(out);
    return {};
  }
  Result<void> step(std::span<const float>, StepSlot out) override {
    const std::int64_t number = ++counts().steps();
    if (seed_ == episode_seed(kHangingSeed, 0, 0) && step_ == 10 && counts().hangs.fetch_add(1) == 0) hang();
    if (number % 5'000 == 0) segfault();
    if (number % 200 == 0) throw std::runtime_error("the wheel came off");
    if (seed_ == episode_seed(kBadSeed, 0, 0)) throw std::runtime_error("the axle broke");
    ++step_;
    *out.reward = 1;
    observe_into(out);
    return {};
  }

 private:
  void observe_into(const StepSlot& out) const {
    const auto state = out.field<float>(0, 2);
    state[0] = static_cast<float>(step_) / 50;
    state[1] = 1;
  }
  EnvSpec spec_;
  std::uint64_t seed_ = 0;
  std::int64_t step_ = 0;
};

}  // namespace
}  // namespace troupe::testing

int main(int argc, char** argv) {
  using troupe::testing::FaultyEnv;
  for (int i = 1; i + 1 < argc; ++i)
    troupe::testing::is_simulator |= argv[i] == std::string_view("--role") && argv[i + 1] == std::string_view("env");
  troupe::register_env({"faulty-v1", "an environment of tests", troupe::make_simple_env_factory<FaultyEnv>});
  return troupe::run_command_line(argc, argv);
}
