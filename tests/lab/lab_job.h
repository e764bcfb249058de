#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "data/toy/toy_dataset.h"
#include "tests/lab/lab.h"
#include "tests/support/scratch_folder.h"

namespace troupe::testing {

using namespace std::chrono_literals;

/// A job over three machines: `troupe run` on the first, whose pool of two lives on the others, b and c. The run folder
/// is the first machine's alone. Links are narrow, so that a job takes its time whatever the processors do.
class LabJob {
  ScratchFolder scratch_{"/tmp"};  // before what lives in it

 public:
  using Words = std::vector<std::string>;
  enum class Kind { sft, rl };
  static constexpr std::chrono::milliseconds kDeadline{150'000};

  LabJob(Kind kind, int steps, std::uint64_t seed = 1, const std::string& preload = {});

  /// Starts `troupe run` with further overrides, and b and c.
  void start(const Words& overrides = {});
  /// `troupe node` under that machine's name, or another.
  std::unique_ptr<JobProcess> node(std::size_t machine, const std::string& name = {}, const std::string& token = {});
  /// "node/1" of a machine whose node has joined; nodes get their numbers as they come.
  std::string node_name(std::size_t machine) const;
  /// Another program of the first machine.
  std::unique_ptr<JobProcess> tool(const Words& words);

  bool wait_step(int step) { return job->wait_output(step_line(step)); }
  std::string step_line(int step) const;
  std::string run_directory() const;
  /// Name of a pool's actor.
  std::string actor(int number) const { return (kind_ == Kind::sft ? "decoder/" : "env/") + std::to_string(number); }

  /// The job ends with 0 and is complete, the nodes end too, `verify` finds every position once, nothing is left on any
  /// machine, and the weights are those of the same job undisturbed on one machine.
  void expect_complete();

  Lab lab;
  std::unique_ptr<JobProcess> job;
  std::array<std::unique_ptr<JobProcess>, 3> nodes;  ///< by machine; the first has none

  /// Overrides of the job, but for where it runs.
  Words words(const std::string& root, const Words& overrides) const;
  std::string folder() const { return scratch_.path(); }
  std::string token() const { return scratch_ / "token"; }
  /// What ended nodes and the job have said.
  std::string said() const;
  void keep() { scratch_.keep(); }

  static constexpr LinkFaults narrow() { return {.bytes_per_second = 400'000, .queue = 100ms}; }

 private:
  StartOptions options(std::size_t machine) const;
  std::string fresh_log(const std::string& name) { return scratch_ / (name + "-" + std::to_string(++logs_) + ".log"); }
  void expect_nothing_left() const;
  std::map<std::string, std::string> weights(const std::string& root);

  const Kind kind_;
  const int steps_;
  int logs_ = 0;
  Words overrides_;
};

}  // namespace troupe::testing
