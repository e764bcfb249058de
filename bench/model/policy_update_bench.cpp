// One minibatch of PPO over small MLPs, and one policy call, in microseconds: the hand-written backward against the
// engine's generic unit, where autograd differentiates the networks and the loss has its manual backward (with and
// without running forward again). 64 rows, 17 numbers -> 64 -> 64 -> 6 and a critic 17 -> 64 -> 64 -> 1, tanh; one
// thread, or --threads of which the others stand by, as a learner's do; beside them the products and activations of the
// same networks alone. Goals: explicit at least 3 times as fast as autograd; with --rows 256 the engine's step (loss,
// layout, gradients' sum, vote, AdamW) at most 1.3 times its products and activations; a policy call far below 100 us.
//     policy_update [--rows 64] [--width 64] [--threads 1] [--rounds 7] [--out RESULT.md]
//     policy_update --parts ...   for bench/peers/loop_bench.sh: prints the microseconds of the engine's step and of a
//                                 policy call in plain memory, medians
// Exit 1 when the two gradients differ: then no time means anything.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <numeric>

#include "bench/support/failures.h"
#include "bench/support/result_file.h"
#include "comm/collective/collective.h"
#include "kernels/threads.h"
#include "model/loss/rl_keys.h"
#include "model/policy/actor_critic.h"
#include "model/policy/mlp_pass.h"
#include "model/policy/side_by_side.h"
#include "model/shard/engine.h"
#include "model/shard/flat_layout.h"
#include "model/shard/init.h"
#include "model/shard/unit_tape.h"

namespace troupe::bench {
namespace {

struct Options {
  std::int64_t rows = 64, width = 64;
  int rounds = 7, threads = 1;
  bool parts_only = false;
  std::string out;
};

/// Networks, parameters and one minibatch.
struct Setup {
  std::shared_ptr<const ActorCritic> model;
  std::shared_ptr<const PolicyNet> net;
  std::shared_ptr<const Network> network;
  std::vector<ParamView> params, gradients;
  Batch batch;
};

std::vector<ParamView> make_views(const std::vector<UnitSpec>& units, bool is_gradient) {
  std::vector<ParamView> views;
  for (const auto& unit : units) {
    const auto layout = make_flat_layout(unit.params);
    auto flat = at::zeros({layout.numel}, at::kFloat);
    if (!is_gradient)
      fill_initial(unit, layout, 1, 0, {flat.data_ptr<float>(), static_cast<std::size_t>(layout.numel)});
    views.push_back(views_of(layout, flat, /*leaves=*/!is_gradient));
  }
  return views;
}

Setup make_setup(const Options& options) {
  PolicyConfig policy;
  policy.hidden = {options.width, options.width};
  PolicyShape shape;
  shape.state_dim = 17;
  shape.action_dim = 6;
  Setup setup;
  setup.model = must(ActorCritic::make(policy, AlgorithmConfig{}, shape));
  setup.net = std::make_shared<ActorCriticNet>(setup.model, AlgorithmConfig{}, shape);
  setup.network = setup.net->objective("policy");
  setup.params = make_views(setup.net->units(), false);
  setup.gradients = make_views(setup.net->units(), true);
  const auto n = options.rows;
  at::manual_seed(1);
  setup.batch = {{rl_keys::kState, at::randn({n, 17})},        {rl_keys::kAction, at::randn({n, 6})},
                 {rl_keys::kOldLogp, at::randn({n, 6}) - 1},   {rl_keys::kOldValue, at::randn({n, 1})},
                 {rl_keys::kAdvantage, at::randn({n, 1})},     {rl_keys::kReturn, at::randn({n, 1})},
                 {rl_keys::kMask, at::ones({n, 1}, at::kBool)}};
  return setup;
}

void run_tape(const Setup& s, RecomputeLevel level) {
  UnitTape tape(*s.network, s.batch, 1.0, {&level, 1});
  const auto units = s.params.size();
  for (std::size_t u = 0; u < units; ++u) tape.forward(static_cast<int>(u), s.params[u]);
  for (std::size_t u = units; u-- > 0;) tape.backward(static_cast<int>(u), s.params[u], s.gradients[u]);
  tape.result();
}

/// Forward and backward through actor and critic of the same minibatch, for a gradient of their outputs that is given:
/// products and activations, without loss, sum of gradients or optimizer.
class BareNetworks {
 public:
  explicit BareNetworks(const Setup& s)
      : setup_(s), actor_(s.model->actor().mlp(), s.batch), critic_(s.model->critic()->mlp(), s.batch) {}
  void operator()() {
    side_by_side(2, actor_.pass, [&](std::int64_t part) {
      const auto unit = static_cast<std::size_t>(part);
      (part == 0 ? actor_ : critic_).run(setup_.params[unit], setup_.gradients[unit], setup_.batch);
    });
  }

