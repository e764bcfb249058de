#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/enum_names.h"

namespace troupe::data {

/// How much a finding matters: a problem is a file that cannot be used (exit code 6), a warning is coped with, a note
/// is something to look at.
enum class FindingLevel { problem, warning, note };
constexpr auto enum_names(FindingLevel) { return std::array{"problem", "warning", "note"}; }

/// One kind of finding: D01 to D16 of docs/data.md#defects, H01 and on for what only the health report looks at.
struct Defect {
  std::string_view code;
  /// What is wrong.
  std::string_view check;
  /// What is done about it.
  std::string_view action;
  /// What the user can do.
  std::string_view remedy;
};

/// All kinds, ascending by code.
std::span<const Defect> defects();

/// A finding's sentence without its numbers: what findings of one file have in common when their cause is one.
std::string cause_of(std::string_view text);

/// The kind of that code, or null.
const Defect* find_defect(std::string_view code);

}  // namespace troupe::data
