// The DiT's time against what its own matrix products allow and against a plain LibTorch program, in one process on the
// same weights and batch: (a) ours, (b) the reference's computation in plain ATen, (c) the products that (a) runs,
// recorded from (a), alone on allocated operands. Expect c / a >= 0.80 in f32 and >= 0.60 in bf16; b / a >= 1.3 for a
// training step and >= 1.7 for a policy call.
//     bench_model_dit [--layers 12] [--rounds 5] [--dtype fp32,bf16] [--out RESULT.md]
// Exit 1 when (a) and (b) do not agree: then no time means anything.
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <torch/headeronly/version.h>

#include <chrono>
#include <cstdio>

#include "bench/model/dit_programs.h"
#include "bench/model/product_recorder.h"
#include "bench/model/tensor_memory.h"
#include "bench/support/bench_options.h"
#include "bench/support/failures.h"
#include "model/shard/precision.h"

namespace troupe::bench {
namespace {

struct Options {
  DitSize size;
  std::vector<std::string> dtypes{"fp32", "bf16"};
  std::string out;
  int rounds = 5;
  bool is_short = false;
};

double milliseconds(const std::function<void()>& program) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  program();
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

Timing measure(const Programs& programs, const std::string& dtype, int rounds) {
  Timing timing{programs.name, dtype, programs.difference};
  timing.ours_bytes = tensor_use(programs.ours).peak_bytes;
  timing.plain_bytes = tensor_use(programs.plain).peak_bytes;
  std::vector<Product> products;
  timing.products_bytes = tensor_use([&] { products = record_products(programs.ours); }).peak_bytes - timing.ours_bytes;
  timing.products = describe(products);
  run_products(products);
  for (int round = 0; round < rounds; ++round) {
    // alternating, so that a slow minute of the machine meets all three
    timing.ours_ms.values.push_back(milliseconds(programs.ours));
    timing.products_ms.values.push_back(milliseconds([&] { run_products(products); }));
    timing.plain_ms.values.push_back(milliseconds(programs.plain));
  }
  return timing;
}

std::string to_markdown(const std::vector<Timing>& timings, const DitSize& size, std::int64_t parameters,
                        const std::string& command) {
  return fmt::format(
      "# The DiT: training step and policy call against their own products and against a plain program, CPU\n\n"
      "One process, the same random weights and sample for all. {:.1f} M parameters: width {}, {} heads, {} layers, "
      "feed-forward {}; latents "
      "9 x {} x {} (50 tokens a frame), {} blocks of 2 frames with {} actions and a state: 1,000 nominal tokens, {} "
      "text and {} image tokens. "
      "(a) trains through UnitTape with activation_checkpoint.mode none; (b) is the reference's computation in plain "
      "ATen, blocks "
      "checkpointed; (c) runs the GEMMs and attention products that (a) was seen to run, nothing else. Medians over "
      "rounds that alternate "
      "a, c, b; lowest and highest in brackets; ratios round by round. Peak: bytes of tensors allocated at once beyond "
      "weights and batch. "
      "Difference: relative L2 of loss and all gradients, or of the call's result, between (a) and (b).\n\n{}\n{}",
      static_cast<double>(parameters) / 1e6, size.dim, size.num_heads, size.num_layers, size.ffn_dim,
      size.latent_height, size.latent_width, size.blocks, size.actions_per_block, size.text_tokens, size.image_tokens,
      to_table(timings), provenance(command, "LibTorch " TORCH_VERSION));
}

int run(const Options& options, const std::string& command) {
  std::vector<Timing> timings;
  std::int64_t parameters = 0;
  for (const auto& dtype : options.dtypes) {
    const auto dit_case = make_dit_case(options.size, dtype_of_precision(dtype));
    parameters = dit_case.parameters;
    for (const auto make : {training_programs, policy_call_programs}) {
      const auto programs = make(dit_case);
      if (!(programs.difference <= programs.tolerance)) {
        fmt::print(stderr, "{}, {}: ours and plain differ by {:.2e}, wanted at most {:.0e}\n", programs.name, dtype,
                   programs.difference, programs.tolerance);
        return 1;
      }
      timings.push_back(measure(programs, dtype, options.rounds));
      fmt::print("{}", to_table({timings.back()}));
      std::fflush(stdout);
    }
  }
  write_result(options.out, to_markdown(timings, options.size, parameters, command));
  return 0;
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) {
  troupe::bench::Options options;
  CLI::App app{"The DiT against its own products and a plain program"};
  app.add_option("--layers", options.size.num_layers, "blocks")->check(CLI::PositiveNumber);
  app.add_option("--rounds", options.rounds, "timed runs of each kind")->check(CLI::PositiveNumber);
  troupe::bench::add_dtype_option(app, options.dtypes);
  troupe::bench::add_result_options(app, options.out, options.is_short);
  CLI11_PARSE(app, argc, argv);
  if (options.is_short) {
    options.rounds = 1;
    options.size = {.dim = 128, .num_heads = 2, .num_layers = 2, .ffn_dim = 256, .text_tokens = 32, .image_tokens = 17};
  }
  return troupe::bench::exit_status("bench_model_dit", 2, [&] {
    return troupe::bench::run(options, troupe::bench::command_line("bench_model_dit", argc, argv));
  });
}