 private:
  struct Side {
    Side(const Mlp& mlp, const Batch& batch)
        : pass(mlp, batch.at(rl_keys::kState).size(0)), d_output(at::ones({pass.rows(), mlp.shape().outputs})) {}
    void run(const ParamView& params, const ParamView& gradients, const Batch& batch) {
      const at::Tensor& state = batch.at(rl_keys::kState);
      pass.forward(params, state);
      pass.backward(params, state, d_output, &gradients);
    }

    MlpPass pass;
    at::Tensor d_output;
  };

  const Setup& setup_;
  Side actor_, critic_;
};

/// One rank with the explicit backward, as a learner has it.
class EngineUpdate {
 public:
  explicit EngineUpdate(const Setup& s)
      : batch_(s.batch),
        collective_(join_thread_group(make_thread_group(1, std::chrono::seconds(60)), 0)),
        engine_(s.network, options_for(s)) {
    must(engine_.attach(*collective_));
    engine_.initialise(1);
  }
  void operator()() {
    (void)must(engine_.accumulate(batch_, 1.0, /*first=*/true));
    engine_.commit(1e-5, must(engine_.vote({}, {})));
  }

 private:
  static EngineOptions options_for(const Setup& s) {
    EngineOptions options;
    options.param_slots = options.grad_slots = static_cast<int>(s.params.size());
    options.recompute = {RecomputeLevel::none};
    return options;
  }

