#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "model/shard/engine.h"

namespace troupe::workers {

/// Whether any of an engine's units belongs into the base of its run.
bool has_frozen_units(const Engine& engine);

/// Writes this rank's part of the base, its shards of the frozen units, into the folder of the group's unfinished one
/// (workers/checkpoint/frozen_base.h): from where they lie, in the dtype that they are held in; synced. An earlier
/// attempt is overwritten. `checkpoints`: the run's folder of that name. Errors: resource_exhausted, naming the file
/// and the cause, for anything that went wrong on disk.
Result<void> write_base_part(const Engine& engine, const std::string& checkpoints, std::uint64_t fence);

}  // namespace troupe::workers
