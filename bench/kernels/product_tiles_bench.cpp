// Products in tiles, each one single-threaded call of the library, against the library's own call on as many threads:
// the shapes of a transformer block of DreamZero 5B and of the 150 M model, forward and both gradients. The library's
// rate is the limit; tiles are wanted at 0.95 of it or more in the geometric mean and nowhere under 0.90.
//     bench_kernels_product_tiles [--threads 2] [--rounds 7] [--dtype fp32,bf16] [--out RESULT.md]
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <torch/headeronly/version.h>

#include <chrono>
#include <cmath>

#include "bench/support/bench_options.h"
#include "bench/support/failures.h"
#include "kernels/product.h"
#include "kernels/threads.h"

namespace troupe::bench {
namespace {

struct Options {
  int threads = 2, rounds = 7;
  std::vector<std::string> dtypes{"fp32", "bf16"};
  std::string out;
  bool is_short = false;
};

/// [m, k] x [k, n]; the second operand is a weight, [n, k], read transposed in a forward.
struct Shape {
  std::int64_t m, n, k;
  bool transposed_b, transposed_a;
};

/// Forward, gradient of the input and of the weight of a linear layer over so many rows.
void add_linear(std::vector<Shape>& shapes, std::int64_t rows, std::int64_t in, std::int64_t out) {
  shapes.push_back({rows, out, in, true, false});
  shapes.push_back({rows, in, out, false, false});
  shapes.push_back({out, in, rows, false, true});
}

std::vector<Shape> block_shapes(std::int64_t tokens, std::int64_t text, std::int64_t width, std::int64_t hidden) {
  std::vector<Shape> shapes;
  add_linear(shapes, tokens, width, width);
  add_linear(shapes, text, width, width);
  add_linear(shapes, tokens, width, hidden);
  add_linear(shapes, tokens, hidden, width);
  return shapes;
}

double seconds_of(const std::function<void()>& work, int times) {
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < times; ++i) work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / times;
}

struct Row {
  Shape shape;
  TileGrid grid;
  Series tiles_gflops, whole_gflops;
};

Row measure(const Shape& s, at::ScalarType dtype, const Options& options) {
  const auto draw = [&](std::int64_t rows, std::int64_t cols) { return at::randn({rows, cols}).to(dtype); };
  const at::Tensor a = s.transposed_a ? draw(s.k, s.m).t() : draw(s.m, s.k);
  const at::Tensor b = s.transposed_b ? draw(s.n, s.k).t() : draw(s.k, s.n);
  at::Tensor ours = at::empty({s.m, s.n}, dtype), library = at::empty({s.m, s.n}, dtype);
  const auto run_ours = [&] { kernels::product_out(ours, a, b); };
  const auto run_library = [&] { at::mm_out(library, a, b); };
  const double work = 2.0 * static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k);
  const auto on_ours = [&](int times) {
    at::set_num_threads(1);
    kernels::set_num_threads(options.threads);
    return seconds_of(run_ours, times);
  };
  const auto on_library = [&](int times) {
    at::set_num_threads(options.threads);
    return seconds_of(run_library, times);
  };
  // as often as fills a tenth of a second
  const int times = options.is_short ? 1 : std::max(1, static_cast<int>(0.1 / std::max(1e-6, on_library(1))));
  on_ours(1);
  Row row{s, kernels::product_tiles(s.m, s.n, s.k), {}, {}};
  for (int round = 0; round < options.rounds; ++round) {
    const bool ours_first = round % 2 == 0;
    const double first = ours_first ? on_ours(times) : on_library(times);
    const double second = ours_first ? on_library(times) : on_ours(times);
    row.tiles_gflops.values.push_back(work / (ours_first ? first : second) / 1e9);
    row.whole_gflops.values.push_back(work / (ours_first ? second : first) / 1e9);
  }
  return row;
}

std::string table_of(const std::vector<Row>& rows, const std::string& dtype, const std::string& model) {
  std::string text = fmt::format(
      "\n{}, {}\n\n| m x n x k | tiles | tiles, GFLOP/s | library, GFLOP/s | tiles / library | share of 2..16 threads "
      "| of "
      "32 |\n|---|---|---|---|---|---|---|\n",
      model, dtype);
  double logs = 0, least = 1e9;
  for (const Row& row : rows) {
    const Series over = ratio(row.tiles_gflops, row.whole_gflops);
    double share = 1;
    for (std::int64_t threads = 2; threads <= 16; ++threads) share = std::min(share, row.grid.busy_share(threads));
    text += fmt::format("| {} x {} x {} | {} x {} | {} | {} | {} | {:.2f} | {:.2f} |\n", row.shape.m, row.shape.n,
                        row.shape.k, row.grid.rows, row.grid.cols, row.tiles_gflops.text(0), row.whole_gflops.text(0),
                        over.text(2), share, row.grid.busy_share(32));
    logs += std::log(over.median());
    least = std::min(least, over.median());
  }
  return text + fmt::format("\nGeometric mean {:.3f}, lowest {:.2f}.\n",
                            std::exp(logs / static_cast<double>(rows.size())), least);
}

int run(const Options& options, const std::string& command) {
  const at::NoGradGuard no_grad;
  kernels::set_product_form(kernels::ProductForm::native);
  struct Model {
    std::string name;
    std::vector<Shape> shapes;
  };
  std::vector<Model> models = {{"DreamZero 5B, one sample", block_shapes(900, 512, 3072, 14336)},
                               {"150 M, one sample", block_shapes(900, 512, 768, 3072)}};
  if (options.is_short) models = {{"small", block_shapes(64, 32, 128, 256)}};
  std::string tables;
  for (const std::string& dtype : options.dtypes) {
    for (const Model& model : models) {
      std::vector<Row> rows;
      for (const Shape& shape : model.shapes)
        rows.push_back(measure(shape, dtype == "bf16" ? at::kBFloat16 : at::kFloat, options));
      const std::string table = table_of(rows, dtype, model.name);
      fmt::print("{}", table);
      std::fflush(stdout);
      tables += table;
    }
  }
  write_result(
      options.out,
      fmt::format("# Products in tiles against the library's own threads, CPU\n\nEach tile is one call of the "
                  "library on one thread, {} threads share them; the library multiplies the whole with {} "
                  "threads. Both alternate; medians of {} rounds, lowest and highest in brackets; ratios round "
                  "by round. Share: part of the threads' time in which they have tiles, the least over 2 to 16 "
                  "threads, when all tiles take as long. bf16 by the library's own bf16 products.\n{}\n{}",
                  options.threads, options.threads, options.rounds, tables,
                  provenance(command, "LibTorch " TORCH_VERSION)));
  return 0;
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) {
  troupe::bench::Options options;
  CLI::App app{"Products in tiles against the library's own threads"};
  app.add_option("--threads", options.threads, "of both sides")->check(CLI::PositiveNumber);
  app.add_option("--rounds", options.rounds, "timed runs of each shape")->check(CLI::PositiveNumber);
  troupe::bench::add_dtype_option(app, options.dtypes);
  troupe::bench::add_result_options(app, options.out, options.is_short);
  CLI11_PARSE(app, argc, argv);
  if (options.is_short) options.rounds = 1;
  return troupe::bench::exit_status("bench_kernels_product_tiles", 2, [&] {
    return troupe::bench::run(options, troupe::bench::command_line("bench_kernels_product_tiles", argc, argv));
  });
}
