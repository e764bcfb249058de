#include <fmt/format.h>

#include "bench/model/dit_programs.h"

namespace troupe::bench {
namespace {

std::string mib(std::int64_t bytes) { return fmt::format("{:.0f}", static_cast<double>(bytes) / (1 << 20)); }

}  // namespace

std::string to_table(const std::vector<Timing>& timings) {
  std::string table =
      "| what | dtype | (a) ours, ms | (b) plain, ms | (c) products of (a), ms | c / a | b / a | peak MiB a, b, c | "
      "difference a, b |\n|---|---|---|---|---|---|---|---|---|\n";
  for (const auto& t : timings) {
    table += fmt::format("| {} | {} | {} | {} | {} | {} | {} | {}, {}, {} | {:.1e} |\n", t.name, t.dtype,
                         t.ours_ms.text(0), t.plain_ms.text(0), t.products_ms.text(0),
                         ratio(t.products_ms, t.ours_ms).text(2), ratio(t.plain_ms, t.ours_ms).text(2),
                         mib(t.ours_bytes), mib(t.plain_bytes), mib(t.products_bytes), t.difference);
  }
  table += "\n";
  for (const auto& t : timings) table += fmt::format("- {}, {}: {}\n", t.name, t.dtype, t.products);
  return table;
}

}  // namespace troupe::bench
