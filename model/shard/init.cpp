#include "model/shard/init.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/hash.h"
#include "base/random.h"

namespace troupe::model {
namespace {

constexpr std::int64_t kBlock = 1024;

void fill_random(const ParamSpec& param, std::uint64_t seed, std::int64_t from, std::span<float> out) {
  const std::uint64_t key = xxh3_64(param.name);
  const std::int64_t to = from + static_cast<std::int64_t>(out.size());
  for (std::int64_t block = from / kBlock; block * kBlock < to; ++block) {
    CounterRng rng(seed, rng_stream::init, key ^ static_cast<std::uint64_t>(block));
    const std::int64_t end = std::min(to, (block + 1) * kBlock);
    // a shard may begin inside a block: draw what comes before it too, and drop it
    for (std::int64_t element = block * kBlock; element < end; ++element) {
      const double draw =
          param.init.kind == Init::Kind::normal ? static_cast<double>(rng.normal()) : rng.uniform(-1.0, 1.0);
      if (element >= from) out[static_cast<std::size_t>(element - from)] = static_cast<float>(draw * param.init.scale);
    }
  }
}

double dot(const double* a, const double* b, std::int64_t n) {
  double sums[8] = {};  // eight sums in a fixed order: fast, and the same bits on every machine
  std::int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    for (int lane = 0; lane < 8; ++lane) sums[lane] += a[i + lane] * b[i + lane];
  }
  for (; i < n; ++i) sums[0] += a[i] * b[i];
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

/// Makes `count` vectors of `length` elements orthonormal, each against those before it (modified Gram-Schmidt: the Q
/// of a QR factorisation whose R has a positive diagonal).
void orthonormalise(std::vector<double>& vectors, std::int64_t count, std::int64_t length) {
  for (std::int64_t k = 0; k < count; ++k) {
    double* v = vectors.data() + k * length;
    const double norm = std::sqrt(dot(v, v, length));
    for (std::int64_t i = 0; i < length; ++i) v[i] /= norm;
    for (std::int64_t j = k + 1; j < count; ++j) {
      double* w = vectors.data() + j * length;
      const double share = dot(v, w, length);
      for (std::int64_t i = 0; i < length; ++i) w[i] -= share * v[i];
    }
  }
}

/// The whole tensor is made, whatever part of it is asked for: its elements depend on each other.
void fill_orthogonal(const ParamSpec& param, std::uint64_t seed, std::int64_t from, std::span<float> out) {
  const std::int64_t rows = param.shape.empty() ? 1 : param.shape.front();
  std::int64_t columns = 1;
  for (std::size_t i = 1; i < param.shape.size(); ++i) columns *= param.shape[i];
  std::vector<float> drawn(static_cast<std::size_t>(rows * columns));
  fill_random({param.name, param.shape, {Init::Kind::normal, 1.0}}, seed, 0, drawn);

  const bool transposed = rows > columns;
  const std::int64_t count = std::min(rows, columns), length = std::max(rows, columns);
  const auto place = [&](std::int64_t element) {  // of an element of the tensor among the vectors
    return static_cast<std::size_t>(transposed ? element % columns * length + element / columns : element);
  };
  std::vector<double> vectors(drawn.size());
  for (std::size_t i = 0; i < drawn.size(); ++i)
    vectors[place(static_cast<std::int64_t>(i))] = static_cast<double>(drawn[i]);
  orthonormalise(vectors, count, length);
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = static_cast<float>(param.init.scale * vectors[place(from + static_cast<std::int64_t>(i))]);
  }
}

void fill_param(const ParamSpec& param, std::uint64_t seed, std::int64_t from, std::span<float> out) {
  switch (param.init.kind) {
    case Init::Kind::zeros:
      return;
    case Init::Kind::ones:
      std::fill(out.begin(), out.end(), 1.0f);
      return;
    case Init::Kind::normal:
    case Init::Kind::uniform:
      fill_random(param, seed, from, out);
      return;
    case Init::Kind::orthogonal:
      fill_orthogonal(param, seed, from, out);
      return;
    case Init::Kind::constant:
      std::fill(out.begin(), out.end(), static_cast<float>(param.init.scale));
      return;
  }
}

}  // namespace

void fill_initial(const UnitSpec& unit, const FlatLayout& layout, std::uint64_t seed, std::int64_t begin,
                  std::span<float> out) {
  std::fill(out.begin(), out.end(), 0.0f);
  const std::int64_t end = begin + static_cast<std::int64_t>(out.size());
  for (std::size_t i = 0; i < layout.entries.size(); ++i) {
    const auto& entry = layout.entries[i];
    const std::int64_t from = std::max(begin, entry.offset), to = std::min(end, entry.offset + entry.numel);
    if (from >= to) continue;
    fill_param(unit.params[i], seed, from - entry.offset,
               out.subspan(static_cast<std::size_t>(from - begin), static_cast<std::size_t>(to - from)));
  }
}

}  // namespace troupe::model
