#include "kernels/dense_loops.h"

namespace troupe::kernels {

constinit const DenseCode kDenseAvx2 = code_of("avx2");

}  // namespace troupe::kernels
