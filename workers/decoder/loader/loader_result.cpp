#include "workers/decoder/loader/loader_result.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "workers/decoder/loader/reencodings.h"

namespace troupe::workers {

namespace {

/// Below this share of stalled time a learner does not notice its loader.
constexpr double kUnnoticedStall = 0.01;

const char* advice_for(const std::string& stage) {
  if (stage == "read")
    return "storage is slower than the decoders: put the dataset on a local disk, or give it memory to stay in the "
           "page cache";
  if (stage == "decode")
    return "share frames among neighbouring samples (data.locality_block=8) or keep clips (data.decoder.clip_cache)";
  if (stage == "convert" || stage == "transform")
    return "make the frames smaller (data.image.height, data.image.width)";
  if (stage == "table")
    return "read fewer rows per sample: convert to v3.0 with one row group an episode (troupe convert dataset --to "
           "v3.0)";
  if (stage == "text") return "prompts are tokenised for every sample; shorten model.text_encoder.max_length";
  if (stage == "send")
    return "the checksum of a slot reads it once more: smaller frames (data.image) are the only remedy";
  return "one thread puts batches together: smaller frames (data.image) or fewer samples a batch "
         "(training.micro_batch_size)";
}

/// What the trials say, in front of the advice that holds whatever the videos are.
std::string with_trials(const Reencodings& tried, const LoaderResult& result, const std::string& advice) {
  const CodedForm& now = tried.now;
  if (tried.best < 0) {
    return fmt::format("coding the videos anew would bring less than a fifth (the lines `tried` above); {}", advice);
  }
  const auto& best = tried.trials[static_cast<std::size_t>(tried.best)];
  return fmt::format(
      "code the videos anew, about {:.1f} samples/s instead of {:.1f}, since a frame then costs {:.2f} "
      "ms instead of {:.2f}: {} (look at the result: {}{} is not lossless); or {}",
      best.samples_per_second, result.rate(), 1000 * best.form.seconds_per_frame, 1000 * now.seconds_per_frame,
      best.command, best.form.codec,
      best.form.width < now.width ? fmt::format(" at {}x{}", best.form.width, best.form.height) : "", advice);
}

}  // namespace

bool depends_on_videos(const std::string& stage) {
  return stage == "decode" || stage == "convert" || stage == "transform";
}

double LoaderResult::capacity() const {
  double busy = 0;
  for (const auto& [name, time] : stage_list()) busy += name == "collate" ? 0 : time;
  return busy > 0 ? static_cast<double>(build_seconds.size()) / busy * static_cast<double>(decoders) : 0;
}

double LoaderResult::build_quantile(double q) const {
  if (build_seconds.empty()) return 0;
  std::vector<double> sorted = build_seconds;
  const auto place = static_cast<std::size_t>(std::ceil(q * static_cast<double>(sorted.size())));
  const std::size_t index = std::min(place == 0 ? 0 : place - 1, sorted.size() - 1);
  std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(index), sorted.end());
  return sorted[index];
}

std::vector<std::pair<std::string, double>> LoaderResult::stage_list() const {
  return {{"read", stages.read},       {"decode", stages.decode},
          {"convert", stages.convert}, {"transform", stages.transform},
          {"table", stages.table},     {"text", stages.text},
          {"other", build_other},      {"send", send},
          {"collate", stages.collate}};
}

Bottleneck find_bottleneck(const LoaderResult& result, std::int64_t cores, const Reencodings* tried) {
  if (result.consume_rate > 0 && result.stall_share() < kUnnoticedStall) {
    return {"consumer",
            fmt::format("nothing to change: {:.1f} samples/s are taken, the decoders could make about {:.1f}",
                        result.consume_rate, result.capacity())};
  }
  std::string largest = "decode";
  double most = -1, decoder_busy = 0;
  for (const auto& [name, time] : result.stage_list()) {
    // a decoder's stage is shared by all decoders, collation by nobody
    const double share = name == "collate" ? time * static_cast<double>(result.decoders) : time;
    if (name != "collate") decoder_busy += time;
    if (share > most && name != "other") {
      most = share;
      largest = name;
    }
  }
  std::string advice = advice_for(largest);
  if (tried != nullptr && depends_on_videos(largest)) advice = with_trials(*tried, result, advice);
  const bool decoders_busy = decoder_busy > 2 * result.decoder_wait;
  if (largest != "collate" && largest != "read" && decoders_busy && result.decoders < cores) {
    advice = fmt::format(
        "add decoders first ({} run on {} cores: --decoders {}, or cluster.component_placement.decoder in a job); then "
        "{}",
        result.decoders, cores, cores, advice);
  }
  return {largest, advice};
}

}  // namespace troupe::workers
