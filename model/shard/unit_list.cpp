#include "model/shard/unit_list.h"

#include <ATen/ATen.h>

namespace troupe::model {
namespace {

[[noreturn]] void refuse() { TORCH_CHECK(false, "units without a function were run; name an objective"); }

}  // namespace

Carry UnitList::prologue(const ParamView&, const Batch&) const { refuse(); }
at::Tensor UnitList::block(std::int64_t, const ParamView&, const Carry&, const Batch&) const { refuse(); }
Outputs UnitList::epilogue(const ParamView&, const Carry&, const Batch&) const { refuse(); }

}  // namespace troupe::model
