#include "data/init/robot_guess.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <utility>

#include "data/init/guess_keys.h"

namespace troupe::data {

namespace {

/// Lower case, with one underscore for whatever is neither letter nor digit.
std::string tag_of(const DatasetFacts& facts) {
  const std::string& robot = facts.info.robot_type;
  const bool named = !robot.empty() && robot != "unknown" && robot != "null";
  std::string tag;
  for (const char c : named ? robot : std::filesystem::path(facts.root).filename().string()) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0)
      tag += static_cast<char>(std::tolower(byte));
    else if (!tag.empty() && tag.back() != '_')
      tag += '_';
  }
  while (!tag.empty() && tag.back() == '_') tag.pop_back();
  return tag.empty() ? "new_robot" : tag;
}

bool is_wrist(const CameraFacts& camera) {
  std::string name = camera.name;
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return name.find("wrist") != std::string::npos || name.find("hand") != std::string::npos;
}

/// The usable cameras of the size that most have; of equal ones that of the first camera.
std::vector<const CameraFacts*> same_size(const std::vector<CameraFacts>& cameras) {
  std::vector<const CameraFacts*> best;
  for (const CameraFacts& first : cameras) {
    std::vector<const CameraFacts*> group;
    for (const CameraFacts& c : cameras) {
      if (c.trouble.empty() && c.height == first.height && c.width == first.width && c.episodes == first.episodes)
        group.push_back(&c);
    }
    if (first.trouble.empty() && group.size() > best.size()) best = std::move(group);
  }
  return best;
}

/// At most three, which is what a canvas has room for: the main camera, which is the first that is no wrist's, then
/// wrists, then the others; in the order they came.
void keep_most_telling(std::vector<const CameraFacts*>& views) {
  constexpr std::size_t kMostViews = 3;
  const auto main = std::find_if(views.begin(), views.end(), [](const CameraFacts* c) { return !is_wrist(*c); });
  std::vector<const CameraFacts*> ranked = views;
  std::stable_sort(ranked.begin(), ranked.end(), [&](const CameraFacts* a, const CameraFacts* b) {
    const auto rank = [&](const CameraFacts* c) {
      return main != views.end() && c == *main ? 0 : is_wrist(*c) ? 1 : 2;
    };
    return rank(a) < rank(b);
  });
  if (ranked.size() > kMostViews) ranked.resize(kMostViews);
  std::erase_if(views,
                [&](const CameraFacts* c) { return std::find(ranked.begin(), ranked.end(), c) == ranked.end(); });
}

std::string left_out(const std::vector<CameraFacts>& cameras, const std::vector<const CameraFacts*>& used,
                     std::int64_t episodes) {
  std::string text;
  for (const CameraFacts& c : cameras) {
    if (std::find(used.begin(), used.end(), &c) != used.end()) continue;
    std::string reason = c.trouble;
    if (reason.empty() && (c.height != used[0]->height || c.width != used[0]->width))
      reason = fmt::format("its frames are {}x{}, and the views of a sample have one size", c.width, c.height);
    else if (reason.empty() && c.episodes != used[0]->episodes)
      reason = fmt::format("{} of {} episodes have its file", c.episodes, episodes);
    text += fmt::format(" Left out: {} ({}).", c.name, reason.empty() ? "a canvas shows three views at most" : reason);
  }
  return text;
}

