#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "workers/report/text_report.h"

namespace troupe::workers {

/// Escape sequences of terminals.
namespace text_color {
inline constexpr const char* kBold = "\x1b[1m";
inline constexpr const char* kGreen = "\x1b[1;32m";
inline constexpr const char* kRed = "\x1b[1;31m";
inline constexpr const char* kYellow = "\x1b[1;33m";
}  // namespace text_color

/// A piece of a line that is not broken, and the colour it gets on a terminal.
struct TextField {
  std::string text;
  const char* color = nullptr;
};

/// The words `head`, then the fields two spaces (`gap`) apart, and a newline; when a line would pass style.width it
/// goes on below, indented like the first words.
std::string layout_text(const TextField& head, const std::vector<TextField>& fields, const TextStyle& style,
                        std::size_t gap = 2);

/// Three significant digits or so, as rates are read: "812", "34.1", "0.52"; not finite: "n/a".
std::string rate_text(double value);

/// Four significant digits, or all before the point: "12345", "498.2", "0.04093".
std::string number_text(double value);

}  // namespace troupe::workers
