#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "workers/checkpoint/manifest.h"

namespace troupe::workers {

/// One committed checkpoint: the folder's path, and what its manifest says.
struct CheckpointEntry {
  std::int64_t step = 0;
  std::string directory;
  Manifest manifest;
};

/// Folder names: "step_000500" (at least six digits), and "step_000500.tmp-000000010000001f" while it is written
/// under a fence (16 hex digits).
std::string checkpoint_name(std::int64_t step);
std::string checkpoint_tmp_name(std::int64_t step, std::uint64_t fence);

/// Makes a written checkpoint visible: checks its manifest (step and sizes), renames `tmp_directory` to
/// `folder`/step_NNNNNN, fsyncs `folder`, and moves the symlink `folder`/latest to it by rename. A checkpoint of the
/// same step that is already there is replaced. Idempotent: when `tmp_directory` is gone and step_NNNNNN is valid,
/// only the syncs and the link are made again. Returns the new directory. Errors: failed_precondition, not_found,
/// data_loss, resource_exhausted, unavailable.
Result<std::string> commit_checkpoint(const std::string& folder, const std::string& tmp_directory, std::int64_t step);

/// Committed checkpoints of a folder whose manifest reads and whose files have the sizes it says, by ascending step.
std::vector<CheckpointEntry> list_checkpoints(const std::string& folder);

/// Paths of what lies among them and should be one but is none: its manifest does not read, or files have other sizes.
/// Those that are being written, and those that were set aside, are left out.
std::vector<std::string> invalid_checkpoints(const std::string& folder);

/// What newest_valid compares beside manifest, sizes and headers. small_files: digests of all but rank files, for those
/// who leave these to whom reads them (CheckpointReader::read compares by chunk). digests: of every file, which reads
/// the checkpoint once.
enum class CheckpointCheck : std::uint8_t { small_files, digests };

/// The newest checkpoint that passes; each one passed over is logged as a warning. Errors: not_found;
/// failed_precondition where a checkpoint's base is not there or damaged, as older ones need it too.
Result<CheckpointEntry> newest_valid(const std::string& folder, CheckpointCheck check = CheckpointCheck::digests);

/// The newest checkpoint of a folder, for a caller that reads its weights. A damaged one is an error: this function
/// never returns an older checkpoint instead. It compares small_files, and of format 1 all digests, since read() cannot
/// compare those. A folder without a manifest is no checkpoint. Errors: not_found; data_loss, with suggest_older's
/// hint; failed_precondition for a damaged base or a manifest of another step.
Result<CheckpointEntry> newest_checkpoint(const std::string& folder);

/// Damage (data_loss) that was found in a checkpoint, with the name of the one before it, which a user may want
/// instead; where there is none, or of another error, such as damage whose message names nothing in `directory`,
/// `error` as it is.
Error suggest_older(const Error& error, const std::string& directory);

/// Symlinks beside a run's checkpoints: the newest, and the best of those that were evaluated.
inline constexpr const char *kLatestLink = "latest", *kBestLink = "best";

/// Makes a symlink of `folder` name this checkpoint, by rename; an empty name removes the link. Errors: those of
/// file_error.
Result<void> move_link(const std::string& folder, const std::string& link, const std::string& name);

/// What set_aside_checkpoint does with the only checkpoint of a folder.
enum class OnlyCheckpoint : std::uint8_t { stays, goes };

/// Takes a damaged checkpoint out of a folder's: `latest` names the one before it, and it becomes
/// step_NNNNNN.damaged-<fence>, durably. Returns the one before it; where there is none and this one goes all the same,
/// step 0 without a folder, and `latest` is removed. Errors: not_found (there is none before it, and it stays; nothing
/// changes then), those of file_error.
Result<CheckpointEntry> set_aside_checkpoint(const std::string& folder, std::int64_t step, std::uint64_t fence,
                                             OnlyCheckpoint only = OnlyCheckpoint::stays);

/// Removes a checkpoint or its temporary folder: the manifest first, so that a crash leaves garbage and not half a
/// checkpoint. False, and a warning in the log, where something stays.
bool remove_checkpoint(const std::string& directory);

/// Keeps the newest `keep` (at least one) valid checkpoints and those of steps `also`, and removes older ones, of each
/// the manifest first so that a crash leaves garbage and not half a checkpoint. Also removes garbage: step_NNNNNN
/// without a manifest, and step_NNNNNN.tmp-<fence> with a fence below `current_fence` (if absent: below the newest
/// checkpoint's). Other names are left alone. Bases: prune_bases. What cannot be removed is logged and left. Returns
/// the steps of removed checkpoints.
std::vector<std::int64_t> prune_checkpoints(const std::string& folder, std::size_t keep,
                                            std::optional<std::uint64_t> current_fence = std::nullopt,
                                            const std::set<std::int64_t>& also = {});

}  // namespace troupe::workers
