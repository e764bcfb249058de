#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/toy/toy_dataset.h"
#include "tests/lab/lab.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/tmpfs_mount.h"

namespace troupe::testing {

using namespace std::chrono_literals;

/// A job over three machines: `troupe run` on the first, whose pool of two lives on the others, b and c. The run folder
/// is the first machine's alone. Links are narrow, so that a job takes its time whatever the processors do.
class LabJob {
  ScratchFolder scratch_{"/tmp"};  // before what lives in it
  std::optional<TmpfsMount> runs_;

 public:
  using Words = std::vector<std::string>;
  enum class Kind { sft, rl };
  struct Options {
    Kind kind = Kind::sft;
    int steps = 20;
    std::uint64_t seed = 1;         ///< of what links do
    LinkFaults links = narrow();    ///< what they do when nothing is wrong
    std::int64_t run_root_mib = 0;  ///< room for run directories; 0: what the disk has
    std::string preload{};          ///< see SpaceOptions
  };
  static constexpr std::chrono::milliseconds kDeadline{150'000};

  explicit LabJob(Options options);

  /// Of the job and its nodes, for those started from now on; %m stands for a machine's name.
  std::map<std::string, std::string> environment;
  /// Where `troupe run` writes to, from now on; see StartOptions.
  int output = -1;
  bool terminal = false;

  /// Starts `troupe run` with further overrides, and b and c.
  void start(const Words& overrides = {});
  /// The same with a key for each node (`troupe keygen`) in the place of the job's token.
  void start_with_keys(const Words& overrides = {});
  /// Takes the key of that machine's node off the controller's allow-list.
  void remove_key(std::size_t machine);
  /// `troupe node` under that machine's name, or another.
  std::unique_ptr<JobProcess> node(std::size_t machine, const std::string& name = {});
  /// "node/1" of a machine whose node has joined; nodes get their numbers as they come.
  std::string node_name(std::size_t machine) const;
  /// Another program of the first machine.
  std::unique_ptr<JobProcess> tool(const Words& words);

  bool wait_step(int step) { return job->wait_output(step_line(step)); }
  std::string step_line(int step) const;
  std::string run_directory() const;
  /// Empties what a machine keeps in its runtime folder for as long as it is on.
  void clear_runtime(std::size_t machine) const;
  /// Name of a pool's actor.
  std::string actor(int number) const {
    return (options.kind == Kind::sft ? "decoder/" : "env/") + std::to_string(number);
  }

  /// Waits until the job and its nodes have ended, and looks for what is wrong, a sentence each: the job ended with
  /// another code, a node with other than 0, `verify` does not find every position once, something is left on a
  /// machine.
  std::vector<std::string> complaints_at_end(int exit_code);
  /// The same, and what differs from weights of the same job undisturbed on one machine.
  std::vector<std::string> complaints_at_completion();

  const Options options;
  Lab lab;
  std::unique_ptr<JobProcess> job;
  std::array<std::unique_ptr<JobProcess>, 3> nodes;  ///< by machine; the first has none

  /// Overrides of the job, but for where it runs.
  Words words(const std::string& root, const Words& overrides) const;
  std::string folder() const { return scratch_.path(); }
  std::string token() const { return scratch_ / "token"; }
  /// What ended nodes and the job have said.
  std::string said() const;
  /// Its files stay in folder(), and the run directories, where they have room of their own, on what is mounted there.
  void keep() {
    scratch_.keep();
    if (runs_) runs_->keep();
  }

  static LinkFaults narrow() {
    LinkFaults faults;
    faults.bytes_per_second = 400'000;
    faults.queue = 100ms;
    return faults;
  }

 private:
  void start_controller(const Words& overrides);
  void start_nodes();
  void write_allow_list() const;
  /// "address:port" of the controller.
  std::string controller() const;
  std::string runtime(std::size_t machine) const;
  StartOptions start_options(std::size_t machine) const;
  std::string fresh_log(const std::string& name) { return scratch_ / (name + "-" + std::to_string(++logs_) + ".log"); }
  std::vector<std::string> leftovers() const;
  LabOptions lab_options();
  std::map<std::string, std::string> weights(const std::string& root);

  int logs_ = 0;
  Words overrides_;
  std::map<std::size_t, std::string> allowed_;  ///< machine -> line of the allow-list
};

}  // namespace troupe::testing
