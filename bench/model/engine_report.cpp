#include "bench/model/engine_report.h"

#include <fmt/format.h>
#include <torch/headeronly/version.h>

namespace troupe::bench {
namespace {

/// base / series or the like, where both were measured.
std::string ratio_text(const Series& series, const Series& base) {
  return series.values.empty() || base.values.empty() ? "-" : ratio(series, base).text(2);
}

std::string mib(std::int64_t bytes) {
  return bytes == 0 ? "-" : fmt::format("{:.0f}", static_cast<double>(bytes) / (1 << 20));
}

/// Where a sample's time goes, in shares of it; by medians.
std::string rest_table(const std::vector<EngineTimes>& all) {
  std::string table =
      "| case | ours, ms a sample | linear products | attention's products | vote and update | all else |\n"
      "|---|---|---|---|---|---|\n";
  for (const auto& times : all) {
    if (times.setup.size.dim != all.back().setup.size.dim || times.products_ms.values.empty()) continue;
    for (const auto& row : times.ours) {
      const double ours = row.ms.median();
      double rest = ours;
      std::string cells;
      for (const auto* part : {&times.linear_ms, &times.attention_ms, &row.update_ms}) {
        rest -= part->median();
        cells += fmt::format(" {:.0f} ({:.0f} %) |", part->median(), 100 * part->median() / ours);
      }
      table += fmt::format("| {} | {:.0f} |{} {:.0f} ({:.0f} %) |\n", row.name, ours, cells, rest, 100 * rest / ours);
    }
  }
  return table;
}

std::string threads_table(const std::vector<EngineTimes>& all) {
  std::string table =
      "| case | 1 thread, ms a sample | 2 threads, ms a sample | 1 thread / 2 threads |\n|---|---|---|---|\n";
  for (const auto& times : all) {
    for (const auto& row : times.ours) {
      if (row.one_thread_ms.values.empty()) continue;
      table += fmt::format("| {} | {} | {} | {} |\n", row.name, row.one_thread_ms.text(0), row.ms.text(0),
                           ratio_text(row.one_thread_ms, row.ms));
    }
  }
  return table;
}

std::string allocations_table(const std::vector<EngineTimes>& all) {
  std::string table =
      "| case | tensors allocated a step | in LibTorch's attention | minor page faults a step |\n|---|---|---|---|\n";
  for (const auto& times : all) {
    for (const auto& row : times.ours) table += fmt::format("| {} | {} |\n", row.name, row.warm);
  }
  return table;
}

std::string models(const std::vector<EngineTimes>& all) {
  std::string text;
  std::int64_t named = 0;
  for (const auto& times : all) {
    if (times.parameters == named) continue;
    named = times.parameters;
    const auto& size = times.setup.size;
    text += fmt::format(
        "- {}: {:.1f} M parameters; width {}, {} heads, {} layers, feed-forward {}; latents {} x {}, {} blocks of 2 "
        "frames with {} actions and a state; {} text and {} image tokens\n",
        times.setup.name.substr(0, times.setup.name.find('-')), static_cast<double>(named) / 1e6, size.dim,
        size.num_heads, size.num_layers, size.ffn_dim, size.latent_height, size.latent_width, size.blocks,
        size.actions_per_block, size.text_tokens, size.image_tokens);
  }
  return text;
}

}  // namespace

std::string times_table(const std::vector<EngineTimes>& all) {
  std::string table =
      "| case | ours, ms a sample | plain, ms a sample | products, ms a sample | plain / ours | products / ours | MiB "
      "ours, plain | largest loss gap |\n|---|---|---|---|---|---|---|---|\n";
  for (const auto& times : all) {
    for (const auto& row : times.ours) {
      table += fmt::format("| {} | {} | {} | {} | {} | {} | {}, {} | {:.1e} |\n", row.name, row.ms.text(0),
                           times.plain_ms.text(0), times.products_ms.text(0), ratio_text(times.plain_ms, row.ms),
                           ratio_text(times.products_ms, row.ms), mib(row.bytes), mib(times.plain_bytes),
                           times.largest_loss_gap);
    }
  }
  return table;
}

std::string plain_lines(const EngineTimes& times) {
  std::string lines;
  for (const auto& row : times.ours) {
    lines += fmt::format("{} {:.3f} {:.8g}\n", row.name, row.ms.median(), row.losses.at(0));
  }
  return lines;
}

std::string to_markdown(const std::vector<EngineTimes>& all, const std::string& command, const std::string& load) {
  const std::size_t rounds = all.empty() || all.front().ours.empty() ? 0 : all.front().ours.front().ms.values.size();
  std::string products;
  for (const auto& times : all) {
    if (!times.products.empty()) products += fmt::format("- {}: {}\n", times.setup.name, times.products);
  }
  return fmt::format(
      "# The learner's whole step: ours beside its own products and plain LibTorch, CPU\n\n"
      "One process, the same initial values and samples for all; gather to AdamW. A case is parameters, dtype, samples "
      "of a rank's\nmicro-batch, ranks x threads of each, and what ours keeps for backward: `L3` nothing but the "
      "blocks' "
      "inputs, `keep` their graphs.\n"
      "Plain: the reference's computation, f32 masters and moments, blocks checkpointed, all threads, the same global "
      "batch.\nProducts: those of one forward and backward of our network, each once and whole (an attention is six), "
      "by LibTorch on all threads;\nnothing that `L3` runs again is in them. In bf16 the faster of native and widened "
      "operands.\n"
      "Medians of {} rounds that run in turn from either end; lowest and highest in brackets; ratios round by round. "
      "MiB: all that\ntraining allocates, tensors of the step included, summed over ranks. Loss gap: relative, of all "
      "steps that both "
      "made.\nLoad averages before the first case: {}.\n\n{}\n{}\n"
      "## Where the rest goes\n\nMedians. Vote holds the wait for the slower rank. With `L3` all else has a second "
      "forward in it.\n\n{}\n"
      "## Threads of one rank\n\n{}\n## What a warm step allocates\n\nOf the last phase of a trainer that had run "
      "before, all ranks. Tensors outside LibTorch's\nattention hold what a micro-batch gives its programs (patches, "
      "sinusoids, loss coefficients) and sums of gradients.\n\n{}\n"
      "## The products\n\n{}\n{}",
      rounds, load, times_table(all), models(all), rest_table(all), threads_table(all), allocations_table(all),
      products, provenance(command, "LibTorch " TORCH_VERSION));
}

}  // namespace troupe::bench
