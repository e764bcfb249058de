#include "workers/checkpoint/counter_audit.h"

#include <fmt/format.h>

#include "base/hash.h"

namespace troupe::workers {

namespace {

std::int64_t value_of(const std::map<std::string, std::int64_t>& counters, const char* name) {
  const auto found = counters.find(name);
  return found == counters.end() ? 0 : found->second;
}

void note(std::vector<CounterFinding>& list, std::int64_t step, std::string detail) {
  if (list.size() < CounterVerdict::kMaxListed) list.push_back({step, std::move(detail)});
}

}  // namespace

void CounterAudit::add(const LedgerRecord& record) {
  if (record.counters.empty()) return;
  ++records_;
  auto& sums = by_step_[record.step];
  for (const auto& [name, value] : record.counters) sums[name] += value;
  if (!record.counters.contains("produced")) return;
  const std::int64_t produced = value_of(record.counters, "produced"), resident = value_of(record.counters, "resident");
  const std::int64_t evicted = value_of(record.counters, "evicted"), lost = value_of(record.counters, "lost");
  if (produced == resident + evicted + lost) return;
  unbalanced_[record.step].push_back(
      fmt::format("{} produced, but {} resident + {} evicted + {} lost; fence {} rank {}", produced, resident, evicted,
                  lost, to_hex(record.fence), record.rank));
}

CounterVerdict CounterAudit::finish() const {
  CounterVerdict verdict;
  verdict.records = records_;
  for (const auto& [step, details] : unbalanced_) {
    verdict.unbalanced += static_cast<std::int64_t>(details.size());
    for (const std::string& detail : details) note(verdict.unbalanced_list, step, detail);
  }
  for (const auto& [step, sums] : by_step_) {
    bool fell = false;
    for (const auto& [name, value] : sums) {
      const std::int64_t before = value_of(verdict.totals, name.c_str());
      if (name != "resident" && value < before) {
        fell = true;
        note(verdict.backwards_list, step, fmt::format("{} fell from {} to {}", name, before, value));
      }
      verdict.totals[name] = value;
    }
    verdict.backwards += fell ? 1 : 0;
  }
  return verdict;
}

}  // namespace troupe::workers
