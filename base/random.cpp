#include "base/random.h"

#include <cmath>
#include <numbers>

#include "base/hash.h"

namespace troupe::base {

CounterRng::CounterRng(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) noexcept {
  const std::uint64_t key = mix64(seed ^ mix64(stream * 0x9E3779B97F4A7C15ULL + 1));
  key_[0] = static_cast<std::uint32_t>(key);
  key_[1] = static_cast<std::uint32_t>(key >> 32);
  counter_[0] = counter_[1] = 0;
  counter_[2] = static_cast<std::uint32_t>(index);
  counter_[3] = static_cast<std::uint32_t>(index >> 32);
}

void CounterRng::refill() noexcept {
  std::uint32_t c[4] = {counter_[0], counter_[1], counter_[2], counter_[3]};
  std::uint32_t k0 = key_[0], k1 = key_[1];
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * c[0], p1 = std::uint64_t{0xCD9E8D57u} * c[2];
    const std::uint32_t n0 = static_cast<std::uint32_t>(p1 >> 32) ^ c[1] ^ k0,
                        n2 = static_cast<std::uint32_t>(p0 >> 32) ^ c[3] ^ k1;
    c[1] = static_cast<std::uint32_t>(p1);
    c[3] = static_cast<std::uint32_t>(p0);
    c[0] = n0;
    c[2] = n2;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  for (int i = 0; i < 4; ++i) block_[i] = c[i];
  used_ = 0;
  if (++counter_[0] == 0) ++counter_[1];
}

std::uint32_t CounterRng::next_u32() noexcept {
  if (used_ == 4) refill();
  return block_[used_++];
}

std::uint32_t CounterRng::below(std::uint32_t bound) noexcept {
  // Lemire's method: reject the few products that would make low values likelier.
  std::uint64_t product = std::uint64_t{next_u32()} * bound;
  if (static_cast<std::uint32_t>(product) < bound) {
    const std::uint32_t threshold = (0u - bound) % bound;
    while (static_cast<std::uint32_t>(product) < threshold) product = std::uint64_t{next_u32()} * bound;
  }
  return static_cast<std::uint32_t>(product >> 32);
}

float CounterRng::uniform() noexcept { return static_cast<float>(next_u32() >> 8) * 0x1.0p-24f; }

double CounterRng::uniform(double lo, double hi) noexcept {
  return lo + (hi - lo) * (static_cast<double>(next_u32()) * 0x1.0p-32);
}

float CounterRng::normal() noexcept {
  if (has_spare_) {
    has_spare_ = false;
    return spare_;
  }
  // 1 - u lies in (0, 1], so the logarithm is finite
  const double u = 1.0 - static_cast<double>(next_u32()) * 0x1.0p-32;
  const double angle = 2.0 * std::numbers::pi * (static_cast<double>(next_u32()) * 0x1.0p-32);
  const double radius = std::sqrt(-2.0 * std::log(u));
  spare_ = static_cast<float>(radius * std::sin(angle));
  has_spare_ = true;
  return static_cast<float>(radius * std::cos(angle));
}

}  // namespace troupe::base
