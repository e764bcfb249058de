// What NCCL gives the learner's operations between the GPUs of one machine: the time of small ones, and bytes/s that a
// rank sends in large ones. Ranks are threads, each with a GPU of its own.
//     bench_comm_nccl [--ranks 2] [--rounds 7] [--rates FILE.json] [--out RESULT.md]
// bench_comm_nccl_standin is the same on the stand-ins of tests/device, where times say nothing.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <thread>

#include "bench/support/bench_options.h"
#include "bench/support/failures.h"
#include "bench/support/rates_file.h"
#include "comm/collective/nccl_collective.h"
#include "device/cuda/cuda_device.h"

namespace troupe::bench {
namespace {

struct Options {
  int ranks = 2, rounds = 7;
  std::string rates, out;
  bool is_short = false;
};

constexpr std::chrono::seconds kTimeout{60};

/// One operation of so many bytes that become whole, or that a rank sends and keeps.
struct Row {
  bool is_gather = false;
  std::int64_t bytes = 0;
  Series seconds;
  /// that this rank sends to others
  double sent(int ranks) const { return static_cast<double>(bytes) * (ranks - 1) / ranks; }
};

std::vector<Row> rows_of(const Options& options) {
  const std::vector<std::int64_t> sizes = options.is_short
                                              ? std::vector<std::int64_t>{4096}
                                              : std::vector<std::int64_t>{8 << 10, 1 << 20, 64 << 20, 512 << 20};
  std::vector<Row> rows;
  for (const bool is_gather : {true, false}) {
    for (const auto bytes : sizes) {
      // shards of one size
      const std::int64_t unit = 256 * options.ranks;
      rows.push_back({.is_gather = is_gather, .bytes = bytes / unit * unit, .seconds = {}});
    }
  }
  return rows;
}

/// What one rank does; the times are its own.
void measure(int rank, const std::shared_ptr<ThreadGroup>& threads, const Options& options, std::vector<Row>& rows) {
  const auto device = must(device::make_cuda_device(rank));
  const auto group = must(make_nccl_collective(join_thread_group(threads, rank), *device, kTimeout));
  const auto stream = device->make_stream(device::StreamUse::transfer);
  const std::int64_t most =
      std::max_element(rows.begin(), rows.end(), [](auto& a, auto& b) { return a.bytes < b.bytes; })->bytes;
  const auto whole = device->allocate(most), sent = device->allocate(most);
  const auto seconds_of = [&](const Row& row, int times) {
    const auto size = static_cast<std::size_t>(row.bytes);
    const std::span full(whole->address(), size), from(sent->address(), size);
    const auto once = [&] {
      return row.is_gather
                 ? group->enqueue_all_gather(full, from.first(size / static_cast<std::size_t>(options.ranks)), *stream)
                 : group->enqueue_all_to_all(full, from, *stream);
    };
    must(group->barrier());
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < times; ++i) stream->enqueue(once);
    must(stream->synchronize());
    must(group->status());
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / times;
  };
  for (const Row& row : rows) seconds_of(row, 1);  // connections
  for (int round = 0; round < options.rounds; ++round) {
    // as many on every rank
    for (Row& row : rows)
      row.seconds.values.push_back(seconds_of(row, options.is_short || row.bytes > (32 << 20) ? 1 : 50));
  }
}

int run(const Options& options, const std::string& command) {
  const auto threads = make_thread_group(options.ranks, kTimeout);
  std::vector<std::vector<Row>> rows(static_cast<std::size_t>(options.ranks), rows_of(options));
  std::vector<std::exception_ptr> failures(rows.size());
  {
    std::vector<std::jthread> ranks;
    for (int rank = 0; rank < options.ranks; ++rank) {
      ranks.emplace_back([&, rank] {
        const auto r = static_cast<std::size_t>(rank);
        try {
          measure(rank, threads, options, rows[r]);
        } catch (...) {
          failures[r] = std::current_exception();
        }
      });
    }
  }
  for (const auto& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
  std::string table = fmt::format(
      "\n## NCCL, {} ranks\n\n| | bytes | microseconds | GB/s sent by a rank |\n|---|---|---|---|\n", options.ranks);
  for (const Row& row : rows.front()) {
    Series rate;
    for (const double seconds : row.seconds.values) rate.values.push_back(row.sent(options.ranks) / seconds / 1e9);
    table += fmt::format("| {} | {} | {:.1f} | {} |\n", row.is_gather ? "all-gather" : "all-to-all", row.bytes,
                         1e6 * row.seconds.median(), rate.text(1));
  }
  fmt::print("{}", table);
  // all-gathers come first; what one takes for each rank more is not told apart from its start
  const Row &small = rows.front().front(), &large = rows.front()[rows.front().size() / 2 - 1];
  keep_rates(options.rates, 0,
             {{"collective", small.seconds.median()},
              {"hop", 0},
              {"link", large.sent(options.ranks) / large.seconds.median()}});
  write_result(
      options.out,
      fmt::format(
          "# NCCL between GPUs\n\nMedians of {} rounds, lowest and highest in brackets, seen by rank 0.\n{}\n{}",
          options.rounds, table, provenance(command, "")));
  return 0;
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) {
  troupe::bench::Options options;
  CLI::App app{"What NCCL gives the learner's operations between the GPUs of one machine"};
  app.add_option("--ranks", options.ranks, "GPUs, the first ones")->check(CLI::Range(2, 64));
  app.add_option("--rounds", options.rounds, "timed rounds")->check(CLI::PositiveNumber);
  app.add_option("--rates", options.rates, "file of rates for `troupe plan` (JSON)");
  troupe::bench::add_result_options(app, options.out, options.is_short);
  CLI11_PARSE(app, argc, argv);
  if (options.is_short) options.rounds = 1;
  return troupe::bench::exit_status("bench_comm_nccl", 2, [&] {
    return troupe::bench::run(options, troupe::bench::command_line("bench_comm_nccl", argc, argv));
  });
}
