#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "configs/decode.h"
#include "configs/diagnostics.h"
#include "configs/job_config.h"
#include "configs/overrides.h"
#include "configs/schema_export.h"

namespace troupe::configs {

/// A job that passed every check.
struct LoadedConfig {
  JobConfig job;
  /// Every key with its value and a comment that says where it comes from; loads again to an equal job.
  std::string resolved_yaml;
  /// "default", "file:line", "TROUPE_SET" or "command line" for each leaf, such as "optimizer.lr" or
  /// "data.sets[0].path".
  std::map<std::string, std::string> provenance;
  /// Files and embedded files that were read, weakest first.
  std::vector<std::string> sources;
  /// Where each value was written, for errors that are found later; see error_at().
  OriginMap origins;
  /// Doubts about a job that can run (configs/warnings.h), formatted as error_at() formats errors, but "warning: ".
  /// Later stages that find more append theirs before it is printed.
  std::vector<std::string> warnings;

  /// An error about a key that only a later stage could find, formatted like a load's: position, excerpt, caret and an
  /// optional line "fix: ...".
  ///     recipes/my.yaml:21:22: error: training.global_batch_size 250 is not a multiple of ...
  std::string error_at(const std::string& key, const std::string& message, const std::string& fix = {}) const;
  /// Writes `resolved_yaml` again after a value of `job` was resolved, such as a link to a checkpoint.
  void record();
  /// The same for something that is not refused.
  std::string warning_at(const std::string& key, const std::string& message, const std::string& fix = {}) const;
  /// "61 keys (44 default, 14 file, 3 command line)".
  std::string key_summary() const;

 private:
  std::string text_at(const char* level, const std::string& key, const std::string& message,
                      const std::string& fix) const;
};

/// Either a config or the reasons why there is none.
struct LoadOutcome {
  std::optional<LoadedConfig> config;
  /// Formatted for the user, at most 20; empty when `config` is there.
  std::vector<std::string> errors;
};

/// Loads a job with everything that can be wrong reported at once. `path_or_recipe` is a file, or the name of an
/// embedded recipe or preset ("quickstart:sft", "recipes/quickstart_sft.yaml"); a file wins. `overrides` are as
/// split_overrides() returns them. Order, weakest first: defaults, `extends` chain, file, TROUPE_SET, overrides. Reads
/// files and the environment, writes nothing. Safe from any thread.
/// Never throws for what a user wrote: every mistake is in `errors`.
///
LoadOutcome load_job(const std::string& path_or_recipe, const std::vector<std::string>& overrides);

/// The same for a text in hand, such as a resolved configuration that came over the wire. `name` appears in errors, and
/// `extends` is relative to it. Does not read TROUPE_SET: a resolved text has it inside already.
LoadOutcome load_job_text(const std::string& name, const std::string& yaml, const std::vector<std::string>& overrides);

/// Makes data.sets[].path absolute where it names a folder that is there now, so that a run records which data it was
/// trained on wherever it is looked at; a name of a cache (owner/name) stays. Loading does it; a caller that makes a
/// dataset afterwards does it again.
void resolve_dataset_paths(LoadedConfig& loaded);

/// Dotted paths of the leaves whose values differ, in describe() order; used when a run is resumed.
std::vector<std::string> differing_keys(const JobConfig& a, const JobConfig& b);

/// The whole job as YAML without comments; load_job_text() reads it back to an equal job.
std::string to_yaml(const JobConfig& job);

}  // namespace troupe::configs
