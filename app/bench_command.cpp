// `troupe bench loader JOB_OR_DATASET`: how fast a job's data side makes batches on this machine, and what holds it
// back.
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <thread>

#include "app/commands.h"
#include "app/exit_code.h"
#include "app/interrupt_flag.h"
#include "app/job_setup.h"
#include "base/hugging_face.h"
#include "base/log.h"
#include "base/stopwatch.h"
#include "data/lerobot/dataset_location.h"
#include "data/sample/open_mixture.h"
#include "data/sample/tokenize.h"
#include "workers/decoder/loader/dataset_job.h"
#include "workers/decoder/loader/loader_run.h"
#include "workers/decoder/loader/loader_text.h"
#include "workers/node/inventory.h"

namespace troupe::app {

namespace {

namespace fs = std::filesystem;

/// Slots may take this share of the machine's memory.
constexpr double kMemoryShare = 0.25;

/// Whether a name that is no file is meant as a dataset: a folder, or owner/name of a cached one.
bool names_dataset(const std::string& name) {
  std::error_code code;
  if (fs::is_directory(name, code)) return true;
  if (fs::exists(name, code) || name.ends_with(".yaml") || name.ends_with(".yml")) return false;
  return std::count(name.begin(), name.end(), '/') == 1 && static_cast<bool>(job_of_dataset(name));
}

/// Says where owner/name was looked for and how it is downloaded; nothing of other names.
void explain_missing_dataset(const std::string& name) {
  std::error_code code;
  if (!is_repo_id(name) || name.ends_with(".yaml") || name.ends_with(".yml") || fs::exists(name, code)) return;
  if (const auto found = find_dataset(name); !found) complain(found.error());
}

/// The job to measure, or nothing after the reasons were printed; `code` is then the exit code.
std::optional<JobConfig> find_job(const BenchOptions& options, int& code) {
  code = kUsage;
  if (!names_dataset(options.job)) {
    auto loaded = load_or_explain(options.job, options.overrides);
    if (!loaded) {
      explain_missing_dataset(options.job);
      return std::nullopt;
    }
    if (const auto made = make_quickstart_data(*loaded, stderr); !made) {
      code = complain(made.error());
      return std::nullopt;
    }
    return std::move(loaded->job);
  }
  const auto made = job_of_dataset(options.job);
  if (!made) {
    code = complain(made.error());
    return std::nullopt;
  }
  auto loaded = take_or_explain(load_job_text(options.job + ": the job made up for it", made->yaml, options.overrides));
  if (!loaded) return std::nullopt;
  if (!options.json) {
    for (const std::string& note : made->notes) fmt::print("{:<22}{}\n", "chosen", note);
  }
  return std::move(loaded->job);
}

/// Samples a batch: the job's, unless its slots would not fit this machine's memory.
std::int64_t batch_size(const JobConfig& job, std::int64_t sample_bytes, bool json) {
  std::int64_t batch = std::max<std::int64_t>(1, job.training.micro_batch_size);
  const double memory = static_cast<double>(own_cluster().nodes.front().memory_bytes) * kMemoryShare;
  const auto fits = [&](std::int64_t samples) {
    // slots, and the batch that is put together from them
    return static_cast<double>(samples * (2 + job.data.prefetch_batches) * sample_bytes) <= memory;
  };
  std::int64_t chosen = batch;
  while (chosen > 1 && !fits(chosen)) chosen = (chosen + 1) / 2;
  if (chosen != batch && !json) {
    fmt::print("{:<22}batches of {} samples: {} of the job would not fit this machine's memory\n", "chosen", chosen,
               batch);
  }
  return chosen;
}

}  // namespace

int bench_command(const BenchOptions& options) {
  log::configure("bench", "");  // stdout is the result's
  int code = kUsage;
  const std::optional<JobConfig> job = find_job(options, code);
  if (!job) return code;
  if (trains_agent(*job))
    return complain({Errc::invalid_argument, "the job trains a policy for env.id: it has no videos to load"});
  const auto opening = std::chrono::steady_clock::now();
  const auto mixture = open_mixture(*job);
  if (!mixture) return complain(mixture.error());
  const double open_seconds = seconds_since(opening);
  const auto tokenize = make_tokenize(job->model.text_encoder);
  if (!tokenize) return complain(tokenize.error());
  const auto layout = sample_layout(job->data, job->model);
  if (!layout) return complain(layout.error());

  const auto cores = std::max<std::int64_t>(1, std::thread::hardware_concurrency());
  LoaderContext context{.source = options.job,
                        .windows = static_cast<std::int64_t>((*mixture)->train_size()),
                        .cores = cores,
                        .open_seconds = open_seconds};
  for (const auto& dataset : (*mixture)->datasets())
    context.episodes += static_cast<std::int64_t>(dataset->episodes().size());
  const LoaderOptions run{.samples = options.samples,
                          .decoders = options.decoders > 0 ? options.decoders : cores,
                          .micro_batch = batch_size(*job, layout->bytes, options.json),
                          .prefetch = job->data.prefetch_batches,
                          .consume_rate = options.consume_rate,
                          .stopped = [] { return interrupt_flag().load(); }};
  std::fflush(stdout);
  interrupt_flag();  // watched from here on
  const auto result = run_loader(*mixture, *job, *tokenize, run);
  if (!result) return complain(result.error());
  if (!result->stopped && depends_on_videos(find_bottleneck(*result, cores).stage)) {
    auto tried = try_reencodings(**mixture, *job, *result, run.stopped);
    if (tried)
      context.reencodings = std::move(*tried);
    else
      context.not_tried = tried.error().message();
  }
  const std::string text = options.json ? loader_json(*result, context) : loader_text(*result, context);
  fmt::print("{}", text);
  return result->stopped ? kInterrupted : kOk;
}

}  // namespace troupe::app
