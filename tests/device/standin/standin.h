#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/device/ptx/counters.h"
#include "tests/device/standin/mutant.h"

/// Stand-ins for the libraries that our CUDA code calls: a program that links them in place of NVIDIA's runs on cores,
/// in a drawn order, and every access is checked. README.md here.
namespace troupe::device::standin {

struct Options {
  /// Draws the order in which streams go on, and within a launch that of its blocks, warps and lanes.
  std::uint64_t seed = 0;
  int devices = 1;
  /// Of each device.
  std::uint64_t memory_bytes = std::uint64_t{8} << 30;
  /// Findings are also appended to this file, a line each, as they are found: for programs that are killed.
  std::string findings_file = {};
  /// NCCL says so when a peer that an operation waits for is lost; else the operation waits until someone aborts it.
  /// Without a value one kill is reported, the next is not.
  std::optional<bool> reports_lost_peers = true;
  /// Kills within operations of NCCL (nccl_kills.h).
  std::string nccl_kills = {};
  /// A fault to plant in a kernel.
  std::optional<MutantChoice> mutant = std::nullopt;
  /// A fault to plant in a program: of the waits of device 0's streams for events, the one of this number is not made.
  std::optional<std::uint64_t> lost_wait = std::nullopt;
  /// Another: of the launches that are captured into graphs, the one of this number has two of its addresses exchanged.
  std::optional<std::uint64_t> swapped_launch = std::nullopt;
  /// Instructions of a warp in one block, after which a kernel counts as hung.
  std::uint64_t most_steps = std::uint64_t{1} << 28;
};

/// What was counted and found since the last reset.
struct Report {
  /// A sentence each: what a kernel did that it must not do (ptx/finding.h), and operations that no wait orders.
  std::vector<std::string> findings;
  /// What was planted; empty without such a place.
  std::string mutant;
  std::uint64_t launches = 0, copies = 0, products = 0, graph_launches = 0, collectives = 0;
  /// Waits of device 0's streams for events.
  std::uint64_t waits = 0;
  /// Launches that were captured and have two addresses.
  std::uint64_t captured = 0;
  /// Calls by name that make the host wait, copies from or to memory that is not pinned among them.
  std::map<std::string, std::uint64_t> synchronising;
  /// By name of the kernel without its arguments.
  std::map<std::string, ptx::LaunchCounts> kernels;
};

/// Drops all streams, memory and the report. Handles and addresses from before a reset are invalid. Called by SetUp: in
/// the form for hardware (tests/device/hardware) it skips the test where there are fewer devices.
void reset(const Options& options = {});
/// All that is enqueued runs first.
Report report();
/// Whether a report has all counts: in the form for hardware it has `synchronising` alone.
bool counts();

}  // namespace troupe::device::standin
