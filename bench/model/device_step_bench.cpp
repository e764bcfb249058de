// What is predicted of training steps and policy calls on this machine's GPUs against what they take: some blocks of
// the 5B and of the 14B, with the batches and the recompute of their recipes' plans, by CUDA graphs and kernel by
// kernel. GPUs are opened as `troupe` opens them (device/module.h).
//     bench_model_device_step [--ranks 1,8] [--rounds 5] [--rates FILE] [--out RESULT.md] [--short]
// FILE is what scripts/gpu-check has measured (docs/gpu.md#what-a-gpu-gives); rates that it does not have are assumed.
// Batches and weights are random. Exit 0 when all was measured, whatever the errors.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "base/file_io.h"
#include "bench/model/call_prediction.h"
#include "bench/model/device_policy_call.h"
#include "bench/model/dit_case.h"
#include "bench/model/sharded_trainer.h"
#include "bench/support/bench_options.h"
#include "bench/support/failures.h"
#include "configs/loader.h"
#include "kernels/product.h"
#include "model/shard/precision.h"
#include "model/wan/infer/call_kernels.h"
#include "placement/planner.h"
#include "placement/recompute_plan.h"
#include "tests/model/wan/network_run.h"
#include "workers/learner/engine_options.h"
#include "workers/node/inventory.h"
#include "workers/pipeline/measured_rates.h"
#include "workers/pipeline/model_cost.h"

