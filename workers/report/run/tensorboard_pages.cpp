#include "workers/report/run/tensorboard_pages.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <vector>

#include "base/enum_names.h"
#include "base/file_io.h"
#include "base/tensorboard.h"
#include "placement/render.h"
#include "workers/report/text_report.h"

namespace troupe::workers {

namespace fs = std::filesystem;

namespace {

bool writes_tensorboard(const JobConfig& job) {
  const auto& sinks = job.metrics.sinks;
  return std::find(sinks.begin(), sinks.end(), "tensorboard") != sinks.end();
}

/// Markdown that keeps its lines and blanks.
std::string fenced(const std::string& language, const std::string& text) {
  return fmt::format("```{}\n{}\n```\n", language, text);
}

/// What runs are compared by. Names are the configuration's keys.
std::map<std::string, TensorboardHparam> hparams_of(const JobConfig& job) {
  std::map<std::string, TensorboardHparam> hparams = {
      {"job.seed", static_cast<double>(job.job.seed)},
      {"optimizer.lr", job.optimizer.lr},
      {"optimizer.weight_decay", job.optimizer.weight_decay},
      {"training.clip_grad_norm", job.training.clip_grad_norm},
      {"training.global_batch_size", static_cast<double>(job.training.global_batch_size)},
      {"training.steps", static_cast<double>(job.training.steps)}};
  if (trains_agent(job)) hparams["env.id"] = job.env.id;
  if (job.job.kind == JobKind::rl) {
    hparams["algorithm.name"] = std::string(enum_name(job.algorithm.name));
    hparams["algorithm.gamma"] = job.algorithm.gamma;
    hparams["env.num_envs"] = static_cast<double>(job.env.num_envs);
    hparams["rollout.steps"] = static_cast<double>(job.rollout.steps);
  } else {
    hparams["model.init.mode"] = job.model.init.mode;
  }
  return hparams;
}

std::vector<std::string> measures_of(const JobConfig& job) {
  if (job.job.kind == JobKind::rl) return {"env/return", "eval/return"};
  return {"train/loss", "eval/loss"};
}

std::vector<std::string> pictures_in(const std::string& folder) {
  std::vector<std::string> pictures;
  std::error_code absent;
  for (const auto& entry : fs::directory_iterator(folder, absent)) {
    if (entry.path().extension() == ".png") pictures.push_back(entry.path().string());
  }
  std::sort(pictures.begin(), pictures.end());
  return pictures;
}

Result<void> add_picture(TensorboardFile& file, std::int64_t step, const std::string& png) {
  TROUPE_ASSIGN(const std::string bytes, read_file(png));
  if (auto added = file.add_png(fs::path(png).stem().string(), step, bytes); !added) return added.error().with(png);
  return {};
}

}  // namespace

Result<void> write_start_pages(const JobConfig& job, const std::string& resolved_yaml, const Plan& plan,
                               const RunDirectory& run, std::int64_t step) {
  if (!writes_tensorboard(job)) return {};
  TROUPE_ASSIGN(TensorboardFile file, TensorboardFile::create(run.path("tb")));
  TROUPE_TRY(file.add_text("configuration", step, fenced("yaml", resolved_yaml)));
  TROUPE_TRY(file.add_text("plan", step, fenced("", to_table(plan, job))));
  TROUPE_TRY(file.begin_session(hparams_of(job), measures_of(job)));
  return file.flush();
}

Result<void> write_end_pages(const JobConfig& job, const RunDirectory& run, std::int64_t step, int exit_code) {
  if (!writes_tensorboard(job)) return {};
  TROUPE_ASSIGN(TensorboardFile file, TensorboardFile::create(run.path("tb")));
  for (const std::string& folder : {run.root(), run.path(fmt::format("eval/step_{:06d}", step))}) {
    for (const std::string& png : pictures_in(folder)) TROUPE_TRY(add_picture(file, step, png));
  }
  if (!was_stopped(exit_code)) TROUPE_TRY(file.end_session(exit_code == 0));
  return file.flush();
}

Result<void> add_picture_page(const RunDirectory& run, std::int64_t step, const std::string& png) {
  std::error_code absent;
  if (fs::is_empty(run.path("tb"), absent) || absent) return {};
  TROUPE_ASSIGN(TensorboardFile file, TensorboardFile::create(run.path("tb")));
  TROUPE_TRY(add_picture(file, step, png));
  return file.flush();
}

}  // namespace troupe::workers
