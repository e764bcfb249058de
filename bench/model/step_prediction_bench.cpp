// What `troupe plan` predicts of a step on cores against what it takes, for 12 jobs that calibrated nothing: models of
// 1 to 60 M parameters, micro-batches of 1 to 4, both dtypes, all levels of recompute, one rank of two threads and two
// of one, zero2 and zero3, accumulation, low-rank adapters. Rates are measured first, as `troupe plan` measures them.
// Goals: errors of at most 10 % in the median, 20 % at worst.
//     bench_model_step_prediction [--rounds 5] [--only SUBSTRING] [--kernels] [--out RESULT.md]
// Wants the machine for itself. Takes about five minutes on two cores. Exit 0 when all was measured, whatever the
// errors.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <torch/headeronly/version.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <string>

#include "base/stopwatch.h"
#include "bench/model/dit_case.h"
#include "bench/model/sharded_trainer.h"
#include "bench/support/bench_options.h"
#include "bench/support/failures.h"
#include "configs/loader.h"
#include "kernels/product.h"
#include "kernels/threads.h"
#include "model/calibration/measure_core_rates.h"
#include "model/calibration/timed_programs.h"
#include "model/shard/precision.h"
#include "model/wan/planned_units.h"
#include "placement/planner.h"
#include "placement/recompute_plan.h"
#include "tests/model/wan/network_run.h"
#include "workers/learner/engine_options.h"
#include "workers/node/inventory.h"
#include "workers/pipeline/core_prediction.h"
#include "workers/pipeline/model_cost.h"

