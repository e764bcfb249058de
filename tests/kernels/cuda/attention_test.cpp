// Attention on a device against softmax in f64, written out: segments, shared keys, both element types.
#include "kernels/cuda/attention.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "tests/kernels/cuda/device_array.h"
#include "tests/kernels/cuda/mutants.h"

namespace troupe::kernels::cuda {
namespace {

using ::testing::IsEmpty;

struct Case {
  int samples, heads, head_dim, queries, keys;
  std::vector<AttentionSegment> segments;
  /// begin, end and how often the last of them counts, by sample; empty: samples have their own keys
  std::vector<std::int64_t> key_rows;
  /// columns beside each row that belong to others
  int gap;
};

/// The clean and noisy frames of a chunk, with actions and one state that sees itself alone.
std::vector<AttentionSegment> chunk_segments() {
  return {{{0, 10}, {{0, 10}}},
          {{10, 75}, {{0, 75}}},
          {{75, 80}, {{0, 10}, {75, 80}, {81, 84}}},
          {{80, 81}, {{80, 81}}},
          {{81, 84}, {{0, 10}, {75, 84}}}};
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const int dim : {16, 32, 64, 128}) {
    all.push_back({1, 1, dim, 1, 1, {{{0, 1}, {{0, 1}}}}, {}, 0});
    all.push_back({dim == 64 ? 2 : 1, 2, dim, 84, 84, chunk_segments(), {}, 16});
    // kernels of all head sizes are one template
    if (dim != 64) continue;
    all.push_back({1, 1, dim, 67, 131, {{{0, 67}, {{0, 131}}}}, {}, 0});
    // samples 0 and 2 share rows 0 to 9; no sample sees rows 9 to 12
    all.push_back({3, 1, dim, 65, 140, {{{0, 65}, {{0, 140}}}}, {0, 9, 1, 12, 140, 7, 0, 9, 1}, 0});
  }
  return all;
}

/// Everything in f64, [sample][row][head][element] as it lies.
struct Reference {
  std::vector<double> out, lse, dq, dk, dv;
};

struct Inputs {
  std::vector<double> q, k, v, dout;
};

class ReferenceAttention {
 public:
  ReferenceAttention(const Case& c, const Inputs& in) : c_(c), in_(in), width_(c.heads * c.head_dim) {
    const auto rows = [&](int samples, int count) { return static_cast<std::size_t>(samples * count * width_); };
    r_.out.resize(rows(c.samples, c.queries)), r_.dq.resize(r_.out.size());
    r_.lse.resize(static_cast<std::size_t>(c.samples * c.heads * c.queries));
    r_.dk.resize(rows(key_samples(), c.keys)), r_.dv.resize(r_.dk.size());
    for (int b = 0; b < c.samples; ++b) {
      for (int h = 0; h < c.heads; ++h) {
        for (const auto& segment : c.segments) {
          for (int t = segment.queries.begin; t < segment.queries.end; ++t) attend(b, h, t, segment);
        }
      }
    }
  }
  const Reference& results() const { return r_; }

 private:
  int key_samples() const { return c_.key_rows.empty() ? c_.samples : 1; }
  std::size_t at(int sample, int rows, int row, int head) const {
    return static_cast<std::size_t>((sample * rows + row) * width_ + head * c_.head_dim);
  }

