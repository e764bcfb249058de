#include "workers/decoder/loader/loader_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace troupe::workers {

namespace {

constexpr double kMebibyte = 1024.0 * 1024.0;

double over(double a, double b) { return b > 0 ? a / b : 0; }

double per_sample_ms(double seconds, const LoaderResult& r) {
  return 1000 * over(seconds, static_cast<double>(r.build_seconds.size()));
}

double hit_rate(const StageTimes& s) {
  return over(static_cast<double>(s.cache_hits), static_cast<double>(s.cache_hits + s.cache_misses));
}

std::string form_text(const CodedForm& f) {
  return fmt::format(
      "{} {}x{}, a key frame every {:.4g}: {:.2f} decoded for each frame, {:.2f} ms and {:.1f} KiB a frame", f.codec,
      f.width, f.height, f.key_distance, f.decoded_per_delivered, 1000 * f.seconds_per_frame, f.kibibytes_per_frame());
}

nlohmann::ordered_json form_json(const CodedForm& f) {
  return {{"codec", f.codec},
          {"width", f.width},
          {"height", f.height},
          {"key_distance", f.key_distance},
          {"decoded_per_delivered", f.decoded_per_delivered},
          {"ms_per_frame", 1000 * f.seconds_per_frame},
          {"kibibytes_per_frame", f.kibibytes_per_frame()}};
}

nlohmann::ordered_json reencodings_json(const Reencodings& r) {
  nlohmann::ordered_json trials = nlohmann::ordered_json::array();
  for (const auto& trial : r.trials) {
    trials.push_back(form_json(trial.form));
    trials.back()["samples_per_second"] = trial.samples_per_second;
    trials.back()["command"] = trial.command;
  }
  return {{"file", r.file},
          {"frames", r.frames},
          {"needed", {{"width", r.needed_width}, {"height", r.needed_height}}},
          {"now", form_json(r.now)},
          {"trials", trials},
          {"best", r.best}};
}

const Reencodings* tried_in(const LoaderContext& context) {
  return context.reencodings ? &*context.reencodings : nullptr;
}

}  // namespace

std::string loader_text(const LoaderResult& r, const LoaderContext& context) {
  const auto& s = r.stages;
  const double decoded_for_each = over(static_cast<double>(s.frames_decoded), static_cast<double>(s.frames_delivered));
  std::string out;
  const auto line = [&](const char* name, const std::string& text) { out += fmt::format("{:<22}{}\n", name, text); };
  line("dataset", fmt::format("{} episodes, {} windows, opened in {:.2f} s", context.episodes, context.windows,
                              context.open_seconds));
  line("samples",
       fmt::format("{} in {:.2f} s by {} decoders{}", r.samples, r.seconds, r.decoders, r.stopped ? " (stopped)" : ""));
  if (r.bad_samples > 0) line("bad samples", fmt::format("{}, the first: {}", r.bad_samples, r.first_bad));
  line("samples/s", fmt::format("{:.2f}  ({:.2f} per CPU-second, {:.2f} of {} cores)", r.rate(),
                                over(static_cast<double>(r.samples), r.cpu_seconds), r.cores(), context.cores));
  line("first batch", fmt::format("{:.3f} s after opening, of {} samples", r.first_batch_seconds, r.micro_batch));
  line("latency of a sample",
       fmt::format("p50 {:.1f} ms, p99 {:.1f} ms", 1000 * r.build_quantile(0.5), 1000 * r.build_quantile(0.99)));
  std::string stages;
  for (const auto& [name, time] : r.stage_list()) {
    if (name == "convert" && time == 0) continue;  // a part of transform
    stages += fmt::format("{}{} {:.2f}", stages.empty() ? "" : ", ", name, per_sample_ms(time, r));
  }
  line("ms per sample", stages);
  line("ms waiting", fmt::format("decoders {:.2f} a sample for a free slot", per_sample_ms(r.decoder_wait, r)));
  line("frames", fmt::format("{} delivered, {:.2f} decoded for each", s.frames_delivered, decoded_for_each));
  line("read",
       fmt::format("{:.2f} MiB/s, {:.2f} MiB a sample", over(static_cast<double>(s.bytes_read), r.seconds) / kMebibyte,
                   over(static_cast<double>(s.bytes_read), static_cast<double>(r.build_seconds.size())) / kMebibyte));
  line("made",
       fmt::format("{:.1f} MiB/s, {:.2f} MiB a sample", r.rate() * static_cast<double>(r.sample_bytes) / kMebibyte,
                   static_cast<double>(r.sample_bytes) / kMebibyte));
  if (s.cache_hits + s.cache_misses > 0) {
    line("clips from a cache", fmt::format("{:.1f}% of {}", 100 * hit_rate(s), s.cache_hits + s.cache_misses));
  }
  if (r.consume_rate > 0) {
    line("consumer",
         fmt::format("takes {:.2f} samples/s, stalled {:.2f}% of its time", r.consume_rate, 100 * r.stall_share()));
  }
  line("memory",
       fmt::format("{:.0f} MiB resident at the first batch, {:.0f} at the end, {:.0f} at most",
                   static_cast<double>(r.resident_first) / kMebibyte, static_cast<double>(r.resident_last) / kMebibyte,
                   static_cast<double>(r.resident_peak) / kMebibyte));
  if (const Reencodings* tried = tried_in(context)) {
    line("videos", fmt::format("{}; the job needs {}x{} ({} frames of {})", form_text(tried->now), tried->needed_width,
                               tried->needed_height, tried->frames, tried->file));
    for (const auto& trial : tried->trials)
      line("tried", fmt::format("{}: about {:.1f} samples/s", form_text(trial.form), trial.samples_per_second));
  }
  if (!context.not_tried.empty()) line("not tried", "coding the videos anew: " + context.not_tried);
  const Bottleneck bottleneck = find_bottleneck(r, context.cores, tried_in(context));
  line("bottleneck", fmt::format("{}: {}", bottleneck.stage, bottleneck.advice));
  return out;
}

