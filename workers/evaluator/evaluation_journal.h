#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/append_file.h"
#include "base/result.h"
#include "workers/inference/agent/episode_record.h"
#include "workers/rollout/published_weights.h"

namespace troupe::workers {

/// An evaluation that a process began and did not end.
struct EvaluationUnderWay {
  PublishedWeightsPtr weights;
  /// Seconds since 1970.
  double begun_at = 0;
  /// Processes that have played it, the present one too.
  std::int64_t starts = 1;
  /// Episodes that are not played again: ended ones, and lost ones, whose repetition a process did not survive.
  std::vector<EvaluationEpisode> ended;
  /// Seeds that were played when a process ended.
  std::vector<std::int64_t> suspects;
};

/// The journal of one evaluation: its weights, and a line before and after every episode. After a crash the next
/// process goes on with the evaluation, and only the episodes under way are repeated or lost. Two files of a folder,
/// evaluation.weights and evaluation.journal (JSON lines); they survive the end of the process, not of the machine. A
/// write that fails is logged and ends the journal of this evaluation. Not thread-safe.
class EvaluationJournal {
 public:
  /// `net` is that of every evaluation.
  EvaluationJournal(std::string folder, const PolicyNet& net);

  /// What the newest process left behind; nothing: it had reported its evaluation, or there is none. Counts this
  /// process among its starts. Errors: those of read_file but not_found; data_loss.
  Result<std::optional<EvaluationUnderWay>> recover();
  /// Fence and version of the newest evaluation that was reported, as recover() found it; nothing: none.
  const std::optional<std::pair<std::uint64_t, std::int64_t>>& reported() const { return reported_; }

  /// An evaluation begins; what was noted of the one before goes.
  void begin(const PublishedWeights& weights, double wall);
  void episode_begins(std::int64_t seed, bool repeats);
  void episode_ended(const EvaluationEpisode& episode);
  /// The evaluation was reported.
  void close();

 private:
  std::string journal_path() const { return folder_ + "/evaluation.journal"; }
  std::string weights_path() const { return folder_ + "/evaluation.weights"; }
  Result<void> write_weights(const PublishedWeights& weights) const;
  Result<PublishedWeightsPtr> read_weights(std::uint64_t fence, std::int64_t version) const;
  Result<void> open_journal();
  /// A failure ends the journal of this evaluation.
  void note(const std::string& line);

  const std::string folder_;
  const WeightStream stream_;
  std::optional<AppendFile> file_;
  std::optional<std::pair<std::uint64_t, std::int64_t>> reported_;
};

}  // namespace troupe::workers
