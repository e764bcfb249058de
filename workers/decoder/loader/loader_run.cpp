#include "workers/decoder/loader/loader_run.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <fstream>
#include <mutex>

#include "base/stopwatch.h"
#include "comm/channel/channel.h"
#include "workers/stream/feed.h"
#include "workers/stream/producer_loop.h"

namespace troupe::workers {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kCreditsPerDecoder = 2;  // as in a job: one in work, one waiting
constexpr std::chrono::milliseconds kPoll{100};  // how often a wait looks whether the user stopped the run

double process_cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

std::int64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::int64_t total = 0, resident = 0;
  statm >> total >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

std::int64_t peak_resident_bytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * 1024;
}

/// One decoder: a thread that makes the samples it gets credits for, and what it measured.
class Decoder {
 public:
  Decoder(SampleBuilder builder, ProducerLoop::Options options, ConsumerDial dial)
      : builder_(std::move(builder)),
        loop_(std::move(options), std::move(dial),
              {.serve = [this](const auto& producer, const Credit& credit) { return serve(*producer, credit); }}) {}

  void stop() { loop_.stop(); }
  /// After stop().
  void add_to(LoaderResult& result) const {
    const StageTimes stages = builder_.stage_times();
    double build = 0;
    for (const double t : built_) build += t;
    result.stages += stages;
    result.build_other += std::max(
        0.0, build - (stages.read + stages.decode + stages.convert + stages.transform + stages.table + stages.text));
    result.send += send_;
    result.decoder_wait += loop_.stats().wait_seconds;
    result.build_seconds.insert(result.build_seconds.end(), built_.begin(), built_.end());
  }

 private:
  Result<void> serve(ChannelProducer& producer, const Credit& credit) {
    const auto slot = producer.slot(credit).first(static_cast<std::size_t>(builder_.layout().bytes));
    const SampleKey key = SampleKey::of(credit.tag);
    const auto start = Clock::now();
    const auto built = builder_.build(key.split, key.position, slot);
    built_.push_back(seconds_since(start));
    const auto sending = Clock::now();
    auto sent = producer.send(
        make_item(credit, slot, built ? Result<std::size_t>(slot.size()) : Result<std::size_t>(built.error())));
    send_ += seconds_since(sending);
    return sent;
  }

  SampleBuilder builder_;
  std::vector<double> built_;
  double send_ = 0;
  ProducerLoop loop_;  // last: it starts when everything else is there
};

/// Samples of a batch, one contiguous buffer a field, as the learner's collation lays them out.
class BatchBuffers {
 public:
  BatchBuffers(const SampleLayout& layout, std::int64_t batch) : layout_(layout) {
    for (const TensorField& field : layout.fields) buffers_.emplace_back(static_cast<std::size_t>(batch * field.bytes));
  }
  void fill(const std::vector<Feed::Sample>& samples) {
    for (std::size_t f = 0; f < layout_.fields.size(); ++f) {
      const TensorField& field = layout_.fields[f];
      const auto bytes = static_cast<std::size_t>(field.bytes);
      for (std::size_t b = 0; b < samples.size(); ++b) {
        std::byte* out = buffers_[f].data() + b * bytes;
        if (samples[b].void_reason.empty())
          std::memcpy(out, samples[b].bytes.data() + field.offset, bytes);
        else
          std::memset(out, 0, bytes);
      }
    }
  }

 private:
  SampleLayout layout_;
  std::vector<std::vector<std::byte>> buffers_;
};

/// Stands in for the learner: takes batches in order, at a pace of its own.
class Consumer {
 public:
  Consumer(Feed& feed, const SampleLayout& layout, const JobConfig& job, const LoaderOptions& options,
           Clock::time_point start)
      : feed_(feed),
        options_(options),
        fail_on_bad_(job.data.bad_sample == "fail"),
        start_(start),
        batch_(layout, options.micro_batch) {}

  Result<void> run(std::int64_t steps, LoaderResult& result) {
    for (std::int64_t step = 0; step < steps; ++step) {
      const auto asked = Clock::now();
      TROUPE_ASSIGN(const auto samples, take(step));
      if (!samples) {
        result.stopped = true;
        break;
      }
      if (step > 0) result.stall_seconds += seconds_since(asked);
      const auto taken = Clock::now();
      TROUPE_TRY(count(*samples, result));
      batch_.fill(*samples);
      result.stages.collate += seconds_since(taken);
      if (step == 0) {
        result.first_batch_seconds = seconds_since(start_);
        result.resident_first = resident_bytes();
        first_batch_ = Clock::now();
      }
      if (!pace(taken)) {
        result.stopped = true;
        break;
      }
      feed_.release(step);
    }
    result.seconds = seconds_since(start_);
    if (result.samples > 0) result.consume_seconds = seconds_since(first_batch_);
    return {};
  }