namespace troupe::bench {
namespace {

constexpr std::uint64_t kStateSeed = 23;
constexpr double kRate = 1e-5;

struct Options {
  int rounds = 5;
  std::string only, out;
  bool is_short = false, kernels = false;
};

/// A preset with these overrides.
struct Setup {
  std::string name;
  std::vector<std::string> overrides;
};

using Words = std::vector<std::string>;

Words operator+(Words a, const Words& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Words width(int dim, int heads, int layers, int ffn) {
  return {fmt::format("model.dit.dim={}", dim), fmt::format("model.dit.num_heads={}", heads),
          fmt::format("model.dit.num_layers={}", layers), fmt::format("model.dit.ffn_dim={}", ffn)};
}
/// Sequences of about 500 and 900 tokens beside the preset's 82.
Words middle_sequence() {
  return {"model.target_height=128", "model.target_width=256", "data.image.height=128",
          "data.image.width=128",    "data.window.chunks=3",   "model.text_encoder.max_length=128"};
}
Words long_sequence() {
  return {"model.target_height=160",    "model.target_width=320",
          "data.image.height=160",      "data.image.width=160",
          "data.window.chunks=4",       "model.text_encoder.max_length=256",
          "model.text_encoder.dim=512", "model.image_encoder.image_size=112"};
}
Words batch(int micro, int ranks, int accumulation = 1) {
  return {fmt::format("training.micro_batch_size={}", micro),
          fmt::format("training.global_batch_size={}", micro * ranks * accumulation),
          fmt::format("cluster.component_placement.learner=\"{}\"", ranks == 1 ? "0" : "0:0-1"),
          fmt::format("cluster.threads.learner={}", 2 / ranks), "cluster.isolation.learner=thread"};
}
Words form(const char* dtype, const char* level, const char* mode = "auto") {
  return {fmt::format("precision.param={}", dtype), fmt::format("activation_checkpoint.mode={}", level),
          fmt::format("parallelism.mode={}", mode)};
}

std::vector<Setup> setups(bool is_short) {
  const Words tiny = {}, small = width(256, 4, 6, 1024) + middle_sequence();
  const Words middle = width(384, 6, 8, 1536) + long_sequence(), large = width(512, 8, 12, 2048) + long_sequence();
  const Words lora = {"model.train_architecture=lora"};
  std::vector<Setup> all = {
      {"1M-fp32-micro1-1x2-none", tiny + batch(1, 1) + form("fp32", "none")},
      {"1M-bf16-micro4-1x2-full", tiny + batch(4, 1) + form("bf16", "full")},
      {"1M-fp32-micro2-2x1-cheap-zero3", tiny + batch(2, 2) + form("fp32", "cheap", "zero3")},
      {"7M-bf16-micro2-1x2-attention", small + batch(2, 1) + form("bf16", "attention")},
      {"7M-fp32-micro4-2x1-none-zero2", small + batch(4, 2) + form("fp32", "none", "zero2")},
      {"7M-fp32-micro2-1x2-none-lora", small + lora + batch(2, 1) + form("fp32", "none")},
      {"23M-fp32-micro1-1x2-cheap", middle + batch(1, 1) + form("fp32", "cheap")},
      {"23M-bf16-micro1-2x1-none-zero3", middle + batch(1, 2) + form("bf16", "none", "zero3")},
      {"23M-bf16-micro2-1x2-full-accum2", middle + batch(2, 1, 2) + form("bf16", "full")},
      {"23M-fp32-micro1-2x1-attention-zero2-accum2", middle + batch(1, 2, 2) + form("fp32", "attention", "zero2")},
      {"60M-bf16-micro1-1x2-attention", large + batch(1, 1) + form("bf16", "attention")},
      {"60M-fp32-micro1-2x1-full-zero3", large + batch(1, 2) + form("fp32", "full", "zero3")},
  };
  if (is_short) all.resize(1);
  return all;
}

/// One job: what was predicted and what was measured, seconds a step.
struct Row {
  std::string name;
  std::int64_t parameters = 0;
  CorePrediction predicted = {};
  Series seconds = {}, commit_seconds = {};

  double error() const { return predicted.timing.seconds / seconds.median() - 1; }
};

JobConfig load(const Setup& setup) {
  LoadOutcome loaded = load_job("presets/dreamzero_tiny.yaml", setup.overrides);
  if (!loaded.config)
    throw std::runtime_error(fmt::format("{}: {}", setup.name, loaded.errors.empty() ? "" : loaded.errors.front()));
  return loaded.config->job;
}

Plan plan_of(const Setup& setup, const JobConfig& job, const ModelCost& cost) {
  ClusterSnapshot cluster{.nodes = {read_inventory("local").snapshot}};
  auto outcome = make_plan(cluster, job, cost);
  if (const auto* infeasible = std::get_if<Infeasible>(&outcome))
    throw std::runtime_error(fmt::format("{}: {}", setup.name, infeasible->reasons.front()));
  return std::get<Plan>(std::move(outcome));
}

/// Where an error comes from: the kernels of each unit's program, predicted and measured; those of a block by family.
std::string kernels_text(const JobConfig& job, const CoreRates& rates, int threads) {
  at::set_num_threads(1);
  kernels::set_num_threads(threads);
  const auto dtype = dtype_of_precision(job.precision.param);
  const PlannedUnits units(job.model, job.data.window, dtype, job.training.micro_batch_size);
  const auto levels = job_engine_options(job, /*run_dir=*/"").recompute;
  // prompts that differ and fill their length
  const std::int64_t samples = job.training.micro_batch_size, prompt = job.model.text_encoder.max_length;
  const auto begin = at::arange(samples, at::kLong) * prompt;
  std::vector<at::Tensor> conditioning(dit_conditioning::kTextOfSample + 1);
  conditioning.back() = at::stack({begin, begin + prompt, at::ones_like(begin)}, 1).contiguous();
  std::string text;
  const auto add_line = [&](const std::string& name, double predicted, double measured) {
    text += fmt::format("    {:<22} predicted {:8.3f} ms, measured {:8.3f}: {:+.0f} %\n", name, 1e3 * predicted,
                        1e3 * measured, 100 * (predicted / measured - 1));
  };
  const auto add_unit = [&](const std::string& name, const UnitProgram& program, bool by_family) {
    std::map<std::string, std::pair<double, double>> sums;
    std::pair<double, double> all;
    for (const TimedOperation& one : time_program(program, 5, conditioning)) {
      auto& [predicted, measured] = sums[std::string(one.work.empty() ? "none" : enum_name(one.work.front().family))];
      for (const KernelWork& work : one.work) {
        predicted += seconds_of(work, rates, threads);
        all.first += seconds_of(work, rates, threads);
      }
      measured += one.seconds;
      all.second += one.seconds;
    }
    for (const auto& [family, seconds] : sums) {
      if (by_family) add_line(family, seconds.first, seconds.second);
    }
    add_line(name, all.first, all.second);
  };
  add_unit("a block", units.block(/*is_last=*/false, levels.at(1)), true);
  add_unit("the last block", units.block(/*is_last=*/true, levels.back()), false);
  add_unit("the prologue", units.prologue(levels.front()), false);
  add_unit("the head", units.head(), false);
  add_unit("the loss", units.loss(), false);
  return text;
}

Row measure(const Setup& setup, const CoreRates& rates, const Options& options) {
  JobConfig job = load(setup);
  const ModelCost cost = must(model_cost(job, {}));
  const Plan plan = plan_of(setup, job, cost);
  set_product_form(plan.products == "widened" ? ProductForm::widened : ProductForm::native);
  Row row{
      .name = setup.name, .parameters = plan.parameters, .predicted = must(predict_on_cores(job, cost, plan, rates))};

  job = decided_job(std::move(job), plan);
  if (options.kernels) fmt::print("{}", kernels_text(job, rates, row.predicted.threads));
  const auto network = std::make_shared<DitNetwork>(job.model, job.data.window.chunks);
  ShardedTrainer trainer(network, row.predicted.ranks, job_engine_options(job, /*run_dir=*/""),
                         testing::random_parameters(state_units(network->units()), kStateSeed, at::kFloat));
  const auto dtype = dtype_of_precision(job.precision.param);
  const std::vector<Batch> batches(static_cast<std::size_t>(row.predicted.ranks),
                                   make_dit_batch(job.model, dit_size_of(job), dtype));
  const auto run = [&](int steps) {
    return trainer.run(batches, steps, kRate, row.predicted.threads, static_cast<int>(plan.batch.accumulation));
  };
  run(2);
  // a second a round
  const double once = run(1).seconds;
  const int steps = std::clamp(static_cast<int>(1.0 / once), 1, 50);
  for (int round = 0; round < options.rounds; ++round) {
    const Phase phase = run(steps);
    row.seconds.values.push_back(phase.seconds / steps);
    row.commit_seconds.values.push_back(phase.update_s / steps);
  }
  return row;
}

std::string line_of(const Row& row) {
  const StepTiming& t = row.predicted.timing;
  const auto share = [&](double seconds) { return 100 * seconds / t.seconds; };
  return fmt::format(
      "| {} | {:.1f} | {:.1f} | {:+.1f} % | {} | {:.0f}, {:.0f}, {:.0f}, {:.0f} | {:.0f} % |\n", row.name,
      1e3 * t.seconds, 1e3 * row.seconds.median(), 100 * row.error(),
      fmt::format("{:.1f} .. {:.1f}", 1e3 * *std::min_element(row.seconds.values.begin(), row.seconds.values.end()),
                  1e3 * *std::max_element(row.seconds.values.begin(), row.seconds.values.end())),
      share(t.products), share(t.attention), share(t.moving),
      std::max(0.0, 100 - share(t.products + t.attention + t.moving)),
      100 * row.predicted.product_share(row.seconds.median()));
}

constexpr const char* kHead =
    "| job | predicted, ms a step | measured, ms a step | error | measured rounds | predicted products, attention, "
    "other "
    "kernels, between ranks, % | product rate share |\n|---|---|---|---|---|---|---|\n";

std::string errors_line(const std::vector<Row>& rows) {
  Series errors;
  for (const Row& row : rows) errors.values.push_back(100 * std::abs(row.error()));
  return fmt::format("Errors: median {:.1f} %, worst {:.1f} % (goals 10 and 20).\n", errors.median(),
                     *std::max_element(errors.values.begin(), errors.values.end()));
}

int run(const Options& options, const std::string& command) {
  const int threads = static_cast<int>(read_inventory("local").snapshot.cpus);
  const auto begin = std::chrono::steady_clock::now();
  const CoreRates rates = measure_core_rates(threads);
  const double measuring = seconds_since(begin);
  const std::string head = fmt::format(
      "Rates of {} cores, measured in {:.1f} s: a large product reaches {:.0f} GFLOP/s in f32 and {:.0f} in bf16.\n",
      threads, measuring, rates.products[0] / 1e9, rates.products[1] / 1e9);
  fmt::print("{}\n{}", head, kHead);
  std::vector<Row> rows;
  for (const Setup& setup : setups(options.is_short)) {
    if (setup.name.find(options.only) == std::string::npos) continue;
    rows.push_back(measure(setup, rates, options));
    fmt::print("{}", line_of(rows.back()));
    std::fflush(stdout);
  }
  if (rows.empty()) throw std::runtime_error("no job has " + options.only + " in its name");
  std::string table = kHead;
  for (const Row& row : rows) table += line_of(row);
  fmt::print("\n{}", errors_line(rows));
  write_result(
      options.out,
      fmt::format(
          "# A step on cores: predicted and measured, CPU\n\nEach job is planned, its step predicted as `troupe plan` "
          "does, and then trained by engines as a run has them.\nA job is parameters, dtype, samples of a rank's "
          "micro-batch, ranks x threads of each, level of recompute, mode.\nMedians of {} rounds of about a second, "
          "after three "
          "steps that count for nothing. None of the jobs calibrated anything.\nProduct rate share: of the measured "
          "rate of a "
          "large product, in the measured step.\n\n{}\n{}\n{}\n{}",
          options.rounds, head, table, errors_line(rows), provenance(command, "LibTorch " TORCH_VERSION)));
  return 0;
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) {
  troupe::bench::Options options;
  CLI::App app{"What a plan predicts of a step on cores against what it takes"};
  app.add_option("--rounds", options.rounds, "timed rounds of each job")->check(CLI::PositiveNumber);
  app.add_option("--only", options.only, "jobs whose names have this in them, such as 23M");
  app.add_flag("--kernels", options.kernels, "times the kernels of a block of each job too, by family");
  troupe::bench::add_result_options(app, options.out, options.is_short);
  CLI11_PARSE(app, argc, argv);
  if (options.is_short) options.rounds = 1;
  return troupe::bench::exit_status("bench_model_step_prediction", 2, [&] {
    return troupe::bench::run(options, troupe::bench::command_line("bench_model_step_prediction", argc, argv));
  });
}
