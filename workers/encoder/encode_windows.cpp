#include "workers/encoder/encode_windows.h"

#include <algorithm>
#include <condition_variable>
#include <limits>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/stopwatch.h"
#include "workers/encoder/encoded_sample_builder.h"

namespace troupe::workers {

namespace {

using Clock = std::chrono::steady_clock;

// Neighbouring windows go to one thread together and share decoded frames; their order does not matter here.
constexpr std::int64_t kChunk = 32;
constexpr std::int64_t kTextMemoryBytes = std::int64_t{64} << 20;

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

/// The work of all parts, in chunks for as many threads as there are cores.
class WindowQueue {
 public:
  WindowQueue(std::vector<Part> parts, bool skip_bad, std::shared_ptr<FeatureCache> cache, FeatureModels models,
              const FrozenEncoders* weights, const EncodeWindowsOptions& options)
      : parts_(std::move(parts)),
        skip_bad_(skip_bad),
        cache_(std::move(cache)),
        models_(std::move(models)),
        weights_(weights),
        options_(options) {
    for (const Part& part : parts_) counts_.total += part.windows;
  }

  /// Works through all windows, or until an error or `stopped`.
  Result<WindowCounts> run() {
    working_ = static_cast<std::size_t>(std::clamp<std::int64_t>((counts_.total + kChunk - 1) / kChunk, 1,
                                                                 std::max(1u, std::thread::hardware_concurrency())));
    const Clock::time_point start = Clock::now();
    const auto counts = [&] {
      counts_.seconds = seconds_since(start);
      return counts_;
    };
    std::vector<std::jthread> workers;
    for (std::size_t i = working_; i > 0; --i) workers.emplace_back([this] { work(); });
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, options_.progress_every, [&] { return working_ == 0; }))
      options_.progress(counts());
    lock.unlock();
    TROUPE_TRY(cache_->sync());  // counts as time
    if (failure_) return *failure_;
    return counts();
  }

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
        const auto found = options_.check ? builder->look(part.split, position) : builder->fill(part.split, position);
        if (builder->encoder().store_error()) return *builder->encoder().store_error();
        TROUPE_TRY(count(found));
      }
    }
    return {};
  }

  void work() {
    const auto done = work_through();
    const std::lock_guard lock(mutex_);
    if (!done && !failure_) failure_ = done.error();
    --working_;
    changed_.notify_all();
  }

  Result<void> count(const Result<EncodedSampleBuilder::Found>& found) {
    const std::lock_guard lock(mutex_);
    ++counts_.windows;
    if (!found) {
      ++counts_.bad;
      if (!skip_bad_) return found.error();
      options_.left_out(found.error());
      return {};
    }
    counts_.text_there += found->text ? 1 : 0;
    counts_.images_there += found->images ? 1 : 0;
    counts_.all_there += found->all() ? 1 : 0;
    return {};
  }

  bool stopped() {
    if (options_.stopped()) return true;
    const std::lock_guard lock(mutex_);
    return failure_.has_value();
  }

  const std::vector<Part> parts_;
  const bool skip_bad_;
  const std::shared_ptr<FeatureCache> cache_;
  const FeatureModels models_;
  const FrozenEncoders* const weights_;
  const EncodeWindowsOptions& options_;
  std::mutex mutex_;
  std::condition_variable changed_;
  WindowCounts counts_;
  std::size_t working_ = 0;
  std::optional<Error> failure_;
  std::mutex next_mutex_;
  std::size_t part_ = 0;
  std::int64_t position_ = 0;
};

}  // namespace

Result<WindowCounts> encode_windows(const JobConfig& job, const std::shared_ptr<const Mixture>& data,
                                    const std::shared_ptr<FeatureCache>& cache, const EncodeWindowsOptions& options) {
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
  WindowQueue queue(parts_of(job, data, options.max_samples), job.data.bad_sample == "skip", cache, std::move(models),
                    weights ? &*weights : nullptr, options);
  return queue.run();
}

}  // namespace troupe::workers
