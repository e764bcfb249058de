#pragma once

#include "base/namespaces.h"

namespace troupe::kernels {

/// Rates of a bf16 product of a transformer's size (512 x 1024 by 1024 x 1024) in both forms, FLOP/s, as they are
/// computed here: in tiles, with what the widened form converts, on num_threads(). Best of some; takes about 0.2 s.
/// The form of this process is left as it was.
struct MeasuredRates {
  double native = 0, widened = 0;
};
MeasuredRates measure_product_rates();

}  // namespace troupe::kernels
