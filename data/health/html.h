#pragma once

#include <span>
#include <string>
#include <string_view>

#include "data/health/health_report.h"

namespace troupe::data {

/// An inline SVG of a histogram: bars, and below them the range. Escaped title.
std::string svg_histogram(const Histogram& histogram, std::string_view title);

/// A histogram of some numbers, in at most 40 equal parts; without numbers it has no parts.
Histogram histogram_of(std::span<const double> values);

/// The report as one HTML file that needs nothing else: styles inside, plots as inline SVG, images as data URIs, no
/// scripts. Everything that comes from the dataset is escaped.
std::string report_html(const HealthReport& report);

}  // namespace troupe::data
