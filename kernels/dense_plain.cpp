#include "kernels/dense_loops.h"

namespace troupe::kernels {

constinit const DenseCode kDensePlain = code_of("plain");

}  // namespace troupe::kernels
