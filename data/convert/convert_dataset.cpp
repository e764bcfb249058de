#include "data/convert/convert_dataset.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <thread>

#include "base/fault.h"
#include "base/parallel.h"
#include "data/convert/finished_file.h"
#include "data/convert/frame_encoder.h"
#include "data/convert/gear.h"
#include "data/convert/journal.h"
#include "data/convert/metadata.h"
#include "data/convert/output_lock.h"
#include "data/convert/plan.h"
#include "data/convert/repair_source.h"
#include "data/convert/verify.h"
#include "data/convert/write_files.h"
#include "data/lerobot/file_checks.h"

namespace troupe::data {

namespace {

namespace fs = std::filesystem;

Result<void> check_request(const ConvertDatasetRequest& r) {
  if (r.sources.empty() || r.out.empty()) return invalid_argument("a source and an output folder are wanted");
  if (r.compression != "zstd" && r.compression != "snappy" && r.compression != "none")
    return invalid_argument(fmt::format("--compression {}; wanted zstd, snappy or none", r.compression));
  if (r.episode_size < 1 || r.shard_bytes < 1 || r.row_group < 0 || r.data_file_mb < 0 || r.video_file_mb < 0)
    return invalid_argument(fmt::format(
        "--episode_size {}, --shard_size {}, --row_group {}, file sizes of {} and {} MiB: limits are above 0",
        r.episode_size, r.shard_bytes, r.row_group, r.data_file_mb, r.video_file_mb));
  if (r.skip_bad && !r.repair)
    return invalid_argument("--skip-bad goes with --repair; without it episodes that cannot be read are left out");
  if (r.video == ConvertVideo::reencode) TROUPE_TRY(FrameEncoder::check(r.encoding));
  std::error_code failed;
  // absolute first: the canonical form of a relative path whose first folder does not exist stays relative
  const fs::path out = fs::weakly_canonical(fs::absolute(r.out), failed);
  for (const std::string& source : r.sources) {
    const fs::path in = fs::weakly_canonical(fs::absolute(source), failed);
    const std::string relative = out.lexically_relative(in).string();
    if (relative == "." || !relative.starts_with(".."))
      return invalid_argument(fmt::format("the output {} lies in the source {}", r.out, source));
  }
  return {};
}

/// Opens a source. What is wrong with its files is damage of data, whatever their reader calls it; only a source that
/// is not there is a wrong request.
Result<DatasetSource> open_source(const ConvertDatasetRequest& request, const std::string& root) {
  auto opened = request.repair ? repair_source(root) : DatasetSource::open(root);
  std::error_code absent;
  if (opened || !fs::exists(root + "/meta/info.json", absent)) return opened;
  const Errc code = opened.error().code();
  const bool is_damage = code == Errc::invalid_argument || code == Errc::not_found || code == Errc::failed_precondition;
  return is_damage ? Error{Errc::data_loss, opened.error().message()} : opened.error();
}

/// The cameras that are asked away leave; each of the others is listed and has files.
Result<void> settle_cameras(const ConvertDatasetRequest& request, std::vector<DatasetSource>& sources) {
  for (const std::string& name : request.drop_cameras) {
    bool known = false;
    for (DatasetSource& source : sources) {
      const LerobotFeature* feature = source.facts.find(name);
      const auto& doubtful = source.doubtful_cameras;
      const bool is_doubtful =
          std::any_of(doubtful.begin(), doubtful.end(), [&](const DoubtfulCamera& c) { return c.name == name; });
      if (!is_doubtful && (feature == nullptr || !feature->is_video())) continue;
      known = true;
      source.drop_camera(name);
    }
    std::vector<std::string> there = sources[0].cameras;
    for (const DoubtfulCamera& c : sources[0].doubtful_cameras) there.push_back(c.name);
    if (!known)
      return invalid_argument(fmt::format("--drop-camera {}: {} has no such camera of dtype video; it has {}", name,
                                          sources[0].root, fmt::join(there, ", ")));
  }
  for (const DatasetSource& source : sources) {
    if (source.doubtful_cameras.empty()) continue;
    std::string what, flags;
    for (const DoubtfulCamera& c : source.doubtful_cameras) {
      what += (what.empty() ? "" : "; ") + c.why;
      flags += fmt::format(" --drop-camera {}", c.name);
    }
    return Error{
        Errc::data_loss,
        fmt::format("{}/meta/info.json: {}; bring the videos back or mend info.json, or leave cameras out with{}",
                    source.root, what, flags)};
  }
  return {};
}

/// The episodes that are asked for stay.
Result<void> choose_episodes(const ConvertDatasetRequest& request, std::vector<DatasetSource>& sources) {
  if (request.episodes.empty()) return {};
  if (sources.size() > 1)
    return invalid_argument("--episodes goes with one source: the datasets that are merged number theirs alike");
  std::vector<SourceEpisode>& all = sources[0].episodes;
  const auto within = [](const NumberRange& range, const SourceEpisode& e) {
    return e.index >= range.first && e.index <= range.last;
  };
  for (const NumberRange& range : request.episodes) {
    if (std::any_of(all.begin(), all.end(), [&](const SourceEpisode& e) { return within(range, e); })) continue;
    return invalid_argument(fmt::format("--episodes {}..{}: {} has no such episode; it has {} of them, {} to {}",
                                        range.first, range.last, sources[0].root, all.size(), all.front().index,
                                        all.back().index));
  }
  std::erase_if(all, [&](const SourceEpisode& e) {
    return std::none_of(request.episodes.begin(), request.episodes.end(),
                        [&](const NumberRange& range) { return within(range, e); });
  });
  return {};
}

std::string plan_path(const std::string& out) { return out + "/" + kConvertFolder + "/plan.json"; }
std::string journal_path(const std::string& out) { return out + "/" + kConvertFolder + "/journal.jsonl"; }

/// Writes the plan, or compares it with the one an earlier attempt wrote.
Result<void> fix_plan(const ConvertDatasetRequest& request, const ConvertPlan& plan) {
  const std::string path = plan_path(request.out);
  std::error_code failed;
  if (!fs::exists(path, failed)) {
    // a kill before the plan leaves its part at most
    for (fs::directory_iterator it(request.out, failed), end; !failed && it != end; it.increment(failed)) {
      if (it->path().filename() != ".troupe")
        return Error{Errc::failed_precondition, fmt::format("{} holds {}, but no conversion that was stopped",
                                                            request.out, it->path().filename().string())};
    }
    TROUPE_TRY(fault_point("convert.plan", path));
    return write_finished(path, plan.text);
  }
  TROUPE_ASSIGN(const std::string before, read_text_file(path));
  if (before == plan.text) return {};
  return Error{Errc::failed_precondition,
               fmt::format("{} was planned with other inputs or options ({}); go on with those, or name another folder",
                           request.out, path)};
}

/// An entry whose files are gone or have another size is no entry.
bool files_are_there(const ConvertContext& context, const PlannedTask& task, const JsonDoc& entry) {
  for (std::size_t f = 0; f < task.files.size(); ++f) {
    std::error_code failed;
    const auto size = fs::file_size(context.out + "/" + task.files[f].path, failed);
    if (failed || !entry.contains("bytes") || entry["bytes"].size() != task.files.size() || entry["bytes"][f] != size)
      return false;
  }
  return true;
}

Result<void> do_task(const ConvertContext& context, std::size_t t, ConvertJournal& journal) {
  const PlannedTask& task = context.plan.tasks[t];
  JsonDoc entry = {{"bytes", JsonDoc::array()}};
  RowReader rows;
  for (const PlannedOutput& file : task.files) {
    TROUPE_TRY(task.camera < 0 ? write_table_file(context, file, rows, entry)
                               : write_video_file(context, task.camera, file, entry));
    std::error_code failed;
    entry["bytes"].push_back(fs::file_size(context.out + "/" + file.path, failed));
  }
  return journal.append(t, entry);
}

Result<void> do_tasks(const ConvertContext& context, ConvertJournal& journal, ConvertDatasetReport& report) {
  std::vector<std::size_t> open;
  for (std::size_t t = 0; t < context.plan.tasks.size(); ++t) {
    if (journal.has(t)) {
      TROUPE_ASSIGN(const JsonDoc entry, journal.entry(t));
      if (files_are_there(context, context.plan.tasks[t], entry)) {
        ++report.reused;
        continue;
      }
      journal.forget(t);
    }
    open.push_back(t);
  }
  std::mutex mutex;
  auto done = report.reused;
  const auto all = static_cast<std::int64_t>(context.plan.tasks.size());
  return try_parallel_for(open.size(), context.request.jobs, [&](std::size_t, std::size_t i) -> Result<void> {
    TROUPE_TRY(do_task(context, open[i], journal));
    const std::lock_guard lock(mutex);
    ++done;
    if (context.request.progress) context.request.progress("parts", done, all);
    return {};
  });
}

Result<void> write_metadata(const ConvertContext& context, std::vector<DatasetSource>& sources,
                            const ConvertJournal& journal, ConvertDatasetReport& report) {
  OutputStats stats(context, sources, journal);
  JsonDoc sum;
  TROUPE_TRY(context.request.to == DatasetVersion::v30 ? write_metadata_v30(context, stats, sum)
                                                       : write_metadata_v21(context, stats, sum));
  stats.erase_computed_quantiles(sum);
  TROUPE_TRY(carry_files(context, report.notes));
  if (context.request.gear) {
    TROUPE_TRY(write_gear_metadata(context, sum, report.notes));
  } else {
    TROUPE_TRY(write_dataset_stats(context, sum, report.notes));
  }
  return write_info(context);
}

Result<void> remove_journal(const std::string& out) {
  std::error_code failed;
  fs::remove(journal_path(out), failed);
  if (failed) return Error{Errc::unavailable, fmt::format("{}: {}", journal_path(out), failed.message())};
  return {};
}

void count_output(const ConvertPlan& plan, ConvertDatasetReport& report) {
  report.episodes = static_cast<std::int64_t>(plan.episodes.size());
  report.frames = plan.frames;
  report.tasks = static_cast<std::int64_t>(plan.texts.size());
  report.left_out = plan.left_out;
  report.notes = plan.notes;
  for (const PlannedTask& task : plan.tasks) {
    for (const PlannedOutput& file : task.files) {
      ++(task.camera < 0 ? report.data_files : report.video_files);
      report.encoded_files += file.encode ? 1 : 0;
    }
  }
}

Result<void> verify(const ConvertContext& context, ConvertDatasetReport& report) {
  if (context.request.verify == ConvertVerify::none) {
    report.verified = "nothing was verified";
    return {};
  }
  TROUPE_ASSIGN(report.verify_failures, verify_output(context));
  const std::int64_t copied = report.video_files - report.encoded_files;
  report.verified = context.request.verify == ConvertVerify::counts
                        ? fmt::format(
                              "rows of {} tables and frames of {} videos were counted; sizes of coded frames of {} "
                              "copied videos are equal",
                              report.data_files, report.video_files, copied)
                        : fmt::format(
                              "{} tables are equal by value and type; coded and decoded frames of {} copied videos are "
                              "equal; of {} that were coded anew number and size of frames were compared",
                              report.data_files, copied, report.encoded_files);
  if (!report.verify_failures.empty())
    report.verified = fmt::format("{} differences were found", report.verify_failures.size());
  return {};
}

}  // namespace

Result<std::int64_t> parse_byte_size(const std::string& text) {
  struct Suffix {
    const char* name;
    double bytes;
  };
  static constexpr std::array<Suffix, 10> kSuffixes = {{{"", 1},
                                                        {"B", 1},
                                                        {"KB", 1e3},
                                                        {"MB", 1e6},
                                                        {"GB", 1e9},
                                                        {"TB", 1e12},
                                                        {"KIB", 1024.0},
                                                        {"MIB", 1048576.0},
                                                        {"GIB", 1073741824.0},
                                                        {"TIB", 1099511627776.0}}};
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  std::string suffix = end;
  suffix.erase(0, std::min(suffix.find_first_not_of(' '), suffix.size()));
  std::transform(suffix.begin(), suffix.end(), suffix.begin(), [](unsigned char c) { return std::toupper(c); });
  for (const Suffix& s : kSuffixes) {
    const double bytes = number * s.bytes;
    if (end != text.c_str() && suffix == s.name && std::isfinite(bytes) && bytes >= 1 && bytes < 9e18)
      return static_cast<std::int64_t>(bytes);
  }
  return invalid_argument(
      fmt::format("'{}' is no size; wanted a number above 0 with KB, MB, GB, TB, KiB, MiB, GiB, TiB or nothing", text));
}

Result<ConvertDatasetReport> convert_dataset(const ConvertDatasetRequest& asked) {
  ConvertDatasetRequest request = asked;
  if (request.jobs < 1) request.jobs = std::max(1U, std::thread::hardware_concurrency());
  while (request.out.size() > 1 && request.out.back() == '/') request.out.pop_back();
  TROUPE_TRY(check_request(request));
  std::vector<DatasetSource> sources;
  for (const std::string& source : request.sources) {
    TROUPE_ASSIGN(auto opened, open_source(request, source));
    sources.push_back(std::move(opened));
  }
  TROUPE_ASSIGN(const OutputLock lock, OutputLock::take(request.out, request.resume));
  TROUPE_TRY(settle_cameras(request, sources));
  TROUPE_TRY(choose_episodes(request, sources));
  TROUPE_ASSIGN(const ConvertPlan plan, make_plan(request, sources));
  const ConvertContext context{request, plan, sources, request.out};
  ConvertDatasetReport report;
  count_output(plan, report);
  if (report.encoded_files > 0) TROUPE_TRY(FrameEncoder::check(request.encoding));
  TROUPE_TRY(make_parent(plan_path(request.out)));
  TROUPE_TRY(fix_plan(request, plan));
  std::error_code absent;
  report.already_finished = fs::exists(request.out + "/meta/info.json", absent);
  if (!report.already_finished) {
    TROUPE_ASSIGN(ConvertJournal journal, ConvertJournal::open(journal_path(request.out), plan.tasks.size()));
    TROUPE_TRY(do_tasks(context, journal, report));
    TROUPE_TRY(write_metadata(context, sources, journal, report));
  }
  TROUPE_TRY(verify(context, report));
  TROUPE_TRY(remove_journal(request.out));
  return report;
}

}  // namespace troupe::data
