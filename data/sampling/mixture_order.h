#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace troupe::data {

/// Which dataset of a mixture each position draws from, and how often it was drawn before, in closed form.
///
/// The shares divide [0, 2^32) into one interval per dataset. Position q falls on
///     u(q) = bitreverse32(q mod 2^32) xor shift,   shift = low 32 bits of mix64(seed xor 3)
/// and draws the dataset whose interval holds u(q). In an aligned block of 2^k positions u runs over an arithmetic
/// progression of step 2^(32-k), so each dataset's draws there differ from share * 2^k by less than one (a van der
/// Corput sequence: stratified at every scale), and the draws before any position are the sum over at most 32 such
/// blocks. Pure and immutable: any thread. Frozen: another formula would make old mixtures irreproducible.
class MixtureOrder {
 public:
  /// One draw of a position.
  struct Draw {
    std::size_t dataset = 0;
    /// Draws of that dataset at earlier positions.
    std::uint64_t inner = 0;
  };

  /// A mixture of one.
  MixtureOrder() : MixtureOrder(std::span<const double>()) {}
  /// `weights` are positive and need not sum to 1; none means one dataset. Intervals are weights * 2^32 / sum, rounded
  /// by largest remainder (the earlier dataset wins a tie) and at least 1 wide. Requires fewer than 2^16 weights.
  explicit MixtureOrder(std::span<const double> weights);

  /// Number of datasets, at least one.
  std::size_t datasets() const { return bounds_.size() - 1; }
  /// Width of the dataset's interval over 2^32: the exact share of its draws in every 2^32 positions.
  double share(std::size_t dataset) const;

  /// The dataset drawn at a position.
  std::size_t dataset_at(std::uint64_t seed, std::uint64_t position) const;
  /// How often `dataset` is drawn at positions below `position`.
  std::uint64_t count_before(std::uint64_t seed, std::size_t dataset, std::uint64_t position) const;
  /// dataset_at and count_before of one position together.
  Draw draw(std::uint64_t seed, std::uint64_t position) const;

  /// Seed of a dataset's own order: the job's for the first one (so that a mixture of one is ordered as its dataset
  /// alone), mixed with the place for the others.
  static std::uint64_t inner_seed(std::uint64_t seed, std::size_t dataset) noexcept;

 private:
  /// 0 = bounds_[0] < ... < bounds_[n] = 2^32.
  std::vector<std::uint64_t> bounds_;
};

}  // namespace troupe::data
