#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>

#include "model/optim/adamw.h"
#include "model/shard/unit_groups.h"
#include "model/shard/update_intervals.h"

namespace troupe::model {

/// What does not change while an engine lives. All ranks have the same.
struct EngineOptions {
  /// kFloat or kBFloat16: what is gathered and computed with
  at::ScalarType param_dtype = at::kFloat;
  /// K, buffers that units are gathered into; no more than there are units
  int param_slots = 3;
  /// G, buffers that gradients are reduced from
  int grad_slots = 2;
  /// largest norm of the global gradient; 0: off
  double clip_grad_norm = 1.0;
  /// backward runs units again; off: their graphs are kept (TapeMode::keep)
  bool recompute = true;
  AdamWOptions adamw = {};
  /// Parameters without decay, or with a learning rate of their own.
  UpdateRules update_rules = {};
  /// Unit groups with an optimizer and a clip norm of their own. The others have `adamw` and are clipped by
  /// `clip_grad_norm` together.
  std::map<std::string, GroupOptions> groups = {};
  /// A network's manual backward (Network::manual_backward) is used where all fits: parameters in f32, K >= units, and
  /// G >= units that are trained.
  bool explicit_backward = true;
};

}  // namespace troupe::model
