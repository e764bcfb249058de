#include "workers/checkpoint/ledger_audit.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

#include "base/hash.h"
#include "workers/checkpoint/ledger.h"

namespace troupe::workers {

namespace {

namespace fs = std::filesystem;

struct LedgerFileName {
  std::string path;
  std::uint64_t fence = 0;
  std::int64_t rank = 0;
};

std::optional<LedgerFileName> parse_file_name(const fs::path& path) {
  const std::string name = path.filename();
  constexpr std::string_view kFence = "fence-", kRank = "-rank-", kEnd = ".jsonl";
  const std::size_t rank_at = kFence.size() + 16 + kRank.size();
  if (!name.starts_with(kFence) || !name.ends_with(kEnd) || name.size() <= rank_at + kEnd.size()) return std::nullopt;
  LedgerFileName parsed{.path = path.string(), .fence = 0, .rank = 0};
  std::from_chars(name.data() + kFence.size(), name.data() + kFence.size() + 16, parsed.fence, 16);
  std::from_chars(name.data() + rank_at, name.data() + name.size() - kEnd.size(), parsed.rank);
  if (name != ledger_file_name(parsed.fence, parsed.rank)) return std::nullopt;
  return parsed;
}

Result<std::vector<LedgerFileName>> list_files(const std::string& folder, const std::vector<LedgerEpoch>& epochs) {
  std::vector<LedgerFileName> files;
  std::error_code error;
  for (auto it = fs::directory_iterator(folder, error); !error && it != fs::directory_iterator(); it.increment(error)) {
    auto parsed = parse_file_name(it->path());
    if (!parsed) continue;
    const bool known =
        std::any_of(epochs.begin(), epochs.end(), [&](const LedgerEpoch& e) { return e.fence == parsed->fence; });
    if (!known) {
      return Error{Errc::failed_precondition,
                   fmt::format("{}: its fence is in no epoch of the run's state", parsed->path)};
    }
    files.push_back(std::move(*parsed));
  }
  if (error) return Error{Errc::not_found, fmt::format("{}: cannot be listed: {}", folder, error.message())};
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  return files;
}

/// Fills a verdict record by record. Two bits per position: consumed, void.
class Tally {
 public:
  Tally(LedgerVerdict& verdict, std::int64_t global_batch)
      : verdict_(verdict),
        global_batch_(global_batch),
        consumed_(static_cast<std::size_t>(verdict.expected)),
        void_(static_cast<std::size_t>(verdict.expected)) {}

  void add_superseded(const LedgerRecord& record) {
    const auto voids = void_positions(record);
    verdict_.superseded += count(record, voids);
    for (std::size_t i = 0; i < record.positions.size(); ++i) {
      if (voids.count(record.positions[i]) == 0) earlier_[record.positions[i]] = record.xxh3[i];
    }
  }

  void add_owned(const LedgerRecord& record) {
    const auto voids = void_positions(record);
    for (std::size_t i = 0; i < record.positions.size(); ++i) {
      consume(record, record.positions[i], voids);
      compare(record, i, voids);
    }
    // Void samples may be listed only as void: there were no bytes to carry.
    for (const auto& [position, reason] : voids) {
      if (std::find(record.positions.begin(), record.positions.end(), position) == record.positions.end()) {
        consume(record, position, voids);
      }
    }
  }

  void finish() {
    for (std::int64_t p = 0; p < verdict_.expected; ++p) {
      const auto at = static_cast<std::size_t>(p);
      if (!consumed_[at]) {
        ++verdict_.lost;
        if (verdict_.lost_list.size() < LedgerVerdict::kMaxListed) {
          verdict_.lost_list.push_back({p, p / global_batch_, "in no record of the owning epoch"});
        }
      } else if (void_[at]) {
        ++verdict_.voided;
      } else {
        ++verdict_.trained;
      }
    }
    for (auto* list : {&verdict_.void_list, &verdict_.doubled_list, &verdict_.misplaced_list, &verdict_.changed_list}) {
      sort_and_cut(*list);
    }
  }

 private:
  using Voids = std::map<std::int64_t, std::string>;

  static Voids void_positions(const LedgerRecord& record) {
    Voids voids;
    for (const VoidPosition& v : record.voids) voids[v.position] = v.reason;
    return voids;
  }
  static std::int64_t count(const LedgerRecord& record, const Voids& voids) {
    std::set<std::int64_t> all(record.positions.begin(), record.positions.end());
    for (const auto& [position, reason] : voids) all.insert(position);
    return static_cast<std::int64_t>(all.size());
  }
  static std::string where(const LedgerRecord& record) {
    return fmt::format("fence {} rank {}", to_hex(record.fence), record.rank);
  }

