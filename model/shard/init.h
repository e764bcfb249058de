#pragma once

#include <cstdint>
#include <span>

#include "model/shard/flat_layout.h"

namespace troupe::model {

/// Initial values of elements [begin, begin + out.size()) of a unit's flat buffer; gaps and padding are zero. Each
/// value is a function of (seed, parameter name, element) alone, so every rank fills its own shard and no world size
/// changes a value. Draws come in blocks of 1024 elements of one parameter: CounterRng(seed, rng_stream::init,
/// xxh3(name) ^ block), block = element / 1024. Work is proportional to what is asked for, but for orthogonal tensors.
/// An orthogonal tensor is made whole from such normal draws, then cut.
void fill_initial(const UnitSpec& unit, const FlatLayout& layout, std::uint64_t seed, std::int64_t begin,
                  std::span<float> out);

}  // namespace troupe::model
