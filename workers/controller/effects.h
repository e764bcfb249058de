#pragma once

#include <string>

#include "base/enum_names.h"
#include "comm/control/messages.h"
#include "workers/controller/background.h"

namespace troupe::workers {

/// How much a line matters to the person at the terminal.
enum class Severity : std::uint8_t { info, warn, error };
constexpr auto enum_names(Severity) { return std::array{"info", "warn", "error"}; }

/// The metric that counts evaluations that were due and not made.
inline constexpr const char* kSkippedEvaluations = "eval/skipped";

/// What the controller asks of the world. ControllerService implements it; tests record it. Methods are called from the
/// controller's actor and must not block.
class ControllerEffects {
 public:
  virtual ~ControllerEffects() = default;
  /// Sends a control message to the newest start of an actor ("learner/0") or to a node ("node/1") by name. Dropped
  /// where there is none.
  virtual void send(const std::string& to, const Message& message) = 0;
  /// One line for the terminal, events.jsonl and state.db. `kind` is a short word such as "restart", by which
  /// programs tell events apart; `text` is for people.
  virtual void event(Severity severity, const std::string& kind, const std::string& text) = 0;
  /// A step committed, reported by the rank that has its metrics (docs/metrics.md). A step may come again after a
  /// rollback.
  virtual void step(const StepReport& report) = 0;
  /// A held-out evaluation finished, or one that played episodes; kSkippedEvaluations counts since the one before.
  virtual void evaluated(const EvalReport& report) = 0;
  /// An actor of a producing role ("decoder") said how it spent its time.
  virtual void producer_times(const std::string& role, const ProducerTimes& times) = 0;
  /// A part of a video could not be read; `text` as people read it. The same clip may come again.
  virtual void bad_clip(const BadClip& clip, const std::string& text) = 0;
  /// A start of an actor ("decoder/0#1") has ended, or another took its place: nothing it says counts any more.
  virtual void actor_ended(const std::string& instance) = 0;
  /// A sample that ends those who make it is left out. The same one may come again.
  virtual void quarantined(const Quarantined&) {}
  /// Work on files, away from the controller's actor and in order; `then` is called on the actor's thread.
  virtual void in_background(Background::Work work, Background::Then then) = 0;
  /// Writes to state.db, in order and in the background. What cannot be written is told once, and tried again until
  /// it can. `then` is called when it is written.
  virtual void record(Background::Work work, std::function<void()> then = {}) = 0;
};

}  // namespace troupe::workers
