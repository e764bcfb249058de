#pragma once

#include <string>

#include "comm/control/messages.h"

namespace troupe {

/// How much a line matters to the person at the terminal.
enum class Severity : std::uint8_t { info, warn, error };

/// What the controller asks of the world. The actor shell implements it; tests record it.
class ControllerEffects {
 public:
  virtual ~ControllerEffects() = default;
  /// Sends a control message to an actor or node by name.
  virtual void send(const std::string& to, const Message& message) = 0;
  /// One line for the terminal, events.jsonl and the log. `kind` is a short word such as "restart".
  virtual void event(Severity severity, const std::string& kind, const std::string& text) = 0;
  /// A step committed; metrics are equal on all ranks.
  virtual void step(const StepReport& report) = 0;
  /// A held-out evaluation finished.
  virtual void evaluated(const EvalReport& report) = 0;
  /// Time that an actor of a producing role was idle because nobody gave it credit, and at work, since it last said so.
  virtual void producer_times(const std::string& role, double idle_seconds, double busy_seconds) = 0;
};

}  // namespace troupe
