#pragma once

#include <cstdint>

#include "configs/train_config.h"

namespace troupe::model {

/// Learning rate of the update that follows `step` finished steps (0 for the first), of `total` in the schedule.
///     warmup = ceil(warmup_ratio * total)
///     step < warmup: lr * step / warmup
///     cosine:        min_lr + (lr - min_lr) * (1 + cos(pi * (step - warmup) / (total - warmup))) / 2, min_lr from
///     `total` on constant:      lr
/// The first update of a schedule with a warm-up has lr 0, as in the reference's trainer. `total` replaces the config's
/// total_steps when that is 0. Pure. Source: Hugging Face transformers get_cosine_schedule_with_warmup.
double lr_at(const OptimizerConfig& optimizer, const LrSchedulerConfig& scheduler, std::int64_t step,
             std::int64_t total);

}  // namespace troupe::model
