#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include "base/file_descriptor.h"
#include "bench/faults/clock_and_disk.h"
#include "tests/lab/lab_job.h"

namespace troupe::bench {

/// What did not come back, and why.
struct NotRecovered : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// What was waited for in vain.
struct Hang : NotRecovered {
  using NotRecovered::NotRecovered;
};

/// How a job of the campaign is started.
struct TrialSetup {
  testing::LabJob::Kind kind = testing::LabJob::Kind::sft;
  std::uint64_t seed = 1;
  enum class Output { file, unread_pipe, terminal } output = Output::file;
  std::string fault_point{};  ///< TROUPE_FAULT of the job and its nodes
};

/// A job over three lab machines that trains until it is told to end, and what faults need to know of it.
class Trial {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr int kActorDeadline_s = 10;  ///< after which a stopped actor is replaced, as the job is configured

  explicit Trial(const TrialSetup& setup);

  testing::LabJob job;

  static Time now() { return std::chrono::steady_clock::now(); }
  static double seconds_since(Time begin) { return std::chrono::duration<double>(now() - begin).count(); }
  static void last(double seconds);

  /// Steps and iterations trained so far, also those that were trained again.
  std::int64_t steps() const;
  /// The newest process of an actor, on whatever machine; nothing if it has none.
  std::optional<pid_t> process(const std::string& actor) const;
  /// Its incarnations, such as "decoder/0#1" -> pid, of all machines.
  std::map<std::string, pid_t> hosts() const;
  bool pool_is_complete() const;
  bool nodes_run() const;
  /// Every node that was lost has joined again since the job was started.
  bool nodes_are_in() const;
  /// Step of the newest committed checkpoint; 0: none.
  std::int64_t committed_step() const;

  /// Waits until `good`; throws Hang after `deadline` seconds, NotRecovered when the job has ended meanwhile.
  void wait(const std::string& what, double deadline, const std::function<bool()>& good);
  /// Waits for `count` further steps.
  void wait_steps(std::int64_t count, double deadline = kLongest_s);
  /// Waits until all nodes run and are in, the pool has its two actors, and a step was trained.
  void wait_whole(double deadline = kLongest_s);
  /// Starts the job and its nodes again from the newest checkpoint; what is left of them is ended before.
  void resume();
  /// Ends the job by SIGINT; what is wrong then, a sentence each. Throws Hang where it does not end.
  std::vector<std::string> end();

  ClockAndDisk& control(std::size_t machine) { return *controls_.at(machine); }
  /// What the job's output leads to: the pipe's or the terminal's other end.
  FileDescriptor reader;

  static constexpr double kLongest_s = 30;  ///< none of the recoveries may take longer

 private:
  void start(const testing::LabJob::Words& more);
  /// Nodes that joined less those that were lost, of all attempts of the job.
  std::int64_t joins_less_losses() const;

  const TrialSetup setup_;
  FileDescriptor writer_;
  std::map<std::size_t, ClockAndDisk*> controls_;
  std::int64_t joins_before_ = 0;  ///< those of earlier attempts
};

}  // namespace troupe::bench
