#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "model/policy/policy_net.h"

namespace troupe::model {

/// Whether PolicyNet::act_on_rows() takes an observation with these parameters: the policy acts on rows, the state
/// [N,D] is contiguous f32 on the CPU, and so are the parameters.
bool takes_rows(const PolicyNet& net, const UnitViews& views, const Batch& observation);

/// act() by act_on_rows(), so that both give the same bits; `action_width` is K*A. Nothing where takes_rows() is false.
std::optional<ActResult> act_by_rows(const PolicyNet& net, std::int64_t action_width, const UnitViews& views,
                                     const ActRequest& request);

/// value() by act_on_rows(). Nothing where takes_rows() is false.
std::optional<at::Tensor> value_by_rows(const PolicyNet& net, const UnitViews& views, const Batch& observation);

}  // namespace troupe::model