  static void sort_and_cut(std::vector<LedgerFinding>& list) {
    std::stable_sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.position < b.position; });
    if (list.size() > LedgerVerdict::kMaxListed) list.resize(LedgerVerdict::kMaxListed);
  }
  // Ranks' files are read one after another, so the smallest positions are known only at the end.
  static void note(std::vector<LedgerFinding>& list, LedgerFinding finding) {
    list.push_back(std::move(finding));
    if (list.size() >= 64 * LedgerVerdict::kMaxListed) sort_and_cut(list);
  }

  void consume(const LedgerRecord& record, std::int64_t position, const Voids& voids) {
    if (position / global_batch_ != record.step || position < 0) {
      ++verdict_.misplaced;
      note(verdict_.misplaced_list,
           {position, record.step,
            fmt::format("step {} trains [{}, {}); recorded by {}", record.step, record.step * global_batch_,
                        (record.step + 1) * global_batch_, where(record))});
      return;
    }
    const auto at = static_cast<std::size_t>(position);
    if (consumed_[at]) {
      ++verdict_.doubled;
      note(verdict_.doubled_list, {position, record.step, "again by " + where(record)});
      return;
    }
    consumed_[at] = true;
    const auto found = voids.find(position);
    if (found == voids.end()) return;
    void_[at] = true;
    note(verdict_.void_list, {position, record.step, found->second});
  }

  void compare(const LedgerRecord& record, std::size_t i, const Voids& voids) {
    const auto found = earlier_.find(record.positions[i]);
    if (found == earlier_.end() || found->second == record.xxh3[i] || voids.count(record.positions[i]) != 0) return;
    ++verdict_.changed;
    note(verdict_.changed_list,
         {record.positions[i], record.step,
          fmt::format("bytes {} now, {} before the rollback", to_hex(record.xxh3[i]), to_hex(found->second))});
  }

  LedgerVerdict& verdict_;
  std::int64_t global_batch_;
  std::vector<bool> consumed_, void_;
  std::unordered_map<std::int64_t, std::uint64_t>
      earlier_;  ///< digests of superseded records: what a rollback cost, so few
};

}  // namespace

LedgerAudit::LedgerAudit(std::vector<LedgerEpoch> epochs, std::int64_t committed_steps, std::int64_t global_batch,
                         std::int64_t dataset_size)
    : epochs_(std::move(epochs)), steps_(committed_steps), global_batch_(global_batch), dataset_size_(dataset_size) {
  std::sort(epochs_.begin(), epochs_.end(),
            [](const LedgerEpoch& a, const LedgerEpoch& b) { return a.fence < b.fence; });
}

std::uint64_t LedgerAudit::owner(std::int64_t step) const {
  for (auto epoch = epochs_.rbegin(); epoch != epochs_.rend(); ++epoch) {
    if (epoch->resume_step <= step) return epoch->fence;
  }
  return 0;
}

Result<LedgerVerdict> LedgerAudit::run(const std::string& folder) const {
  if (steps_ < 0 || global_batch_ < 1 || dataset_size_ < 1) {
    return Error{Errc::invalid_argument, fmt::format("ledger audit of {} steps of {} samples over a dataset of {}",
                                                     steps_, global_batch_, dataset_size_)};
  }
  TROUPE_ASSIGN(const auto files, list_files(folder, epochs_));
  LedgerVerdict verdict;
  verdict.steps = steps_;
  verdict.expected = steps_ * global_batch_;
  verdict.passes = verdict.expected / dataset_size_;
  Tally tally(verdict, global_batch_);
  CounterAudit counters;
  // Superseded records first, so that owning ones can be compared with them.
  for (const bool owning : {false, true}) {
    for (const LedgerFileName& file : files) {
      std::int64_t read = 0, owned_end = 0;  // records of the file: so far, and up to the last one that is owned
      const auto visit = [&](const LedgerRecord& record) -> Result<void> {
        if (record.fence != file.fence || record.rank != file.rank) {
          return Error{Errc::data_loss, fmt::format("{}: holds a record of fence {} rank {}", file.path,
                                                    to_hex(record.fence), record.rank)};
        }
        const bool owned = record.step >= 0 && record.step < steps_ && owner(record.step) == record.fence;
        ++read;
        if (owned) owned_end = read;
        if (owned != owning) return {};
        ++verdict.records;
        owned ? tally.add_owned(record) : tally.add_superseded(record);
        if (owned) counters.add(record);
        return {};
      };
      TROUPE_ASSIGN(const LedgerScan scan, scan_ledger(file.path, visit));
      // What is owned was synced. Behind it a power cut may have taken any page, and kept later ones.
      if (!scan.damage.empty() && scan.records_before_damage < owned_end) return Error{Errc::data_loss, scan.damage};
      if ((scan.torn || !scan.damage.empty()) && owning) verdict.torn.push_back(file.path);
    }
  }
  tally.finish();
  verdict.counters = counters.finish();
  return verdict;
}

}  // namespace troupe::workers
