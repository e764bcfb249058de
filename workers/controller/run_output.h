#pragma once

#include <string>

#include "workers/controller/effects.h"
#include "workers/report/live_line.h"

namespace troupe::workers {

/// What a run says to the person who started it. Called from the controller's actor; must not block.
class RunOutput {
 public:
  virtual ~RunOutput() = default;
  /// Something that stays to be read.
  virtual void line(Severity severity, const std::string& text) = 0;
  /// Where the job stands, every step, for a line that is repainted.
  virtual void live(const LiveLine& line) = 0;
  /// The same in words, every metrics.every steps, for outputs that scroll by.
  virtual void progress(const std::string& text) = 0;
};

}  // namespace troupe::workers
