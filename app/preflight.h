#pragma once

#include <memory>
#include <string>
#include <vector>

#include "app/exit_code.h"
#include "configs/loader.h"
#include "placement/plan.h"
#include "workers/controller/resume.h"
#include "workers/pipeline/pipeline.h"

namespace troupe::app {

/// What stands in a job's way on this machine, known before anything is started or written: files of weights and
/// tokenizer, the dataset, room for checkpoints, a run of the same name. `plan` shows it as warnings, `run` refuses.
struct Preflight {
  struct Finding {
    /// Begins with the key it is about.
    Error error;
    /// The job can start all the same.
    bool is_warning = false;
    /// Of the command that refuses.
    ExitCode code = kUsage;
  };
  std::vector<Finding> findings;
  /// What is not there yet and is made by the run; nothing is in the way.
  std::vector<std::string> notes;
  /// What the job trains on; null: it cannot be opened, and a finding says why.
  std::shared_ptr<const Pipeline> pipeline;
};

/// Whether no process controls a run of this job's name. Errors: failed_precondition, with its pid and step.
Result<void> no_live_run(const JobConfig& job);

/// Looks at everything above, and resolves model.init and the tokenizer on the way, which the configuration then
/// records: a run, a job's name or a link becomes the folder of a checkpoint, files become absolute paths. A job that
/// goes on takes them as its run recorded them.
/// `plan` says how large checkpoints are; null: their room is not judged. Reads files, and the dataset's index.
/// `env` is what the job's environment is, nothing where it has none.
Preflight preflight(LoadedConfig& config, const EnvSpec& env, const ResumePoint& point, const Plan* plan);

/// Adds what stands in the way of learners on devices of this machine (workers/learner/device_support.h).
void look_at_devices(const JobConfig& job, const Plan& plan, Preflight& found);

/// Says all findings and notes on stderr, each at the place of its key. The exit code of the first that refuses, else
/// kOk.
int refuse(const Preflight& found, const LoadedConfig& config);
/// Says all findings on stderr as warnings, and the notes.
void warn(const Preflight& found);

}  // namespace troupe::app