  void attend(int b, int h, int t, const AttentionSegment& segment) {
    struct Key {
      std::size_t at;
      double times, p = 0;
    };
    std::vector<Key> keys;
    for (const auto& range : segment.keys) {
      for (int s = range.begin; s < range.end; ++s) {
        double times = 1;
        if (!c_.key_rows.empty()) {
          const auto* rows = c_.key_rows.data() + 3 * b;
          if (s < rows[0] || s >= rows[1]) continue;
          if (s == rows[1] - 1) times = static_cast<double>(rows[2]);
        }
        keys.push_back({at(c_.key_rows.empty() ? b : 0, c_.keys, s, h), times});
      }
    }
    const double scale = 1 / std::sqrt(static_cast<double>(c_.head_dim));
    const auto query = at(b, c_.queries, t, h);
    const auto dot = [&](const std::vector<double>& x, std::size_t i, const std::vector<double>& y, std::size_t j) {
      double sum = 0;
      for (int e = 0; e < c_.head_dim; ++e)
        sum += x[i + static_cast<std::size_t>(e)] * y[j + static_cast<std::size_t>(e)];
      return sum;
    };
    double total = 0, mean = 0;
    for (auto& key : keys) total += key.p = key.times * std::exp(scale * dot(in_.q, query, in_.k, key.at));
    r_.lse[static_cast<std::size_t>((b * c_.heads + h) * c_.queries + t)] = std::log(total);
    for (auto& key : keys) {
      key.p /= total;
      mean += key.p * dot(in_.dout, query, in_.v, key.at);
    }
    for (const auto& key : keys) {
      const double ds = scale * key.p * (dot(in_.dout, query, in_.v, key.at) - mean);
      for (std::size_t e = 0; e < static_cast<std::size_t>(c_.head_dim); ++e) {
        r_.out[query + e] += key.p * in_.v[key.at + e];
        r_.dq[query + e] += ds * in_.k[key.at + e];
        r_.dk[key.at + e] += ds * in_.q[query + e];
        r_.dv[key.at + e] += key.p * in_.dout[query + e];
      }
    }
  }

  const Case& c_;
  const Inputs& in_;
  int width_;
  Reference r_;
};

template <class T>
std::vector<double> doubles(const std::vector<T>& values) {
  std::vector<double> all;
  for (const auto& value : values) all.push_back(to_double(value));
  return all;
}

/// Rows of `width` values with `gap` unused values between them.
template <class T>
std::vector<T> with_gaps(const std::vector<T>& values, int width, int gap) {
  std::vector<T> spread;
  for (std::size_t i = 0; i < values.size(); ++i) {
    spread.push_back(values[i]);
    if ((i + 1) % static_cast<std::size_t>(width) == 0) spread.resize(spread.size() + static_cast<std::size_t>(gap));
  }
  return spread;
}
template <class T>
std::vector<T> without_gaps(const std::vector<T>& spread, int width, int gap) {
  std::vector<T> values;
  for (std::size_t i = 0; i < spread.size(); ++i) {
    if (i % static_cast<std::size_t>(width + gap) < static_cast<std::size_t>(width)) values.push_back(spread[i]);
  }
  return values;
}

template <class T>
class CudaAttentionTest : public ::testing::Test {
 protected:
  void SetUp() override { device::standin::reset({.seed = 11}); }

  /// Forward and backward on the device, read back.
  void run(const Case& c) {
    const auto width = c.heads * c.head_dim;
    const auto count = [&](int samples, int rows) { return static_cast<std::size_t>(samples * rows * width); };
    const int key_samples = c.key_rows.empty() ? c.samples : 1;
    q = random_values<T>(count(c.samples, c.queries), 1), dout = random_values<T>(q.size(), 2);
    k = random_values<T>(count(key_samples, c.keys), 3), v = random_values<T>(k.size(), 4);

    const DeviceStream stream;
    const auto plan = plan_attention(c.segments, c.keys);
    const DeviceArray query_tiles(plan.query_tiles, stream), key_tiles(plan.key_tiles, stream);
    const DeviceArray ranges(plan.ranges, stream);
    const DeviceAttentionPlan device_plan{query_tiles.data(), key_tiles.data(), ranges.data(),
                                          static_cast<std::int32_t>(plan.query_tiles.size()),
                                          static_cast<std::int32_t>(plan.key_tiles.size())};
    std::optional<DeviceArray<std::int64_t>> key_rows;
    if (!c.key_rows.empty()) key_rows.emplace(c.key_rows, stream);
    const AttentionSizes sizes{c.samples, c.heads, c.head_dim,
                               c.queries, c.keys,  key_rows ? key_rows->data() : nullptr};
    const std::int64_t stride = width + c.gap;
    const auto spread = [&](const auto& values) { return with_gaps(values, width, c.gap); };
    const DeviceArray q_there(spread(q), stream), k_there(spread(k), stream), v_there(spread(v), stream),
        dout_there(spread(dout), stream);
    const DeviceArray out_there(spread(std::vector<T>(q.size())), stream);
    const DeviceArray dq_there(spread(std::vector<float>(q.size())), stream),
        dk_there(spread(std::vector<float>(k.size())), stream), dv_there(spread(std::vector<float>(k.size())), stream);
    const DeviceArray<float> lse_there(static_cast<std::size_t>(c.samples * c.heads * c.queries), stream);
    const DeviceArray<std::byte> scratch(static_cast<std::size_t>(attention_backward_scratch_bytes(sizes)), stream);
    const auto rows = [&](const DeviceArray<T>& array) { return AttentionRows<const T>{array.data(), stride}; };
    const auto floats = [&](const DeviceArray<float>& array) { return AttentionRows<float>{array.data(), stride}; };
    ASSERT_EQ(launch_attention_forward<T>(device_plan, sizes, rows(q_there), rows(k_there), rows(v_there),
                                          {out_there.data(), stride}, lse_there.data(), stream),
              cudaSuccess);
    ASSERT_EQ(launch_attention_backward<T>(device_plan, sizes, rows(dout_there), rows(q_there), rows(k_there),
                                           rows(v_there), rows(out_there), lse_there.data(), floats(dq_there),
                                           floats(dk_there), floats(dv_there), scratch.data(), stream),
              cudaSuccess);
    const auto gathered = [&](const auto& array) { return without_gaps(array.read(), width, c.gap); };
    out = gathered(out_there), lse = lse_there.read();
    dq = gathered(dq_there), dk = gathered(dk_there), dv = gathered(dv_there);
    found = device::standin::report();
  }

