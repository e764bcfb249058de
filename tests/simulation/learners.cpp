#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file_io.h"
#include "base/hash.h"
#include "tests/simulation/world.h"
#include "tests/support/bias_checkpoint.h"
#include "workers/checkpoint/checkpoint_ledger.h"
#include "workers/checkpoint/commit.h"
#include "workers/checkpoint/reader.h"
#include "workers/checkpoint/writer.h"

namespace troupe::testing {

void World::join_group(const std::shared_ptr<SimActor>& actor, const GroupPlan& plan) {
  if (plan.fence <= actor->fence)
    return breach(
        fmt::format("{} got the fence {:x} after {:x}", actor->identity.instance(), plan.fence, actor->fence));
  if (actor->is_in_group) break_group(actor->fence, 20ms);
  actor->fence = plan.fence;
  actor->is_in_group = true;
  actor->finishes = actor->is_settling = false;
  actor->history.clear();
  actor->ledger.reset();
  if (!plan.checkpoint.empty()) {
    const auto history = history_in(plan.checkpoint);
    // Under a plan that another has overtaken it may be gone by now.
    if (!history && (damaged_step_ == plan.resume_step || plan.fence != judge_.fence())) {
      actor->is_in_group = false;
      say(actor, GroupAbort{.actor = actor->identity.actor,
                            .fence = plan.fence,
                            .reason = history.error().message(),
                            .damaged_step = plan.resume_step});
      return break_group(plan.fence, 20ms);
    }
    if (!history) return breach(fmt::format("{} cannot be restored: {}", plan.checkpoint, history.error().message()));
    actor->history = *history;
  }
  if (static_cast<std::int64_t>(actor->history.size()) != plan.resume_step)
    breach(fmt::format("{} has {} steps and is to resume at {}", plan.checkpoint, actor->history.size(),
                       plan.resume_step));
  in_actor(actor, Millis(100 + in(400)), [this, actor, plan] {
    if (actor->fence != plan.fence || !actor->is_in_group) return;
    Group& group = groups_[plan.fence];
    for (const std::string& other : group.members) {
      if (other.starts_with(actor->identity.actor + "#") && other != actor->identity.instance())
        breach(fmt::format("{} and {} are one rank of {:x}", other, actor->identity.instance(), plan.fence));
    }
    if (group.is_broken) return leave_group(actor, "a peer is gone");
    group.members.insert(actor->identity.instance());
    say(actor, GroupUp{.actor = actor->identity.actor, .fence = plan.fence});
    if (static_cast<std::int64_t>(group.members.size()) == kRanks) {
      group.runs = true;
      step_soon(plan.fence);
    } else {
      // the collective's own deadline
      in_actor(actor, step_timeout(), [this, actor, fence = plan.fence] {
        if (actor->fence == fence && actor->is_in_group && !groups_[fence].runs) leave_group(actor, "timed out");
      });
    }
  });
}

void World::leave_group(const std::shared_ptr<SimActor>& actor, const std::string& reason) {
  actor->is_in_group = false;
  actor->is_settling = false;
  groups_[actor->fence].is_broken = true;
  say(actor, GroupAbort{.actor = actor->identity.actor, .fence = actor->fence, .reason = reason});
  break_group(actor->fence, Millis(20 + in(200)));
}

void World::break_group(std::uint64_t fence, Millis delay) {
  groups_[fence].is_broken = true;
  clock_.after(delay, [this, fence] {
    for (const auto& actor : members(fence)) {
      if (actor->is_in_group && actor->fence == fence)
        in_actor(actor, 0ms, [this, actor, fence] {
          if (actor->is_in_group && actor->fence == fence) leave_group(actor, "a peer is gone");
        });
    }
  });
}

std::vector<std::shared_ptr<SimActor>> World::members(std::uint64_t fence) {
  std::vector<std::shared_ptr<SimActor>> found;
  for (const auto& [instance, actor] : actors_) {
    if (actor->role == "learner" && actor->fence == fence && actor->is_in_group) found.push_back(actor);
  }
  return found;
}

void World::step_soon(std::uint64_t fence) {
  const auto tenth = static_cast<std::uint64_t>(schedule_.step.count()) / 10;
  clock_.after(Millis(7 * tenth + in(6 * tenth)), [this, fence] { step(fence); });
}

bool World::is_fed(const SimActor& learner) {
  return std::any_of(actors_.begin(), actors_.end(), [&](const auto& entry) {
    const SimActor& maker = *entry.second;
    const bool is_near = maker.node == 0 || (wire_.silent_until[maker.node] <= clock_.now() &&
                                             wire_.deaf_until[maker.node] <= clock_.now());
    return maker.role == feeder() && !maker.is_hung && maker.process->stopped_until <= clock_.now() && is_near &&
           maker.feeds.contains(learner.identity.instance());
  });
}

void World::step(std::uint64_t fence) {
  Group& group = groups_[fence];
  const auto ranks = members(fence);
  if (group.is_broken || static_cast<std::int64_t>(ranks.size()) != kRanks) return;
  for (const auto& rank : ranks) {
    if (rank->is_hung || rank->process->stopped_until > clock_.now()) {
      // the others wait for it until the collective's deadline
      clock_.after(step_timeout(), [this, fence, rank] {
        if (rank->is_hung && rank->is_in_group && rank->fence == fence) {
          for (const auto& other : members(fence)) {
            if (!other->is_hung) leave_group(other, "timed out");
          }
        } else {
          step(fence);
        }
      });
      return;
    }
    if (rank->is_settling && (done(*rank) || wants_snapshot(*rank))) return step_soon(fence);
    if (!done(*rank) && !is_fed(*rank)) return step_soon(fence);
  }
  if (breaks_groups_) return leave_group(ranks[0], "the collective failed");
  const bool are_done = done(*ranks[0]) || (ranks[0]->finishes && ranks[1]->finishes);
  if (are_done) return conclude(fence, ranks);
  for (const auto& rank : ranks) {
    rank->history.push_back(fence);
    report_step(rank);
    if (wants_snapshot(*rank) || done(*rank)) snapshot(rank);
  }
  step_soon(fence);
}

void World::report_step(const std::shared_ptr<SimActor>& rank) {
  const std::string& actor = rank->identity.actor;
  const auto step = static_cast<std::int64_t>(rank->history.size());
  const bool is_first = actor == "learner/0";
  StepReport report{.actor = actor, .fence = rank->fence, .step = step};
  if (is_first && step % 13 == 0) report.void_positions = {(step - 1) * GroupJudge::kBatch + 1};
  // each step of a long job, whose curves have to be thinned
  if (is_first && (step % 4 == 0 || schedule_.steps > 1000))
    report.metrics = {{"train/loss", 1.0 / static_cast<double>(step)}, {"time/step", 1.0}, {"time/stall", 0.1}};
  if (!report.metrics.empty() && schedule_.makers == Schedule::Makers::simulators)
    report.metrics.insert({{"env/return", 1.0}, {"env/num_trajectories", 8.0}});
  // the makers set the pace
  if (!report.metrics.empty() && schedule_.seed % 4 == 2) report.metrics["time/stall"] = 0.9;
  if (is_first && std::exchange(has_bad_samples_, false)) {
    for (std::int64_t i = 0; i < 20; ++i) report.bad_positions.push_back((step - 1) * GroupJudge::kBatch + i);
    report.void_positions = report.bad_positions;
  }
  if (schedule_.is_on_disk) append_ledger(*rank, report);
  say(rank, report);
  if (is_first && has_evaluator() && (step % 6 == 0 || done(*rank))) {
    due_ = {rank->fence, step};
    if (const auto evaluator = actor_of("evaluator/"))
      in_actor(evaluator, Millis(in(500)), [this, evaluator] { evaluate(evaluator); });
  }
  if (is_first && !has_evaluator() && step % 20 == 10)
    say(rank, EvalReport{.actor = actor,
                         .fence = rank->fence,
                         .step = step,
                         .metrics = {{"eval/loss", 0.5}, {"eval/dynamics_loss", 0.25}}});
  if (step == 7) say(rank, Event{.actor = actor, .kind = "void_sample", .text = "a sample is void"});
  if (step == 9) say(rank, BadClip{.actor = actor, .file = "clip.mp4", .group = 3, .text = "cannot be read"});
  if (step != 11 || !is_first) return;
  const auto maker = actor_of(feeder());
  say(rank, Quarantined{.actor = actor,
                        .position = 40,
                        .producers = {maker ? maker->identity.instance() : feeder() + "/0#0"},
                        .text = "two died of it"});
}

void World::append_ledger(SimActor& rank, const StepReport& report) {
  const std::int64_t of = rank.identity.actor == "learner/0" ? 0 : 1, share = GroupJudge::kBatch / kRanks;
  if (!rank.ledger)
    rank.ledger = std::make_unique<LedgerWriter>(LedgerWriter::open(run_.ledger(), rank.fence, of).value());
  LedgerRecord record{.fence = rank.fence, .step = report.step - 1, .rank = of};
  for (std::int64_t i = 0; i < share; ++i) {
    record.positions.push_back((report.step - 1) * GroupJudge::kBatch + of * share + i);
    record.xxh3.push_back(mix64(static_cast<std::uint64_t>(record.positions.back())));
  }
  for (const std::int64_t position : report.void_positions) record.voids.push_back({position, "void"});
  rank.ledger->append(record).value();
}

void World::snapshot(const std::shared_ptr<SimActor>& rank) {
  rank->is_settling = true;
  rank->settling_step = static_cast<std::int64_t>(rank->history.size());
  snapshots_[{rank->fence, rank->settling_step}] = rank->history;
  say(rank,
      SnapshotReady{.actor = rank->identity.actor,
                    .rank = rank->identity.actor == "learner/0" ? 0 : 1,
                    .step = rank->settling_step,
                    .fence = rank->fence,
                    .handle = fmt::format("{}@{:x}:{}", rank->identity.instance(), rank->fence, rank->settling_step)});
}

void World::conclude(std::uint64_t fence, const std::vector<std::shared_ptr<SimActor>>& ranks) {
  for (const auto& rank : ranks) {
    const auto step = static_cast<std::int64_t>(rank->history.size());
    if (rank->settling_step != step) {
      for (const auto& each : ranks) snapshot(each);
      return step_soon(fence);
    }
    if (rank->is_settling) return step_soon(fence);
  }
  for (const auto& rank : ranks) {
    const auto step = static_cast<std::int64_t>(rank->history.size());
    say(rank, Finished{.actor = rank->identity.actor, .fence = fence, .step = step});
  }
}

void World::write(const std::shared_ptr<SimActor>& actor, const CheckpointBegin& begin) {
  if (hangs_write_) {
    hangs_write_ = false;
    actor->is_hung = true;
    // with other faults it may use up the attempts of the last checkpoint
    excuses_.insert(Fault::Kind::fail_write);
    return;
  }
  // A slow disk now and then: the ranks may have gone back and come again before it is done.
  const Millis takes(in(6) == 0 ? 4000 + in(10'000) : 200 + in(1500));
  in_actor(actor, takes, [this, actor, begin] {
    CheckpointDone done;
    done.step = begin.step;
    done.fence = begin.fence;
    if (failing_writes_ > 0 && failing_writes_ % 2 == 0) {
      --failing_writes_;
      excuses_.insert(Fault::Kind::fail_write);
      done.error = "rank-0: No space left on device";
    } else if (failing_writes_ > 0 &&
               !std::filesystem::exists(run_.checkpoints() + "/" + checkpoint_name(begin.step))) {
      --failing_writes_;
      // it says that it has written, and the disk has nothing
      excuses_.insert(Fault::Kind::fail_write);
    } else {
      const Manifest manifest = bias_manifest(begin.step, begin.fence, kRanks);
      const std::vector<std::byte> shard(static_cast<std::size_t>(snapshot_bytes(manifest)));
      const auto made =
          CheckpointWriter().write({.directory = begin.directory,
                                    .manifest = manifest,
                                    .ranks = {shard, shard},
                                    .attachments = {{.name = CheckpointLedger::kFile, .bytes = ledger_of(begin)}}});
      if (made)
        done.manifest_hash = made->manifest_hash;
      else
        done.error = made.error().message();
    }
    say(actor, done);
  });
}

std::string World::ledger_of(const CheckpointBegin& begin) const {
  const auto history = snapshots_.find({begin.fence, begin.step});
  const nlohmann::json ledger = {{"history", history == snapshots_.end() ? History{} : history->second},
                                 {"void_positions", begin.void_positions},
                                 {"bad_positions", begin.bad_positions}};
  return ledger.dump();
}

Result<History> World::history_in(const std::string& checkpoint) {
  TROUPE_ASSIGN(const auto reader, CheckpointReader::open(checkpoint));
  TROUPE_TRY(reader->verify_digests());
  TROUPE_ASSIGN(const std::string text, read_file(checkpoint + "/" + CheckpointLedger::kFile));
  return nlohmann::json::parse(text).at("history").get<History>();
}

}  // namespace troupe::testing
