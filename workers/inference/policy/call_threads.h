#pragma once

#include "configs/model_config.h"

namespace troupe::workers {

/// Whether a call of this transformer takes one thread: threads that share products this small spend their time waiting
/// for each other, eight times that of one thread, and far more beside a program that needs the cores.
inline bool is_for_one_thread(const DitConfig& dit) {
  return dit.dim <= 512;  // DreamZero's own widths are 3072 and 5120
}

}  // namespace troupe::workers
