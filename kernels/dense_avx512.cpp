#include "kernels/dense_loops.h"

namespace troupe::kernels {

constinit const DenseCode kDenseAvx512 = code_of("avx512");

}  // namespace troupe::kernels
