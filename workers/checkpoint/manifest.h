#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"

namespace troupe {

/// Where a parameter lies in its unit's flat buffer, in elements.
struct ManifestParam {
  std::string name;
  std::vector<std::int64_t> shape;
  std::int64_t offset = 0;
  std::int64_t numel = 0;

  bool operator==(const ManifestParam&) const = default;
};

/// One unit: its parameters in the order of the flat buffer.
struct ManifestUnit {
  std::string name;
  std::string layout_class;
  std::vector<ManifestParam> params;
  std::int64_t numel = 0;  ///< end of the last parameter; without the padding that depends on the world
  std::uint64_t layout_hash = 0;
  bool trainable = true;  ///< false: frozen values or a target network, saved without moments

  /// Number of tensors in a rank file: master, m and v, or of a frozen unit master alone.
  std::size_t num_kinds() const { return trainable ? 3 : 1; }

  /// Elements of each rank's shard: numel rounded up to a multiple of world * 1024, over world.
  std::int64_t shard(std::int64_t world) const {
    const std::int64_t multiple = world * 1024;
    return (numel + multiple - 1) / multiple * 1024;
  }
};

/// Hyper-parameters and scalar state of AdamW.
struct ManifestOptimizer {
  std::string name = "adamw";
  double lr = 0;
  std::vector<double> betas;
  double eps = 0;
  double weight_decay = 0;
  std::int64_t updates = 0;  ///< updates applied; less than step where batches were void
  /// Updates by unit group, where groups are updated on their own; a group that is missing has seen `updates`.
  std::map<std::string, std::int64_t> groups = {};
};

/// One file beside the manifest.
struct ManifestFile {
  std::string name;
  std::int64_t size = 0;  ///< bytes
  std::string digest;     ///< XXH3-128, 32 hex digits
};

/// What manifest.json says (docs/checkpoints.md). A directory without it is garbage.
struct Manifest {
  static constexpr std::int64_t kFormat = 1;

  std::int64_t format = kFormat;
  std::int64_t step = 0;  ///< steps committed
  std::uint64_t fence = 0;
  std::int64_t world = 1;
  std::vector<ManifestUnit> units;
  std::uint64_t layout_hash = 0;  ///< of all units; does not depend on world
  ManifestOptimizer optimizer;
  std::int64_t seed = 0;
  std::int64_t next_position = 0;  ///< first global sample position that is not trained yet
  std::string dataset_fingerprint;
  std::string config;  ///< resolved job YAML
  std::string encoder_hash;
  std::vector<ManifestFile> files;
  std::string previous;  ///< folder name of the checkpoint before this one; empty for the first
  std::string version;   ///< of Troupe

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

}  // namespace troupe
