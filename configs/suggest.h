#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "configs/describe.h"

namespace troupe::configs {

/// Damerau-Levenshtein distance (optimal string alignment): insertions, deletions, substitutions and swaps of
/// neighbours.
/// Over bytes; time and memory grow with the product of both lengths.
int edit_distance(std::string_view a, std::string_view b);

/// The nearest candidate within 2 edits (3 for names over 10 characters, always fewer than the name has characters);
/// empty when there is none. Equal distances go to the earlier candidate.
std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates);

/// The key meant by an unknown key of the map at `parent_path` ("" at the top): a near key of the same map as its bare
/// name, or else the same name anywhere in the job as a full path, or else empty.
std::string suggest_key(std::string_view name, const StructSpec& map);

/// A key that is no longer, or never was, spelled this way.
struct Tombstone {
  std::string_view old_path;
  std::string_view new_path;
  /// Where the old name is from: a version of Troupe, or RLinf.
  std::string_view since;
};

/// The tombstone of a dotted path, if there is one.
std::optional<Tombstone> find_tombstone(std::string_view path);
/// All of them.
const std::vector<Tombstone>& tombstones();

}  // namespace troupe::configs
