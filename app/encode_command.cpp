// `troupe encode JOB`: what the frozen networks make of every window, computed once and kept in data.features.cache.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "actors/encoder_factory.h"
#include "app/commands.h"
#include "app/exit_code.h"
#include "app/interrupt_flag.h"
#include "app/job_setup.h"
#include "placement/format.h"
#include "workers/encoder/feature_cache.h"

namespace troupe::app {

namespace {

using Clock = std::chrono::steady_clock;

// Neighbouring windows go to one thread together and share decoded frames; their order does not matter here.
constexpr std::int64_t kChunk = 32;
constexpr std::int64_t kTextMemoryBytes = std::int64_t{64} << 20;
constexpr std::chrono::milliseconds kProgressOnTerminal{500}, kProgressInLog{10'000};

/// Windows that are filled by one kind of builder: the training windows of a dataset, each once, or those of
/// evaluation.
struct Part {
  std::shared_ptr<const Mixture> data;
  JobConfig job;
  Split split = Split::train;
  std::int64_t windows = 0;
};

std::vector<Part> parts_of(const JobConfig& job, const std::shared_ptr<const Mixture>& data, std::int64_t most) {
  std::vector<Part> parts;
  std::int64_t left = most == 0 ? std::numeric_limits<std::int64_t>::max() : most;
  const auto add = [&](Part part, std::uint64_t windows) {
    part.windows = std::min(left, static_cast<std::int64_t>(windows));
    left -= part.windows;
    if (part.windows > 0) parts.push_back(std::move(part));
  };
  for (std::size_t i = 0; i < data->datasets().size(); ++i) {
    Part part{.data = nullptr, .job = job, .split = Split::train, .windows = 0};
    part.job.data.sets = {job.data.sets[i]};
    part.job.data.locality_block = kChunk;  // the first epoch of a mixture of one draws each window once
    part.job.data.shuffle_buffer = 1;
    part.data = Mixture::of(data->datasets()[i], part.job.data);
    add(std::move(part), data->datasets()[i]->train().size());
  }
  add({.data = data, .job = job, .split = Split::eval, .windows = 0}, data->eval_size(job.eval.max_samples));
  return parts;
}

/// What came of the windows. Written by workers under `mutex`.
struct Totals {
  std::mutex mutex;
  std::condition_variable changed;
  std::int64_t windows = 0, text_there = 0, pictures_there = 0, all_there = 0, bad = 0;
  std::size_t working = 0;
  std::optional<Error> failure;
};

class Encoding {
 public:
  Encoding(std::vector<Part> parts, bool check, bool skip_bad, std::shared_ptr<FeatureCache> cache,
           FeatureModels models, const FrozenEncoders* weights)
      : parts_(std::move(parts)),
        check_(check),
        skip_bad_(skip_bad),
        cache_(std::move(cache)),
        models_(std::move(models)),
        weights_(weights) {
    for (const Part& part : parts_) total_ += part.windows;
  }

  std::int64_t windows() const { return total_; }
  const Totals& totals() const { return totals_; }

  /// Works through all windows, or until an error or an interrupt.
  void run() {
    const auto threads = static_cast<std::size_t>(
        std::clamp<std::int64_t>((total_ + kChunk - 1) / kChunk, 1, std::max(1u, std::thread::hardware_concurrency())));
    totals_.working = threads;
    start_ = Clock::now();
    std::vector<std::jthread> workers;
    for (std::size_t i = 0; i < threads; ++i) workers.emplace_back([this] { work(); });
    report();
  }
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  struct Chunk {
    std::size_t part = 0;
    std::int64_t begin = 0, end = 0;
  };
  /// The next windows nobody has, or nothing.
  std::optional<Chunk> next() {
    const std::lock_guard lock(next_mutex_);
    while (part_ < parts_.size() && position_ >= parts_[part_].windows) {
      ++part_;
      position_ = 0;
    }
    if (part_ >= parts_.size()) return std::nullopt;
    const Chunk chunk{part_, position_, std::min(position_ + kChunk, parts_[part_].windows)};
    position_ = chunk.end;
    return chunk;
  }

  Result<EncodedSampleBuilder> builder(const Part& part) const {
    std::unique_ptr<FeatureEncoder> encoder;
    if (weights_) {
      TROUPE_ASSIGN(encoder, weights_->encoder(0));
    }
    return encoded_sample_builder(
        part.data, part.job,
        std::make_unique<CachedEncoder>(part.job, std::move(encoder), models_, cache_, kTextMemoryBytes));
  }

  Result<void> work_through() {
    std::optional<EncodedSampleBuilder> builder;
    std::size_t built_for = parts_.size();
    while (const auto chunk = next()) {
      const Part& part = parts_[chunk->part];
      if (built_for != chunk->part) {
        TROUPE_ASSIGN(auto made, this->builder(part));
        builder.emplace(std::move(made));
        built_for = chunk->part;
      }
      for (std::int64_t position = chunk->begin; position < chunk->end; ++position) {
        if (stopped()) return {};
        const auto found = check_ ? builder->look(part.split, position) : builder->fill(part.split, position);
        if (builder->encoder().store_error()) return *builder->encoder().store_error();
        TROUPE_TRY(count(found));
      }
    }
    return {};
  }

  void work() {
    const auto done = work_through();
    const std::lock_guard lock(totals_.mutex);
    if (!done && !totals_.failure) totals_.failure = done.error();
    --totals_.working;
    totals_.changed.notify_all();
  }

  Result<void> count(const Result<EncodedSampleBuilder::Found>& found) {
    const std::lock_guard lock(totals_.mutex);
    ++totals_.windows;
    if (!found) {
      ++totals_.bad;
      if (!skip_bad_) return found.error();
      fmt::print(stderr, "left out: {}\n", found.error().message());
      return {};
    }
    totals_.text_there += found->text ? 1 : 0;
    totals_.pictures_there += found->pictures ? 1 : 0;
    totals_.all_there += found->all() ? 1 : 0;
    return {};
  }

  bool stopped() {
    if (interrupt_flag()) return true;
    const std::lock_guard lock(totals_.mutex);
    return totals_.failure.has_value();
  }

  /// A line now and then until all workers have ended.
  void report() {
    const bool terminal = ::isatty(STDERR_FILENO) != 0;
    const auto every = terminal ? kProgressOnTerminal : kProgressInLog;
    std::unique_lock lock(totals_.mutex);
    while (!totals_.changed.wait_for(lock, every, [&] { return totals_.working == 0; })) {
      const auto stats = cache_->stats();
      fmt::print(stderr, "{}{} {} of {} windows, {:.1f}/s, {} were there, {} written{}", terminal ? "\r" : "",
                 check_ ? "looked at" : "encoded", format_grouped(totals_.windows), format_grouped(total_),
                 static_cast<double>(totals_.windows) / seconds(), format_grouped(totals_.all_there),
                 format_bytes(stats.bytes_written), terminal ? "   " : "\n");
      std::fflush(stderr);
    }
    if (terminal) fmt::print(stderr, "\r\x1b[K");
  }

  const std::vector<Part> parts_;
  const bool check_, skip_bad_;
  const std::shared_ptr<FeatureCache> cache_;
  const FeatureModels models_;
  const FrozenEncoders* const weights_;
  std::int64_t total_ = 0;
  Clock::time_point start_{};
  Totals totals_;
  std::mutex next_mutex_;
  std::size_t part_ = 0;
  std::int64_t position_ = 0;
};

std::string share(std::int64_t there, std::int64_t all) {
  return fmt::format("{} of {} windows", format_grouped(there), format_grouped(all));
}

int summarise_check(const Encoding& encoding, const FeatureCache& cache, bool keeps_pictures) {
  const Totals& t = encoding.totals();
  const bool complete = t.all_there == encoding.windows();
  fmt::print("text      {}\n", share(t.text_there, encoding.windows()));
  if (keeps_pictures) fmt::print("pictures  {}\n", share(t.pictures_there, encoding.windows()));
  fmt::print("cache     {} entries, {} in {}\n{}\n", format_grouped(cache.stats().entries),
             format_bytes(cache.stats().bytes), cache.folder(),
             complete ? "COMPLETE" : "INCOMPLETE: `troupe encode` with the same words makes what is missing");
  return complete ? kOk : kUnhealthy;
}

int summarise(const Encoding& encoding, const FeatureCache& cache) {
  const Totals& t = encoding.totals();
  const auto stats = cache.stats();
  fmt::print("windows   {}: {} were there, {} encoded{}\n", share(t.windows, encoding.windows()),
             format_grouped(t.all_there), format_grouped(t.windows - t.all_there - t.bad),
             t.bad == 0 ? "" : fmt::format(", {} bad and left out", t.bad));
  fmt::print("written   {} entries, {}{}\n", format_grouped(stats.written), format_bytes(stats.bytes_written),
             stats.damaged == 0 ? "" : fmt::format("; {} damaged ones were made anew", stats.damaged));
  fmt::print("cache     {} entries, {} in {}\n", format_grouped(stats.entries), format_bytes(stats.bytes),
             cache.folder());
  fmt::print("time      {:.1f} s, {:.1f} windows/s\n", encoding.seconds(),
             static_cast<double>(t.windows) / std::max(1e-9, encoding.seconds()));
  if (t.windows == encoding.windows()) return kOk;
  fmt::print("INTERRUPTED: the same command goes on from here\n");
  return kInterrupted;
}

Result<int> encode(const EncodeOptions& options, const JobConfig& job) {
  TROUPE_ASSIGN(const auto data, open_mixture(job));
  TROUPE_ASSIGN(const auto cache, FeatureCache::open(job.data.features.cache));
  std::optional<FrozenEncoders> weights;
  FeatureModels models;
  if (options.check) {
    TROUPE_ASSIGN(models, feature_models(job));
  } else {
    TROUPE_ASSIGN(auto loaded, FrozenEncoders::load(job));
    models = loaded.models();
    weights.emplace(std::move(loaded));
    TROUPE_TRY(describe_models(*cache, job, models));
  }
  Encoding encoding(parts_of(job, data, options.max_samples), options.check, job.data.bad_sample == "skip", cache,
                    models, weights ? &*weights : nullptr);
  interrupt_flag();  // watched from here on
  encoding.run();
  TROUPE_TRY(cache->sync());
  if (encoding.totals().failure) return *encoding.totals().failure;
  if (options.check) return summarise_check(encoding, *cache, job.data.features.keep == "all");
  return summarise(encoding, *cache);
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
  if (options.job == "quickstart:sft") {
    if (auto made = ensure_quickstart_data(config->job); !made) return complain(made.error(), kFailed);
  }
  const auto code = encode(options, config->job);
  if (code) return *code;
  const bool usage = code.error().code() == Errc::invalid_argument || code.error().code() == Errc::not_found ||
                     code.error().code() == Errc::failed_precondition;
  return complain(code.error(), code.error().code() == Errc::data_loss ? kDataProblem : usage ? kUsage : kFailed);
}

}  // namespace troupe::app