 private:
  /// Nothing when the user stopped the run.
  Result<std::optional<std::vector<Feed::Sample>>> take(std::int64_t step) {
    const auto deadline = Clock::now() + options_.batch_deadline;
    while (true) {
      auto samples = feed_.take(step, 0, kPoll);
      if (samples) return std::optional(std::move(*samples));
      if (options_.stopped && options_.stopped()) return std::optional<std::vector<Feed::Sample>>();
      if (samples.error().code() != Errc::deadline_exceeded || Clock::now() >= deadline) return samples.error();
    }
  }

  Result<void> count(const std::vector<Feed::Sample>& samples, LoaderResult& result) const {
    for (const Feed::Sample& sample : samples) {
      ++result.samples;
      if (sample.void_reason.empty()) continue;
      if (fail_on_bad_) return Error{Errc::data_loss, sample.void_reason};
      if (result.bad_samples++ == 0) result.first_bad = sample.void_reason;
    }
    return {};
  }

  /// Holds the batch as long as a step takes at the asked rate. False when the user stopped the run.
  bool pace(Clock::time_point taken) {
    if (options_.consume_rate <= 0) return !(options_.stopped && options_.stopped());
    const auto due = taken + std::chrono::duration_cast<Clock::duration>(
                                 Seconds(static_cast<double>(options_.micro_batch) / options_.consume_rate));
    std::unique_lock lock(mutex_);
    while (Clock::now() < due) {
      if (options_.stopped && options_.stopped()) return false;
      never_.wait_until(lock, std::min(due, Clock::now() + kPoll));
    }
    return true;
  }

  Feed& feed_;
  const LoaderOptions& options_;
  const bool fail_on_bad_;
  const Clock::time_point start_;
  Clock::time_point first_batch_ = start_;
  BatchBuffers batch_;
  std::mutex mutex_;
  std::condition_variable never_;  // only its time-out is used
};

}  // namespace

Result<LoaderResult> run_loader(const std::shared_ptr<const Mixture>& mixture, const JobConfig& job,
                                const Tokenize& tokenize, const LoaderOptions& options) {
  static std::atomic<std::int64_t> runs{0};  // inproc consumers have names
  const auto start = Clock::now();
  const double cpu_start = process_cpu_seconds();
  const std::int64_t steps = (options.samples + options.micro_batch - 1) / options.micro_batch;
  std::vector<SampleBuilder> builders;
  for (std::int64_t i = 0; i < options.decoders; ++i) {
    TROUPE_ASSIGN(SampleBuilder builder, SampleBuilder::make(mixture, job, tokenize));
    builders.push_back(std::move(builder));
  }
  const SampleLayout layout = builders.front().layout();

  Feed feed({.order = {.global_batch = options.micro_batch, .micro_batch = options.micro_batch},
             .total_steps = steps,
             .item_deadline = options.batch_deadline},
            [](const std::string&, std::int64_t) {});
  TROUPE_ASSIGN(const auto consumer,
                open_consumer(nullptr,
                              {.name = fmt::format("loader/{}", runs++),
                               .slots = static_cast<std::uint32_t>(options.micro_batch * (1 + options.prefetch)),
                               .slot_bytes = static_cast<std::size_t>(layout.bytes)},
                              feed.callbacks()));
  feed.set_consumer(consumer.get());
  feed.start(1, 0, 0);
  std::vector<std::unique_ptr<Decoder>> decoders;
  for (std::size_t i = 0; i < builders.size(); ++i) {
    const ProducerLoop::Options names{
        .producer = fmt::format("decoder/{}", i), .consumer = "the loader", .address = consumer->address()};
    decoders.push_back(std::make_unique<Decoder>(
        std::move(builders[i]), names, [deadline = options.batch_deadline](const auto& address, const auto& producer) {
          return open_producer(nullptr, address, producer, kCreditsPerDecoder, deadline);
        }));
  }

  LoaderResult result{.decoders = options.decoders,
                      .micro_batch = options.micro_batch,
                      .prefetch = options.prefetch,
                      .consume_rate = options.consume_rate,
                      .sample_bytes = layout.bytes};
  const auto consumed = Consumer(feed, layout, job, options, start).run(steps, result);
  result.cpu_seconds = process_cpu_seconds() - cpu_start;
  result.resident_last = resident_bytes();
  result.resident_peak = peak_resident_bytes();
  for (const auto& decoder : decoders) decoder->stop();
  if (!consumed) return consumed.error();
  for (const auto& decoder : decoders) decoder->add_to(result);
  return result;
}

}  // namespace troupe::workers
