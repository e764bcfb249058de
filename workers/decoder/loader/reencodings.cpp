#include "workers/decoder/loader/reencodings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>

#include "base/stopwatch.h"
#include "base/temporary_folder.h"
#include "data/convert/recode_clip.h"
#include "data/sampling/window.h"
#include "data/video/clip_decoder.h"
#include "data/video/packet_table.h"
#include "data/video/video_file.h"
#include "image/augmentation.h"
#include "image/image_chain.h"

namespace troupe::workers {

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t kMostPixels = 48'000'000;  // of the frames that are coded anew: about a second a trial
constexpr std::int64_t kWindows = 4, kApart = 3;  // of a group of 12 frames they meet each quarter, odd and even
constexpr std::int64_t kReach = (kWindows - 1) * kApart + 1;
constexpr int kRounds = 3;
constexpr double kWorthwhile = 1.2, kSmaller = 0.9;
constexpr double kAlike = 1.05;  // two times that differ by less than this are the same

/// What is read of every form: the window of one sample, moved by some frames.
struct Reading {
  std::vector<std::int64_t> offsets;
  std::int64_t frames = 0;  ///< of the file that take part
};

Reading reading_of(const Dataset& dataset, std::int64_t width, std::int64_t height, std::int64_t shown) {
  const SampleEntry entry = dataset.train().at(0);
  const Episode& episode = dataset.episodes()[entry.episode];
  Reading out;
  out.offsets = sample_window(dataset.spec(), episode.row_labels(), entry.anchor).video;
  for (const std::int64_t first = out.offsets.front(); std::int64_t & row : out.offsets) row -= first;
  const std::int64_t most = std::min(shown, std::max<std::int64_t>(kReach + 1, kMostPixels / (width * height)));
  std::erase_if(out.offsets, [&](std::int64_t row) { return row + kReach > most; });
  if (out.offsets.empty()) out.offsets.push_back(0);
  out.frames = std::min(most, out.offsets.back() + kReach);
  return out;
}

/// Reads the windows once and adds what it took.
Result<void> read_once(data::ClipDecoder& decoder, const std::string& path, const Reading& reading,
                       const JobConfig& job, ImageChain& chain, double& seconds) {
  std::vector<std::uint8_t> canvas(static_cast<std::size_t>(chain.canvas_bytes()));
  const auto start = Clock::now();
  for (std::int64_t first = 0; first < std::min(kReach, reading.frames - reading.offsets.back()); first += kApart) {
    std::vector<std::int64_t> wanted = reading.offsets;
    for (std::int64_t& frame : wanted) frame += first;
    const auto place = [&](std::size_t, const Yuv420View& frame) {
      return chain.run_view(0, frame, draw_augmentation(0, 0, job.data.image, frame.height, frame.width), canvas);
    };
    TROUPE_TRY(decoder.read_yuv(path, wanted, place, Clock::now() + std::chrono::seconds(60)));
  }
  seconds = seconds_since(start);
  return {};
}

/// Bytes of the first frames, in presentation order, and their key distance.
Result<void> describe(const std::string& path, std::int64_t frames, CodedForm& form) {
  TROUPE_ASSIGN(const auto table, read_packet_table(path, false, Clock::now() + std::chrono::seconds(60)));
  const VideoInfo info = describe_video(*table);
  form.codec = info.codec;
  form.width = info.width;
  form.height = info.height;
  form.frames = frames;
  double keys = 0;
  for (const VideoSample& sample : table->samples) {
    keys += sample.key ? 1 : 0;
    if (sample.rank < frames) form.bytes += sample.size;
  }
  form.key_distance = static_cast<double>(table->samples.size()) / std::max(1.0, keys);
  return {};
}

/// Pixels, even, of which the job's crop has at least the size that it is resized to.
std::int64_t needed(std::int64_t side, double scale) {
  return std::min(side, 2 * static_cast<std::int64_t>(std::ceil(scale * static_cast<double>(side) / 2)));
}

/// The forms are read in turn, so that a change of the machine's pace meets all of them; the fastest round counts.
Result<void> measure(const std::vector<std::string>& files, const std::vector<CodedForm*>& forms,
                     const Reading& reading, const JobConfig& job, const std::string& layout, std::int64_t views,
                     const std::function<bool()>& stopped) {
  TROUPE_ASSIGN(ImageChain chain, ImageChain::make(job.data.image, layout, views));
  for (int round = 0; round < kRounds; ++round) {
    for (std::size_t i = 0; i < files.size(); ++i) {
      if (stopped && stopped()) return Error{Errc::unavailable, "stopped"};
      data::ClipDecoder decoder({.shared_frame_bytes = 0, .backend = job.data.decoder.backend});
      double seconds = 0;
      TROUPE_TRY(read_once(decoder, files[i], reading, job, chain, seconds));
      const auto& counters = decoder.counters();
      const double each = seconds / static_cast<double>(counters.frames_delivered);
      CodedForm& form = *forms[i];
      form.seconds_per_frame = round == 0 ? each : std::min(form.seconds_per_frame, each);
      form.decoded_per_delivered =
          static_cast<double>(counters.samples_fed) / static_cast<double>(counters.frames_delivered);
    }
  }
  return {};
}

std::string in_shell(const std::string& path) {
  const bool plain =
      path.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./") == std::string::npos;
  if (plain) return path;
  std::string out = "'";
  for (const char c : path) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string command_for(const Dataset& dataset, const ConvertEncoding& encoding, const CodedForm& form) {
  std::string out = dataset.root();
  while (out.size() > 1 && out.back() == '/') out.pop_back();
  out += fmt::format("-{}-{}x{}-gop{}", form.codec, form.width, form.height, encoding.gop);
  const std::string scale =
      encoding.width > 0 ? fmt::format(" --scale {}x{}", encoding.width, encoding.height) : std::string();
  return fmt::format("troupe convert dataset {} --out {} --to {} --codec {} --gop {}{}", in_shell(dataset.root()),
                     in_shell(out), dataset.info().is_v3() ? "v3.0" : "v2.1", encoding.codec, encoding.gop, scale);
}

/// samples/s, were the frames' part of every decoder's work as much smaller as it was in the trial.
double rate_with(const LoaderResult& measured, double ratio) {
  double busy = 0;
  for (const auto& [name, seconds] : measured.stage_list()) busy += name == "collate" ? 0 : seconds;
  const auto& s = measured.stages;
  const double frames = s.read + s.decode + s.convert + s.transform;
  return busy > 0 ? measured.rate() * busy / (busy - frames + frames * ratio) : 0;
}

/// The fastest; among those that are as fast, the one with fewer coded bytes.
std::int64_t best_of(const Reencodings& all) {
  std::int64_t best = -1;
  double least = all.now.seconds_per_frame;
  for (const auto& trial : all.trials) least = std::min(least, trial.form.seconds_per_frame);
  for (std::size_t i = 0; i < all.trials.size(); ++i) {
    const CodedForm& form = all.trials[i].form;
    if (form.seconds_per_frame > kAlike * least) continue;
    if (best < 0 || form.bytes < all.trials[static_cast<std::size_t>(best)].form.bytes)
      best = static_cast<std::int64_t>(i);
  }
  return best;
}

}  // namespace

Result<Reencodings> try_reencodings(const Mixture& mixture, const JobConfig& job, const LoaderResult& measured,
                                    const std::function<bool()>& stopped) {
  const Dataset& dataset = *mixture.datasets().front();
  if (dataset.train().size() == 0) return Error{Errc::failed_precondition, "there is no window to try"};
  TROUPE_ASSIGN(const ImageSource source, dataset.images(dataset.train().at(0).episode, 0));
  if (!source.is_video()) return Error{Errc::failed_precondition, "the frames are images, not videos"};
  Reencodings out;
  out.file = source.path;
  TROUPE_ASSIGN(const VideoInfo info, probe_video(source.path));
  const Reading reading = reading_of(dataset, info.width, info.height, info.frames);
  out.frames = reading.frames;
  TROUPE_TRY(describe(source.path, reading.frames, out.now));

  const ImageConfig& image = job.data.image;
  const double scale = std::max(static_cast<double>(image.height) / (image.crop * static_cast<double>(info.height)),
                                static_cast<double>(image.width) / (image.crop * static_cast<double>(info.width)));
  out.needed_width = needed(info.width, scale);
  out.needed_height = needed(info.height, scale);

  TROUPE_ASSIGN(const auto folder, TemporaryFolder::make("troupe-bench"));
  std::vector<ConvertEncoding> encodings;
  for (const bool smaller : {true, false}) {
    if (smaller && scale > kSmaller) continue;
    for (const std::int64_t gop : {12, 2}) {
      ConvertEncoding encoding{.gop = gop};
      if (smaller) encoding.width = out.needed_width, encoding.height = out.needed_height;
      encodings.push_back(encoding);
    }
  }
  out.trials.resize(encodings.size());
  std::vector<std::string> files{source.path};
  std::vector<CodedForm*> forms{&out.now};
  for (std::size_t i = 0; i < encodings.size(); ++i) {
    if (stopped && stopped()) return Error{Errc::unavailable, "stopped"};
    files.push_back(fmt::format("{}/{}.mp4", folder.path(), i));
    forms.push_back(&out.trials[i].form);
    TROUPE_TRY(recode_clip(source.path, reading.frames, encodings[i], files.back()));
    TROUPE_TRY(describe(files.back(), reading.frames, out.trials[i].form));
    out.trials[i].form.key_distance = static_cast<double>(encodings[i].gop);
    out.trials[i].command = command_for(dataset, encodings[i], out.trials[i].form);
  }
  const auto& views = dataset.columns().views;
  TROUPE_TRY(measure(files, forms, reading, job, dataset.spec().embodiment.layout,
                     static_cast<std::int64_t>(views.size()), stopped));
  for (auto& trial : out.trials)
    trial.samples_per_second =
        rate_with(measured, trial.form.seconds_per_frame / std::max(1e-9, out.now.seconds_per_frame));
  const std::int64_t best = best_of(out);
  if (best >= 0 && out.trials[static_cast<std::size_t>(best)].samples_per_second >= kWorthwhile * measured.rate())
    out.best = best;
  return out;
}

}  // namespace troupe::workers
