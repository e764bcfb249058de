#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/model/engine_setup.h"
#include "bench/support/result_file.h"

namespace troupe::bench {

/// Ours with one way of keeping what backward needs.
struct OurTimes {
  std::string name;  ///< the setup's with -L3 (blocks run again in backward) or -keep (their graphs are kept)
  bool recompute = false;
  Series ms = {}, update_ms = {};   ///< a sample
  Series one_thread_ms = {};        ///< of one rank with one thread, where the setup asks for it
  std::vector<double> losses = {};  ///< of all steps from the initial values on
  std::int64_t bytes = 0;           ///< engines, and the most tensors beside them during a step
  /// A step of the last warm phase: tensors allocated, those inside LibTorch's attention, minor faults of the process.
  std::string warm = "- | - | -";
};

/// What was measured of one setup. Times are milliseconds a sample, one for each round.
struct EngineTimes {
  EngineSetup setup;
  std::int64_t parameters = 0;
  std::vector<OurTimes> ours = {};
  Series plain_ms = {};
  std::int64_t plain_bytes = 0;
  Series products_ms = {}, linear_ms = {}, attention_ms = {};  ///< products: of both kinds
  std::string products = {};                                   ///< what they are, and their faster form
  double largest_loss_gap = 0;  ///< relative, between ours and plain, over all steps that both made
};

/// Ours and plain do not train alike.
struct LossesDiffer : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct MeasureOptions {
  int rounds = 2;
  bool ours_alone = false;  ///< neither plain nor products, and nothing is compared
  std::string only;         ///< a part of the name of what of ours is measured
};

/// The names of what engine_bench measures of a setup: with MeasureOptions::only those that have it in them.
std::vector<OurTimes> our_rows(const EngineSetup& setup, const std::string& only);

/// Builds, compares and times one setup. Throws LossesDiffer.
EngineTimes measure(const EngineSetup& setup, const MeasureOptions& options);

}  // namespace troupe::bench
