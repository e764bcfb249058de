#include <fmt/format.h>

#include <fstream>
#include <sstream>

#include "bench/workers/decoder/loader_cases.h"

namespace troupe::bench {

Series LoaderResults::at(const std::string& run, const std::string& key) const {
  const auto found = runs.find(run);
  if (found == runs.end()) return {};
  const auto series = found->second.find(key);
  return series == found->second.end() ? Series{} : series->second;
}

LoaderResults read_results(const std::string& folder) {
  std::ifstream in(folder + "/results.tsv");
  LoaderResults out;
  for (std::string line; std::getline(in, line);) {
    std::istringstream cells(line);
    std::string run, key, number;
    std::getline(cells, run, '\t');
    std::getline(cells, key, '\t');
    std::getline(cells, number);
    if (!out.runs.contains(run)) out.order.push_back(run);
    out.runs[run][key].values.push_back(std::stod(number));
  }
  return out;
}

namespace {

std::string against_python(const LoaderResults& r) {
  const Series ours = r.at("droid", "samples_per_cpu_second"), python = r.at("python", "samples_per_cpu_second");
  if (ours.values.empty()) return {};
  std::string text =
      "| droid-views, full jitter | samples per CPU-second | samples/s | batches compared |\n|---|---|---|---|\n";
  text += fmt::format("| ours, 2 decoders | {} | {} | |\n", ours.text(2), r.at("droid", "samples_per_second").text(2));
  if (python.values.empty()) return text + "\n";
  text += fmt::format(
      "| Python: PyAV, torchvision v2, DataLoader of 2 workers | {} | {} | {} |\n", python.text(3),
      r.at("python", "samples_per_second").text(3),
      r.at("compare", "samples").values.empty()
          ? "no"
          : fmt::format("{:.0f} samples; levels apart at most: {:.0f} without jitter ({:.4f}% of the values), {:.0f} "
                        "with ({:.4f}%); state and action {:.2g}",
                        r.at("compare", "samples").median(), r.at("compare", "plain_levels").median(),
                        100 * r.at("compare", "plain_share").median(), r.at("compare", "jitter_levels").median(),
                        100 * r.at("compare", "jitter_share").median(), r.at("compare", "vectors").median()));
  text += fmt::format("| ratio | {} | {} | |\n\n", ratio(ours, python).text(2),
                      ratio(r.at("droid", "samples_per_second"), r.at("python", "samples_per_second")).text(2));
  return text;
}

std::string stages(const LoaderResults& r) {
  std::string text = "| ms per sample | ours |\n|---|---|\n";
  for (const char* stage : {"read", "decode", "transform", "table", "text", "other", "send", "collate", "wait"}) {
    text += fmt::format("| {} | {} |\n", stage, r.at("droid", std::string("stage_ms_per_sample.") + stage).text(2));
  }
  text += fmt::format("| frames decoded for each delivered | {} |\n",
                      r.at("droid", "pictures_decoded_per_delivered").text(2));
  text += fmt::format("| latency of a sample, p50 and p99 | {}, {} |\n", r.at("droid", "latency_ms.p50").text(1),
                      r.at("droid", "latency_ms.p99").text(1));
  text += fmt::format("| first batch of 4, seconds | {} |\n", r.at("droid", "first_batch_seconds").text(3));
  text += fmt::format("| learner stall at half the rate, % | {} |\n\n", r.at("droid-half", "stall_percent").text(3));
  return text;
}

std::string scaling(const LoaderResults& r) {
  std::string text =
      "| run | samples/s | per CPU-second | opening, s | first batch, s | resident MiB, first batch -> end "
      "|\n|---|---|---|---|---|---|\n";
  constexpr double kMebibyte = 1024.0 * 1024.0;
  for (const std::string& run : r.order) {
    if (run == "python" || run == "compare") continue;
    text += fmt::format("| {} | {} | {} | {} | {} | {:.1f} -> {:.1f} |\n", run, r.at(run, "samples_per_second").text(1),
                        r.at(run, "samples_per_cpu_second").text(1), r.at(run, "open_seconds").text(3),
                        r.at(run, "first_batch_seconds").text(3),
                        r.at(run, "resident_bytes.first_batch").median() / kMebibyte,
                        r.at(run, "resident_bytes.last").median() / kMebibyte);
  }
  return text + "\n";
}

}  // namespace

std::string loader_report(const std::string& folder, const std::string& command, const std::string& note) {
  const LoaderResults r = read_results(folder);
  std::string text =
      "# Loading, end to end, CPU\n\nFrom a position of the sampler to a batch in its final form: table, window, clip "
      "decode, crop, resize, "
      "jitter, canvas, state and action, a fixed table of tokens on both sides. Medians (lowest .. highest) of the "
      "rounds.\n\n";
  text += against_python(r) + stages(r);
  text +=
      "`droid*`: three views of 320x180, 33 frames each, canvases of 352x640. `scale N`: N episodes of links to ten "
      "small ones "
      "(three views of 64x64), an index of them on disk; `blocks`: clips of that many blocks of 8 frames.\n\n";
  text += scaling(r);
  text += fmt::format("{}\n\n{}", note, provenance(command, "PyAV, torchvision and PyTorch as the note says"));
  return text;
}

}  // namespace troupe::bench
