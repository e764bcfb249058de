#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "bench/support/result_file.h"

namespace troupe::bench {

/// Where the recorded files are.
struct LoaderSources {
  std::string golden;       ///< holds data/droid-mini
  std::string shared_data;  ///< holds droid-views
};

/// Makes FOLDER/droid-mini, a dataset of one episode over three recorded views, and for its first `samples` training
/// positions what the same pipeline elsewhere needs: FOLDER/windows_{plain,jitter}.tsv (crop, jitter, rows), the
/// vector columns as float64 (column_NAME.f64) and norm.tsv (slices, bounds, reference of relative keys). Writes
/// job_{plain,jitter}.yaml.
void prepare_droid(const std::string& folder, const LoaderSources& sources, std::int64_t samples);

/// Writes the first `samples` samples of job_{plain,jitter}.yaml to FOLDER/samples_{plain,jitter}/POSITION.FIELD.
void write_samples(const std::string& folder, std::int64_t samples);

/// Makes a generated dataset of `episodes` episodes (generated_set.h) below FOLDER and FOLDER/scale-EPISODES.yaml, a
/// job over it with clips of `blocks` blocks of 8 frames.
void prepare_scale(const std::string& folder, std::int64_t episodes, std::int64_t blocks);

/// Runs a job's loader and appends "name<TAB>key<TAB>value" lines to FOLDER/results.tsv. `half_of` names an earlier
/// run at whose half rate the consumer takes; empty: as fast as they come.
void run_case(const std::string& folder, const std::string& name, const std::string& job, std::int64_t decoders,
              std::int64_t samples, const std::string& half_of, const std::vector<std::string>& overrides);

/// Runs in the order of their first line, each key with its rounds.
struct LoaderResults {
  std::vector<std::string> order;
  std::map<std::string, std::map<std::string, Series>> runs;
  /// The series of a run's key; empty where the run did not measure it.
  Series at(const std::string& run, const std::string& key) const;
};
LoaderResults read_results(const std::string& folder);

/// The result file's text from FOLDER/results.tsv.
std::string loader_report(const std::string& folder, const std::string& command, const std::string& note);

}  // namespace troupe::bench
