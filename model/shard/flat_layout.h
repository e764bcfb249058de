#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "model/shard/network.h"

namespace troupe::model {

/// Where one parameter lies in its unit's flat buffer, in elements.
struct LayoutEntry {
  std::string name;
  std::vector<std::int64_t> shape;
  std::int64_t offset = 0;
  std::int64_t numel = 0;
  bool follows = false;  ///< ParamSpec::follows
};

/// One unit's parameters in one flat buffer (docs/learner-engine.md "Layout"). Entries keep the order of the unit's
/// ParamSpecs; each starts at a multiple of kEntryAlignment, or where the one before it ends (ParamSpec::follows); gaps
/// and padding hold zeros and stay zero. Rank r's shard is elements [r * shard(world), (r + 1) * shard(world)), so a
/// parameter may lie on several ranks.
struct FlatLayout {
  static constexpr std::int64_t kEntryAlignment = 64;    ///< 256 bytes of f32
  static constexpr std::int64_t kShardAlignment = 1024;  ///< every shard is a multiple

  std::vector<LayoutEntry> entries;
  std::int64_t numel = 0;  ///< end of the last entry, before padding
  std::uint64_t hash = 0;  ///< of names, shapes and offsets; does not depend on the world size

  std::int64_t padded(int world) const { return (numel + unit(world) - 1) / unit(world) * unit(world); }
  std::int64_t shard(int world) const { return padded(world) / world; }

 private:
  static std::int64_t unit(int world) { return world * kShardAlignment; }
};

/// The layout of parameters in their order; a parameter without axes has one element. Pure.
FlatLayout make_flat_layout(std::span<const ParamSpec> params);

/// One hash over all units' layouts, in order.
std::uint64_t hash_of(std::span<const FlatLayout> layouts);

/// Views of one unit over its flat buffer (padded elements). With `leaves` each view is a leaf that requires grad.
ParamView views_of(const FlatLayout& layout, const at::Tensor& flat, bool leaves);
/// The same of some entries only, added to `views`.
void add_views(ParamView& views, std::span<const LayoutEntry> entries, const at::Tensor& flat, bool leaves);

/// What no entry covers, in order.
std::vector<std::span<float>> gaps_of(const FlatLayout& layout, std::span<float> flat);

}  // namespace troupe::model
