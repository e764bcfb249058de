#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/file_descriptor.h"
#include "base/result.h"
#include "workers/bridge/worker_command.h"

namespace troupe::workers {

/// Longest time for a worker to start Python and make its first environment.
inline constexpr std::chrono::minutes kStartPatience{3};

/// A process of Python: with a process group of its own, killed when it is destroyed. One thread; it dies with the
/// thread that started it.
class WorkerProcess {
 public:
  /// What it writes to stdout, if that is kept, and to stderr.
  struct Output {
    std::string out, err;
  };

  /// `arguments` follow the command's words. Errors: not_found (no such program), resource_exhausted, unavailable.
  static Result<WorkerProcess> start(const WorkerCommand& command, const std::vector<std::string>& arguments,
                                     bool keeps_stdout);
  WorkerProcess(WorkerProcess&& other) noexcept;
  WorkerProcess& operator=(WorkerProcess&&) = delete;
  ~WorkerProcess();

  /// Readable for poll() when it has ended, or when there is output to take; -1: that stream has ended.
  int ended() const { return process_.get(); }
  int out() const { return out_.get(); }
  int err() const { return err_.get(); }
  /// Takes what there is, without waiting; the last 64 KiB of stderr are kept, and passed on to this process's own
  /// where stdout is not kept.
  void take_output();
  const Output& output() const { return output_; }

  /// The last line of stderr, or that there is none.
  std::string last_line() const;

  /// How it ended.
  struct End {
    /// Empty: well. Else "python3 ended with code 1: LAST LINE OF STDERR", or "by signal 9".
    std::string why = {};
    /// `why` is the worker's own sentence, of something that the user can mend.
    bool is_said = false;
  };
  /// How the process ended; returned once. Kills what is left of its process group.
  std::optional<End> poll_end();
  /// Kills the process and its process group.
  void kill();

 private:
  WorkerProcess() = default;

  std::string program_;
  pid_t pid_ = 0;
  bool is_over_ = false;
  bool passes_on_ = false;
  base::FileDescriptor process_, out_, err_;
  Output output_;
};

}  // namespace troupe::workers
