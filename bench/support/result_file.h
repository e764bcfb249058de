#pragma once

#include <string>
#include <vector>

namespace troupe::bench {

/// One number of each round.
struct Series {
  std::vector<double> values;
  double median() const;
  /// "12.3 (11.9 .. 13.0)": median, lowest, highest.
  std::string text(int decimals) const;
};

/// This series over `base`, round by round. Both have the same number of rounds.
Series ratio(const Series& series, const Series& base);

/// The program with its arguments, without `--out FILE`: where the file lies says nothing about the run.
std::string command_line(const std::string& program, int argc, const char* const* argv);

/// The lines of a result file that say how it came about: command, commit, machine, versions. `libraries` is a list
/// such as "CAF 0.17.6, ZeroMQ 4.3.4".
std::string provenance(const std::string& command, const std::string& libraries);

/// The check of the option --out (CLI11): a sentence where `file` would lie in bench/results while something else in
/// the tree differs from its commit; else empty.
std::string refuse_dirty_tree(const std::string& file);

/// Writes a result file; an empty name writes nothing. Throws std::runtime_error when the file cannot be written.
void write_result(const std::string& file, const std::string& markdown);

}  // namespace troupe::bench
