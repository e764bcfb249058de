// manifest.json of a checkpoint.
#include "workers/checkpoint/manifest.h"

#include "tests/fuzz/fuzz.h"

namespace troupe::testing {

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto manifest = manifest_from_json(std::string(text_of(data, size)), "manifest.json");
  if (!manifest) return refused(manifest.error()), 0;
  for (const ManifestUnit& unit : manifest->units) {
    std::int64_t end = 0;
    for (const ManifestParam& param : unit.params) {
      TROUPE_CHECK(param.numel >= 0 && param.offset >= end, "parameters do not overlap");
      end = param.offset + param.numel;
    }
    const std::int64_t world = manifest->world;
    TROUPE_CHECK(end == unit.numel && unit.shard(world) * world >= unit.numel, "the shards hold the unit");
  }
  const std::string text = manifest_to_json(*manifest);
  const auto back = manifest_from_json(text, "manifest.json");
  TROUPE_CHECK(back && manifest_to_json(*back) == text, "what was written is read as it was");
  return 0;
}

}  // namespace troupe::testing
