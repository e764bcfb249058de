#pragma once

#include <string>
#include <vector>

#include "workers/report/compare/run_group.h"

namespace troupe::workers {

/// A table of texts: each row has one cell a column. The first column is of words, the others are numbers.
struct TextTable {
  std::vector<std::string> head{};
  std::vector<std::vector<std::string>> rows{};
};

/// As Markdown with its columns aligned, which a terminal shows well, too. Empty without rows.
std::string markdown_table(const TextTable& table);

/// One row a group: how many runs, and for each measure (measures_of) the interquartile mean of its seeds with the 95 %
/// bootstrap interval, or the value of its only seed. "-": no run of it has the measure; "(n)" behind a cell: as many
/// runs have it.
TextTable group_table(const std::vector<RunGroup>& groups);

/// One row a run, as `name/ID`, with its seed and measures.
TextTable run_table(const std::vector<RunGroup>& groups);

/// Every group against the first one, a row for each measure of how good the policy is that at least two seeds of both
/// have: pairs of equal seeds, mean difference with Student's interval, and Wilcoxon's signed-rank test. Of groups of
/// one run each whose `troupe eval` played the same seeds of one environment, the episodes are the pairs, and success
/// is tested by McNemar's exact test; where it held them against the same windows of recordings, the recorded episodes.
TextTable paired_table(const std::vector<RunGroup>& groups);

/// The keys whose values are not equal in all groups, a column a group.
TextTable difference_table(const std::vector<RunGroup>& groups);

}  // namespace troupe::workers
