#pragma once

#include <span>

#include "workers/report/rl_report.h"

namespace troupe::workers {

/// Mean of the values but the floor(n / 4) lowest and as many highest; NaN without values. Robust to single seeds, and
/// with up to three of them their mean.
/// Source: Agarwal et al. (2021), Deep Reinforcement Learning at the Edge of the Statistical Precipice,
/// arXiv:2108.13264.
double interquartile_mean(std::span<const double> values);

/// 95 % percentile bootstrap interval of interquartile_mean: its 2.5 and 97.5 % quantiles over 2,000 draws of n values
/// with replacement, always the same draws. -+ infinity for fewer than two values, which say nothing of their spread.
/// Source: Efron, Tibshirani (1993), An Introduction to the Bootstrap, chapter 13.
Interval bootstrap_interval(std::span<const double> values);

}  // namespace troupe::workers
