#include "data/init/job_guess.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <filesystem>

#include "base/check.h"
#include "configs/embedded.h"
#include "configs/loader.h"
#include "configs/warnings.h"

namespace troupe::data {

namespace {

/// kFirstPreset as it is; a preset that does not load is a mistake of this program.
const ModelConfig& preset_model() {
  static const JobConfig job = [] {
    const auto file = find_embedded(kFirstPreset);
    TROUPE_CHECK(file, "the preset of first jobs is embedded");
    const LoadOutcome loaded = load_job_text(std::string(file->name), std::string(file->text), {});
    TROUPE_CHECK(loaded.config, "the preset of first jobs loads");
    return loaded.config->job;
  }();
  return job.model;
}

/// Pixels of a token's side: 2 x 2 latent pixels.
std::int64_t token_pixels() { return 2 * preset_model().codec.stride_hw; }
std::int64_t frames_per_block() { return preset_model().latent_frames_per_block * preset_model().codec.stride_t; }

/// Pixels of a canvas that two cores learn from in minutes.
constexpr double kCanvasPixels = 64 * 96;
/// Seconds of a block: long enough to see motion, short enough to plan.
constexpr double kBlockSeconds = 0.8;

std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

std::string job_name(const std::string& root) {
  std::string name;
  for (const char c : std::filesystem::path(root).filename().string()) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0)
      name += static_cast<char>(std::tolower(byte));
    else if (!name.empty() && name.back() != '-')
      name += '-';
  }
  constexpr std::size_t kMostCharacters = 40;
  if (name.size() > kMostCharacters) name.resize(kMostCharacters);
  while (!name.empty() && name.back() == '-') name.pop_back();
  return name.empty() ? "my-robot" : name;
}

/// The canvas whose shape and size are nearest to the views'.
void guess_canvas(const RobotGuess& robot, JobGuess& job) {
  const bool wide = robot.embodiment.layout != "single";
  const std::int64_t columns = wide ? 2 : 1, rows = wide && robot.embodiment.layout != "horizontal" ? 2 : 1;
  const double shape = static_cast<double>(robot.view_width * columns) / static_cast<double>(robot.view_height * rows);
  double best = INFINITY;
  constexpr std::int64_t kLongest = 320;
  const std::int64_t token = token_pixels();
  for (std::int64_t h = 2 * token; h <= kLongest; h += token) {
    for (std::int64_t w = 2 * token; w <= kLongest; w += token) {
      const auto height = static_cast<double>(h), width = static_cast<double>(w);
      if (height * width > 1.2 * kCanvasPixels) continue;
      const double cost =
          std::abs(std::log(width / height / shape)) + 0.3 * std::abs(std::log(height * width / kCanvasPixels));
      if (cost >= best) continue;
      best = cost;
      job.canvas_height = h;
      job.canvas_width = w;
    }
  }
  job.view_height = job.canvas_height / rows;
  job.view_width = job.canvas_width / columns;
  job.why["canvas"] = fmt::format(
      "The views are {}x{} (width x height); this is the nearest shape in multiples of {} pixels that two cores learn "
      "from in minutes. Twice the sides show four times as much and take four times as long.",
      robot.view_width, robot.view_height, token);
}

/// The share of rows that lie in spans of at least `rows`.
double share_of_rows(const std::vector<double>& spans, std::int64_t rows) {
  double all = 0, fit = 0;
  for (const double span : spans) {
    all += span;
    if (span >= static_cast<double>(rows)) fit += span;
  }
  return all > 0 ? fit / all : 0;
}

std::int64_t window_rows(const WindowConfig& w) { return w.chunks * w.macro_stride + 1; }

/// One block of at most about kBlockSeconds: the longest for which nearly all rows lie in stretches of two windows or
/// more, so that a policy sees a stretch from several places; else the longest that fits anywhere.
bool guess_window(const HealthReport& report, JobGuess& job) {
  constexpr double kMostOfRows = 0.8;
  constexpr std::int64_t kLongestStep = 16;
  const std::int64_t frames = frames_per_block();
  const auto wanted = std::lround(kBlockSeconds * report.fps / static_cast<double>(frames));
  for (const std::int64_t windows : {2, 1}) {
    for (std::int64_t step = std::clamp<std::int64_t>(wanted, 1, kLongestStep); step >= 1; --step) {
      WindowConfig w;
      w.chunks = 1;
      w.macro_stride = w.action_horizon = step * frames;
      w.video_offsets.clear();
      for (std::int64_t f = 0; f < frames; ++f) w.video_offsets.push_back(f * step);
      if (share_of_rows(report.span_lengths, windows * window_rows(w)) <= (windows == 2 ? kMostOfRows : 0.0)) continue;
      job.window = w;
      job.why["window"] = fmt::format(
          "A block is {} rows, {:.2f} s at {:g} rows/s; about {:g} s shows motion. {:.0f}% of the rows lie in "
          "stretches of one instruction that have room for the {} rows of a sample. Longer blocks plan further and "
          "learn more slowly; more chunks let the policy look back and take longer.",
          w.macro_stride, static_cast<double>(w.macro_stride) / report.fps, report.fps, kBlockSeconds,
          100 * share_of_rows(report.span_lengths, window_rows(w)), window_rows(w));
      return true;
    }
  }
  return false;
}

