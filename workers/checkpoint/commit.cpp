#include "workers/checkpoint/commit.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <filesystem>

#include "base/durable_file.h"
#include "base/file_io.h"
#include "base/hash.h"
#include "base/log.h"
#include "workers/checkpoint/frozen_base.h"
#include "workers/checkpoint/reader.h"

namespace troupe::workers {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kDamaged = ".damaged-";

/// A name of ours, taken apart.
struct ParsedName {
  std::int64_t step = 0;
  std::optional<std::uint64_t> fence;  ///< set: temporary
};

std::optional<ParsedName> parse_name(std::string_view name) {
  if (!name.starts_with("step_")) return std::nullopt;
  name.remove_prefix(5);
  const std::size_t dot = name.find(".tmp-");
  const std::string_view digits = name.substr(0, dot);
  ParsedName parsed;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), parsed.step);
  if (digits.size() < 6 || error != std::errc() || end != digits.data() + digits.size() || parsed.step < 0)
    return std::nullopt;
  if (dot == std::string_view::npos) return parsed;
  const std::string_view hex = name.substr(dot + 5);
  std::uint64_t fence = 0;
  const auto [hex_end, hex_error] = std::from_chars(hex.data(), hex.data() + hex.size(), fence, 16);
  if (hex.size() != 16 || hex_error != std::errc() || hex_end != hex.data() + hex.size()) return std::nullopt;
  parsed.fence = fence;
  return parsed;
}

std::vector<std::string> subfolders(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (auto it = fs::directory_iterator(folder, error); !error && it != fs::directory_iterator(); it.increment(error)) {
    if (it->is_directory(error) && !it->is_symlink(error)) names.push_back(it->path().filename().string());
  }
  if (error) log::warn("{}: cannot be listed: {}", folder, error.message());
  std::sort(names.begin(), names.end());
  return names;
}

Result<CheckpointEntry> read_entry(const std::string& directory, std::int64_t step) {
  TROUPE_ASSIGN(Manifest manifest, read_manifest(directory));
  if (manifest.step != step) {
    return Error{Errc::failed_precondition,
                 fmt::format("{}: its manifest is of step {}, not {}", directory, manifest.step, step)};
  }
  TROUPE_TRY(check_sizes(directory, manifest.files));
  return CheckpointEntry{.step = step, .directory = directory, .manifest = std::move(manifest)};
}

Result<void> compare_files(const std::string& directory, CheckpointCheck check) {
  TROUPE_ASSIGN(const auto reader, CheckpointReader::open(directory));
  return check == CheckpointCheck::digests ? reader->verify_digests() : reader->verify_small_files();
}

/// For who reads its weights next.
Result<CheckpointEntry> entry_to_read(const std::string& directory, std::int64_t step) {
  TROUPE_ASSIGN(CheckpointEntry entry, read_entry(directory, step));
  const bool has_chunks = entry.manifest.format > 1;
  TROUPE_TRY(compare_files(directory, has_chunks ? CheckpointCheck::small_files : CheckpointCheck::digests));
  return entry;
}

/// Steps and paths of the folders that are named as committed checkpoints are.
std::vector<std::pair<std::int64_t, std::string>> newest_first(const std::string& folder) {
  std::vector<std::pair<std::int64_t, std::string>> found;
  for (const std::string& name : subfolders(folder)) {
    const auto parsed = parse_name(name);
    if (parsed && !parsed->fence) found.emplace_back(parsed->step, folder + "/" + name);
  }
  std::sort(found.rbegin(), found.rend());
  return found;
}

}  // namespace

std::string checkpoint_name(std::int64_t step) { return fmt::format("step_{:06d}", step); }
std::string checkpoint_tmp_name(std::int64_t step, std::uint64_t fence) {
  return fmt::format("{}.tmp-{}", checkpoint_name(step), to_hex(fence));
}

Result<void> move_link(const std::string& folder, const std::string& link_name, const std::string& name) {
  const std::string link = folder + "/" + link_name, temporary = link + ".tmp";
  std::error_code error;
  fs::remove(temporary, error);
  if (error) return file_error(temporary, "cannot be removed", error.value());
  if (name.empty()) {
    fs::remove(link, error);
    if (error) return file_error(link, "cannot be removed", error.value());
    return sync_directory(folder);
  }
  if (::symlink(name.c_str(), temporary.c_str()) != 0) return file_error(temporary, "cannot be created", errno);
  return commit_file(temporary, link);
}

bool remove_checkpoint(const std::string& directory) {
  std::error_code error;
  fs::remove(directory + "/manifest.json", error);
  if (!error) {
    if (const auto synced = sync_directory(directory); !synced && synced.error().code() != Errc::not_found) {
      log::warn("{}", synced.error().message());
    }
    fs::remove_all(directory, error);
  }
  if (error) log::warn("{}: cannot be removed: {}", directory, error.message());
  return !error;
}

Result<std::string> commit_checkpoint(const std::string& folder, const std::string& tmp_directory, std::int64_t step) {
  const std::string name = checkpoint_name(step), target = folder + "/" + name;
  std::error_code error;
  if (!fs::exists(tmp_directory, error)) {
    const auto written = parse_name(fs::path(tmp_directory).filename().string());
    const auto there = read_entry(target, step);
    if (there && written && written->fence == there->manifest.fence) {
      TROUPE_TRY(move_link(folder, kLatestLink, name));
      return target;
    }
  }
  if (const auto entry = read_entry(tmp_directory, step); !entry) return entry.error();
  const bool replaces = fs::exists(target, error);
  // An exchange leaves no moment without a checkpoint of this step.
  const unsigned flags = replaces ? RENAME_EXCHANGE : 0U;
  if (::renameat2(AT_FDCWD, tmp_directory.c_str(), AT_FDCWD, target.c_str(), flags) != 0) {
    return file_error(target, "cannot be renamed into place", errno);
  }
  TROUPE_TRY(sync_directory(folder));
  TROUPE_TRY(move_link(folder, kLatestLink, name));
  if (replaces) {
    log::warn("{}: replaced by a later attempt at the same step", target);
    remove_checkpoint(tmp_directory);
  }
  return target;
}

