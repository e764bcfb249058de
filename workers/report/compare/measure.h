#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "workers/report/compare/compared_run.h"

namespace troupe::workers {

/// What a measure tells: how good the policy is, what that is to be held against, or what it took. Groups are tested
/// for a difference of outcomes.
enum class MeasureKind : std::uint8_t { outcome, reference, cost };

/// One number that says how a run ended.
struct Measure {
  /// Heading of its column.
  std::string name{};
  MeasureKind kind = MeasureKind::cost;
  /// One per given run: absent where the run has no such number.
  std::vector<std::optional<double>> values{};
};

/// The measures that at least one of the runs has, the most telling first: return and success of the newest evaluation
/// (`troupe eval`, else the run's own), of the training episodes in the last tenth of the run, environment steps until
/// the evaluation, or without one training, stayed above the environment's threshold; held-out and training loss (the
/// last tenth), open-loop mse; steps and wall seconds from the first record to the last, pauses included.
std::vector<Measure> measures_of(const std::vector<const ComparedRun*>& runs);

}  // namespace troupe::workers
