#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "configs/job_config.h"
#include "workers/checkpoint/manifest_file.h"

namespace troupe::workers {

/// The attachment with what a trainer needs beside the shards (docs/checkpoints.md#trainer_statejson).
inline constexpr const char* kTrainerStateFile = "trainer_state.json";

/// Where a parameter lies in its unit's flat buffer, in elements.
struct ManifestParam {
  std::string name;
  std::vector<std::int64_t> shape;
  std::int64_t offset = 0;
  std::int64_t numel = 0;

  bool operator==(const ManifestParam&) const = default;
};

/// One unit: its parameters in the order of the flat buffer, and what is saved of it.
struct ManifestUnit {
  std::string name;
  std::string layout_class;
  std::vector<ManifestParam> params = {};
  /// End of the last parameter; without the padding that depends on the world.
  std::int64_t numel = 0;
  /// Hash of names, shapes and places (FlatLayout); 16 hex digits in the file, as every 64-bit number that is a hash
  /// or a fence.
  std::uint64_t layout_hash = 0;
  /// False: frozen values or a target network, saved without moments.
  bool trainable = true;
  /// Its values never change and lie in the run's base (Manifest::base).
  bool in_base = false;
  /// The moving average of its masters is saved too (ema.decay); of a trained unit alone.
  bool has_average = false;
  /// Its moments are saved in bf16 (optimizer.moments), else in f32; of a trained unit alone.
  bool bf16_moments = false;

  /// A parameter by name; null: there is none.
  const ManifestParam* find(const std::string& parameter) const {
    const auto found =
        std::find_if(params.begin(), params.end(), [&](const ManifestParam& param) { return param.name == parameter; });
    return found == params.end() ? nullptr : &*found;
  }

  /// Number of tensors in a rank file: master, m, v and perhaps ema; without moments master alone; of one in the base
  /// none.
  std::size_t num_kinds() const {
    if (in_base) return 0;
    if (!trainable) return 1;
    return has_average ? 4 : 3;
  }
  /// Of a kind below num_kinds().
  std::string tensor_name(std::size_t kind) const {
    static constexpr const char* kKinds[] = {"master", "m", "v", "ema"};
    return name + "." + kKinds[kind];
  }
  const char* tensor_dtype(std::size_t kind) const { return bf16_moments && (kind == 1 || kind == 2) ? "BF16" : "F32"; }
  /// Of one element of each kind in a rank file, together.
  std::int64_t saved_bytes() const {
    const auto bytes = static_cast<std::int64_t>(num_kinds()) * 4;
    return bf16_moments ? bytes - 4 : bytes;
  }

  /// Elements of each rank's shard: numel rounded up to a multiple of world * 1024, over world.
  std::int64_t shard(std::int64_t world) const {
    const std::int64_t multiple = world * 1024;
    return (numel + multiple - 1) / multiple * 1024;
  }
};

/// The optimizer at the time of the checkpoint: its settings
/// and how far it was.
struct ManifestOptimizer {
  std::string name = "adamw";
  double lr = 0;
  std::vector<double> betas;
  double eps = 0;
  double weight_decay = 0;
  /// Updates applied; less than step where batches were void.
  std::int64_t updates = 0;
  /// Updates by unit group, where groups are updated on their own; a group that is missing has seen `updates`.
  std::map<std::string, std::int64_t> groups = {};
};

/// What manifest.json says (docs/checkpoints.md#manifestjson). A directory without it is garbage.
struct Manifest {
  /// What is written; 1, which has neither lists of digests nor a base, is read too.
  static constexpr std::int64_t kFormat = 2;

  std::int64_t format = kFormat;
  /// Steps committed.
  std::int64_t step = 0;
  /// Membership epoch that wrote the checkpoint, and its number of learner ranks, which is the number of rank files.
  std::uint64_t fence = 0;
  std::int64_t world = 1;
  std::vector<ManifestUnit> units;
  /// Of all units; does not depend on world.
  std::uint64_t layout_hash = 0;
  ManifestOptimizer optimizer;
  std::int64_t seed = 0;
  /// First global sample position that is not trained yet.
  std::int64_t next_position = 0;
  /// What a resumed run compares with its own datasets.
  std::string dataset_fingerprint;
  /// Resolved job YAML.
  std::string config;
  /// Content hashes of the frozen networks, "name=hash" with a blank between, sorted by name; empty where there are
  /// none.
  std::string encoder_hash;
  /// Every file of the checkpoint but the manifest.
  std::vector<ManifestFile> files;
  /// Digest of the frozen base (workers/checkpoint/frozen_base.h), 32 hex digits; empty where no unit is in one.
  std::string base;
  /// Folder name of the checkpoint before this one; empty for the first.
  std::string previous;
  /// Of Troupe.
  std::string version;

  /// Some unit has an average; some unit's moments are bf16.
  bool has_average() const;
  bool has_bf16_moments() const;
  /// File name of a rank's tensors: rank-00003-of-00008.safetensors.
  static std::string rank_file(std::int64_t rank, std::int64_t world);
};

/// Canonical JSON: sorted keys, two blanks of indent, LF, newline at the end.
std::string manifest_to_json(const Manifest& manifest);

/// Reads what manifest_to_json wrote and checks that it is consistent: parameters inside their unit, in order,
/// without overlap; sizes that match shapes; plain file names; one file per rank. `path` is named in errors. Errors:
/// data_loss.
Result<Manifest> manifest_from_json(const std::string& text, const std::string& path);

/// Reads directory/manifest.json. Errors: not_found when there is none (the directory is garbage), data_loss.
Result<Manifest> read_manifest(const std::string& directory);

/// The job that a checkpoint was trained by. `directory` is named in errors. Errors: data_loss, with the first mistake.
Result<JobConfig> job_of(const Manifest& manifest, const std::string& directory);

}  // namespace troupe::workers
