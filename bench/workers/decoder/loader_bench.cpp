// Loading, end to end: index -> batch in its final form, against the same pipeline in Python, and how it scales.
// Expect at least five times the samples per CPU-second of PyAV + torchvision + DataLoader, no stall at half the
// rate, and rates that do not depend on the number of episodes. Driven by loader_bench.sh.
#include "bench/workers/decoder/loader_bench.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/stopwatch.h"
#include "bench/workers/decoder/loader_cases.h"
#include "configs/loader.h"
#include "workers/decoder/loader/loader_run.h"
#include "workers/decoder/loader/loader_text.h"

namespace troupe::bench {

JobConfig load_case(const std::string& file, const std::vector<std::string>& overrides) {
  LoadOutcome outcome = load_job(file, overrides);
  std::string text;
  for (const std::string& error : outcome.errors) text += error + "\n";
  if (!outcome.config) throw std::runtime_error(text);
  return std::move(outcome.config->job);
}

Tokenize case_tokens() {
  return [](const std::string&, std::span<std::int64_t> ids, std::span<std::int64_t> mask) -> Result<void> {
    const std::size_t kept = std::min<std::size_t>(100, ids.size());
    for (std::size_t i = 0; i < kept; ++i) {
      ids[i] = static_cast<std::int64_t>(i + 3);
      mask[i] = 1;
    }
    return {};
  };
}

namespace {

/// Latest value of a key of a run.
double earlier(const std::string& folder, const std::string& name, const std::string& key) {
  const Series series = read_results(folder).at(name, key);
  if (series.values.empty() || series.values.back() <= 0)
    throw std::runtime_error(folder + "/results.tsv has no " + key + " of " + name);
  return series.values.back();
}

/// Numbers of a result, nested ones as "stage_ms_per_sample.decode".
void flatten(const nlohmann::ordered_json& json, const std::string& prefix,
             std::vector<std::pair<std::string, double>>& out) {
  for (const auto& [key, value] : json.items()) {
    if (value.is_object())
      flatten(value, prefix + key + ".", out);
    else if (value.is_number())
      out.emplace_back(prefix + key, value.get<double>());
  }
}

}  // namespace

void run_case(const std::string& folder, const std::string& name, const std::string& job_file, std::int64_t decoders,
              std::int64_t samples, const std::string& half_of, const std::vector<std::string>& overrides) {
  const JobConfig job = load_case(job_file, overrides);
  const auto opening = std::chrono::steady_clock::now();
  const auto mixture = must(Mixture::open(job.data, job.model));
  const double open_seconds = seconds_since(opening);
  const double rate = half_of.empty() ? 0 : earlier(folder, half_of, "samples_per_second") / 2;
  const LoaderResult result = must(run_loader(mixture, job, case_tokens(),
                                              {.samples = samples,
                                               .decoders = decoders,
                                               .micro_batch = job.training.micro_batch_size,
                                               .prefetch = job.data.prefetch_batches,
                                               .consume_rate = rate}));
  const LoaderContext context{.source = name,
                              .episodes = static_cast<std::int64_t>(mixture->datasets().front()->episodes().size()),
                              .windows = static_cast<std::int64_t>(mixture->train_size()),
                              .cores = static_cast<std::int64_t>(std::thread::hardware_concurrency()),
                              .open_seconds = open_seconds};
  fmt::print("{}\n{}\n", name, loader_text(result, context));
  std::vector<std::pair<std::string, double>> numbers;
  flatten(nlohmann::ordered_json::parse(loader_json(result, context)), "", numbers);
  std::ofstream out(folder + "/results.tsv", std::ios::app);
  for (const auto& [key, value] : numbers) out << fmt::format("{}\t{}\t{:.9g}\n", name, key, value);
}

}  // namespace troupe::bench

int main(int argc, char** argv) {
  using namespace troupe::bench;
  CLI::App app{"loading, end to end; see loader_bench.sh"};
  app.require_subcommand(1);
  std::string folder, golden, shared_data, name, job, half_of, command, note, out;
  std::int64_t samples = 64, decoders = 2, episodes = 100, blocks = 2;
  std::vector<std::string> overrides;
  app.add_option("--folder", folder)->required();
  auto* prepare = app.add_subcommand("prepare", "dataset, jobs, windows")->fallthrough();
  prepare->add_option("--golden", golden)->required();
  prepare->add_option("--shared-data", shared_data)->required();
  prepare->add_option("--samples", samples);
  auto* write = app.add_subcommand("samples", "the first samples, to compare")->fallthrough();
  write->add_option("--samples", samples);
  auto* scale = app.add_subcommand("scale", "a dataset of many episodes")->fallthrough();
  scale->add_option("--episodes", episodes)->required();
  scale->add_option("--blocks", blocks);
  auto* run = app.add_subcommand("run", "one measurement")->fallthrough();
  run->add_option("--name", name)->required();
  run->add_option("--job", job)->required();
  run->add_option("--decoders", decoders);
  run->add_option("--samples", samples);
  run->add_option("--half-of", half_of);
  run->add_option("--set", overrides);
  auto* report = app.add_subcommand("report", "the result file")->fallthrough();
  report->add_option("--command", command);
  report->add_option("--note", note);
  report->add_option("--out", out)->check(refuse_dirty_tree);
  CLI11_PARSE(app, argc, argv);
  return exit_status("bench_data_loader", 1, [&] {
    if (*prepare) prepare_droid(folder, {golden, shared_data}, samples);
    if (*write) write_samples(folder, samples);
    if (*scale) prepare_scale(folder, episodes, blocks);
    if (*run) run_case(folder, name, job, decoders, samples, half_of, overrides);
    if (*report) {
      const std::string text = loader_report(folder, command, note);
      fmt::print("{}", text);
      write_result(out, text);
    }
    return 0;
  });
}
