#include "model/shard/init.h"

#include <algorithm>

#include "base/hash.h"
#include "base/random.h"

namespace troupe {
namespace {

constexpr std::int64_t kBlock = 1024;

void fill_random(const ParamSpec& param, std::uint64_t seed, std::int64_t from, std::span<float> out) {
  const std::uint64_t key = xxh3_64(param.name);
  const std::int64_t to = from + static_cast<std::int64_t>(out.size());
  for (std::int64_t block = from / kBlock; block * kBlock < to; ++block) {
    CounterRng rng(seed, rng_stream::init, key ^ static_cast<std::uint64_t>(block));
    const std::int64_t end = std::min(to, (block + 1) * kBlock);
    // a shard may begin inside a block: draw what comes before it too, and drop it
    for (std::int64_t element = block * kBlock; element < end; ++element) {
      const double draw =
          param.init.kind == Init::Kind::normal ? static_cast<double>(rng.normal()) : rng.uniform(-1.0, 1.0);
      if (element >= from) out[static_cast<std::size_t>(element - from)] = static_cast<float>(draw * param.init.scale);
    }
  }
}

void fill_param(const ParamSpec& param, std::uint64_t seed, std::int64_t from, std::span<float> out) {
  switch (param.init.kind) {
    case Init::Kind::zeros: return;
    case Init::Kind::ones: std::fill(out.begin(), out.end(), 1.0f); return;
    case Init::Kind::normal:
    case Init::Kind::uniform: fill_random(param, seed, from, out); return;
  }
}

}  // namespace

void fill_initial(const UnitSpec& unit, const FlatLayout& layout, std::uint64_t seed, std::int64_t begin,
                  std::span<float> out) {
  std::fill(out.begin(), out.end(), 0.0f);
  const std::int64_t end = begin + static_cast<std::int64_t>(out.size());
  for (std::size_t i = 0; i < layout.entries.size(); ++i) {
    const auto& entry = layout.entries[i];
    const std::int64_t from = std::max(begin, entry.offset), to = std::min(end, entry.offset + entry.numel);
    if (from >= to) continue;
    fill_param(unit.params[i], seed, from - entry.offset,
               out.subspan(static_cast<std::size_t>(from - begin), static_cast<std::size_t>(to - from)));
  }
}

}  // namespace troupe
