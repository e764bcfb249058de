#include "app/final_report.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "app/evaluation_videos.h"
#include "app/rl_report.h"
#include "base/durable_file.h"
#include "model/io/safetensors.h"
#include "workers/report/loss_plot.h"
#include "workers/report/prediction_sheet.h"
#include "workers/report/text_report.h"

namespace troupe::app {

namespace {

constexpr std::size_t kWindow = 10;  // steps that "start" and "end" of a loss mean

std::vector<LossPoint> points_of(const RunStatistics& statistics, const std::string& name) {
  std::vector<LossPoint> points;
  for (const RunStatistics::Point& p : statistics.curve(name)) points.push_back({.step = p.step, .value = p.value});
  return points;
}

Result<void> draw_losses(const RunStatistics& statistics, const JobConfig& job, const RunDirectory& run) {
  std::vector<LossSeries> series;
  const std::tuple<const char*, const char*, LossRole> kCurves[] = {
      {"train/loss", "training", LossRole::train},
      {"train/dynamics_loss", "training, video", LossRole::dynamics},
      {"train/action_loss", "training, actions", LossRole::action},
      {"eval/loss", "held out", LossRole::held_out}};
  for (const auto& [metric, name, role] : kCurves) {
    auto points = points_of(statistics, metric);
    if (!points.empty()) series.push_back({.name = name, .role = role, .points = std::move(points)});
  }
  return draw_loss_curves(run.path("loss.png"), series, {.title = job.job.name + ": loss"});
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

Result<void> draw_held_out(const JobConfig& job, const RunDirectory& run, std::int64_t step) {
  const std::string folder = fmt::format("eval/step_{:06d}", step);
  const std::string file = run.path(folder + "/prediction.safetensors");
  if (!std::filesystem::exists(file)) return {};
  TROUPE_ASSIGN(const auto reader, SafetensorsReader::open(file));
  TROUPE_ASSIGN(const auto true_frames, reader.info("true_frames"));
  TROUPE_ASSIGN(const auto predicted_frames, reader.info("predicted_frames"));
  TROUPE_ASSIGN(const auto true_actions, reader.info("true_actions"));
  TROUPE_ASSIGN(const auto predicted_actions, reader.info("predicted_actions"));
  PredictionSheet sheet{.title = fmt::format("{}: step {}", job.job.name, step),
                        .caption = "held-out clip: true above predicted (10 Euler steps, clean past)",
                        .true_frames = frames_of(true_frames),
                        .predicted_frames = frames_of(predicted_frames),
                        .frame_labels = {},
                        .action_names = {},
                        .action_steps = true_actions.shape.at(0),
                        .true_actions = floats_of(true_actions),
                        .predicted_actions = floats_of(predicted_actions)};
  for (std::int64_t d = 0; d < true_actions.shape.at(1); ++d)
    sheet.action_names.push_back(fmt::format("action {} (normalised)", d));
  return draw_prediction(run.path(folder + "/prediction.png"), sheet);
}

std::int64_t bytes_below(const std::string& folder) {
  std::int64_t bytes = 0;
  std::error_code error;
  for (const auto& file : std::filesystem::recursive_directory_iterator(folder, error)) {
    if (file.is_regular_file(error)) bytes += static_cast<std::int64_t>(file.file_size(error));
  }
  return bytes;
}

RunSummary summarise(const ControllerService& service, const JobConfig& job, const RunDirectory& run, int exit_code) {
  const RunStatistics& s = service.statistics();
  const JobController& controller = service.job();
  RunSummary summary{.name = job.job.name,
                     .steps = controller.step(),
                     .samples = controller.step() * controller.plan().batch.global,
                     .seconds = service.seconds(),
                     .exit_code = exit_code};
  summary.loss_first = s.first_mean(kWindow);
  summary.loss_last = s.last_mean(kWindow);
  summary.loss_best = s.best().value;
  summary.loss_best_step = s.best().step;
  const auto& losses = s.curve("train/loss");
  summary.not_finite =
      std::count_if(losses.begin(), losses.end(), [](const auto& p) { return !std::isfinite(p.value); });
  summary.void_batches = s.skipped();
  summary.restarts = controller.restarts();
  summary.samples_per_second_mean = s.samples_per_second();
  summary.samples_per_second_p50 = s.samples_per_second_quantile(0.5);
  summary.samples_per_second_p05 = s.samples_per_second_quantile(0.05);
  summary.compute_percent = s.compute_percent();
  summary.exposed_comm_percent = s.vote_percent();
  summary.stall_percent = s.stall_percent();
  summary.checkpoint_percent = s.checkpoint_percent();
  summary.other_percent = std::max(0.0, 100.0 - summary.compute_percent - summary.exposed_comm_percent -
                                            summary.stall_percent - summary.checkpoint_percent);
  summary.events = service.notable_events();
  const std::string& saved = controller.checkpoints().committed_directory();
  if (!saved.empty()) {
    summary.checkpoint = std::filesystem::relative(saved, run.root()).string();
    summary.checkpoint_bytes = bytes_below(saved);
  }
  summary.next = {
      fmt::format("troupe verify {}", std::filesystem::relative(run.root()).string()),
      fmt::format("troupe export {} --format safetensors --out DIR", std::filesystem::relative(run.root()).string())};
  if (job.job.kind == "rl") describe_rl_run(summary, s, run);
  if (is_imitation(job))
    summary.next.push_back(
        fmt::format("troupe eval {} --episodes 100", std::filesystem::relative(run.root()).string()));
  return summary;
}

/// Failures of the last evaluation as videos, for a run that came to its end.
void record_failures(const ControllerService& service, const JobConfig& job, const RunDirectory& run) {
  const std::string& checkpoint = service.job().checkpoints().committed_directory();
  if (checkpoint.empty()) return;
  const std::string folder = fmt::format("eval/step_{:06d}/videos", service.job().step());
  const auto names = record_last_evaluation(job, service.statistics(), checkpoint, run.path(folder));
  if (!names) {
    fmt::print("warning: {}\n", names.error().message());
  } else if (!names->empty()) {
    fmt::print("  videos      {}/{}: {} episodes\n", std::filesystem::relative(run.root()).string(), folder,
               names->size());
  }
}

Result<void> draw_curves(const RunStatistics& statistics, const JobConfig& job, const RunDirectory& run) {
  return job.job.kind == "rl" ? draw_learning_curves(statistics, job, run) : draw_losses(statistics, job, run);
}

}  // namespace

void print_final_report(const ControllerService& service, const JobConfig& job, const RunDirectory& run,
                        int exit_code) {
  if (auto drawn = draw_curves(service.statistics(), job, run); !drawn && service.statistics().steps() > 0) {
    fmt::print("warning: {}\n", drawn.error().message());
  }
  if (auto drawn = draw_held_out(job, run, service.job().step()); !drawn)
    fmt::print("warning: {}\n", drawn.error().message());
  const RunSummary summary = summarise(service, job, run, exit_code);
  if (auto written = write_file_durably(run.path("report.txt"), run_report(summary)); !written) {
    fmt::print("warning: {}\n", written.error().message());
  }
  const auto& held_out = service.statistics().curve("eval/loss");
  fmt::print("{}", run_report(summary, text_style_of(STDOUT_FILENO)));
  if (job.job.kind == "rl") {
    fmt::print("{}  curve       {}/return.png\n", last_evaluation(service.statistics(), job),
               std::filesystem::relative(run.root()).string());
  }
  if (job.job.kind == "rl" && exit_code == 0) record_failures(service, job, run);
  if (held_out.size() > 1) {
    const std::string prediction = fmt::format("eval/step_{:06d}/prediction.png", service.job().step());
    fmt::print("  held out  {:.4f} -> {:.4f}   pictures {}/loss.png{}\n", held_out.front().value, held_out.back().value,
               std::filesystem::relative(run.root()).string(),
               std::filesystem::exists(run.path(prediction)) ? ", " + prediction : "");
  }
  std::fflush(stdout);
}

}  // namespace troupe::app
