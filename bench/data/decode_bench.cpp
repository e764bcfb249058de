// Our clip decoder against libavcodec alone; decode_bench.sh adds TorchCodec and PyAV and writes the result file.
//     bench_data_decode prepare --folder F [--frames 420]         generated videos and the list of clips, F/clips.tsv
//     bench_data_decode check   --folder F                        every way gives libavcodec's frames, bit for bit
//     bench_data_decode round   --folder F                        one round; appends lines to F/costs.tsv
//     bench_data_decode report  --folder F --command C [--out RESULT.md]
// --shared-data S: folder of droid-views, gr1-pick-place, g1-bottle. --clips N per set.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>

#include "bench/data/decode_modes.h"
#include "bench/support/result_file.h"

namespace troupe::bench {
namespace {

struct Options {
  std::string folder, shared_data = "../shared/data", command, note, out;
  std::size_t clips = 12;
  std::int64_t frames = 420, buffer_samples = 256;
  double shared_gib = 2;
};

void run_round(const std::vector<DecodeSet>& sets, const DecodeModes& modes, const std::string& file) {
  std::ofstream out(file, std::ios::app);
  for (const DecodeSet& set : sets) {
    for (const DecodeCost& cost : measure(set, modes))
      out << cost.set << '\t' << cost.mode << '\t' << cost.cpu_ms << '\t' << cost.fed_per_given << '\n';
  }
  if (!out.flush()) throw std::runtime_error(file + " could not be written");
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) try {
  using namespace troupe::bench;
  Options o;
  CLI::App app("Clip decoding against libavcodec alone");
  app.add_option("--folder", o.folder, "generated videos, lists, measurements")->required();
  app.add_option("--shared-data", o.shared_data, "folder of recorded videos");
  app.add_option("--clips", o.clips, "clips per set");
  app.add_option("--frames", o.frames, "of each generated video");
  app.add_option("--buffer-samples", o.buffer_samples, "size of the shuffle buffer");
  app.add_option("--shared-gib", o.shared_gib, "data.decoder.shared_frames_gib");
  app.add_option("--command", o.command, "command to put into the result file");
  app.add_option("--note", o.note, "sentence to put into the result file");
  app.add_option("--out", o.out, "result file")->check(refuse_dirty_tree);
  app.fallthrough();
  app.require_subcommand(1);
  auto* prepare = app.add_subcommand("prepare");
  auto* check = app.add_subcommand("check");
  auto* round = app.add_subcommand("round");
  auto* report = app.add_subcommand("report");
  CLI11_PARSE(app, argc, argv);

  const DecodeModes modes{o.folder, static_cast<std::int64_t>(o.shared_gib * 1024 * 1024 * 1024), o.buffer_samples};
  if (*prepare) make_videos(o.folder, o.frames);
  const std::vector<DecodeSet> sets = decode_sets(o.shared_data, o.folder, o.clips);
  if (*prepare) write_clips(sets, o.folder + "/clips.tsv");
  if (*check) {
    for (const DecodeSet& set : sets) check_frames(set, modes);
  }
  if (*round) run_round(sets, modes, o.folder + "/costs.tsv");
  if (*report) {
    const std::string text = decode_report(read_costs(o.folder + "/costs.tsv"), o.command, o.note);
    std::fputs(text.c_str(), stdout);
    write_result(o.out, text);
  }
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "bench_data_decode: %s\n", error.what());
  return 1;
}
