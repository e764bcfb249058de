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

/// The candidates, nearest first: those that begin with the name or that it begins with, then by edits. Folder, ".yaml"
/// and the difference of ':' and '_' do not count. Equal ones keep their order.
std::vector<std::string> nearest_first(std::string_view name, std::vector<std::string> candidates);

/// Several lines that show `names` one a line below "HEADING, nearest first:".
std::string list_nearest_first(const std::string& heading, std::string_view name, std::vector<std::string> names);

/// The key meant by an unknown key of the map: a near key of the same map as its bare name, or else what other trainers
/// mean by the name, or else the same name anywhere in the job, both as a full path, or else empty.
std::string suggest_key(std::string_view name, const StructSpec& map);

/// "did you mean 'KEY'?" of suggest_key(), with what a word of another trainer is called here; empty without one.
std::string key_hint(std::string_view name, const StructSpec& map);

/// A word of other trainers (LeRobot, RLinf, torchtitan, OpenPI, CleanRL) for a key of ours.
struct Synonym {
  std::string_view word;
  std::string_view path;
  /// In what it differs from the word; may be empty.
  std::string_view note;
};
/// All of them (configs/synonyms.cpp).
const std::vector<Synonym>& synonyms();
std::optional<Synonym> find_synonym(std::string_view word);

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