void guess_held_out(const HealthReport& report, JobGuess& job) {
  std::vector<std::int64_t> fit;
  for (const EpisodeReport& e : report.episodes) {
    if (e.problems == 0 && e.rows >= window_rows(job.window)) fit.push_back(e.index);
    if (e.problems != 0) ++job.bad_episodes;
  }
  const auto n = static_cast<std::int64_t>(fit.size());
  if (n < 2) {
    job.why["eval"] =
        "Only one episode is long enough, and it is trained on: nothing is held out, so nothing says "
        "whether the policy learns the task or the recording. Record more episodes.";
    return;
  }
  constexpr std::int64_t kShare = 10, kMost = 20;
  const std::int64_t count = std::clamp<std::int64_t>(n / kShare, 1, kMost);
  for (std::int64_t i = 1; i <= count; ++i)
    job.eval_episodes.push_back(fit[static_cast<std::size_t>(n * i / count - 1)]);
  job.why["eval"] = fmt::format(
      "{} of {} episodes, spread evenly: a tenth, at least one, at most {}. They are never "
      "trained on; the held-out loss is theirs.",
      count, n, kMost);
}

void guess_instructions(const HealthReport& report, const RobotGuess& robot, JobGuess& job) {
  std::size_t longest = 0;
  constexpr std::size_t kMostShown = 10;
  for (const auto& [label, text] : report.texts) {
    if (!report.label_rows.contains(label)) continue;
    longest = std::max(longest, text.size());
    if (job.instructions.size() < kMostShown) job.instructions.push_back(text);
  }
  constexpr std::int64_t kMultiple = 16, kMostTokens = 512;
  const auto bytes = static_cast<std::int64_t>(longest) + 1;  // and the end token
  job.text_tokens = std::clamp(round_up(bytes, kMultiple), preset_model().text_encoder.max_length, kMostTokens);
  job.why["text"] = robot.embodiment.language_key.empty()
                        ? "The dataset has no instructions; every prompt is empty."
                        : fmt::format(
                              "The longest instruction has {} bytes, each a token of this small model. Longer "
                              "prompts are cut.",
                              longest);
}

std::int64_t width_of(const RobotGuess& robot, const std::string& section, const std::vector<std::string>& keys) {
  std::int64_t width = 0;
  for (const std::string& key : keys) {
    const auto slice = parse_column_slice(robot.embodiment.slices.at(section + "." + key));
    if (slice) width += slice->end - slice->start;
  }
  return width;
}

void guess_training(const RobotGuess& robot, const MachineFacts& machine, JobGuess& job) {
  const std::int64_t actions = width_of(robot, "action", robot.embodiment.action_keys);
  const std::int64_t states = width_of(robot, "state", robot.embodiment.state_keys);
  constexpr std::int64_t kMultiple = 8;
  job.action_dim = std::max(preset_model().dit.action_dim, round_up(actions, kMultiple));
  job.max_state_dim = std::max(preset_model().dit.max_state_dim, round_up(states, kMultiple));
  job.why["dims"] = fmt::format(
      "The robot has {} action and {} state dimensions; these are the model's padded sizes, "
      "at least the preset's.",
      actions, states);
  constexpr std::int64_t kMostRanks = 4, kSamplesPerRank = 4, kLeastBatch = 8;
  constexpr std::int64_t kRankBytes = std::int64_t{1} << 30;
  const std::int64_t room =
      machine.memory_bytes > 0 ? std::max<std::int64_t>(machine.memory_bytes / kRankBytes, 1) : kMostRanks;
  job.ranks = std::clamp<std::int64_t>(std::min(machine.cores, room), 1, kMostRanks);
  job.global_batch = std::max(kLeastBatch, job.ranks * kSamplesPerRank);
  job.micro_batch = job.global_batch / job.ranks;
  if (job.global_batch % job.ranks != 0) {
    job.micro_batch = kSamplesPerRank;
    job.global_batch = job.ranks * job.micro_batch;
  }
  job.why["cluster"] = fmt::format(
      "{} learner rank{} on this machine's {} cores: one a core, at most {} and one a GiB "
      "of memory. More ranks take a larger batch.",
      job.ranks, job.ranks == 1 ? "" : "s", machine.cores, kMostRanks);
  job.lr = kLrFromRandom;
  job.why["lr"] =
      "A rate for a model that starts from random values, as this small one does. Fine-tuning of released "
      "weights wants 1e-5.";
  job.why["steps"] = fmt::format(
      "{} steps of {} samples: minutes on two cores, and enough for the held-out loss to "
      "fall by a third. Go on with more as long as it falls.",
      job.steps, job.global_batch);
}

}  // namespace

Result<JobGuess> guess_job(const HealthReport& report, const RobotGuess& robot, const MachineFacts& machine) {
  if (report.usable_episodes() == 0) {
    std::string first;
    for (const HealthFinding& f : report.findings) {
      if (first.empty() && f.level == FindingLevel::problem) first = "; the first problem: " + f.sentence();
    }
    return Error{Errc::failed_precondition,
                 fmt::format("{}: none of {} episodes can be trained on{}. `troupe stats {}` lists every defect",
                             report.root, report.episodes.size(), first, report.root)};
  }
  JobGuess job;
  job.name = job_name(report.root);
  job.why["name"] = "The folder's name; runs go to runs/NAME.";
  guess_canvas(robot, job);
  if (!guess_window(report, job)) {
    const double longest =
        report.span_lengths.empty() ? 0 : *std::max_element(report.span_lengths.begin(), report.span_lengths.end());
    return Error{Errc::failed_precondition,
                 fmt::format("{}: the longest stretch of one instruction has {} rows, and the shortest window wants {}",
                             report.root, longest, frames_per_block() + 1)};
  }
  guess_held_out(report, job);
  guess_instructions(report, robot, job);
  guess_training(robot, machine, job);
  return job;
}

}  // namespace troupe::data
