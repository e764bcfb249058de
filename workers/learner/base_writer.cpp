#include "workers/learner/base_writer.h"

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <span>
#include <vector>

#include "base/durable_file.h"
#include "base/file_io.h"
#include "workers/checkpoint/checkpoint_state.h"
#include "workers/checkpoint/frozen_base.h"
#include "workers/checkpoint/rank_file_writer.h"

namespace troupe::workers {

namespace {

bool is_part(const Engine& engine, std::size_t unit) {
  return lies_in_base(engine.units()[unit], engine.layouts()[unit]);
}

Result<void> write_part(const Engine& engine, const std::string& folder) {
  TROUPE_TRY(make_folders(folder));
  std::vector<TensorDeclaration> tensors;
  std::vector<std::span<const std::byte>> parts;
  std::vector<at::Tensor> shards;
  for (std::size_t u = 0; u < engine.units().size(); ++u) {
    if (!is_part(engine, u)) continue;
    const at::Tensor& shard = shards.emplace_back(engine.frozen_shard(u));
    tensors.push_back(
        {engine.units()[u].name + ".master", shard.scalar_type() == at::kBFloat16 ? "BF16" : "F32", {shard.numel()}});
    parts.emplace_back(static_cast<const std::byte*>(shard.data_ptr()), shard.nbytes());
  }
  TROUPE_TRY(write_rank_file(folder + "/" + Manifest::rank_file(engine.rank(), engine.world()), tensors, parts));
  return sync_directory(folder);
}

}  // namespace

bool has_frozen_units(const Engine& engine) {
  for (std::size_t u = 0; u < engine.units().size(); ++u) {
    if (is_part(engine, u)) return true;
  }
  return false;
}

Result<void> write_base_part(const Engine& engine, const std::string& checkpoints, std::uint64_t fence) {
  const auto written = write_part(engine, base_tmp_folder(checkpoints, fence));
  if (written) return {};
  return Error{Errc::resource_exhausted, "the frozen base is not written: " + written.error().message()};
}

}  // namespace troupe::workers
