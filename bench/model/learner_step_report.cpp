#include "bench/model/learner_step_report.h"

#include <fmt/format.h>
#include <stdio.h>
#include <torch/headeronly/version.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <memory>
#include <thread>

namespace troupe::bench {
namespace {

/// First line that a command prints.
std::string output_of(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), &::pclose);
  std::array<char, 256> line{};
  if (!pipe || !::fgets(line.data(), static_cast<int>(line.size()), pipe.get())) return {};
  std::string text = line.data();
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

std::string commit() {
  const std::string git = "git -C '" TROUPE_SOURCE_DIR "' --no-optional-locks ";
  const std::string hash = output_of(git + "rev-parse --short=12 HEAD 2>/dev/null");
  if (hash.empty()) return "not a git checkout";
  return hash + (output_of(git + "status --porcelain 2>/dev/null").empty() ? "" : " with uncommitted changes");
}

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

}  // namespace

double Series::median() const {
  auto sorted = values;
  std::sort(sorted.begin(), sorted.end());
  const std::size_t n = sorted.size();
  return n == 0 ? 0.0 : n % 2 == 1 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

std::string Series::text(int decimals) const {
  if (values.empty()) return "-";
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return fmt::format("{:.{}f} ({:.{}f} .. {:.{}f})", median(), decimals, *low, decimals, *high, decimals);
}

Series Comparison::ratio() const {
  Series ratios;
  for (std::size_t i = 0; i < sharded_ms.values.size(); ++i) ratios.values.push_back(sharded_ms.values[i] / plain_ms.values[i]);
  return ratios;
}

std::string to_table(const std::vector<Comparison>& comparisons) {
  std::string table = "| case | sharded, ms a sample | plain, ms a sample | sharded / plain | largest relative loss gap |\n|---|---|---|---|---|\n";
  for (const auto& c : comparisons) {
    table += fmt::format("| {} | {} | {} | {} | {:.1e} over {} steps |\n", c.name, c.sharded_ms.text(2), c.plain_ms.text(2),
                         c.ratio().text(3), c.largest_loss_gap, c.compared_steps);
  }
  return table;
}

std::string to_markdown(const std::vector<Comparison>& comparisons, const std::string& command, const LoadedConfig& config) {
  const std::size_t rounds = comparisons.empty() ? 0 : comparisons.front().sharded_ms.values.size();
  return fmt::format(
      "# One learner step: sharded engine against plain autograd, CPU\n\n"
      "Both train the same DiT from the same initial values on the same global batches in one process, recompute every unit and\n"
      "update with AdamW after clipping. Sharded: one Engine a rank over the thread collective, one intra-op thread each. Plain:\n"
      "every parameter a LibTorch leaf, each unit checkpointed, LibTorch's fused AdamW, as many intra-op threads as there are ranks.\n"
      "Batches are made beforehand. Phases alternate, sharded first in even rounds; medians of {} rounds, lowest and highest in brackets.\n\n"
      "{}\n- command: `{}`\n- commit: {}\n- machine: {}, {} hardware threads\n- LibTorch {}, g++ {}, build type {}\n\n"
      "## Configuration\n```yaml\n{}```\n",
      rounds, to_table(comparisons), command, commit(), cpu_model(), std::thread::hardware_concurrency(), TORCH_VERSION, __VERSION__,
      TROUPE_BUILD_TYPE, to_yaml(config.job));
}

}  // namespace troupe::bench
