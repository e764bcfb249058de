#pragma once

#include <cstdint>
#include <vector>

#include "base/namespaces.h"

namespace troupe::kernels {

/// Rows [begin, end) of a sample's queries or keys.
struct AttentionRange {
  std::int32_t begin = 0;
  std::int32_t end = 0;
};

/// Queries that see the same keys, as attention is planned: ranges ascend and do not overlap.
struct AttentionSegment {
  AttentionRange queries;
  std::vector<AttentionRange> keys;
};

/// What one block of threads computes: some rows, and the ranges of the other side that they meet.
struct AttentionTile {
  std::int32_t begin = 0;
  std::int32_t end = 0;
  /// In AttentionPlan::ranges.
  std::int32_t first_range = 0;
  std::int32_t ranges = 0;
};

/// Rows of a tile at most.
inline constexpr std::int32_t kAttentionTile = 64;

/// The tiles of an attention by segments, the same for each head and sample. Forward and the gradient of q go through
/// tiles of queries, which meet ranges of keys; the gradients of k and v through tiles of keys, which meet ranges of
/// queries, so that every sum belongs to one block and has one order: no atomics.
struct AttentionPlan {
  std::vector<AttentionTile> query_tiles;
  std::vector<AttentionTile> key_tiles;
  std::vector<AttentionRange> ranges;
};

/// An AttentionPlan in device memory.
struct DeviceAttentionPlan {
  const AttentionTile* query_tiles = nullptr;
  const AttentionTile* key_tiles = nullptr;
  const AttentionRange* ranges = nullptr;
  std::int32_t num_query_tiles = 0;
  std::int32_t num_key_tiles = 0;
};

/// Head sizes that attention on devices takes, and the same as text.
inline constexpr char kTakenHeads[] = "16, 32, 64 and 128";
constexpr bool takes_head(std::int64_t head_dim) {
  return head_dim == 16 || head_dim == 32 || head_dim == 64 || head_dim == 128;
}

/// Sizes of an attention. `head_dim` is one that it takes.
struct AttentionSizes {
  std::int32_t samples = 0;
  std::int32_t heads = 0;
  std::int32_t head_dim = 0;
  /// Of a sample.
  std::int32_t queries = 0;
  std::int32_t keys = 0;
  /// i64 [samples, 3] in device memory, or null. With it all samples share the rows of k and v, [1, keys, ...], of
  /// which sample b sees [begin, end), the last standing for n equal ones (kernels/attention.h); the plan then has one
  /// segment with all queries and keys.
  const std::int64_t* key_rows = nullptr;
};

/// Segments cover each query once. Keys [0, keys) that no segment sees are in tiles without ranges: their gradients
/// are zero.
AttentionPlan plan_attention(const std::vector<AttentionSegment>& segments, std::int32_t keys);

}  // namespace troupe::kernels