std::vector<CheckpointEntry> list_checkpoints(const std::string& folder) {
  std::vector<CheckpointEntry> entries;
  for (const std::string& name : subfolders(folder)) {
    const auto parsed = parse_name(name);
    if (!parsed || parsed->fence) continue;
    auto entry = read_entry(folder + "/" + name, parsed->step);
    if (entry) entries.push_back(std::move(*entry));
  }
  std::sort(entries.begin(), entries.end(),
            [](const CheckpointEntry& a, const CheckpointEntry& b) { return a.step < b.step; });
  return entries;
}

std::vector<std::string> invalid_checkpoints(const std::string& folder) {
  const auto valid = list_checkpoints(folder);
  std::vector<std::string> paths;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string path = entry.path().string(), name = entry.path().filename().string();
    const bool listed =
        std::any_of(valid.begin(), valid.end(), [&](const CheckpointEntry& c) { return c.directory == path; });
    const bool is_known = name == kLatestLink || name == kBestLink || name.starts_with("base_") ||
                          name.find(".tmp-") != std::string::npos || name.find(kDamaged) != std::string::npos;
    if (!is_known && !listed) paths.push_back(path);
  }
  return paths;
}

Result<CheckpointEntry> newest_valid(const std::string& folder, CheckpointCheck check) {
  const auto candidates = newest_first(folder);
  for (const auto& [step, directory] : candidates) {
    auto entry = read_entry(directory, step);
    if (entry) {
      const auto compared = compare_files(directory, check);
      if (!compared && compared.error().code() == Errc::failed_precondition) return compared.error();
      if (!compared) entry = compared.error();
    }
    if (entry) return entry;
    log::warn("checkpoint {} is passed over: {}", directory, entry.error().message());
  }
  return Error{Errc::not_found, fmt::format("{}: no valid checkpoint among {}", folder, candidates.size())};
}

Result<CheckpointEntry> newest_checkpoint(const std::string& folder) {
  for (const auto& [step, directory] : newest_first(folder)) {
    auto entry = entry_to_read(directory, step);
    if (entry) return entry;
    // without a manifest: what a crash or a job that prunes left behind
    if (entry.error().code() != Errc::not_found) return suggest_older(entry.error(), directory);
  }
  return Error{Errc::not_found, fmt::format("{}: it holds no checkpoint", folder)};
}

Error suggest_older(const Error& error, const std::string& directory) {
  if (error.code() != Errc::data_loss) return error;
  std::error_code code;
  const fs::path real = fs::canonical(directory, code);  // of a link such as checkpoints/latest
  const auto damaged = code ? std::nullopt : parse_name(real.filename().string());
  const auto names = [&](const std::string& folder) { return error.message().find(folder) != std::string::npos; };
  if (!damaged || !(names(directory) || names(real.string()))) return error;
  auto older = list_checkpoints(real.parent_path().string());
  std::erase_if(older, [&](const CheckpointEntry& entry) { return entry.step >= damaged->step; });
  if (older.empty()) return error;
  return {error.code(),
          fmt::format("{}; to use the checkpoint before it, name {}", error.message(), older.back().directory)};
}

Result<CheckpointEntry> set_aside_checkpoint(const std::string& folder, std::int64_t step, std::uint64_t fence,
                                             OnlyCheckpoint only) {
  auto entries = list_checkpoints(folder);
  std::erase_if(entries, [step](const CheckpointEntry& entry) { return entry.step >= step; });
  const std::string name = checkpoint_name(step), damaged = folder + "/" + name;
  if (entries.empty() && only == OnlyCheckpoint::stays)
    return Error{Errc::not_found, fmt::format("there is none before it in {}", folder)};
  TROUPE_TRY(move_link(folder, kLatestLink, entries.empty() ? "" : checkpoint_name(entries.back().step)));
  const std::string aside = fmt::format("{}{}{}", damaged, kDamaged, to_hex(fence));
  if (::rename(damaged.c_str(), aside.c_str()) != 0 && errno != ENOENT)
    return file_error(damaged, "cannot be renamed", errno);
  TROUPE_TRY(sync_directory(folder));
  return entries.empty() ? CheckpointEntry{} : std::move(entries.back());
}

std::vector<std::int64_t> prune_checkpoints(const std::string& folder, std::size_t keep,
                                            std::optional<std::uint64_t> current_fence,
                                            const std::set<std::int64_t>& also) {
  auto entries = list_checkpoints(folder);
  std::uint64_t fence = current_fence.value_or(0);
  if (!current_fence && !entries.empty()) fence = entries.back().manifest.fence;
  std::vector<std::int64_t> removed;
  const std::size_t kept = std::max<std::size_t>(1, keep);
  for (std::size_t i = 0; i + kept < entries.size(); ++i) {
    if (also.contains(entries[i].step)) continue;
    if (remove_checkpoint(entries[i].directory)) removed.push_back(entries[i].step);
  }
  for (const std::string& name : subfolders(folder)) {
    const auto parsed = parse_name(name);
    if (!parsed) continue;
    const std::string directory = folder + "/" + name;
    std::error_code error;
    const bool garbage =
        parsed->fence ? *parsed->fence < fence : !fs::exists(directory + "/manifest.json", error) && !error;
    if (garbage) remove_checkpoint(directory);
  }
  prune_bases(folder, fence);
  return removed;
}

}  // namespace troupe::workers
