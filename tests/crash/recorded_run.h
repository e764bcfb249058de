#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "tests/support/inline_background.h"
#include "workers/checkpoint/ledger.h"
#include "workers/checkpoint/run_directory.h"
#include "workers/controller/checkpoint_coordinator.h"
#include "workers/controller/state_db.h"

namespace troupe::testing {

/// What a run was told to be durable, with the call after which it was told so.
struct Acknowledged {
  /// The run has a directory, a state and a name: found by `latest`.
  bool is_made = false;
  std::uint64_t term = 0;
  std::int64_t plan = 0;
  std::int64_t checkpoint = 0;
  std::int64_t replay = 0;  ///< steps whose items are in the replay log
};

/// The life of a job with two ranks, as far as it writes to disk, by the code that a job writes with: run directory,
/// state.db, ledgers, replay log, and checkpoints through coordinator and writer. One thread; state and items are
/// functions of step, rank and place, so that what is read back can be judged.
class RecordedRun final : public ControllerEffects {
 public:
  static constexpr std::int64_t kWorld = 2, kBatch = 4;

  /// `run_root` is where the run is made, or goes on.
  explicit RecordedRun(std::string run_root) : run_root_(std::move(run_root)) {}
  /// `on_acknowledged` is called whenever something has become durable.
  void on_acknowledged(std::function<void(const Acknowledged&)> call) { on_acknowledged_ = std::move(call); }

  /// From the start, or from what is on disk, to `steps`, with a checkpoint every four. Errors: the first there is.
  Result<void> live(std::int64_t steps);

  /// Whether the disk has all that was acknowledged, bit for bit, and nothing that contradicts itself. Empty: it has.
  static std::string judge(const std::string& run_root, const Acknowledged& owed);

  void send(const std::string& to, const Message& message) override;
  void event(Severity, const std::string&, const std::string&) override {}
  void step(const StepReport&) override {}
  void evaluated(const EvalReport&) override {}
  void producer_times(const std::string&, const ProducerTimes&) override {}
  void bad_clip(const BadClip&, const std::string&) override {}
  void actor_ended(const std::string&) override {}
  void in_background(Background::Work work, Background::Then then) override {
    InlineBackground().run(std::move(work), std::move(then));
  }
  void record(Background::Work, std::function<void()>) override {}

 private:
  Result<void> start();
  Result<void> train(std::int64_t step, std::vector<LedgerWriter>& ledgers);
  Result<void> checkpoint(std::int64_t step, std::vector<LedgerWriter>& ledgers);
  void acknowledge() {
    if (on_acknowledged_) on_acknowledged_(acknowledged_);
  }

  const std::string run_root_;
  std::function<void(const Acknowledged&)> on_acknowledged_;
  Acknowledged acknowledged_;
  RunDirectory run_;
  std::unique_ptr<StateDb> db_;
  std::unique_ptr<CheckpointCoordinator> checkpoints_;
  std::uint64_t fence_ = 0;
  std::int64_t first_step_ = 0;
  bool committed_ = false;
};

}  // namespace troupe::testing
