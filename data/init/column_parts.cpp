#include "data/init/column_parts.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <utility>

namespace troupe::data {

namespace {

bool is(int (*kind)(int), char c) { return kind(static_cast<unsigned char>(c)) != 0; }

/// "kLeftShoulderPitch" -> k left shoulder pitch; digits and punctuation separate.
std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words(1);
  for (std::size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    const bool starts = i > 0 && is(std::isupper, c) && is(std::islower, name[i - 1]);
    if ((!is(std::isalpha, c) || starts) && !words.back().empty()) words.emplace_back();
    if (is(std::isalpha, c)) words.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return words;
}

/// A word in names of dimensions and the part it belongs to; the first row that a name has decides.
constexpr std::array<std::pair<std::string_view, std::string_view>, 39> kParts = {{
    {"gripper", "gripper"}, {"grip", "gripper"}, {"claw", "gripper"}, {"jaw", "gripper"}, {"suction", "gripper"},
    {"hand", "hand"},       {"finger", "hand"},  {"thumb", "hand"},   {"pinky", "hand"},  {"hip", "leg"},
    {"knee", "leg"},        {"ankle", "leg"},    {"leg", "leg"},      {"base", "base"},   {"wheel", "base"},
    {"neck", "head"},       {"head", "head"},    {"arm", "arm"},      {"elbow", "arm"},   {"shoulder", "arm"},
    {"wrist", "arm"},       {"forearm", "arm"},  {"torso", "torso"},  {"waist", "torso"}, {"spine", "torso"},
    {"joint", "arm"},       {"panda", "arm"},    {"eef", "pose"},     {"ee", "pose"},     {"tcp", "pose"},
    {"x", "pose"},          {"y", "pose"},       {"z", "pose"},       {"roll", "pose"},   {"pitch", "pose"},
    {"yaw", "pose"},        {"quat", "pose"},    {"rx", "pose"},      {"vel", "base"},
}};

struct Place {
  std::string side, part;
};

Place place_of(std::string_view name) {
  const auto words = words_of(name);
  const auto has = [&words](std::string_view word) {
    return std::any_of(words.begin(), words.end(), [word](const std::string& w) {
      return w == word || (word.size() > 3 && w.find(word) != std::string::npos);
    });
  };
  Place place;
  place.side = has("left") || has("l") ? "left_" : has("right") || has("r") ? "right_" : "";
  for (const auto& [word, part] : kParts) {
    if (!has(word)) continue;
    // the waist of an arm that has a side is a joint of that arm
    place.part = part == "torso" && !place.side.empty() ? "arm" : part;
    break;
  }
  return place;
}

}  // namespace

std::vector<ColumnPart> split_by_names(const std::vector<std::string>& names) {
  std::vector<ColumnPart> parts;
  std::map<std::string, int> seen;
  std::string current;
  bool any = false;
  for (std::size_t d = 0; d < names.size(); ++d) {
    const Place place = place_of(names[d]);
    any = any || !place.part.empty();
    const std::string name = place.part.empty() ? current : place.side + place.part;
    if (parts.empty() || name != current) {
      const int times = ++seen[name];
      parts.push_back({times == 1 ? name : name + "_" + std::to_string(times), static_cast<std::int64_t>(d), 0});
      current = name;
    }
    parts.back().end = static_cast<std::int64_t>(d) + 1;
  }
  constexpr std::size_t kMostParts = 12;  // more: the names follow no body
  if (!any || parts.size() > kMostParts) return {};
  for (ColumnPart& part : parts) {
    if (part.name.empty()) part.name = "first";  // before the first name that says a part
  }
  return parts;
}

bool grasps(std::string_view key) {
  const auto words = words_of(key);
  return std::any_of(words.begin(), words.end(), [](const std::string& word) {
    return word.find("grip") != std::string::npos || word.find("hand") != std::string::npos ||
           word.find("finger") != std::string::npos || word == "claw" || word == "jaw" || word == "suction";
  });
}

}  // namespace troupe::data