Result<void> guess_views(const DatasetFacts& facts, RobotGuess& guess) {
  auto views = same_size(facts.cameras);
  if (views.empty()) {
    std::string text = fmt::format("{}: a policy that sees needs a camera, and the dataset has none", facts.root);
    if (!facts.cameras.empty()) text += " that can be used:";
    for (const CameraFacts& c : facts.cameras) text += fmt::format("\n  {}: {}", c.feature, c.trouble);
    return Error{Errc::failed_precondition, text};
  }
  keep_most_telling(views);
  const std::string others = left_out(facts.cameras, views, facts.episodes);
  const auto wrists = std::count_if(views.begin(), views.end(), [](const CameraFacts* c) { return is_wrist(*c); });
  EmbodimentConfig& e = guess.embodiment;
  e.layout = views.size() == 1 ? "single" : views.size() == 2 ? "horizontal" : "grid2x2";
  guess.why["layout"] =
      "By the number of views: one alone, two side by side, three in a square; droid is three with the wrist's on top.";
  if (views.size() == 3 && wrists == 1) {
    e.layout = "droid";
    std::stable_partition(views.begin(), views.end(), [](const CameraFacts* c) { return !is_wrist(*c); });
    guess.why["layout"] =
        "Three views of which one is a wrist's: that one on top, the others below. grid2x2 shows all "
        "three in one size.";
  }
  for (const CameraFacts* c : views) {
    e.views.push_back(c->name);
    e.cameras[c->name] = c->feature;
  }
  guess.view_height = views[0]->height;
  guess.view_width = views[0]->width;
  guess.why["views"] = fmt::format(
      "Cameras of one size ({}x{}) that have files, in the order of {}; the order is that "
      "of the canvas, which has room for three. Fewer views train faster.{}",
      guess.view_width, guess.view_height, facts.has_modality ? "modality.json" : "info.json", others);
  return {};
}

bool sounds_like_instruction(const std::string& name) {
  for (const char* word : {"task", "instruction", "language", "description", "prompt"}) {
    if (name.find(word) != std::string::npos) return true;
  }
  return false;
}

void guess_language(const DatasetFacts& facts, RobotGuess& guess) {
  std::vector<std::string> labels;
  for (const NamedColumn& a : facts.modality.annotation) {
    const LerobotFeature* f = facts.info.find(a.column);
    if (f != nullptr && f->is_numbers() && !f->is_vector() && f->width() == 1) labels.push_back(a.name);
  }
  std::string& key = guess.embodiment.language_key;
  const auto best = std::find_if(labels.begin(), labels.end(), sounds_like_instruction);
  if (best != labels.end()) {
    key = *best;
    guess.why["language_key"] = fmt::format(
        "The annotation whose name sounds like an instruction, of {}. task_index "
        "takes the episode's task.",
        fmt::join(labels, ", "));
  } else if (facts.info.find("task_index") != nullptr) {
    key = "task_index";
    guess.why["language_key"] = "No annotation sounds like an instruction: the text of the episode's task.";
  } else if (!labels.empty()) {
    key = labels.front();
    guess.why["language_key"] = fmt::format("The first annotation of {}.", fmt::join(labels, ", "));
  }
  guess.embodiment.prompt = "none";
  guess.why["prompt"] =
      "The instruction alone, which suits a model that starts from random values. Released weights want the sentences "
      "they were trained with: single_view_human for one camera, oxe_droid, libero_sim and others in docs/text.md.";
}

/// Mean share of the value's own range that a relative key needs; 0 where nothing moves.
double relative_share(const HealthReport& report, const RelativeReport& relative) {
  const ColumnReport* column = report.column(relative.action.column);
  const FeatureStatistics& pooled = relative.statistics.pooled;
  double sum = 0;
  int count = 0;
  for (std::size_t d = 0; column != nullptr && d < pooled.width() && d < relative.action.width(); ++d) {
    const std::size_t c = d + static_cast<std::size_t>(relative.action.start);
    const double range = column->statistics.q99[c] - column->statistics.q01[c];
    if (!(range > 0)) continue;
    sum += (pooled.q99[d] - pooled.q01[d]) / range;
    ++count;
  }
  return count == 0 ? 0 : sum / count;
}

