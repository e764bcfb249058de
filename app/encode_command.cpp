// `troupe encode JOB`: what the frozen networks make of every window, computed once and kept in data.features.cache.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "app/command_progress.h"
#include "app/commands.h"
#include "app/exit_code.h"
#include "app/interrupt_flag.h"
#include "app/job_setup.h"
#include "app/product_rates.h"
#include "data/sample/open_mixture.h"
#include "placement/format.h"
#include "workers/encoder/encode_windows.h"

namespace troupe::app {

namespace {

constexpr std::chrono::milliseconds kProgressEvery{200};

std::string share(std::int64_t there, std::int64_t all) {
  return fmt::format("{} of {} windows", format_grouped(there), format_grouped(all));
}

int summarise_check(const WindowCounts& counts, const FeatureCache& cache, bool keeps_images) {
  const bool complete = counts.all_there == counts.total;
  fmt::print("text      {}\n", share(counts.text_there, counts.total));
  if (keeps_images) fmt::print("images    {}\n", share(counts.images_there, counts.total));
  fmt::print("cache     {} entries, {} in {}\n{}\n", format_grouped(cache.stats().entries),
             format_bytes(cache.stats().bytes), cache.folder(),
             complete ? "COMPLETE" : "INCOMPLETE: `troupe encode` with the same words makes what is missing");
  return complete ? kOk : kUnhealthy;
}

int summarise(const WindowCounts& counts, const FeatureCache& cache) {
  const auto stats = cache.stats();
  fmt::print("windows   {}: {} were there, {} encoded{}\n", share(counts.windows, counts.total),
             format_grouped(counts.all_there), format_grouped(counts.windows - counts.all_there - counts.bad),
             counts.bad == 0 ? "" : fmt::format(", {} bad and left out", counts.bad));
  fmt::print("written   {} entries, {}{}\n", format_grouped(stats.written), format_bytes(stats.bytes_written),
             stats.damaged == 0 ? "" : fmt::format("; {} damaged ones were made anew", stats.damaged));
  fmt::print("cache     {} entries, {} in {}\n", format_grouped(stats.entries), format_bytes(stats.bytes),
             cache.folder());
  fmt::print("time      {:.1f} s, {:.1f} windows/s\n", counts.seconds,
             static_cast<double>(counts.windows) / std::max(1e-9, counts.seconds));
  if (counts.windows == counts.total) return kOk;
  fmt::print("INTERRUPTED: the same command goes on from here\n");
  return kInterrupted;
}

Result<int> encode(const EncodeOptions& options, const JobConfig& job) {
  TROUPE_ASSIGN(const auto data, open_mixture(job));
  TROUPE_ASSIGN(const auto cache, FeatureCache::open(job.data.features.cache));
  interrupt_flag();  // watched from here on
  const auto watched = [&] {
    CommandProgress line(options.check ? "check" : "encode");
    return encode_windows(job, data, cache,
                          {.check = options.check,
                           .max_samples = options.max_samples,
                           .stopped = [] { return interrupt_flag().load(); },
                           .left_out = [&](const Error& error) { line.print("left out: " + error.message()); },
                           .progress = [&](const WindowCounts& c) { line.show("windows", c.windows, c.total); },
                           .progress_every = kProgressEvery});
  };
  const auto counts = watched();
  if (!counts) return counts.error();
  if (options.check) return summarise_check(*counts, *cache, job.data.features.keep == "all");
  return summarise(*counts, *cache);
}

}  // namespace

int encode_command(const EncodeOptions& options) {
  auto config = load_or_explain(options.job, options.overrides);
  if (!config) return kUsage;
  if (trains_agent(config->job))
    return complain({Errc::invalid_argument, "the job trains a policy for env.id: it has no features to encode"},
                    kUsage);
  if (config->job.data.features.cache.empty()) {
    return complain(
        {Errc::invalid_argument,
         "data.features.cache is empty; name the folder to fill: troupe encode JOB data.features.cache=DIR"},
        kUsage);
  }
  if (auto made = make_quickstart_data(*config); !made) return complain(made.error(), kFailed);
  use_product_form(config->job);
  const auto code = encode(options, config->job);
  return code ? *code : complain_of_data(code.error());
}

}  // namespace troupe::app
