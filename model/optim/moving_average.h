#pragma once

#include <span>

namespace troupe::model {

/// One step of an exponential moving average, element by element in f32: average = (1 - tau) * average + tau * x. With
/// tau 1 it becomes x, with 0 it stays, bit for bit. Shared among threads without a change of bits. Source:
/// arXiv:1509.02971 (soft target updates).
void move_average(std::span<float> average, std::span<const float> x, double tau);

}  // namespace troupe::model
