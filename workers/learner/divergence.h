#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "base/result.h"

namespace troupe::workers {

/// Tells a training that diverges from one bad batch: counts updates in a row that were not made because a loss or
/// gradient was not finite, and remembers the gradient norms before them. One thread.
class Divergence {
 public:
  /// What a run of discarded updates is a run of, and how many of them end the job.
  struct Rule {
    std::string updates = "steps";
    int most_in_a_row = 10;
    /// What else may be wrong, for the advice: "the data", "the rewards".
    std::string suspect = "the data";
  };
  explicit Divergence(Rule rule) : rule_(std::move(rule)) {}

  /// An update was made in step `step`, counted from 1.
  void applied(std::int64_t step, double gradient_norm);
  /// One was not. `learning_rate` is the configured one, before warm-up and schedule. Errors: failed_precondition at
  /// the most_in_a_row-th in a row: since when, the rate, the gradient norms before, and what to try.
  Result<void> discarded(std::int64_t step, double learning_rate);
  /// "learning rate 1000; gradient norms before: step 4 2.1, step 5 9.3e+07"
  std::string story(double learning_rate) const;
  /// Updates that were discarded since the last one that was made.
  int in_a_row() const { return in_a_row_; }
  /// Forgets everything: training starts again from a checkpoint.
  void reset();

 private:
  struct Update {
    std::int64_t step = 0;
    double gradient_norm = 0;
  };
  const Rule rule_;
  // The newest last.
  std::deque<Update> before_;
  int in_a_row_ = 0;
  std::int64_t first_ = 0;
};

}  // namespace troupe::workers