  std::vector<T> q, k, v, dout, out;
  std::vector<float> lse, dq, dk, dv;
  device::standin::Report found;
};

using Elements = ::testing::Types<float, simd::Bf16>;
TYPED_TEST_SUITE(CudaAttentionTest, Elements);

TYPED_TEST(CudaAttentionTest, AgreesWithSoftmaxWrittenOutInDouble) {
  // f32: the roundings of sums of up to 131 terms; bf16: those of probabilities and results
  const double tolerance = (std::is_same_v<TypeParam, float> ? 64 : 4) * rounding_of<TypeParam>();
  for (const auto& c : cases()) {
    SCOPED_TRACE(::testing::Message() << "head size " << c.head_dim << ", " << c.queries << " queries of " << c.samples
                                      << " samples, " << c.keys << " keys");
    this->run(c);
    const Inputs inputs{doubles(this->q), doubles(this->k), doubles(this->v), doubles(this->dout)};
    const ReferenceAttention reference(c, inputs);
    const auto& want = reference.results();
    expect_close(this->out, want.out, tolerance, "out");
    expect_close(this->lse, want.lse, 64 * rounding_of<float>(), "lse");
    expect_close(this->dq, want.dq, tolerance, "dq");
    expect_close(this->dk, want.dk, tolerance, "dk");
    expect_close(this->dv, want.dv, tolerance, "dv");
    EXPECT_THAT(this->found.findings, IsEmpty());
    for (const auto& [name, counts] : this->found.kernels)
      EXPECT_EQ(counts.all.conflicts, 0U) << name << ": bank conflicts";
  }
}

TYPED_TEST(CudaAttentionTest, EveryMissingBarrierAndWrongBoundIsFound) {
  const std::string type = std::is_same_v<TypeParam, float> ? "f32" : "bf16";
  const Case c{1, 1, 16, 84, 84, chunk_segments(), {}, 16};
  for (const auto* kernel : {"forward_", "query_gradient_", "key_gradients_"}) {
    expect_faults_found(kernel + type + "ILi16E", [&] {
      this->run(c);
      std::vector<std::byte> bytes;
      const auto add = [&](const auto& values) {
        const auto* begin = reinterpret_cast<const std::byte*>(values.data());
        bytes.insert(bytes.end(), begin, begin + values.size() * sizeof(values[0]));
      };
      add(this->out), add(this->lse), add(this->dq), add(this->dk), add(this->dv);
      return bytes;
    });
  }
}

TYPED_TEST(CudaAttentionTest, AnotherHeadSizeIsRefused) {
  const DeviceStream stream;
  const DeviceAttentionPlan plan{nullptr, nullptr, nullptr, 1, 1};
  const AttentionSizes sizes{1, 1, 48, 1, 1, nullptr};
  EXPECT_EQ(launch_attention_forward<TypeParam>(plan, sizes, {}, {}, {}, {}, nullptr, stream), cudaErrorInvalidValue);
}

}  // namespace
}  // namespace troupe::kernels::cuda
