// One line of placement: where processes sit, which ranks, or a cluster to pretend. The reader of each gets the input.
#include <algorithm>

#include "placement/placement_string.h"
#include "placement/pretend.h"
#include "tests/fuzz/fuzz.h"

namespace troupe::testing {

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = text_of(data, size);
  constexpr std::int64_t kResources = 8;
  const auto map = parse_placement(text, kResources, "key");
  if (map) {
    for (const auto& resources : *map) {
      TROUPE_CHECK(!resources.empty() && std::is_sorted(resources.begin(), resources.end()),
                   "every process has resources, in order");
      TROUPE_CHECK(resources.front() >= 0 && resources.back() < kResources, "the resources exist");
    }
  }
  const auto ranks = parse_ranks(text, "key");
  if (ranks) TROUPE_CHECK(std::is_sorted(ranks->begin(), ranks->end()), "ranks ascend");
  const auto cluster = pretend_cluster(text);
  if (cluster) {
    for (const NodeSnapshot& node : cluster->nodes)
      TROUPE_CHECK(node.cpus > 0 && node.memory_bytes > 0, "a node has cores and memory");
  }
  if (!map && !ranks && !cluster) refused(map.error());
  return 0;
}

}  // namespace troupe::testing
