#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "data/dataset.h"

namespace troupe::data {

/// Statistics of several datasets as if they were one, weighted by their shares: mean and second moment are averaged,
/// min, max, q01 and q99 are the outermost; a dimension that is one constant in all of them keeps a deviation of 0.
/// `weights` are normalised; other quantiles are left empty. Requires as many parts as weights, at least one, of one
/// width. Source: how GEAR merges datasets of one tag:
///     mean = sum w m_i,   std^2 = sum w (s_i^2 + m_i^2) - mean^2
FeatureStatistics merge_features(std::span<const FeatureStatistics* const> parts, std::span<const double> weights);

/// What normalises each dataset of a mixture, and the metadata that say so to the server of the model.
struct MixtureStatistics {
  std::vector<KeyStatistics> of_dataset;
  std::string metadata_json;  ///< GEAR's experiment metadata: one entry a tag
};

/// Datasets of one tag share one set of statistics, merged with their shares within the tag; others keep their own.
/// Errors: invalid_argument when datasets of one tag differ in what metadata describe (keys, widths, which keys are
/// relative, cameras, frame size, rate), naming both.
Result<MixtureStatistics> mixture_statistics(std::span<const std::shared_ptr<const Dataset>> datasets,
                                             std::span<const double> shares);

}  // namespace troupe::data
