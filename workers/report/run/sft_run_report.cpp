#include "workers/report/run/sft_run_report.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <tuple>

#include "base/shell_word.h"
#include "configs/warnings.h"
#include "data/lerobot/dataset_location.h"
#include "data/lerobot/modality.h"
#include "data/sampling/dataset_spec.h"
#include "model/io/safetensors.h"
#include "workers/inference/evaluate/checkpoint_evaluation.h"
#include "workers/report/loss_plot.h"
#include "workers/report/prediction_sheet.h"

namespace troupe::workers {

namespace {

constexpr double kLearnt = 0.02;     // share by which a held-out loss has fallen or risen at least
constexpr std::size_t kWindow = 10;  // steps that "start" and "end" of a loss mean

std::vector<LossPoint> points_of(const RunStatistics& statistics, const std::string& name) {
  std::vector<LossPoint> points;
  for (const RunCurve::Point& p : statistics.curve(name).points()) points.push_back({.step = p.step, .value = p.value});
  return points;
}

std::vector<Rgb8View> frames_of(const TensorInfo& tensor) {
  const std::int64_t height = tensor.shape.at(1), width = tensor.shape.at(2);
  std::vector<Rgb8View> frames;
  for (std::int64_t t = 0; t < tensor.shape.at(0); ++t) {
    const auto* data = reinterpret_cast<const std::uint8_t*>(tensor.bytes.data()) + t * height * width * 3;
    frames.push_back({.data = data, .height = height, .width = width, .stride = width * 3});
  }
  return frames;
}

std::vector<float> floats_of(const TensorInfo& tensor) {
  std::vector<float> values(tensor.bytes.size() / sizeof(float));
  std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
  return values;
}

/// A name in the working directory that nothing has: `name`, name-2, name-3 and so on.
std::string free_name(const std::string& name) {
  std::error_code code;
  std::string chosen = name;
  for (int i = 2; std::filesystem::exists(chosen, code); ++i) chosen = fmt::format("{}-{}", name, i);
  return chosen;
}

/// What is wrong where the held-out loss did not fall; a line, or nothing. A loss that is not a number has risen.
std::string learning_doubt(const EndedRun& run, double first, double last) {
  const double rate = run.job.optimizer.lr;
  if (last < (1 - kLearnt) * first) return {};
  if (last <= (1 + kLearnt) * first) {
    return fmt::format(
        "  warning   the held-out loss fell by less than {:.0f} %: this run has hardly learnt. Raise "
        "optimizer.lr ({:g} here; from random values 1e-3 to 3e-4 is usual), or train longer\n",
        100 * kLearnt, rate);
  }
  const RunStatistics& s = run.statistics();
  if (std::isfinite(last) && s.last_mean(kWindow) < s.first_mean(1)) {
    return "  warning   the held-out loss rose while the training loss fell: this run learns its episodes by heart. "
           "Train on more of them, or stop earlier\n";
  }
  return fmt::format(
      "  warning   the held-out loss rose: training diverged. Lower optimizer.lr ({:g} here), to {:g} "
      "for a start\n",
      rate, lower_rate(rate));
}

/// The chart of the last step's held-out prediction, below the run directory, without its ending.
std::string last_prediction(const EndedRun& run) {
  return fmt::format("eval/step_{:06d}/prediction", run.service.job().step());
}

}  // namespace

Result<void> draw_losses(const EndedRun& run) {
  std::vector<LossSeries> series;
  const std::tuple<const char*, const char*, LossRole> kCurves[] = {
      {"train/loss", "training", LossRole::train},
      {"train/dynamics_loss", "training, video", LossRole::dynamics},
      {"train/action_loss", "training, actions", LossRole::action},
      {"eval/loss", "held out", LossRole::held_out}};
  for (const auto& [metric, name, role] : kCurves) {
    auto points = points_of(run.statistics(), metric);
    if (!points.empty()) series.push_back({.name = name, .role = role, .points = std::move(points)});
  }
  return draw_loss_curves(run.directory.path("loss.png"), series,
                          {.title = run.job.job.name + ": loss", .log_scale = wants_log_scale(series)});
}

/// The names of the action's dimensions in the job's only dataset; none where it is gone or there are several.
std::vector<std::string> joints_of(const JobConfig& job) {
  if (job.data.sets.size() != 1) return {};
  const auto spec = dataset_spec(job.data, job.model, 0);
  const auto root = spec ? find_dataset(spec->path) : Result<std::string>(spec.error());
  const auto info = root ? read_lerobot_info(*root) : Result<LerobotInfo>(root.error());
  const auto modality = info ? read_modality(*root, *info) : Result<Modality>(info.error());
  if (!modality) return {};
  const auto columns = resolve_columns(*modality, *info, spec->embodiment);
  return columns ? action_names(*columns, *info) : std::vector<std::string>();
}

Result<void> draw_held_out(const EndedRun& run) {
  const std::string file = run.directory.path(last_prediction(run) + ".safetensors");
  if (!std::filesystem::exists(file)) return {};
  TROUPE_ASSIGN(const auto reader, SafetensorsReader::open(file));
  TROUPE_ASSIGN(const auto true_frames, reader.info("true_frames"));
  TROUPE_ASSIGN(const auto predicted_frames, reader.info("predicted_frames"));
  TROUPE_ASSIGN(const auto true_actions, reader.info("true_actions"));
  TROUPE_ASSIGN(const auto predicted_actions, reader.info("predicted_actions"));
  PredictionSheet sheet{
      .title = fmt::format("{}: step {}", run.job.job.name, run.service.job().step()),
      .caption = "held-out clip: true above predicted (10 Euler steps, clean past); normalised actions",
      .true_frames = frames_of(true_frames),
      .predicted_frames = frames_of(predicted_frames),
      .action_steps = true_actions.shape.at(0),
      .true_actions = floats_of(true_actions),
      .predicted_actions = floats_of(predicted_actions)};
  const std::vector<std::string> joints = joints_of(run.job);
  for (std::int64_t d = 0; d < true_actions.shape.at(1); ++d) {
    const auto place = static_cast<std::size_t>(d);
    const bool named = place < joints.size() && !joints[place].empty();
    sheet.action_names.push_back(named ? joints[place] : fmt::format("action {}", d));
  }
  return draw_prediction(run.directory.path(last_prediction(run) + ".png"), sheet);
}

Result<void> evaluate_open_loop(const EndedRun& run, RunSummary& summary) {
  const OpenLoopConfig& wanted = run.job.eval.open_loop;
  const std::string& checkpoint = run.service.job().checkpoints().committed_directory();
  if (!wanted.at_end || summary.exit_code != 0 || checkpoint.empty()) return {};
  const CheckpointPlace place{.folder = checkpoint, .run = run.directory.root()};
  TROUPE_ASSIGN(const std::string folder, evaluation_folder(place, ""));
  run.say(fmt::format("open-loop evaluation of {} on held-out episodes",
                      std::filesystem::relative(checkpoint, run.directory.root()).string()));
  TROUPE_ASSIGN(const CheckpointEvaluation done,
                evaluate_checkpoint(place, {.windows = wanted.windows, .progress = run.progress}, folder));
  const ActionError& overall = done.result.overall;
  summary.open_loop = OpenLoopSummary{.mse = overall.mse,
                                      .hold_first_mse = overall.hold_mse,
                                      .mean_action_mse = overall.mean_mse,
                                      .windows = done.result.windows.size(),
                                      .episodes = done.result.episodes.size()};
  if (overall.non_finite == 0) return {};
  return Error{Errc::failed_precondition,
               fmt::format("{}/eval.json: {} predicted values are not finite", folder, overall.non_finite)};
}

void describe_sft_run(const EndedRun& run, RunSummary& summary) {
  const RunStatistics& s = run.statistics();
  summary.samples = summary.steps * run.service.job().plan().batch.global;
  summary.loss_first = s.first_mean(kWindow);
  summary.loss_last = s.last_mean(kWindow);
  summary.loss_best = s.best().value;
  summary.loss_best_step = s.best().step;
  const std::string folder = shell_word(run.folder());
  summary.next = {fmt::format("troupe verify {}", folder)};
  if (!run.has_checkpoint()) return;
  summary.next.push_back(fmt::format("troupe export {} --format safetensors --out {}", folder, free_name("exported")));
  if (is_imitation(run.job)) summary.next.push_back(fmt::format("troupe eval {} --episodes 100", folder));
}

std::string held_out_text(const EndedRun& run, int) {
  const auto& held_out = run.statistics().curve("eval/loss").points();
  if (held_out.size() <= 1) return {};
  const double first = held_out.front().value, last = held_out.back().value;
  std::string pictures = run.folder() + "/loss.png";
  const std::string evaluation = fmt::format("eval/step_{:06d}/open_loop.png", run.service.job().step());
  for (const std::string& picture : {last_prediction(run) + ".png", evaluation}) {
    if (std::filesystem::exists(run.directory.path(picture))) pictures += ", " + picture;
  }
  return fmt::format("  held out  {:.4f} -> {:.4f}   pictures {}\n{}", first, last, pictures,
                     learning_doubt(run, first, last));
}

}  // namespace troupe::workers
