#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace troupe::data {

/// What is known of one stream of numbers once every pass over it is done.
struct SeriesSummary {
  /// The probabilities of the quantiles below.
  static constexpr std::array<double, 5> kQuantiles = {0.01, 0.10, 0.50, 0.90, 0.99};

  std::int64_t count = 0;
  double min = 0, max = 0, mean = 0;
  /// Of the population: divided by n, not n - 1.
  double std = 0;
  /// Linear interpolation at p*(n-1).
  std::array<double, 5> quantiles{};
};

/// Exact statistics of one stream of finite numbers that may be larger than memory.
///
/// The first pass finds count, extremes and moments (float64; each call of add is one block, whose deviations are
/// summed around its own mean, and blocks are joined by Chan's formula). A series that keeps its values is then done.
/// One that does not finds every wanted order statistic by further passes over the same values: floating-point numbers
/// in ascending order are ascending integers, so each pass counts 16,384 equal bins of the interval of integers that
/// still holds the rank and goes on inside one bin. float32 takes at most 3 such passes, float64 at most 5, and the
/// result is the value itself, not an estimate.
///
/// The result depends on the values, their order and the blocks of the first pass; in later passes neither order nor
/// blocks matter. -0 counts as 0. Not thread-safe.
class ExactSeries {
 public:
  static constexpr std::size_t kBins = 16384;

  /// `narrow`: values are rounded to float32 first, which is lossless for float32 columns and halves what is kept.
  ExactSeries(bool narrow, bool keep) : narrow_(narrow), keep_(keep) {}

  /// Makes room for as many values as will be added, where they are kept.
  void reserve(std::int64_t values);
  /// The next values of the current pass. Requires finite values and wants_pass().
  void add(std::span<const double> values);
  /// Ends the current pass.
  void end_pass();
  /// True until every order statistic is known.
  bool wants_pass() const { return !done_; }
  /// Requires !wants_pass(). All zero when nothing was added.
  const SeriesSummary& summary() const { return summary_; }

 private:
  /// Integers [low, high] that hold `below` < rank <= below + (values inside); counts by (key - low) >> shift.
  struct Bracket {
    std::uint64_t low = 0, high = 0;
    std::int64_t below = 0;
    int shift = 0;
    std::vector<std::int64_t> counts;
  };
  /// One wanted order statistic.
  struct Rank {
    /// 0-based, in ascending order of the values.
    std::int64_t rank = 0;
    /// Where it lies, while it is not known.
    std::size_t bracket = 0;
    bool known = false;
    double value = 0;
  };

  std::uint64_t key_of(double value) const;
  double value_of(std::uint64_t key) const;
  void add_moments(std::span<const double> values);
  void count(std::span<const double> values);
  void finish_first_pass();
  void narrow_brackets();
  void finish_quantiles();
  std::size_t bracket_at(std::uint64_t low, std::uint64_t high, std::int64_t below,
                         std::vector<Bracket>& brackets) const;
  template <class T>
  void select(std::vector<T>& values);

  bool narrow_, keep_, first_ = true, done_ = false;
  SeriesSummary summary_;
  /// Sum of squared deviations from the mean.
  double squares_ = 0;
  std::vector<float> kept_narrow_;
  std::vector<double> kept_;
  std::vector<Rank> ranks_;
  std::vector<Bracket> brackets_;
};

}  // namespace troupe::data
