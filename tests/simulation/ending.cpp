#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/durable_file.h"
#include "base/file_io.h"
#include "configs/loader.h"
#include "tests/simulation/world.h"
#include "workers/checkpoint/commit.h"
#include "workers/controller/resume.h"
#include "workers/controller/run_audit.h"
#include "workers/controller/run_listing.h"
#include "workers/controller/run_lock.h"

namespace troupe::testing {

namespace {
/// A slow end takes up to 28 s, and a node's way back into the job a beat and two messages.
constexpr auto kLongestUnreal = 45s, kLongestQuiet = 270s;
/// A node beats every second, or asks twice a second.
constexpr auto kLongestSilence = 3s;
}  // namespace

void World::watch() {
  if (exit_code_) return;
  wire_.judge();
  wrong_now_.clear();
  if (is_started_) watch_reality();
  watch_nodes();
  std::erase_if(wrong_since_, [&](const auto& entry) { return !wrong_now_.contains(entry.first); });
  watch_progress();
  clock_.after(5s, [this] { watch(); });
}

void World::wrong_for(const std::string& what, SimTime::duration longest) {
  wrong_now_.insert(what);
  const SimTime since = wrong_since_.try_emplace(what, clock_.now()).first->second;
  if (clock_.now() - since < longest) return;
  breach(fmt::format("{} for {} s", what, std::chrono::duration_cast<std::chrono::seconds>(longest).count()));
}

bool World::is_in_contact(const SimProcess& process) const {
  return std::max(wire_.trouble(process), wire_.trouble(*controller_)) <= clock_.now();
}

void World::watch_reality() {
  std::map<std::int64_t, std::shared_ptr<SimNode>> by_rank{{0, own_agent_}};
  for (const auto& node : nodes_) {
    const auto rank = judge_.nodes().rank_of(node->address);
    if (node->process->is_alive && rank && judge_.nodes().presence(*rank) != NodePresence::lost) by_rank[*rank] = node;
  }
  for (const auto& [name, row] : service_->job().actors().rows()) {
    const auto incarnation = row.incarnation;
    if (incarnation >= 0 && row.state != ActorState::planned &&
        (peers_->node_of(name) != row.plan.node || peers_->node_of(name, incarnation) != row.plan.node))
      breach(fmt::format("the peer book does not have {} on node/{}", row.instance(), row.plan.node));
  }
  for (const auto& [rank, node] : by_rank) {
    if (rank != 0 && peers_->rank_of(name_without_life(node->address)) != rank)
      breach(fmt::format("the peer book does not have {} as node/{}", node->address, rank));
    if (!is_in_contact(*node->process)) continue;
    for (const auto& [instance, actor] : actors_) {
      if (actor->owner == node->process && actor->survives_until <= clock_.now() &&
          !judge_.actors().is_owned(instance, rank))
        wrong_for(fmt::format("{} lives on node/{} and is not in the controller's table", instance, rank),
                  kLongestUnreal);
    }
    for (const auto& [name, row] : service_->job().actors().rows()) {
      if (is_hosted(row) && row.plan.node == rank && !node->process->hosts.contains(row.instance()))
        wrong_for(
            fmt::format("{} counts as {} on node/{} and is not there", row.instance(), enum_name(row.state), rank),
            kLongestUnreal);
    }
  }
}

void World::watch_nodes() {
  for (const auto& node : nodes_) {
    if (!node->process->is_alive || node->process->stopped_until > clock_.now() - 5s) continue;
    if (clock_.now() - node->judge->last_sent() > kLongestSilence)
      breach(fmt::format("{} is silent for too long", node->address));
    if (is_started_ && is_in_contact(*node->process) && !judge_.nodes().rank_of(node->address))
      wrong_for(fmt::format("{} goes on beside the newest process of its name", node->address), kLongestUnreal);
  }
}

void World::watch_progress() {
  const JobController& job = service_->job();
  const std::string now = fmt::format("{} {} {} {}", is_started_, enum_name(job.state()), job.step(), judge_.fence());
  if (now != progress_.first) progress_ = {now, clock_.now()};
  if (clock_.now() - progress_.second > kLongestQuiet + 2 * schedule_.step + 4 * (step_timeout() - 20s))
    breach(fmt::format("the job has not moved since {:.1f} s: {}", SimClock::seconds_to(progress_.second), now));
}

bool World::may_fail(const std::string& why) const {
  const auto is = [&](Fault::Kind kind, const char* text) {
    return excuses_.contains(kind) && why.find(text) != std::string::npos;
  };
  // Only where the ranks were told that it is given up, which takes all attempts.
  const auto given_up = judge_.group().last_given_up();
  const bool is_of_given_up = given_up && why.starts_with(fmt::format("trained to step {},", *given_up));
  return (is_of_given_up && is(Fault::Kind::fail_write, "could not be written")) ||
         is(Fault::Kind::unkillable, "survives SIGKILL") || is(Fault::Kind::slow_end, "does not end") ||
         is(Fault::Kind::hang_write, "does not end within") || is(Fault::Kind::fatal, "bad samples") ||
         is(Fault::Kind::fatal, "without committing a step") || is(Fault::Kind::unkillable, "does not end") ||
         is(Fault::Kind::fatal, "no number") || is(Fault::Kind::fatal, "cannot mend");
}

void World::judge_end() {
  const auto& job = service_->job();
  // A second signal stops at once.
  const bool is_as_told = times_told_to_end_ > 0 && (*exit_code_ == 75 || *exit_code_ == 130);
  if (*exit_code_ == 4 ? !may_fail(job.failure()) : *exit_code_ != 0 && !is_as_told)
    breach(fmt::format("the job ended with {}: {}", *exit_code_, job.failure()));
  // A job ends with 0 if and only if its last step is on disk, however it was told to end.
  const std::int64_t on_disk = job.checkpoints().committed_step();
  if (*exit_code_ != 4 && (*exit_code_ == 0) != (on_disk == schedule_.steps))
    breach(fmt::format("the job ended with {}, and step {} of {} is on disk", *exit_code_, on_disk, schedule_.steps));
  const SimTime written_by = clock_.now() + 60s;
  while (!service_->wait_until_written(0ms) && go_on(written_by)) continue;
  if (!service_->wait_until_written(0ms)) breach("the controller has not written everything 60 s after the job's end");
  judge_history();
  judge_catalogue();
  if (schedule_.is_on_disk) judge_run_directory();
  // Nodes leave when they are told, or when they have heard nothing for too long.
  clock_.after(10s, [this] {
    controller_->is_alive = false;
    for (const std::string& instance : std::set(controller_->hosts)) drop_actor(instance);
  });
  const SimTime until = clock_.now() + 200s;
  while (go_on(until)) continue;
  for (const auto& [instance, actor] : actors_) breach(fmt::format("{} outlives the job", instance));
  for (const auto& node : nodes_) {
    // one that was never let in gives up after --join-timeout
    if (node->process->is_alive && node->role) breach(fmt::format("{} outlives the job", node->address));
  }
}

void World::judge_history() {
  const auto newest = newest_valid(run_.checkpoints());
  if (!newest) {
    if (service_->job().checkpoints().committed_step() > 0) breach("what was committed is not on disk");
    return;
  }
  const History history = history_in(newest->directory).value();
  if (static_cast<std::int64_t>(history.size()) != newest->step)
    breach(fmt::format("step {} on disk holds {} steps", newest->step, history.size()));
  const auto epochs = db_->epochs().value();
  for (std::size_t i = 0; i < history.size(); ++i) {
    std::uint64_t owner = 0;
    for (const EpochRecord& epoch : epochs) {
      if (epoch.fence <= newest->manifest.fence && epoch.resume_step <= static_cast<std::int64_t>(i))
        owner = epoch.fence;
    }
    if (history[i] != owner)
      return breach(fmt::format("step {} was trained by {:x} and belongs to {:x}", i + 1, history[i], owner));
  }
}

void World::judge_catalogue() {
  for (const auto& [name, member] : membership_->members()) {
    const auto& nodes = membership_->cluster().nodes;
    if (nodes.at(static_cast<std::size_t>(member.rank)).name != name) breach(fmt::format("{} has another rank", name));
  }
  // A job that was stopped before its begin has not looked; the next one does.
  if (service_->job().fence() == 0) return;
  const auto listed = list_checkpoints(run_.checkpoints());
  const auto recorded = db_->checkpoints().value();
  const bool is_same = std::equal(listed.begin(), listed.end(), recorded.begin(), recorded.end(),
                                  [](const CheckpointEntry& entry, const CheckpointRecord& record) {
                                    return entry.step == record.step && entry.manifest.fence == record.fence;
                                  });
  if (!is_same)
    breach(fmt::format("{} checkpoints are on disk and {} in state.db, the newest of step {} and {}", listed.size(),
                       recorded.size(), listed.empty() ? 0 : listed.back().step,
                       recorded.empty() ? 0 : recorded.back().step));
  // One that fails is settled by the next start.
  if (*exit_code_ == 0 && db_->unfinished_commit().value()) breach("a commit is begun and not finished");
  const std::int64_t committed = service_->job().checkpoints().committed_step();
  if (db_->committed_step().value() != committed)
    breach(fmt::format("step {} is committed and state.db has {}", committed, db_->committed_step().value()));
  if (committed == 0) return;
  std::error_code error;
  const auto latest = std::filesystem::read_symlink(run_.checkpoints() + "/latest", error).string();
  if (latest != checkpoint_name(committed))
    breach(fmt::format("step {} is committed and latest is '{}'", committed, latest));
}

void World::record_job() {
  write_file_synced(run_.config(), recorded_job().resolved_yaml).value();
  run_.make_latest(folder_).value();
}

void World::judge_neighbours() {
  // A run of the same name that began before this one, with a broken state.db.
  const RunDirectory other = RunDirectory::create(folder_, "sim", "before").value();
  write_file_synced(other.config(), recorded_job().resolved_yaml).value();
  write_file_synced(other.state_db(), "no database, though it is long enough to look like one").value();
  write_file_synced(other.endpoint(), "tcp://nowhere").value();
  {
    const auto held = lock_to_remove(other);
    if (lock_run(run_)) breach("two runs of one name are under way");
    const auto live = find_live_run(folder_, "sim");
    if (!live || live->run.root() != other.root()) breach("a run that is under way is not found");
    remove_leftovers(run_);
    if (!std::filesystem::exists(other.endpoint())) breach("the address of a live run is gone");
  }
  remove_leftovers(run_);
  if (std::filesystem::exists(other.endpoint())) breach("the address of a dead run stays");
  const auto runs = list_runs(folder_);
  if (runs.size() != 2 || runs[1].state != "UNREADABLE" || removable_runs(runs, 1).size() != 1)
    breach(fmt::format("{} runs are listed, the second as {}", runs.size(), runs.empty() ? "" : runs.back().state));
}

void World::judge_events() {
  const auto text = read_file(run_.events()).value();
  const auto first = nlohmann::json::parse(text.substr(0, text.find('\n')));
  // A controller that was stopped meanwhile has lost none.
  const bool is_whole = !outcome_.said.empty() && outcome_.said.front().ends_with(first["text"].get<std::string>());
  if ((loses_events() && !is_whole) != (first["kind"] == "lines_lost"))
    breach(fmt::format("the first event is {}", first["kind"].get<std::string>()));
}

void World::judge_statistics() {
  const RunStatistics& statistics = service_->statistics();
  const RunCurve& curve = statistics.curve("train/loss");
  if (curve.points().empty()) return;
  // A controller that went on and trained no step has the curves and no newest step.
  const bool has_steps = statistics.steps() > 0;
  const double lowest = curve.lowest()->value, highest = curve.highest()->value,
               newest = has_steps ? statistics.metric("train/loss") : lowest;
  const bool fits = statistics.best().value == lowest && lowest <= newest && newest <= highest &&
                    statistics.first_mean(10) >= statistics.last_mean(10) - 1e-9 && curve.not_finite() == 0;
  if (!fits) breach(fmt::format("the losses are {} to {}, the newest {}", lowest, highest, newest));
  if (!has_steps) return;
  const double shares = statistics.stall_percent() + statistics.compute_percent() + statistics.vote_percent() +
                        statistics.checkpoint_percent();
  if (shares < 0 || shares > 100 || statistics.samples_per_second_quantile(0.5) <= 0)
    breach(fmt::format("the shares of a step add up to {}", shares));
}

void World::judge_run_directory() {
  const auto& job = service_->job();
  LoadedConfig recorded = recorded_job();
  recorded.job.job.run_root = folder_;
  if (schedule_.steps != recorded.job.training.steps) return;
  const auto point = resolve_resume(recorded, "auto").value();
  if (point.is_complete != (*exit_code_ == 0 && job.checkpoints().committed_step() == schedule_.steps))
    breach(fmt::format("a run that ended with {} is {}complete", *exit_code_, point.is_complete ? "" : "not "));
  const bool goes_back = damaged_step_ == job.checkpoints().committed_step();
  if (!point.is_complete && !goes_back && point.step != job.checkpoints().committed_step())
    breach(fmt::format("a run with step {} on disk goes on at {}", job.checkpoints().committed_step(), point.step));
  const bool may_begin_anew = job.state() == JobState::done || job.checkpoints().committed_step() == 0;
  if (resolve_resume(recorded, "").has_value() != may_begin_anew)
    breach(fmt::format("without --resume a new run may {}begin", may_begin_anew ? "not " : ""));
  if (!resolve_resume(recorded, "never") || !resolve_resume(recorded, "sim/run") || resolve_resume(recorded, "none"))
    breach("a run is not found by its name");
  recorded.job.training.global_batch_size *= 2;
  if (resolve_resume(recorded, "auto")) breach("a run goes on with another batch");
  const auto plan = db_->newest_plan().value();
  if (plan && nlohmann::json::parse(plan->json)["revision"] != job.plan().revision)
    breach("the newest plan is not recorded");
  judge_statistics();
  judge_events();
  remove_session_files(run_);
  remove_leftovers(run_);
  if (!lock_run(run_)) breach("the run is locked");
  if (!lock_to_remove(run_)) breach("the run cannot be removed");
  if (find_live_run(folder_, "sim")) breach("the run counts as live");
  const auto runs = list_runs(folder_);
  if (runs.size() != 1 || runs[0].state != enum_name(job.state()) || !runs[0].is_latest || runs[0].pid)
    breach(fmt::format("{} runs are listed, the first as {}", runs.size(), runs.empty() ? "" : runs[0].state));
  if (!removable_runs(runs, 1).empty()) breach("the newest run may be removed");
  judge_neighbours();
  if (job.checkpoints().committed_step() == 0) return;
  const auto audit = audit_run(run_);
  if (!audit) return breach(audit.error().message());
  if (!audit->ledger.ok())
    breach(fmt::format("of {} positions {} are lost, {} doubled and {} misplaced", audit->ledger.expected,
                       audit->ledger.lost, audit->ledger.doubled, audit->ledger.misplaced));
}

}  // namespace troupe::testing