std::string loader_json(const LoaderResult& r, const LoaderContext& context) {
  const Bottleneck bottleneck = find_bottleneck(r, context.cores, tried_in(context));
  nlohmann::ordered_json stages;
  for (const auto& [name, time] : r.stage_list()) stages[name] = per_sample_ms(time, r);
  stages["wait"] = per_sample_ms(r.decoder_wait, r);
  const Reencodings* tried = tried_in(context);
  const nlohmann::ordered_json out = {
      {"source", context.source},
      {"episodes", context.episodes},
      {"windows", context.windows},
      {"open_seconds", context.open_seconds},
      {"decoders", r.decoders},
      {"micro_batch", r.micro_batch},
      {"prefetch_batches", r.prefetch},
      {"samples", r.samples},
      {"bad_samples", r.bad_samples},
      {"first_bad", r.first_bad},
      {"stopped", r.stopped},
      {"seconds", r.seconds},
      {"samples_per_second", r.rate()},
      {"samples_per_cpu_second", over(static_cast<double>(r.samples), r.cpu_seconds)},
      {"cpu_seconds", r.cpu_seconds},
      {"cores_used", r.cores()},
      {"cores", context.cores},
      {"first_batch_seconds", r.first_batch_seconds},
      {"latency_ms", {{"p50", 1000 * r.build_quantile(0.5)}, {"p99", 1000 * r.build_quantile(0.99)}}},
      {"stage_ms_per_sample", stages},
      {"pictures_decoded", r.stages.frames_decoded},
      {"pictures_delivered", r.stages.frames_delivered},
      {"pictures_decoded_per_delivered",
       over(static_cast<double>(r.stages.frames_decoded), static_cast<double>(r.stages.frames_delivered))},
      {"bytes_read", r.stages.bytes_read},
      {"read_bytes_per_second", over(static_cast<double>(r.stages.bytes_read), r.seconds)},
      {"sample_bytes", r.sample_bytes},
      {"made_bytes_per_second", r.rate() * static_cast<double>(r.sample_bytes)},
      {"cache_hits", r.stages.cache_hits},
      {"cache_misses", r.stages.cache_misses},
      {"cache_hit_rate", hit_rate(r.stages)},
      {"consume_rate", r.consume_rate},
      {"capacity_samples_per_second", r.capacity()},
      {"stall_seconds", r.stall_seconds},
      {"stall_percent", 100 * r.stall_share()},
      {"resident_bytes", {{"first_batch", r.resident_first}, {"last", r.resident_last}, {"peak", r.resident_peak}}},
      {"reencodings", tried == nullptr ? nlohmann::ordered_json() : reencodings_json(*tried)},
      {"bottleneck", {{"stage", bottleneck.stage}, {"advice", bottleneck.advice}}}};
  return out.dump() + "\n";
}

}  // namespace troupe::workers
