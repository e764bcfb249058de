#pragma once

#include "model/cores/core_rates.h"

namespace troupe::model {

/// Goes up when what is measured, or how a kernel's time is explained, changes: the program measures again where the
/// user's cache has rates of another version.
inline constexpr int kCoreRatesVersion = 4;

/// Measures this machine's kernels on `threads` threads, all at once: operations of made-up transformer blocks of four
/// sizes in f32 and in bf16 (of three in bf16 where the processor has no instructions for it), the optimizer's passes,
/// LibTorch's copies on one thread, and transfers between two ranks. Takes five to fifteen seconds. Other work on the
/// machine makes the rates worse. Leaves the form of products and the calling thread's numbers of threads as they were;
/// no other thread may multiply matrices meanwhile.
CoreRates measure_core_rates(int threads);

}  // namespace troupe::model
