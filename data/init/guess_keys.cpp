#include "data/init/guess_keys.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "data/init/column_parts.h"

namespace troupe::data {

namespace {

/// Columns that count rows or judge them, and are no part of the robot.
bool is_bookkeeping(const std::string& name) {
  constexpr std::array kCounters = {"timestamp", "frame_index", "episode_index", "index", "task_index"};
  return std::find(kCounters.begin(), kCounters.end(), name) != kCounters.end() || name.starts_with("next.") ||
         name.starts_with("annotation.");
}

bool says(const std::string& name, std::initializer_list<const char*> words) {
  return std::any_of(words.begin(), words.end(), [&](const char* w) { return name.find(w) != std::string::npos; });
}

/// Columns of numbers whose name sounds right, where none has the name that LeRobot gives.
std::vector<VectorKey> columns_that_sound_like(const LerobotInfo& info, bool action) {
  std::vector<VectorKey> keys;
  for (const LerobotFeature& f : info.features) {
    if (!f.is_numbers() || is_bookkeeping(f.name)) continue;
    const bool acts = says(f.name, {"action", "command"});
    const bool senses = says(f.name, {"state", "qpos", "proprio", "joint", "pose", "observation."});
    if (action ? acts : senses && !acts) keys.push_back({f.name, f.name, 0, f.width()});
  }
  return keys;
}

/// A key without the names of its dimensions is all that is known of its part.
std::vector<std::string> names_of(const LerobotInfo& info, const VectorKey& key) {
  const LerobotFeature* f = info.find(key.column);
  if (f == nullptr || static_cast<std::int64_t>(f->names.size()) != f->width()) return {};
  return {f->names.begin() + key.start, f->names.begin() + key.end};
}

struct Keys {
  std::vector<VectorKey> keys;
  std::string why;
};

/// Splits whole columns by the names of their dimensions.
Keys split_columns(const LerobotInfo& info, std::vector<VectorKey> columns) {
  Keys out;
  bool split = false;
  for (const VectorKey& column : columns) {
    const auto parts = split_by_names(names_of(info, column));
    if (parts.empty()) out.keys.push_back(column);
    for (const ColumnPart& part : parts) {
      const std::string name = columns.size() == 1 ? part.name : column.name + "_" + part.name;
      out.keys.push_back({name, column.column, column.start + part.start, column.start + part.end});
      split = true;
    }
  }
  out.why = split ? "Each key is a run of dimensions whose names in info.json speak of one part of the robot. One key "
                    "for the whole column would do too; more keys let some be relative and others not."
                  : "Info.json does not name the dimensions by part, so each column is one key. Where the gripper is "
                    "known, a slice of its own keeps it absolute, such as action.gripper: \"action[6:7]\".";
  return out;
}

Keys state_of(const DatasetFacts& facts) {
  if (facts.has_modality && !facts.modality.state.empty())
    return {facts.modality.state, "All state keys of modality.json. Leave out what the robot cannot measure."};
  if (!facts.modality.state.empty()) return split_columns(facts.info, facts.modality.state);
  auto sounding = columns_that_sound_like(facts.info, false);
  if (!sounding.empty()) {
    Keys keys = split_columns(facts.info, std::move(sounding));
    keys.why += " There is no observation.state; these columns sound like one.";
    return keys;
  }
  return {{{"time", "timestamp", 0, 1}},
          "The dataset has no state, and the model reads one: the time since the episode's start stands in. A robot "
          "that is served must send it as state.time, in seconds."};
}

Keys action_of(const DatasetFacts& facts) {
  if (facts.has_modality && !facts.modality.action.empty())
    return {facts.modality.action, "All action keys of modality.json. Leave out what the policy shall not move."};
  if (!facts.modality.action.empty()) return split_columns(facts.info, facts.modality.action);
  auto sounding = columns_that_sound_like(facts.info, true);
  Keys keys = split_columns(facts.info, std::move(sounding));
  keys.why += " There is no column action; these sound like one.";
  return keys;
}

/// Two whole columns of one width mean the same joints: one name, so that the action can be relative. The names of
/// modality.json stay.
void name_alike(const DatasetFacts& facts, Keys& state, Keys& action) {
  if (facts.has_modality && !(facts.modality.state.empty() && facts.modality.action.empty())) return;
  if (state.keys.size() != 1 || action.keys.size() != 1) return;
  if (state.keys[0].width() != action.keys[0].width() || state.keys[0].column == "timestamp") return;
  if (state.keys[0].name == action.keys[0].name) return;
  state.keys[0].name = action.keys[0].name = "joints";
}

void put(const DatasetFacts& facts, const char* section, const Keys& from, std::vector<std::string>& keys,
         RobotGuess& guess) {
  for (const VectorKey& key : from.keys) {
    const std::string path = fmt::format("{}.{}", section, key.name);
    keys.push_back(key.name);
    guess.embodiment.slices[path] = fmt::format("{}[{}:{}]", key.column, key.start, key.end);
    if (auto names = names_of(facts.info, key); !names.empty()) guess.joints[path] = std::move(names);
  }
  guess.why[fmt::format("{}_keys", section)] = from.why;
}

/// Action keys that a state of the same name, width and dimensions could be the origin of.
void propose_relative(const DatasetFacts& facts, const Keys& state, const Keys& action, RobotGuess& guess) {
  for (const VectorKey& key : action.keys) {
    const auto same = std::find_if(state.keys.begin(), state.keys.end(),
                                   [&](const VectorKey& s) { return s.name == key.name && s.width() == key.width(); });
    const LerobotFeature* column = facts.info.find(key.column);
    if (same == state.keys.end() || grasps(key.name) || column == nullptr || !column->is_vector()) continue;
    const auto names = names_of(facts.info, key), there = names_of(facts.info, *same);
    if (!names.empty() && !there.empty() && names != there) continue;
    guess.embodiment.relative_action_keys.push_back(key.name);
  }
}

/// What else a state key that reads a column of actions could read.
std::string measured_column(const LerobotInfo& info, const VectorKey& key) {
  const LerobotFeature* state = info.find("observation.state");
  return state != nullptr && state->width() >= key.end ? fmt::format("observation.state[{}:{}]", key.start, key.end)
                                                       : "a column of the state";
}

}  // namespace

Result<void> guess_keys(const DatasetFacts& facts, RobotGuess& guess) {
  Keys state = state_of(facts), action = action_of(facts);
  if (action.keys.empty()) {
    std::vector<std::string> columns;
    for (const LerobotFeature& f : facts.info.features) columns.push_back(f.name);
    return Error{Errc::failed_precondition,
                 fmt::format("{}/meta/info.json: no column of numbers is called action, and nothing can be learned "
                             "without one; it has {}",
                             facts.root, fmt::join(columns, ", "))};
  }
  name_alike(facts, state, action);
  put(facts, "state", state, guess.embodiment.state_keys, guess);
  put(facts, "action", action, guess.embodiment.action_keys, guess);
  propose_relative(facts, state, action, guess);
  guess.why["slices"] =
      facts.has_modality
          ? "From modality.json, written out so that they can be changed here; half open, columns from 0."
          : "Where each key is in its column; half open, columns from 0.";
  for (const VectorKey& key : state.keys) {
    const bool acts =
        std::any_of(action.keys.begin(), action.keys.end(), [&](const VectorKey& a) { return a.column == key.column; });
    if (!acts) continue;
    guess.why["slices"] += fmt::format(
        " state.{} reads {}, so a robot that is served sends its last command there; "
        "{} would be what it measured.",
        key.name, key.column, measured_column(facts.info, key));
  }
  return {};
}

}  // namespace troupe::data