namespace troupe::bench {
namespace {

constexpr std::uint64_t kStateSeed = 23;
constexpr double kRate = 1e-5;

struct Options {
  std::vector<int> ranks = {1};
  int rounds = 5;
  std::string rates, out;
  bool is_short = false;
};

/// Blocks of a model whose states fit one GPU.
struct Model {
  std::string name, file;
  std::vector<std::string> overrides;
};

std::vector<Model> models(bool is_short) {
  if (is_short)
    return {{"tiny, 1 block",
             "presets/dreamzero_tiny.yaml",
             {"model.dit.num_layers=1", "model.dit.dim=64", "model.dit.num_heads=2", "model.dit.ffn_dim=128",
              "precision.param=bf16", "training.micro_batch_size=1"}}};
  return {{"5B, 6 of 30 blocks", "recipes/dreamzero_5b_droid.yaml", {"model.dit.num_layers=6"}},
          {"14B, 4 of 40 blocks", "recipes/dreamzero_14b_droid.yaml", {"model.dit.num_layers=4"}}};
}

/// What one is to be trained by, and what that is predicted to take; nothing is predicted of an unknown GPU.
struct Setup {
  JobConfig job;
  Plan plan;
  std::optional<StepPrediction> prediction;
};

/// One micro-batch a step, on the first `ranks` GPUs.
Setup make_setup(const Model& model, int ranks, bool graphs, const AdjustRates& adjust) {
  const auto overrides = [&](auto... words) {
    std::vector<std::string> all = model.overrides;
    (all.push_back(words), ...);
    const LoadOutcome loaded = load_job(model.file, all);
    if (!loaded.config) throw std::runtime_error(model.name + ": " + loaded.errors.front());
    return loaded.config->job;
  };
  const std::int64_t micro = overrides().training.micro_batch_size;
  Setup setup;
  setup.job = overrides(fmt::format("training.cuda_graphs={}", graphs),
                        fmt::format("training.global_batch_size={}", micro * ranks));
  NodeSnapshot node = read_inventory("local").snapshot;
  if (static_cast<std::size_t>(ranks) > node.devices.size())
    throw std::runtime_error(fmt::format("--ranks {}: this machine shows {} GPUs", ranks, node.devices.size()));
  node.devices.resize(static_cast<std::size_t>(ranks));
  const ClusterSnapshot cluster{.nodes = {node}};
  const ModelCost cost = must(model_cost(setup.job, {}));
  const auto plans = must(predicted_plans(cluster, setup.job, cost, adjust));
  if (!plans.empty()) {
    setup.plan = plans.front().plan;
    setup.prediction = plans.front().prediction;
  } else {
    auto outcome = make_plan(cluster, setup.job, cost);
    if (const auto* infeasible = std::get_if<Infeasible>(&outcome))
      throw std::runtime_error(model.name + ": " + infeasible->reasons.front());
    setup.plan = std::get<Plan>(std::move(outcome));
  }
  setup.job = decided_job(std::move(setup.job), setup.plan);
  return setup;
}

NamedTensors random_weights(const JobConfig& job) {
  const DitNetwork network(job.model, job.data.window.chunks);
  return testing::random_parameters(state_units(network.units()), kStateSeed, at::kFloat);
}

const char* launched_as(const Setup& setup) { return setup.job.training.cuda_graphs ? "graphs" : "kernels"; }

Series time_steps(const Setup& setup, const NamedTensors& weights, const Options& options) {
  const auto ranks = static_cast<int>(setup.plan.batch.data_ranks);
  std::vector<kernels::ComputeDevice> devices;
  for (int r = 0; r < ranks; ++r) devices.push_back(must(kernels::open_device(r)));
  const auto network = std::make_shared<DitNetwork>(setup.job.model, setup.job.data.window.chunks);
  ShardedTrainer trainer(network, ranks, job_engine_options(setup.job, /*run_dir=*/""), weights, devices);
  const std::vector<Batch> batches(
      static_cast<std::size_t>(ranks),
      make_dit_batch(setup.job.model, dit_size_of(setup.job), dtype_of_precision(setup.job.precision.param)));
  const auto run = [&](int steps) { return trainer.run(batches, steps, kRate, /*threads=*/1).seconds / steps; };
  // the first steps allocate and capture
  run(2);
  const double once = run(1);
  const int steps = options.is_short ? 1 : std::clamp(static_cast<int>(2.0 / once), 2, 100);
  Series seconds;
  for (int round = 0; round < options.rounds; ++round) seconds.values.push_back(run(steps));
  return seconds;
}

/// "12.3 | 13.1 (12.9 .. 13.3) | 1.07", in milliseconds.
std::string columns_of(std::optional<double> predicted, Series seconds) {
  const double ratio = predicted ? seconds.median() / *predicted : 0;
  for (double& value : seconds.values) value *= 1e3;
  return fmt::format("{} | {} | {}", predicted ? fmt::format("{:.1f}", 1e3 * *predicted) : "-", seconds.text(1),
                     predicted ? fmt::format("{:.2f}", ratio) : "-");
}

std::string step_line(const Model& model, const Setup& setup, const Series& seconds) {
  const auto& batch = setup.plan.batch;
  std::optional<double> predicted;
  if (setup.prediction) predicted = setup.prediction->timing.seconds;
  return fmt::format("| {} | {} | {} | {} | {}, {} | {} | {:.3g} |\n", model.name, batch.data_ranks, batch.micro,
                     launched_as(setup), setup.plan.sharding, recompute_text(setup.plan),
                     columns_of(predicted, seconds), static_cast<double>(batch.micro) / seconds.median());
}

std::string call_line(const Model& model, const Setup& setup, const CallSeconds& seconds) {
  std::optional<double> prefill, step;
  if (setup.prediction) {
    const bool graphs = setup.job.training.cuda_graphs;
    const CallKernels kernels =
        call_kernels(setup.job.model, setup.job.data.window, at::kBFloat16,
                     {.robots = 1, .branches = 2, .seen_blocks = 1, .prompt_rows = kPromptRows});
    prefill = predicted_seconds(kernels.prefill, graphs, setup.prediction->rates);
    step = predicted_seconds(kernels.step, graphs, setup.prediction->rates);
  }
  return fmt::format("| {} | {} | {} | {} |\n", model.name, launched_as(setup), columns_of(prefill, seconds.prefill),
                     columns_of(step, seconds.step));
}

constexpr const char* kStepHead =
    "| model | GPUs | samples of each | launched as | mode, recompute | predicted, ms a step | measured, ms a step | "
    "measured / predicted | samples/s of a GPU |\n|---|---|---|---|---|---|---|---|---|\n";
constexpr const char* kCallHead =
    "| model | launched as | taking in a block, predicted ms | measured | measured / predicted | a denoising step, "
    "predicted ms | measured | measured / predicted |\n|---|---|---|---|---|---|---|---|\n";

int run(const Options& options, const std::string& command) {
  // as a learner on a device
  kernels::set_product_form(kernels::ProductForm::native);
  AdjustRates adjust;
  if (!options.rates.empty()) adjust = must(measured_rates(must(read_file(options.rates)), options.rates));
  std::string steps, calls;
  fmt::print("{}", kStepHead);
  for (const Model& model : models(options.is_short)) {
    std::optional<NamedTensors> weights;
    for (const int ranks : options.ranks) {
      for (const bool graphs : {true, false}) {
        const Setup setup = make_setup(model, ranks, graphs, adjust);
        if (!weights) weights = random_weights(setup.job);
        const std::string line = step_line(model, setup, time_steps(setup, *weights, options));
        fmt::print("{}", line);
        std::fflush(stdout);
        steps += line;
      }
    }
    for (auto& [name, weight] : *weights) weight = weight.to(at::kBFloat16);
    for (const bool graphs : {true, false}) {
      const Setup setup = make_setup(model, /*ranks=*/1, graphs, adjust);
      auto device = must(kernels::open_device(0));
      calls += call_line(model, setup, time_call(setup.job, *weights, device, graphs, options.rounds));
    }
  }
  fmt::print("\n{}{}", kCallHead, calls);
  write_result(
      options.out,
      fmt::format(
          "# Training steps and policy calls on GPUs: predicted and measured\n\nBlocks with random weights and "
          "batches; medians of {} rounds, of about two seconds for steps, with the least and the most. Features "
          "are there already. Calls are of one robot with guidance.\n\n{}{}\n{}{}\n{}",
          options.rounds, kStepHead, steps, kCallHead, calls, provenance(command, "")));
  return 0;
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) {
  troupe::bench::Options options;
  CLI::App app{"What is predicted of steps and calls on GPUs against what they take"};
  app.add_option("--ranks", options.ranks, "GPUs that share the work")->delimiter(',')->check(CLI::PositiveNumber);
  app.add_option("--rounds", options.rounds, "timed rounds of each")->check(CLI::PositiveNumber);
  app.add_option("--rates", options.rates, "what scripts/gpu-check measured")->check(CLI::ExistingFile);
  troupe::bench::add_result_options(app, options.out, options.is_short);
  CLI11_PARSE(app, argc, argv);
  if (options.is_short) options.rounds = 1;
  return troupe::bench::exit_status("bench_model_device_step", 2, [&] {
    return troupe::bench::run(options, troupe::bench::command_line("bench_model_device_step", argc, argv));
  });
}
