#include "workers/rollout/moments.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/check.h"

namespace troupe::workers {

void Moments::merge(std::span<const double> other) {
  TROUPE_CHECK(other.size() == numbers_.size(), "moments of equally many numbers are merged");
  const double theirs = other[0], ours = numbers_[0], both = ours + theirs;
  if (theirs == 0) return;
  const std::size_t d = dim();
  for (std::size_t i = 0; i < d; ++i) {
    const double delta = other[1 + i] - numbers_[1 + i];
    numbers_[1 + i] += delta * (theirs / both);
    numbers_[1 + d + i] += other[1 + d + i] + delta * delta * (ours * theirs / both);
  }
  numbers_[0] = both;
}

void Moments::add(std::span<const float> rows) {
  const std::size_t d = dim();
  if (d == 0 || rows.empty()) return;
  const std::size_t count = rows.size() / d;
  batch_.assign(numbers_.size(), 0.0);
  batch_[0] = static_cast<double>(count);
  for (std::size_t r = 0; r < count; ++r) {
    for (std::size_t i = 0; i < d; ++i) batch_[1 + i] += rows[r * d + i];
  }
  for (std::size_t i = 0; i < d; ++i) batch_[1 + i] /= static_cast<double>(count);
  for (std::size_t r = 0; r < count; ++r) {
    for (std::size_t i = 0; i < d; ++i) {
      const double delta = rows[r * d + i] - batch_[1 + i];
      batch_[1 + d + i] += delta * delta;
    }
  }
  merge(batch_);
}

void Moments::clear() { std::fill(numbers_.begin(), numbers_.end(), 0.0); }

std::string encode(const NormaliserState& state) {
  const std::uint64_t dims[] = {state.observed.dim(), state.returned.dim()};
  std::string text(reinterpret_cast<const char*>(dims), sizeof dims);
  for (const Moments* moments : {&state.observed, &state.returned}) {
    text.append(reinterpret_cast<const char*>(moments->numbers().data()), moments->numbers().size_bytes());
  }
  return text;
}

Result<NormaliserState> decode_normaliser(std::string_view text) {
  if (text.empty()) return NormaliserState{Moments(0), Moments(0)};
  std::uint64_t dims[2] = {};
  const auto wanted = [&] { return sizeof dims + (2 + 2 * dims[0] + 2 * dims[1]) * sizeof(double); };
  if (text.size() >= sizeof dims) std::memcpy(dims, text.data(), sizeof dims);
  if (text.size() < sizeof dims || dims[0] > text.size() || dims[1] > text.size() || text.size() != wanted()) {
    return Error{Errc::invalid_argument, fmt::format("{} bytes are no state of a normaliser", text.size())};
  }
  std::vector<double> numbers((text.size() - sizeof dims) / sizeof(double));
  std::memcpy(numbers.data(), text.data() + sizeof dims, numbers.size() * sizeof(double));
  const std::span<const double> all(numbers);
  const std::size_t first = 1 + 2 * static_cast<std::size_t>(dims[0]);
  return NormaliserState{Moments(all.first(first)), Moments(all.subspan(first))};
}

StateScale::StateScale(const Moments& observed, double clip, std::span<const std::uint8_t> normalised) {
  TROUPE_CHECK(observed.dim() == 0 || observed.dim() == normalised.size(), "statistics are those of the state");
  // Nothing was seen yet: clip alone, as a mean of 0 and a deviation of 1 would.
  for (std::size_t i = 0; i < observed.dim(); ++i) {
    const bool scales = normalised[i] != 0;
    mean_.push_back(scales ? static_cast<float>(observed.mean(i)) : 0);
    inverse_.push_back(scales ? static_cast<float>(1.0 / std::sqrt(observed.variance(i) + 1e-8)) : 1);
    clip_.push_back(scales ? static_cast<float>(clip) : std::numeric_limits<float>::infinity());
  }
}

void StateScale::apply(std::span<float> rows) const {
  const std::size_t d = mean_.size();
  if (d == 0) return;
  for (std::size_t r = 0; r < rows.size(); r += d) {
    for (std::size_t i = 0; i < d; ++i)
      rows[r + i] = std::clamp((rows[r + i] - mean_[i]) * inverse_[i], -clip_[i], clip_[i]);
  }
}

}  // namespace troupe::workers
