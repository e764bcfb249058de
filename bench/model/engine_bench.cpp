// The learner's whole step, gather to AdamW, of the DiT with 25 M and 150 M parameters, in fp32 and bf16, with one and
// four samples, on one rank of two threads and on two of one: ours beside (a) the bare matrix products of that step and
// (b) the reference's computation in plain LibTorch, in one process. In bf16 ours computes products in the form that a
// job's plan has here. Goals at 150 M on one rank: plain / ours >= 1.75 and products / ours >= 0.84 in fp32.
//     bench_model_engine [--rounds 2] [--only SUBSTRING] [--ours] [--out RESULT.md]
//     bench_model_engine --export FOLDER [--only SUBSTRING]      # what engine_peer.py trains
// Exit 1 when ours and plain do not train alike: losses of the first three steps with one sample, before anything is
// timed, and those of all timed steps differ by at most 1e-4 of them in f32, 2e-2 in bf16. 32 cases take about 25
// minutes on two cores. engine_bench.sh runs it beside PyTorch.
#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "bench/model/engine_export.h"
#include "bench/model/engine_report.h"
#include "bench/support/bench_options.h"
#include "bench/support/failures.h"
#include "kernels/product.h"
#include "kernels/product_rates.h"
#include "placement/product_form.h"

namespace troupe::bench {
namespace {

struct Options {
  MeasureOptions measure;
  std::string out, export_folder;
  bool is_short = false;
};

/// Of the last minute, and of five and fifteen.
std::string load_averages() {
  std::ifstream file("/proc/loadavg");
  std::string one, five, fifteen;
  file >> one >> five >> fifteen;
  return one + ", " + five + ", " + fifteen;
}

int run(const Options& options, const std::string& command) {
  const auto load = load_averages();
  const auto rates = measure_product_rates();
  const ProductRates own{.has_tiles = has_bf16_tiles(), .native = rates.native, .widened = rates.widened};
  set_product_form(*enum_value<ProductForm>(product_form(JobConfig{}, own)));
  std::vector<EngineTimes> all;
  for (const auto& setup : engine_setups(options.is_short)) {
    if (our_rows(setup, options.measure.only).empty()) continue;
    if (!options.export_folder.empty()) {
      export_case(setup, options.export_folder);
      continue;
    }
    try {
      all.push_back(measure(setup, options.measure));
    } catch (const LossesDiffer& e) {
      fmt::print(stderr, "{}\n", e.what());
      return 1;
    }
    fmt::print("{}", options.measure.ours_alone ? plain_lines(all.back()) : times_table({all.back()}));
    std::fflush(stdout);
  }
  if (options.export_folder.empty()) write_result(options.out, to_markdown(all, command, load));
  return 0;
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) {
  troupe::bench::Options options;
  CLI::App app{"The learner's whole step beside its own products and plain LibTorch"};
  app.add_option("--rounds", options.measure.rounds, "timed phases of each kind")->check(CLI::PositiveNumber);
  app.add_option("--only", options.measure.only, "cases whose names have this in them, such as 150M-fp32-micro1");
  app.add_flag("--ours", options.measure.ours_alone, "ours alone, a line NAME MS LOSS for each case");
  app.add_option("--export", options.export_folder, "writes weights and batches there and times nothing");
  troupe::bench::add_result_options(app, options.out, options.is_short);
  CLI11_PARSE(app, argc, argv);
  if (options.is_short) options.measure.rounds = 1;
  return troupe::bench::exit_status("bench_model_engine", 2, [&] {
    return troupe::bench::run(options, troupe::bench::command_line("bench_model_engine", argc, argv));
  });
}
