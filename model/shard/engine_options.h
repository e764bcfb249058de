#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/optim/adamw.h"
#include "model/optim/sophia.h"
#include "model/program/recompute_level.h"
#include "model/shard/unit_groups.h"
#include "model/shard/update_intervals.h"

namespace troupe::model {

/// What lies behind a device's own memory while it is not used: on cores in files in a folder.
struct OffloadOptions {
  /// moments, and masters that are not what is gathered, between their updates
  bool states = false;
  /// what blocks with a program keep, from their forward to their backward, but for that many blocks; 0: nothing of it.
  /// At least 2: a block and the one before it, whose result it reads; 3: and the next to come.
  int stash_slots = 0;
  std::string folder = {};
};

/// What does not change while an engine lives. All ranks have the same.
struct EngineOptions {
  /// kFloat or kBFloat16: what is gathered and computed with
  at::ScalarType param_dtype = at::kFloat;
  /// K, buffers that units are gathered into; no more than there are units
  int param_slots = 3;
  /// G, buffers that gradients are reduced from
  int grad_slots = 2;
  /// Gradients are added up whole on every rank and summed over the ranks once a step (ZeRO-1, arXiv:1910.02054); not
  /// with a manual backward.
  bool whole_gradients = false;
  /// Gradients are summed over the ranks by a reduce-scatter, in the collective's order, not in rank order; NCCL alone.
  bool reduce_scatters = false;
  OffloadOptions offload = {};
  /// An update runs just before the unit's values are used the next time (StepBuilder::postpone_update). Changes no
  /// bit.
  bool lazy_optimizer = false;
  /// Ranks that share one copy of the parameters, in order; 0: all. Fewer (hybrid sharding, arXiv:2304.11277 section
  /// 3.2.2): each such replica shards and sums as if it were alone, and once a step the replicas' sums are added up.
  int sharing_ranks = 0;
  /// largest norm of the global gradient; 0: off
  double clip_grad_norm = 1.0;
  /// What backward runs again, of the units in order; the last one counts for all behind it too. At least one.
  std::vector<RecomputeLevel> recompute = {RecomputeLevel::full};
  AdamWOptions adamw = {};
  /// In place of AdamW, for all groups: m is its momentum, v its estimate of the curvature
  /// (Engine::estimate_curvature).
  std::optional<SophiaOptions> sophia = {};
  /// kFloat or kBFloat16: what moments are kept in; arithmetic is f32
  at::ScalarType moment_dtype = at::kFloat;
  /// Above 0: every trained unit has a moving average of its masters, e = decay e + (1 - decay) p in f32 after each
  /// update of it (Polyak and Juditsky 1992); it starts as a copy of them.
  double ema_decay = 0;
  /// Parameters without decay, or with a learning rate of their own.
  UpdateRules update_rules = {};
  /// Unit groups with an optimizer and a clip norm of their own. The others have `adamw` and are clipped by
  /// `clip_grad_norm` together.
  std::map<std::string, GroupOptions> groups = {};
  /// On a device what units enqueue is captured and launched as graphs (model/program/pass_graphs.h). Changes no bit.
  bool graphs = true;
  /// A network's manual backward (Network::manual_backward) is used where all fits: parameters in f32, K >= units,
  /// G >= units that are trained, and no whole_gradients.
  bool explicit_backward = true;
};

}  // namespace troupe::model
