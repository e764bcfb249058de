// `troupe convert dataset`: LeRobot datasets from one version to another (docs/dataset-convert.md).
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "app/command_progress.h"
#include "app/commands.h"
#include "app/confined.h"
#include "app/exit_code.h"
#include "base/file_io.h"
#include "base/number_ranges.h"
#include "configs/loader.h"
#include "data/convert/convert_dataset.h"
#include "data/dataset.h"
#include "data/lerobot/dataset_location.h"
#include "workers/decoder/loader/dataset_job.h"

namespace troupe::app {
namespace {

template <class T>
Result<T> choice(const char* option, const std::string& text, const std::vector<std::pair<const char*, T>>& choices) {
  std::string names;
  for (const auto& [name, value] : choices) {
    if (text == name) return value;
    names += (names.empty() ? "" : ", ") + std::string(name);
  }
  return Error{Errc::invalid_argument, fmt::format("{} {}; wanted one of {}", option, text, names)};
}

Result<std::int64_t> row_group_of(const std::string& text) {
  if (text == "episode") return std::int64_t{0};
  char* end = nullptr;
  const long long rows = std::strtoll(text.c_str(), &end, 10);
  if (end != text.c_str() && *end == 0 && rows > 0) return static_cast<std::int64_t>(rows);
  return Error{Errc::invalid_argument, fmt::format("--row_group {}; wanted episode, or rows per group", text)};
}

Result<void> scale_of(const std::string& text, ConvertEncoding& encoding) {
  if (text.empty()) return {};
  long long width = 0, height = 0;
  int used = 0;
  if (std::sscanf(text.c_str(), "%lldx%lld%n", &width, &height, &used) == 2 && used == static_cast<int>(text.size()) &&
      width > 0 && height > 0 && width <= 16384 && height <= 16384) {
    encoding.width = width;
    encoding.height = height;
    return {};
  }
  return Error{Errc::invalid_argument, fmt::format("--scale {}; wanted WIDTHxHEIGHT such as 320x180", text)};
}

Result<ConvertDatasetRequest> request_of(const ConvertDatasetOptions& o) {
  ConvertDatasetRequest r{.sources = {},
                          .out = o.out,
                          .episodes = {},
                          .drop_cameras = o.drop_cameras,
                          .episode_size = o.episode_size,
                          .data_file_mb = o.data_file_mb,
                          .video_file_mb = o.video_file_mb,
                          .compression = o.compression,
                          .jobs = o.jobs,
                          .resume = o.resume,
                          .strict = o.strict,
                          .gear = o.gear,
                          .repair = o.repair,
                          .skip_bad = o.skip_bad,
                          .embodiment_tag = o.embodiment_tag,
                          .progress = {}};
  for (const std::string& source : o.sources) {
    TROUPE_ASSIGN(std::string folder, find_dataset(source));
    r.sources.push_back(std::move(folder));
  }
  TROUPE_ASSIGN(r.episodes, parse_number_ranges(o.episodes, "--episodes", "episode"));
  TROUPE_ASSIGN(r.to,
                choice<DatasetVersion>("--to", o.to, {{"v3.0", DatasetVersion::v30}, {"v2.1", DatasetVersion::v21}}));
  TROUPE_ASSIGN(r.video, choice<ConvertVideo>("--video_mode", o.video_mode,
                                              {{"copy", ConvertVideo::copy},
                                               {"reencode", ConvertVideo::reencode},
                                               {"auto", ConvertVideo::automatic}}));
  TROUPE_ASSIGN(r.verify,
                choice<ConvertVerify>(
                    "--verify", o.verify,
                    {{"none", ConvertVerify::none}, {"counts", ConvertVerify::counts}, {"full", ConvertVerify::full}}));
  TROUPE_ASSIGN(r.shard_bytes, parse_byte_size(o.shard_size));
  TROUPE_ASSIGN(r.row_group, row_group_of(o.row_group));
  r.encoding.codec = o.codec;
  r.encoding.gop = o.gop;
  r.encoding.crf = o.crf;
  r.encoding.preset = o.preset;
  r.encoding.pix_fmt = o.pix_fmt;
  TROUPE_TRY(scale_of(o.scale, r.encoding));
  const ConvertDatasetOptions plain;
  const bool asked = o.gop > 0 || !o.scale.empty() || o.codec != plain.codec || o.crf != plain.crf ||
                     o.preset != plain.preset || o.pix_fmt != plain.pix_fmt;
  if (asked && r.video == ConvertVideo::copy)
    return Error{Errc::invalid_argument,
                 "--video_mode copy does not go with --gop, --codec, --crf, --preset, --scale and --pix_fmt, which "
                 "re-encode the video"};
  if (asked) r.video = ConvertVideo::reencode;
  return r;
}

/// The index that training would make on first use, for the columns and cameras that `bench loader` would choose. The
/// result is whole without it, so a failure is only said.
Result<void> write_index(const std::string& out) {
  TROUPE_ASSIGN(const DatasetJob made, job_of_dataset(out));
  const LoadOutcome loaded = load_job_text(out, made.yaml, {});
  if (!loaded.config) return Error{Errc::internal, fmt::format("{}", fmt::join(loaded.errors, "; "))};
  TROUPE_ASSIGN(DatasetSpec spec, dataset_spec(loaded.config->job.data, loaded.config->job.model, 0));
  spec.bad_sample = "skip";
  TROUPE_ASSIGN([[maybe_unused]] const auto dataset, Dataset::open(spec));
  return {};
}

void print_summary(const ConvertDatasetOptions& o, const ConvertDatasetReport& r) {
  fmt::print("{}{}: {}, {} episodes, {} frames, {} tasks; {} tables, {} videos", o.out,
             r.already_finished ? " was finished already" : "", o.to, r.episodes, r.frames, r.tasks, r.data_files,
             r.video_files);
  if (r.encoded_files > 0) fmt::print(" ({} coded anew)", r.encoded_files);
  if (r.reused > 0) fmt::print("; {} parts were finished before", r.reused);
  fmt::print("\n");
  for (const std::string& note : r.notes) fmt::print("note: {}\n", note);
  for (const DatasetProblem& p : r.left_out) fmt::print("left out: {} {}\n", p.code, p.text);
  fmt::print("verify {}: {}\n", o.verify, r.verified);
  for (const std::string& failure : r.verify_failures) fmt::print("  {}\n", failure);
}

Result<int> convert(const ConvertDatasetOptions& options, ConvertDatasetRequest request) {
  const auto watched = [&] {
    CommandProgress line("convert");
    request.progress = line.of_parts();
    return convert_dataset(request);
  };
  TROUPE_ASSIGN(const ConvertDatasetReport report, watched());
  print_summary(options, report);
  if (!report.verify_failures.empty()) return static_cast<int>(kDataProblem);
  if (options.index) {
    if (const auto written = write_index(options.out); !written)
      fmt::print("note: no index was written: {}\n", written.error().message());
  }
  return static_cast<int>(kOk);
}

}  // namespace

int convert_dataset_command(const ConvertDatasetOptions& options) {
  auto request = request_of(options);
  if (!request) return complain_of_data(request.error());
  SandboxRules rules;
  for (const std::string& source : request->sources) allow_dataset(rules, source);
  // The confined process may write in this folder and in none around it, so it has to be there.
  std::error_code error;
  const bool is_new = !std::filesystem::exists(options.out, error);
  if (make_folders(options.out)) {
    rules.writable.push_back(options.out);
    if (options.index) allow_dataset(rules, options.out);
  }
  const int code = run_confined(fmt::format("{}", fmt::join(options.sources, ", ")), rules, [&] {
    const auto result = convert(options, std::move(*request));
    return result ? *result : complain_of_data(result.error());
  });
  if (is_new && code != kOk) ::rmdir(options.out.c_str());  // only what is empty
  return code;
}

}  // namespace troupe::app
