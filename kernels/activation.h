#pragma once

#include <cstdint>

#include "base/namespaces.h"

namespace troupe::kernels {

/// GELU in its tanh form (kernels/gelu.h) and with the error function (arXiv:1606.08415), u / (1 + e^-u), max(u, 0).
enum class Activation : std::uint8_t { gelu_tanh, gelu_erf, silu, relu };

}  // namespace troupe::kernels
