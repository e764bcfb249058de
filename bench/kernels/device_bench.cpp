// What a GPU gives the kernels of a DreamZero block: products as shares of a large square one of the same run,
// attention beside them, and what else a block and the optimizer do as shares of a copy.
//     bench_kernels_device [--device 0] [--model 5b|14b] [--samples 8] [--rounds 7] [--dtype bf16]
//                          [--rates FILE.json] [--out RESULT.md]
// bench_kernels_device_standin is the same on the stand-ins of tests/device, where times say nothing.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "bench/kernels/device_cases.h"
#include "bench/support/bench_options.h"
#include "bench/support/failures.h"
#include "bench/support/rates_file.h"
#include "device/cuda/cuda_device.h"
#include "kernels/cuda/cuda_kernels.h"

namespace troupe::bench {
namespace {

struct Options {
  int device = 0, rounds = 7;
  std::int64_t samples = 8;
  std::string model = "5b", rates, out;
  std::vector<std::string> dtypes{"bf16"};
  bool is_short = false;
};

BlockSizes sizes_of(const Options& options) {
  SequenceLayout layout{.frames = 9, .frames_per_block = 2, .blocks = 4, .states_per_block = 1, .max_blocks = 4};
  const auto with = [&](std::int64_t grid_rows, std::int64_t grid_cols, std::int64_t actions) {
    layout.grid_rows = grid_rows, layout.grid_cols = grid_cols, layout.actions_per_block = actions;
    return layout;
  };
  if (options.is_short) return {"small", 64, 128, 2, with(1, 3, 2), 8, 5};
  if (options.model == "14b") return {"14B", 5120, 13824, 40, with(22, 40, 24)};
  return {"5B", 3072, 14336, 24, with(5, 10, 24)};
}

struct Timed {
  DeviceCase what;
  Series seconds;
};

/// Runs all cases in turn, round by round, each as often as fills a twentieth of a second.
std::vector<Timed> measure(const std::vector<DeviceCase>& cases, device::Stream& stream, const Options& options) {
  const auto seconds_of = [&](const DeviceCase& what, int times) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < times; ++i) stream.enqueue([&] { return what.enqueue(stream); });
    stream.synchronize().value();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / times;
  };
  std::vector<Timed> timed;
  std::vector<int> times;
  for (const auto& what : cases) {
    seconds_of(what, 1);  // plans and scratch memory
    times.push_back(options.is_short ? 1 : std::clamp(static_cast<int>(0.05 / seconds_of(what, 1)), 1, 10'000));
    timed.push_back({what, {}});
  }
  for (int round = 0; round < options.rounds; ++round) {
    for (std::size_t i = 0; i < cases.size(); ++i) timed[i].seconds.values.push_back(seconds_of(cases[i], times[i]));
  }
  return timed;
}

/// The first is the limit where `is_limited`.
std::string table(const char* unit, double scale, const std::vector<Timed>& timed,
                  const std::function<double(const DeviceCase&)>& work, bool is_limited) {
  std::string text = fmt::format("\n| | microseconds | {} | of the first |\n|---|---|---|---|\n", unit);
  const auto rate_of = [&](const Timed& one) {
    Series rate;
    for (const double seconds : one.seconds.values) rate.values.push_back(work(one.what) / seconds / scale);
    return rate;
  };
  const Series limit = rate_of(timed.front());
  for (const auto& one : timed) {
    const Series rate = rate_of(one);
    text += fmt::format("| {} | {:.1f} | {} | {} |\n", one.what.name, 1e6 * one.seconds.median(), rate.text(1),
                        is_limited ? ratio(rate, limit).text(2) : "");
  }
  return text;
}

/// Of the cases [from, to): what they do, over their seconds.
double rate_of(const std::vector<Timed>& timed, std::size_t from, std::size_t to,
               const std::function<double(const DeviceCase&)>& work) {
  double done = 0, seconds = 0;
  for (std::size_t i = from; i < to; ++i) done += work(timed[i].what), seconds += timed[i].seconds.median();
  return done / seconds;
}

std::string to_text(const std::map<std::string, double>& rates) {
  std::string text = "\n## For plans\n\n| | seconds, FLOP/s or bytes/s |\n|---|---|\n";
  for (const auto& [name, rate] : rates) text += fmt::format("| {} | {:.3g} |\n", name, rate);
  return text;
}

int run(const Options& options, const std::string& command) {
  const auto device = device::make_cuda_device(options.device).value();
  const auto kernels = kernels::cuda::make_cuda_kernels(*device);
  const auto stream = device->make_stream(device::StreamUse::compute);
  const auto sizes = sizes_of(options);
  const auto samples = options.is_short ? 1 : options.samples;
  std::string tables;
  const auto flops = [](const DeviceCase& what) { return what.flops; };
  for (const auto& dtype : options.dtypes) {
    const auto type = dtype == "bf16" ? kernels::ElementType::bf16 : kernels::ElementType::f32;
    const auto section = [&](const char* title, auto make, const char* unit, double scale, const auto& work,
                             bool is_limited) {
      DeviceValues values(*device, *stream);  // gone before the next ones come
      auto timed = measure(make(sizes, samples, type, *kernels, values), *stream, options);
      const auto text = fmt::format("\n## {}, {}\n{}", title, dtype, table(unit, scale, timed, work, is_limited));
      fmt::print("{}", text);
      std::fflush(stdout);
      tables += text;
      return timed;
    };
    const auto bytes = [](const DeviceCase& what) { return what.bytes; };
    const auto products = section("Products", product_cases, "TFLOP/s", 1e12, flops, true);
    const auto attention = section("Attention", attention_cases, "TFLOP/s", 1e12, flops, false);
    const auto memory = section("Memory", memory_cases, "GB/s", 1e9, bytes, true);
    if (dtype != "bf16") continue;  // plans are of bf16
    const auto launches = section("Launches, and copies from the host", launch_cases, "GB/s", 1e9, bytes, false);
    const auto seconds = [&](std::size_t i) { return launches[i].seconds.median(); };
    // sequences are long where workers/pipeline/measured_rates.h says so
    const std::string attention_rate = sizes.layout.tokens() < 4096 ? "attention_short" : "attention_long";
    const std::map<std::string, double> rates = {
        {"products", rate_of(products, 1, products.size(), flops)},  // behind the square one
        {attention_rate, rate_of(attention, 0, 2, flops)},           // by segments, forward and gradient
        {"memory", rate_of(memory, 1, memory.size(), bytes)},        // behind the copy
        {"kernel_launch", seconds(0)},
        {"graph_launch", seconds(1)},
        {"kernel_gap", seconds(2) / kGraphKernels},
        {"offload", rate_of(launches, 3, 4, bytes)}};
    const auto text = to_text(rates);
    fmt::print("{}", text);
    tables += text;
    keep_rates(options.rates, options.device, rates);
  }
  write_result(
      options.out,
      fmt::format("# Kernels on a GPU: a block of DreamZero {}, {} samples of {} tokens\n\nMedians of {} "
                  "rounds in which all cases take turns, lowest and highest in brackets; shares round by "
                  "round. Products: the first is a square one; memory: a copy, both of the same run. Bytes "
                  "are those that must be read and written. Operands are drawn.\n{}\n{}",
                  sizes.name, samples, sizes.layout.tokens(), options.rounds, tables, provenance(command, "")));
  return 0;
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) {
  troupe::bench::Options options;
  CLI::App app{"What a GPU gives the kernels of a DreamZero block"};
  app.add_option("--device", options.device, "number of the GPU, as nvidia-smi counts them");
  app.add_option("--model", options.model, "5b or 14b")->check(CLI::IsMember({"5b", "14b"}));
  app.add_option("--samples", options.samples, "samples of a micro-batch")->check(CLI::PositiveNumber);
  app.add_option("--rounds", options.rounds, "timed rounds")->check(CLI::PositiveNumber);
  app.add_option("--rates", options.rates, "file of rates for `troupe plan` (JSON)");
  troupe::bench::add_dtype_option(app, options.dtypes);
  troupe::bench::add_result_options(app, options.out, options.is_short);
  CLI11_PARSE(app, argc, argv);
  if (options.is_short) options.rounds = 1;
  return troupe::bench::exit_status("bench_kernels_device", 2, [&] {
    return troupe::bench::run(options, troupe::bench::command_line("bench_kernels_device", argc, argv));
  });
}
