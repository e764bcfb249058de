#pragma once

#include <gmock/gmock.h>

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/bias_checkpoint.h"
#include "tests/support/scratch_folder.h"
#include "workers/checkpoint/commit.h"
#include "workers/controller/job_controller.h"

namespace troupe::testing {

using namespace std::chrono_literals;
using TimePoint = JobController::TimePoint;

struct Sent {
  std::string to;
  Message message;
};

class RecordingEffects final : public ControllerEffects {
 public:
  void send(const std::string& to, const Message& message) override { sent.push_back({to, message}); }
  void event(Severity, const std::string& kind, const std::string& text) override {
    events.push_back(kind + ": " + text);
  }
  void step(const StepReport& report) override { steps.push_back(report.step); }
  void evaluated(const EvalReport& report) override { evaluations.push_back(report); }
  void producer_times(const std::string&, const ProducerTimes& spent) override {
    times.emplace_back(spent.idle_seconds, spent.busy_seconds);
  }
  void bad_clip(const BadClip& clip, const std::string& text) override { clips.push_back(clip.file + ": " + text); }
  void quarantined(const Quarantined& sample) override { samples.push_back(sample.position); }

  void actor_ended(const std::string& instance) override { ended.push_back(instance); }
  void in_background(Background::Work work, Background::Then then) override {
    pieces.emplace_back(std::move(work), std::move(then));
    if (!is_disk_slow) catch_up();
  }
  void record(Background::Work work, std::function<void()> then) override {
    in_background(std::move(work), [then = std::move(then)](const Result<void>& written) {
      written.value();
      if (then) then();
    });
  }
  /// Does what a slow disk has kept waiting.
  void catch_up() {
    while (!pieces.empty()) {
      const auto [work, then] = std::move(pieces.front());
      pieces.pop_front();
      const Result<void> result = work();
      if (then) then(result);
    }
  }

  /// Messages of one type sent since the last call, by receiver.
  template <class T>
  std::vector<std::pair<std::string, T>> take() {
    std::vector<std::pair<std::string, T>> found;
    std::erase_if(sent, [&](const Sent& s) {
      const auto* message = std::get_if<T>(&s.message);
      if (message) found.emplace_back(s.to, *message);
      return message != nullptr;
    });
    return found;
  }

  std::vector<Sent> sent;
  std::vector<std::string> events;
  std::vector<std::int64_t> steps;
  std::vector<EvalReport> evaluations;
  std::vector<std::pair<double, double>> times;
  std::vector<std::string> clips;
  std::vector<std::string> ended;
  std::vector<std::int64_t> samples;
  std::deque<std::pair<Background::Work, Background::Then>> pieces;
  bool is_disk_slow = false;
};

/// So many of each role, each in a process of its own.
inline std::vector<PlannedActor> actors_of(const std::vector<std::pair<std::string, int>>& roles) {
  std::vector<PlannedActor> actors;
  for (const auto& [role, count] : roles) {
    for (int rank = 0; rank < count; ++rank) {
      actors.push_back({.name = role + "/" + std::to_string(rank),
                        .role = role,
                        .process_rank = rank,
                        .cpus = 1,
                        .isolation = "process",
                        .memory_bytes = 1});
    }
  }
  return actors;
}

inline Plan two_ranks_two_decoders() {
  Plan plan;
  plan.job = "test";
  plan.nodes = {{.name = "local", .cpus = 4, .memory_bytes = std::int64_t{8} << 30}};
  plan.actors = actors_of({{"learner", 2}, {"decoder", 2}, {"checkpointer", 1}});
  plan.collective = "gloo";
  plan.batch = {.global = 8, .micro = 4, .data_ranks = 2, .accumulation = 1};
  return plan;
}

struct JobControllerTest : ::testing::Test {
  void SetUp() override {
    db = std::move(StateDb::open(folder + "/state.db")).value();
    auto made = RunDirectory::create(folder, "test", "run");
    setup.run = *made;
    setup.plan = two_ranks_two_decoders();
    setup.config.training.steps = 100;
    setup.config.job.name = "test";
    setup.config.data.max_bad_fraction = 0.01;
    setup.runtime_dir = folder;
    setup.term = *db->next_term();
    job = std::make_unique<JobController>(setup, *db, effects);
  }

  void up(const std::string& actor, std::int64_t incarnation = 0) {
    job->handle(actor, ActorUp{.actor = actor, .incarnation = incarnation, .pid = 1, .channels = {"shm:" + actor}},
                now);
  }
  void died(const std::string& actor, std::int64_t incarnation, std::int64_t signal = 9) {
    job->handle("node/0", ActorExited{.actor = actor, .incarnation = incarnation, .signal = signal}, now);
  }
  void pass(std::chrono::milliseconds time) {
    now += time;
    job->tick(now);
  }
  void group_up(std::uint64_t fence) {
    for (const char* rank : {"learner/0", "learner/1"}) job->handle(rank, GroupUp{.actor = rank, .fence = fence}, now);
  }
  /// Rank `rank` has its snapshot of step 10.
  void snapshot(std::uint64_t fence, std::int64_t rank, const std::string& handle) {
    job->handle("learner",
                SnapshotReady{.actor = "", .rank = rank, .step = 10, .fence = fence, .handle = handle, .updates = 10},
                now);
  }
  /// Everything up, the first group formed.
  std::uint64_t begin() {
    job->start(now);
    for (const char* actor : {"checkpointer/0", "decoder/0", "decoder/1", "learner/0", "learner/1"}) up(actor);
    const std::uint64_t fence = effects.take<GroupPlan>().at(0).second.fence;
    group_up(fence);
    effects.sent.clear();
    return fence;
  }

  /// A job that goes on at the last of these checkpoints: everything is up and asked to form the group of this plan.
  GroupPlan begin_at_checkpoints(const std::vector<std::int64_t>& steps) {
    const std::string checkpoints = setup.run.checkpoints();
    for (const std::int64_t step : steps) {
      write_bias_checkpoint(checkpoints + "/" + checkpoint_tmp_name(step, 1), step, 1, 2);
      commit_checkpoint(checkpoints, checkpoints + "/" + checkpoint_tmp_name(step, 1), step).value();
    }
    setup.resume_step = steps.back();
    setup.resume_checkpoint = checkpoints + "/" + checkpoint_name(steps.back());
    job = std::make_unique<JobController>(setup, *db, effects);
    job->start(now);
    for (const char* actor : {"checkpointer/0", "decoder/0", "decoder/1", "learner/0", "learner/1"}) up(actor);
    return effects.take<GroupPlan>().at(0).second;
  }

  const ScratchFolder scratch;
  const std::string folder = scratch.path();
  TimePoint now{1h};
  RecordingEffects effects;
  std::unique_ptr<StateDb> db;
  JobController::Setup setup;
  std::unique_ptr<JobController> job;
};

}  // namespace troupe::testing
