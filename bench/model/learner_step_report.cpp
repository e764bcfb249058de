#include "bench/model/learner_step_report.h"

#include <fmt/format.h>
#include <torch/headeronly/version.h>

namespace troupe::bench {

std::string to_table(const std::vector<Comparison>& comparisons) {
  std::string table =
      "| case | sharded, ms a sample | plain, ms a sample | sharded / plain | largest relative loss gap "
      "|\n|---|---|---|---|---|\n";
  for (const auto& c : comparisons) {
    table +=
        fmt::format("| {} | {} | {} | {} | {:.1e} over {} steps |\n", c.name, c.sharded_ms.text(2), c.plain_ms.text(2),
                    ratio(c.sharded_ms, c.plain_ms).text(3), c.largest_loss_gap, kComparedSteps);
  }
  return table;
}

std::string to_markdown(const std::vector<Comparison>& comparisons, const std::string& command,
                        const LoadedConfig& config) {
  const std::size_t rounds = comparisons.empty() ? 0 : comparisons.front().sharded_ms.values.size();
  return fmt::format(
      "# One learner step: sharded engine against plain autograd, CPU\n\n"
      "Both train the same DiT from the same initial values on the same global batches in one process, recompute every "
      "unit and\n"
      "update with AdamW after clipping. Sharded: one Engine a rank over the thread collective, one intra-op thread "
      "each. Plain:\n"
      "every parameter a LibTorch leaf, each unit checkpointed, LibTorch's fused AdamW, as many intra-op threads as "
      "there are ranks.\n"
      "Batches are made beforehand. Phases alternate, sharded first in even rounds; medians of {} rounds, lowest and "
      "highest in brackets.\n\n"
      "{}\n{}\n"
      "## Configuration\n```yaml\n{}```\n",
      rounds, to_table(comparisons), provenance(command, "LibTorch " TORCH_VERSION), to_yaml(config.job));
}

}  // namespace troupe::bench
