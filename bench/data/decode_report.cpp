#include <fmt/format.h>

#include <fstream>
#include <map>
#include <stdexcept>

#include "base/namespaces.h"
#include "bench/data/decode_modes.h"
#include "bench/support/result_file.h"
#include "data/video/ffmpeg.h"

namespace troupe::bench {
namespace {

struct Rounds {
  Series cpu_ms;
  double fed_per_given = 0;
};
using Modes = std::map<std::string, Rounds>;

const char* const kOrder[] = {
    "bare", "ours", "ours, RGB", "ours, shared", "ours, cached", "TorchCodec exact", "TorchCodec approximate", "PyAV"};

/// TorchCodec's better mode; null when neither ran.
const Rounds* better_torchcodec(const Modes& modes) {
  const auto exact = modes.find("TorchCodec exact"), approximate = modes.find("TorchCodec approximate");
  if (exact == modes.end() || approximate == modes.end()) return nullptr;
  return exact->second.cpu_ms.median() <= approximate->second.cpu_ms.median() ? &exact->second : &approximate->second;
}

std::string over(const Modes& modes, const char* mode, const Rounds* base) {
  const auto found = modes.find(mode);
  if (found == modes.end() || base == nullptr) return "-";
  if (found->second.cpu_ms.values.size() != base->cpu_ms.values.size())
    throw std::runtime_error("the rounds of the modes differ in number");
  return ratio(found->second.cpu_ms, base->cpu_ms).text(2);
}

}  // namespace

std::vector<DecodeCost> read_costs(const std::string& file) {
  std::ifstream in(file);
  std::vector<DecodeCost> costs;
  for (std::string line; std::getline(in, line);) {
    std::vector<std::string> cells(1);
    for (const char c : line) {
      if (c == '\t')
        cells.emplace_back();
      else
        cells.back() += c;
    }
    if (cells.size() != 4) throw std::runtime_error(file + ": a line without four cells: " + line);
    costs.push_back({cells[0], cells[1], std::stod(cells[2]), std::stod(cells[3])});
  }
  if (costs.empty()) throw std::runtime_error(file + " holds no measurement");
  return costs;
}

std::string decode_report(const std::vector<DecodeCost>& costs, const std::string& command, const std::string& note) {
  std::vector<std::string> sets;
  std::map<std::string, Modes> by_set;
  for (const DecodeCost& cost : costs) {
    if (!by_set.contains(cost.set)) sets.push_back(cost.set);
    Rounds& rounds = by_set[cost.set][cost.mode];
    rounds.cpu_ms.values.push_back(cost.cpu_ms);
    rounds.fed_per_given = cost.fed_per_given;
  }
  std::string text =
      "# Decoding of clips, CPU\n\nCPU time (user and system, whole process) per clip of 33 frames, three apart, of "
      "one "
      "view; ms, median (lowest .. highest) of alternating rounds. `bare` is libavcodec alone over the packets from "
      "the "
      "preceding key to the last wanted frame, without unwanted disposable ones. `ours` delivers planar YUV, `ours, "
      "RGB` "
      "the bytes that the Python decoders deliver. Shared: locality blocks of 8 anchors drawn through a shuffle buffer "
      "of "
      "256 samples. Cached: hits of the clip cache. All decoders use one thread and keep their files open.\n\n"
      "| set | way | ms per clip | decoded per delivered |\n|---|---|---|---|\n";
  for (const std::string& set : sets) {
    for (const char* mode : kOrder) {
      const auto found = by_set[set].find(mode);
      if (found == by_set[set].end()) continue;
      const double fed = found->second.fed_per_given;
      text += fmt::format("| {} | {} | {} | {} |\n", set, mode, found->second.cpu_ms.text(1),
                          fed < 0 ? "-" : fmt::format("{:.2f}", fed));
    }
  }
  text +=
      "\nRatios, round by round. Wanted: ours / bare at most 1.10; ours, RGB / TorchCodec below 0.9 on H.264 and 0.7 "
      "on "
      "AV1 with two-frame groups; shared and cached / TorchCodec at most 0.5.\n\n"
      "| set | ours / bare | bare / TorchCodec | ours / TorchCodec | ours, RGB / TorchCodec | shared / TorchCodec | "
      "cached / TorchCodec | "
      "shared / ours | cached / ours | PyAV / ours, RGB |\n|---|---|---|---|---|---|---|---|---|---|\n";
  for (const std::string& set : sets) {
    Modes& modes = by_set[set];
    const Rounds* torch = better_torchcodec(modes);
    text += fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n", set,
                        over(modes, "ours", &modes["bare"]), over(modes, "bare", torch), over(modes, "ours", torch),
                        over(modes, "ours, RGB", torch), over(modes, "ours, shared", torch),
                        over(modes, "ours, cached", torch), over(modes, "ours, shared", &modes["ours"]),
                        over(modes, "ours, cached", &modes["ours"]), over(modes, "PyAV", &modes["ours, RGB"]));
  }
  if (!note.empty()) text += "\n" + note + "\n";
  return text + "\n" +
         provenance(command, fmt::format("FFmpeg's libavcodec {}.{}.{}", LIBAVCODEC_VERSION_MAJOR,
                                         LIBAVCODEC_VERSION_MINOR, LIBAVCODEC_VERSION_MICRO));
}

}  // namespace troupe::bench