  const Batch& batch_;
  std::unique_ptr<Collective> collective_;
  Engine engine_;
};

/// Largest difference between the two backwards, relative to the largest gradient.
double disagreement(const Setup& s) {
  run_tape(s, RecomputeLevel::none);
  std::vector<at::Tensor> want;
  for (const auto& view : s.gradients) {
    for (const auto& [name, gradient] : view.tensors()) want.push_back(gradient.clone());
  }
  s.network->manual_backward()->run(s.params, s.batch, 1.0, s.gradients);
  double worst = 0;
  std::size_t i = 0;
  for (const auto& view : s.gradients) {
    for (const auto& [name, gradient] : view.tensors()) {
      worst = std::max(worst, ((gradient - want[i]).norm() / want[i].norm()).item<double>());
      ++i;
    }
  }
  return worst;
}

/// Mean microseconds of one call, about a fifth of a second of them.
double microseconds(const std::function<void()>& call) {
  using Clock = std::chrono::steady_clock;
  std::int64_t calls = 0;
  const auto start = Clock::now();
  while (Clock::now() - start < std::chrono::milliseconds(200)) {
    for (int i = 0; i < 20; ++i) call();
    calls += 20;
  }
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count() / static_cast<double>(calls);
}

struct Program {
  std::string name;
  std::function<void()> call;
  Series series = {};
};

constexpr const char *kExplicit = "update, explicit", *kEngineStep = "update, explicit, the engine's whole step",
                     *kBare = "products and activations of an update", *kActOnRows = "act, in plain memory";

const Series& series_of(const std::vector<Program>& programs, const std::string& name) {
  return std::find_if(programs.begin(), programs.end(), [&](const auto& p) { return p.name == name; })->series;
}

std::string report(const std::vector<Program>& programs, const Options& options, const std::string& command) {
  std::string text = "# One PPO minibatch and one policy call of small MLPs\n\n";
  text += provenance(command, "LibTorch 2.11.0") + "\n";
  text += fmt::format("{} rows, two hidden layers of {}; threads: {}; median (lowest .. highest) of {} rounds.\n\n",
                      options.rows, options.width, options.threads, options.rounds);
  text += "| program | microseconds | autograd / this |\n|---|---|---|\n";
  for (const auto& p : programs) {
    const bool is_update = p.name.starts_with("update");
    text += fmt::format("| {} | {} | {} |\n", p.name, p.series.text(1),
                        is_update ? ratio(programs.front().series, p.series).text(2) : "");
  }
  const auto& step = series_of(programs, kEngineStep);
  Series beside{};
  for (std::size_t r = 0; r < step.values.size(); ++r)
    beside.values.push_back(step.values[r] - series_of(programs, kExplicit).values[r]);
  return text + fmt::format(
                    "\nThe engine's step beside its arithmetic, microseconds: {}. The engine's step / its products and "
                    "activations: {}.\n",
                    beside.text(1), ratio(step, series_of(programs, kBare)).text(2));
}

int run(const Options& options, const std::string& command) {
  at::set_num_threads(1);
  const auto s = make_setup(options);
  const double worst = disagreement(s);
  if (!(worst < 1e-5)) {
    fmt::print(stderr, "the gradients differ by {} of their norm\n", worst);
    return 1;
  }
  UnitViews views;
  for (std::size_t u = 0; u < s.params.size(); ++u) views[s.net->units()[u].name] = s.params[u];
  std::vector<std::uint64_t> keys(static_cast<std::size_t>(options.rows));
  std::iota(keys.begin(), keys.end(), 0);
  const ActRequest all{s.batch, 1, keys},
      eight{{{rl_keys::kState, s.batch.at(rl_keys::kState).narrow(0, 0, std::min<std::int64_t>(8, options.rows))}},
            1,
            std::span<const std::uint64_t>(keys).first(
                static_cast<std::size_t>(std::min<std::int64_t>(8, options.rows)))};
  std::vector<float> drawn(static_cast<std::size_t>(options.rows) * 13);
  const auto rows = static_cast<std::size_t>(options.rows);
  const RowsToAct in_memory{.rows = options.rows,
                            .state = s.batch.at(rl_keys::kState).const_data_ptr<float>(),
                            .state_dim = 17,
                            .seed = 1,
                            .keys = keys,
                            .action = drawn.data(),
                            .logp = drawn.data() + 6 * rows,
                            .value = drawn.data() + 12 * rows};
  EngineUpdate engine(s);
  BareNetworks bare(s);
  std::vector<Program> programs{
      {"update, autograd, graph kept", [&] { run_tape(s, RecomputeLevel::none); }},
      {"update, autograd, forward run again", [&] { run_tape(s, RecomputeLevel::full); }},
      {kExplicit, [&] { s.network->manual_backward()->run(s.params, s.batch, 1.0, s.gradients); }},
      {kEngineStep, [&] { engine(); }},
      {kBare, [&] { bare(); }},
      {fmt::format("act, {} rows", options.rows), [&] { s.net->act(views, all); }},
      {"act, 8 rows", [&] { s.net->act(views, eight); }},
      {kActOnRows, [&] { s.net->act_on_rows(views, in_memory); }},
  };
  if (options.parts_only)
    std::erase_if(programs, [](const Program& p) { return p.name != kEngineStep && p.name != kActOnRows; });
  kernels::with_own_team(options.threads, [&] {
    for (auto& p : programs) microseconds(p.call);
    for (int round = 0; round < options.rounds; ++round) {
      for (auto& p : programs) p.series.values.push_back(microseconds(p.call));
    }
  });
  if (options.parts_only) {
    fmt::print("{:.2f} {:.2f}\n", series_of(programs, kEngineStep).median(), series_of(programs, kActOnRows).median());
    return 0;
  }
  const auto text = report(programs, options, command);
  fmt::print("{}", text);
  write_result(options.out, text);
  return 0;
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) {
  CLI::App app("One PPO minibatch of small MLPs: explicit backward against autograd");
  troupe::bench::Options options;
  app.add_option("--rows", options.rows)->check(CLI::PositiveNumber);
  app.add_option("--width", options.width)->check(CLI::PositiveNumber);
  app.add_option("--rounds", options.rounds)->check(CLI::PositiveNumber);
  app.add_option("--threads", options.threads)->check(CLI::PositiveNumber);
  app.add_flag("--parts", options.parts_only);
  app.add_option("--out", options.out)->check(troupe::bench::refuse_dirty_tree);
  CLI11_PARSE(app, argc, argv);
  return troupe::bench::exit_status("policy_update", 1, [&] {
    return troupe::bench::run(options, troupe::bench::command_line("policy_update", argc, argv));
  });
}
