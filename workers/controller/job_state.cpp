#include "workers/controller/job_state.h"

namespace troupe::workers {

std::string_view to_string(JobState state) noexcept {
  switch (state) {
    case JobState::starting:
      return "STARTING";
    case JobState::recovering:
      return "RECOVERING";
    case JobState::running:
      return "RUNNING";
    case JobState::draining:
      return "DRAINING";
    case JobState::stopping:
      return "STOPPING";
    case JobState::done:
      return "DONE";
    case JobState::failed:
      return "FAILED";
    case JobState::stopped:
      return "STOPPED";
  }
  return "UNKNOWN";
}

}  // namespace troupe::workers