void judge_relative(const HealthReport& report, RobotGuess& guess) {
  // of differences that spread like the values themselves nothing is gained: commands are no positions then
  constexpr double kMostShare = 0.9;
  std::vector<std::string> kept;
  std::string numbers;
  for (const RelativeReport& r : report.relative) {
    if (r.statistics.pooled.width() == 0) continue;
    const double share = relative_share(report, r);
    if (share == 0) continue;  // it never moves
    numbers += fmt::format("{}{} {:.2f}", numbers.empty() ? "" : ", ", r.action.name, share);
    if (share < kMostShare) kept.push_back(r.action.name);
  }
  guess.embodiment.relative_action_keys = kept;
  guess.why["relative_action_keys"] =
      numbers.empty()
          ? "No action key has a state of its name and dimensions that it could be the difference to; [] trains "
            "every action as it is."
          : fmt::format(
                "Trained as the difference to the state at a block's start where that spreads less than the "
                "action itself; measured shares: {}. Below {} counts. What opens and closes stays absolute. "
                "[] trains every action as it is.",
                numbers, kMostShare);
}

bool moves(const HealthReport& report, const VectorKey& key) {
  const ColumnReport* column = report.column(key.column);
  if (column == nullptr) return true;
  for (auto d = static_cast<std::size_t>(key.start); d < static_cast<std::size_t>(key.end); ++d) {
    if (std::find(column->constant.begin(), column->constant.end(), d) == column->constant.end()) return true;
  }
  return false;
}

/// Takes constant keys out, unless nothing would be left.
void drop_constant(const HealthReport& report, const std::vector<VectorKey>& all, const std::string& section,
                   std::vector<std::string>& keys, RobotGuess& guess) {
  std::vector<std::string> still;
  for (const VectorKey& key : all) {
    if (!moves(report, key)) still.push_back(key.name);
  }
  if (still.empty() || still.size() == keys.size()) return;
  std::erase_if(keys, [&](const std::string& k) { return std::find(still.begin(), still.end(), k) != still.end(); });
  for (const std::string& name : still) {
    guess.embodiment.slices.erase(section + "." + name);
    std::erase(guess.embodiment.relative_action_keys, name);
  }
  guess.why[section + "_keys"] += fmt::format(" Left out, since they never move here: {}.", fmt::join(still, ", "));
}

}  // namespace

Result<RobotGuess> guess_robot(const DatasetFacts& facts) {
  RobotGuess guess;
  EmbodimentConfig& e = guess.embodiment;
  e.tag = tag_of(facts);
  guess.why["tag"] = "From robot_type in info.json, or the folder's name; a policy is served under it.";
  e.id = 0;
  guess.why["id"] =
      "The first row of the model's state and action layers. Robots that share one model take other "
      "numbers; released weights say theirs.";
  e.fps = facts.info.fps;
  guess.why["fps"] = "As in info.json. Data of another rate are refused; 0 takes any.";
  TROUPE_TRY(guess_views(facts, guess));
  TROUPE_TRY(guess_keys(facts, guess));
  guess_language(facts, guess);
  return guess;
}

void judge_by_statistics(const HealthReport& report, RobotGuess& guess) {
  judge_relative(report, guess);
  std::vector<VectorKey> actions;
  bool rare = false;
  for (const ActionKey& a : report.keys.action) {
    actions.push_back(a.key);
    const ColumnReport* column = report.column(a.key.column);
    for (std::size_t d = 0; column != nullptr && d < column->near_constant.size(); ++d) {
      const auto at = static_cast<std::int64_t>(column->near_constant[d]);
      rare = rare || (at >= a.key.start && at < a.key.end);
    }
  }
  drop_constant(report, report.keys.state, "state", guess.embodiment.state_keys, guess);
  drop_constant(report, actions, "action", guess.embodiment.action_keys, guess);
  std::erase_if(guess.embodiment.relative_action_keys, [&](const std::string& key) {
    const auto& there = guess.embodiment.state_keys;
    return std::find(there.begin(), there.end(), key) == there.end();
  });
  guess.embodiment.normalization = rare ? "min_max" : "q99";
  guess.why["normalization"] =
      rare ? "Some action dimension moves in less than one row in fifty, which quantiles would cut off. q99 is the "
             "choice where outliers are errors."
           : "The 1st and 99th percentile become -1 and 1, so that outliers do not squeeze the rest. min_max keeps "
             "them; mean_std and scale are the others.";
}

}  // namespace troupe::data
