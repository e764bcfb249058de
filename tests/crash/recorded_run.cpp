#include "tests/crash/recorded_run.h"

#include <fmt/format.h>

#include <filesystem>
#include <span>

#include "base/durable_file.h"
#include "base/file_io.h"
#include "base/hash.h"
#include "workers/checkpoint/commit.h"
#include "workers/checkpoint/frozen_base.h"
#include "workers/checkpoint/ledger_audit.h"
#include "workers/checkpoint/rank_file_writer.h"
#include "workers/checkpoint/reader.h"
#include "workers/checkpoint/writer.h"
#include "workers/rollout/replay/replay_log.h"

namespace troupe::testing {

namespace {

constexpr const char* kName = "job";
constexpr const char* kId = "20261122-113400-abcdef";
constexpr std::int64_t kElements = 700, kFrozenElements = 900;

Manifest manifest_of(std::int64_t step, std::uint64_t fence) {
  Manifest m;
  m.step = step;
  m.fence = fence;
  m.world = RecordedRun::kWorld;
  m.units = {{.name = "head",
              .layout_class = "head",
              .params = {{"head.w", {kElements}, 0, kElements}},
              .numel = kElements,
              .layout_hash = 7},
             {.name = "base",
              .layout_class = "base",
              .params = {{"base.w", {kFrozenElements}, 0, kFrozenElements}},
              .numel = kFrozenElements,
              .layout_hash = 8,
              .trainable = false,
              .in_base = true}};
  m.layout_hash = 9;
  m.optimizer = {.name = "adamw", .lr = 1e-3, .betas = {0.9, 0.99}, .eps = 1e-8, .updates = step};
  m.next_position = step * RecordedRun::kBatch;
  m.version = "0";
  return m;
}

float state_at(std::int64_t step, std::size_t kind, std::int64_t element) {
  return element >= kElements ? 0 : static_cast<float>(step * 1000 + element) + 0.25F * static_cast<float>(kind);
}

std::vector<float> rank_state(const Manifest& m, std::int64_t rank) {
  const std::int64_t shard = m.units[0].shard(m.world);
  std::vector<float> state;
  for (std::size_t kind = 0; kind < 3; ++kind) {
    for (std::int64_t i = 0; i < shard; ++i) state.push_back(state_at(m.step, kind, rank * shard + i));
  }
  return state;
}

float frozen_at(std::int64_t element) { return element >= kFrozenElements ? 0 : static_cast<float>(element) + 0.5F; }

/// As the ranks and the checkpointer do it: the base of the newest checkpoint, or one that is written now.
Result<std::string> base_of(const std::string& folder, const Manifest& m) {
  if (const auto listed = list_checkpoints(folder); !listed.empty()) return listed.back().manifest.base;
  const std::string unfinished = base_tmp_folder(folder, m.fence);
  TROUPE_TRY(make_folders(unfinished));
  const std::int64_t shard = m.units[1].shard(m.world);
  for (std::int64_t rank = 0; rank < m.world; ++rank) {
    std::vector<float> values;
    for (std::int64_t i = 0; i < shard; ++i) values.push_back(frozen_at(rank * shard + i));
    const auto bytes = std::as_bytes(std::span(values));
    TROUPE_TRY(write_rank_file(unfinished + "/" + Manifest::rank_file(rank, m.world),
                               {{m.units[1].tensor_name(0), "F32", {shard}}}, std::span(&bytes, 1)));
    TROUPE_TRY(sync_directory(unfinished));
  }
  TROUPE_ASSIGN(const auto digest, close_base(folder, m));
  return digest.value_or("");
}

std::vector<CollectedItem> items_of(std::int64_t step) {
  std::vector<CollectedItem> items;
  for (std::int64_t i = 0; i < RecordedRun::kBatch; ++i) {
    const std::int64_t position = step * RecordedRun::kBatch + i;
    std::vector<std::byte> bytes(3000, static_cast<std::byte>(position));
    const std::uint64_t hash = xxh3_64(std::span<const std::byte>(bytes));
    items.push_back({.position = position, .xxh3 = hash, .bytes = std::move(bytes)});
  }
  return items;
}

/// Steps that the newest whole checkpoint has; 0: there is none.
std::int64_t step_on_disk(const RunDirectory& run) {
  const auto newest = newest_valid(run.checkpoints());
  return newest ? newest->step : 0;
}

std::string judge_state(const std::string& directory, std::int64_t step) {
  const auto reader = CheckpointReader::open(directory);
  if (!reader) return reader.error().message();
  std::vector<float> found(kElements);
  for (std::size_t kind = 0; kind < 3; ++kind) {
    const auto read = (*reader)->read(0, static_cast<CheckpointReader::Kind>(kind), 0, kElements, found.data());
    if (!read) return read.error().message();
    for (std::int64_t i = 0; i < kElements; ++i) {
      if (found[static_cast<std::size_t>(i)] != state_at(step, kind, i)) return directory + ": other values";
    }
  }
  found.resize(kFrozenElements);
  const auto read = (*reader)->read(1, CheckpointReader::Kind::master, 0, kFrozenElements, found.data());
  if (!read) return read.error().message();
  for (std::int64_t i = 0; i < kFrozenElements; ++i) {
    if (found[static_cast<std::size_t>(i)] != frozen_at(i)) return directory + ": other values in its base";
  }
  return {};
}

std::string judge_ledger(const RunDirectory& run, const StateDb& db, std::int64_t steps) {
  const auto records = db.epochs();
  if (!records) return records.error().message();
  std::vector<LedgerEpoch> epochs;
  for (const EpochRecord& r : *records) epochs.push_back({.fence = r.fence, .resume_step = r.resume_step});
  const auto verdict = LedgerAudit(epochs, steps, RecordedRun::kBatch, RecordedRun::kBatch).run(run.ledger());
  if (!verdict) return steps == 0 && verdict.error().code() == Errc::not_found ? "" : verdict.error().message();
  if (verdict->ok()) return {};
  return fmt::format("ledger: lost {}, doubled {}, misplaced {} of {} steps", verdict->lost, verdict->doubled,
                     verdict->misplaced, steps);
}

std::string judge_replay(const RunDirectory& run, std::int64_t steps) {
  std::int64_t next = 0;
  bool equal = true;
  const auto read = ReplayLog(run.path("replay"), 0, 1).read(0, steps, [&](const CollectedItem& item) -> Result<void> {
    const auto wanted =
        items_of(item.position / RecordedRun::kBatch)[static_cast<std::size_t>(item.position % RecordedRun::kBatch)];
    equal &= item.position == next++ && item.bytes == wanted.bytes;
    return {};
  });
  if (!read) return read.error().message();
  return equal && next == steps * RecordedRun::kBatch ? "" : fmt::format("replay: {} items of {} steps", next, steps);
}

}  // namespace

Result<void> RecordedRun::start() {
  TROUPE_ASSIGN(run_, RunDirectory::create(run_root_, kName, kId));
  TROUPE_ASSIGN(db_, StateDb::open(run_.state_db()));
  TROUPE_ASSIGN(acknowledged_.term, db_->next_term());
  TROUPE_TRY(write_file_durably(run_.config(), "version: 1\n"));
  TROUPE_TRY(run_.make_latest(run_root_));
  acknowledged_.is_made = true;
  acknowledge();
  first_step_ = step_on_disk(run_);
  checkpoints_ = std::make_unique<CheckpointCoordinator>(CheckpointCoordinator::Options{.world = kWorld, .keep = 2},
                                                         run_, *db_, *this);
  checkpoints_->resume_from(first_step_,
                            first_step_ == 0 ? "" : run_.checkpoints() + "/" + checkpoint_name(first_step_));
  TROUPE_TRY(checkpoints_->settle());
  fence_ = acknowledged_.term << 32 | 1;
  TROUPE_TRY(db_->add_epoch({.fence = fence_, .resume_step = first_step_, .reason = "start"}));
  TROUPE_TRY(db_->set_job_state("RUNNING"));
  return {};
}

Result<void> RecordedRun::live(std::int64_t steps) {
  TROUPE_TRY(start());
  std::vector<LedgerWriter> ledgers;
  for (std::int64_t rank = 0; rank < kWorld; ++rank) {
    TROUPE_ASSIGN(auto ledger, LedgerWriter::open(run_.ledger(), fence_, rank));
    ledgers.push_back(std::move(ledger));
  }
  for (std::int64_t step = first_step_; step < steps; ++step) TROUPE_TRY(train(step, ledgers));
  return db_->set_job_state("DONE");
}

Result<void> RecordedRun::train(std::int64_t step, std::vector<LedgerWriter>& ledgers) {
  for (std::int64_t rank = 0; rank < kWorld; ++rank) {
    LedgerRecord record{.fence = fence_, .step = step, .rank = rank};
    for (std::int64_t i = 0; i < kBatch / kWorld; ++i) {
      const std::int64_t position = step * kBatch + rank * kBatch / kWorld + i;
      record.positions.push_back(position);
      record.xxh3.push_back(static_cast<std::uint64_t>(position));
      // long lines, so that a page holds few of them and a lost page leaves whole lines on both sides
      record.voids.push_back({.position = position, .reason = std::string(900, 'x')});
    }
    TROUPE_TRY(ledgers[static_cast<std::size_t>(rank)].append(record));
  }
  TROUPE_TRY(ReplayLog(run_.path("replay"), 0, 1).append(step, items_of(step)));
  acknowledged_.replay = step + 1;
  acknowledge();
  TROUPE_TRY(db_->add_plan(step + 1, fmt::format("{}", step + 1)));
  acknowledged_.plan = step + 1;
  acknowledge();
  return (step + 1) % 4 == 0 ? checkpoint(step + 1, ledgers) : Result<void>();
}

Result<void> RecordedRun::checkpoint(std::int64_t step, std::vector<LedgerWriter>& ledgers) {
  const auto now = CheckpointCoordinator::TimePoint{};
  committed_ = false;
  for (std::int64_t rank = 0; rank < kWorld; ++rank) {
    TROUPE_TRY(ledgers[static_cast<std::size_t>(rank)].sync());
    checkpoints_->on_snapshot(
        {.actor = "", .rank = rank, .step = step, .fence = fence_, .handle = "-", .updates = step}, fence_, true, {},
        {}, now);
  }
  CheckpointRequest request{.directory = run_.checkpoints() + "/" + checkpoint_tmp_name(step, fence_),
                            .manifest = manifest_of(step, fence_),
                            .attachments = {{"ledger.json", "{}\n"}}};
  TROUPE_ASSIGN(request.manifest.base, base_of(run_.checkpoints(), request.manifest));
  std::vector<std::vector<float>> states;
  for (std::int64_t rank = 0; rank < kWorld; ++rank) states.push_back(rank_state(request.manifest, rank));
  for (const auto& state : states) request.ranks.push_back(std::as_bytes(std::span(state)));
  TROUPE_ASSIGN(const WrittenCheckpoint written, CheckpointWriter().write(request));
  checkpoints_->on_done({.step = step, .fence = fence_, .manifest_hash = written.manifest_hash}, fence_, now);
  if (!committed_) return Error{Errc::internal, fmt::format("step {} was not committed", step)};
  acknowledged_.checkpoint = step;
  acknowledge();
  return {};
}

void RecordedRun::send(const std::string&, const Message& message) {
  if (const auto* settled = std::get_if<CheckpointCommitted>(&message)) committed_ = settled->committed;
}

std::string RecordedRun::judge(const std::string& run_root, const Acknowledged& owed) {
  if (!owed.is_made) return {};
  const auto run = find_run("", run_root);
  if (!run) return run.error().message();
  const auto db = StateDb::open(run->state_db());
  if (!db) return db.error().message();
  const auto term = (*db)->next_term();
  if (!term || *term <= owed.term) return "an older term";
  const auto plan = (*db)->newest_plan();
  if (!plan || (owed.plan > 0 && (!*plan || (*plan)->revision < owed.plan))) return "an older plan";
  const std::int64_t step = step_on_disk(*run);
  // What a controller does when it starts.
  RecordedRun started(run_root);
  CheckpointCoordinator checkpoints({.world = kWorld, .keep = 2}, *run, **db, started);
  checkpoints.resume_from(step, step == 0 ? "" : run->checkpoints() + "/" + checkpoint_name(step));
  if (const auto settled = checkpoints.settle(); !settled) return settled.error().message();
  if (step < owed.checkpoint) return fmt::format("checkpoint {} of {} acknowledged", step, owed.checkpoint);
  if (step > 0) {
    if (auto bad = judge_state(run->checkpoints() + "/" + checkpoint_name(step), step); !bad.empty()) return bad;
  }
  const auto recorded = (*db)->committed_step();
  if (!recorded || *recorded != step)
    return fmt::format("state.db says step {}, the disk {}", recorded ? *recorded : -1, step);
  std::vector<std::int64_t> catalogue, listed;
  const auto rows = (*db)->checkpoints().value();
  for (const CheckpointRecord& c : rows) catalogue.push_back(c.step);
  for (const CheckpointEntry& c : list_checkpoints(run->checkpoints())) listed.push_back(c.step);
  if (catalogue != listed)
    return fmt::format("state.db lists {}, the disk has {}", fmt::join(catalogue, " "), fmt::join(listed, " "));
  if (auto bad = judge_ledger(*run, **db, step); !bad.empty()) return bad;
  return judge_replay(*run, owed.replay);
}

}  // namespace troupe::testing
