#include "bench/kernels/device_cases.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/random.h"
#include "bench/support/failures.h"
#include "kernels/element.h"
#include "kernels/row_runs.h"

namespace troupe::bench {
namespace {

using kernels::ElementType;
using kernels::ProductLayout;

constexpr std::int64_t kPattern = 1 << 20;

std::int64_t size_of(ElementType type) { return type == ElementType::bf16 ? 2 : 4; }

std::int32_t narrow(std::int64_t value) { return static_cast<std::int32_t>(value); }

/// A linear layer's forward y = x w^T, and dx = dy w, dw = dy^T x in f32.
void add_linear(std::vector<DeviceCase>& cases, const std::string& name, std::int64_t rows, std::int64_t in,
                std::int64_t out, ElementType type, kernels::DeviceKernels& kernels, DeviceValues& values) {
  const auto *x = values.drawn(type, rows * in), *w = values.drawn(type, out * in),
             *dy = values.drawn(type, rows * out);
  const auto add = [&](const char* what, kernels::DeviceProduct p) {
    p.operand_type = type;
    p.out = values.room(p.m * p.n * size_of(p.out_type));
    const auto bytes = size_of(type) * (p.m * p.k + p.k * p.n) + size_of(p.out_type) * p.m * p.n;
    cases.push_back({fmt::format("{}, {}: {} x {} x {}", name, what, p.m, p.n, p.k),
                     2.0 * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k),
                     static_cast<double>(bytes),
                     [p, &kernels](device::Stream& stream) { return kernels.product(p, stream); }});
  };
  add("forward", {.layout = ProductLayout::nt, .m = rows, .n = out, .k = in, .out_type = type, .a = x, .b = w});
  add("dx", {.layout = ProductLayout::nn, .m = rows, .n = in, .k = out, .out_type = type, .a = dy, .b = w});
  add("dw", {.layout = ProductLayout::tn, .m = out, .n = in, .k = rows, .out_type = ElementType::f32, .a = dy, .b = x});
}

/// As kernels are planned by.
std::vector<kernels::AttentionSegment> planned(const std::vector<model::AttentionSegment>& segments) {
  const auto range = [](const TokenRange& r) { return kernels::AttentionRange{narrow(r.begin), narrow(r.end)}; };
  std::vector<kernels::AttentionSegment> all;
  for (const auto& segment : segments) {
    all.push_back({range(segment.query), {}});
    for (const auto& keys : segment.keys) all.back().keys.push_back(range(keys));
  }
  return all;
}

}  // namespace

DeviceValues::DeviceValues(device::Device& device, device::Stream& stream) : device_(device), stream_(stream) {
  base::CounterRng random(1, 0, 0);
  std::vector<float> floats(kPattern);
  for (auto& value : floats) value = static_cast<float>(random.below(2001)) / 1000.0f - 1.0f;
  std::vector<kernels::simd::Bf16> halves(kPattern);
  std::transform(floats.begin(), floats.end(), halves.begin(),
                 [](float value) { return kernels::simd::to_bf16(value); });
  const auto keep = [&](ElementType type, const void* data) {
    auto& pattern = patterns_[static_cast<std::size_t>(type)];
    pattern = device.allocate_pinned(kPattern * size_of(type));
    std::memcpy(pattern->address(), data, static_cast<std::size_t>(pattern->bytes()));
  };
  keep(ElementType::f32, floats.data());
  keep(ElementType::bf16, halves.data());
}

std::byte* DeviceValues::room(std::int64_t bytes) { return held_.emplace_back(device_.allocate(bytes))->address(); }

std::byte* DeviceValues::pinned_room(std::int64_t bytes) {
  return held_.emplace_back(device_.allocate_pinned(bytes))->address();
}

std::byte* DeviceValues::drawn(ElementType type, std::int64_t count) {
  const auto bytes = count * size_of(type);
  std::byte* to = room(bytes);
  const auto& pattern = patterns_[static_cast<std::size_t>(type)];
  for (std::int64_t at = 0; at < bytes; at += pattern->bytes())
    stream_.copy(to + at, pattern->address(), std::min(pattern->bytes(), bytes - at));
  return to;
}

const std::byte* DeviceValues::copied(const void* data, std::int64_t bytes) {
  const auto& pinned = held_.emplace_back(device_.allocate_pinned(bytes));
  std::memcpy(pinned->address(), data, static_cast<std::size_t>(bytes));
  const auto* from = pinned->address();
  std::byte* to = room(bytes);
  stream_.copy(to, from, bytes);
  return to;
}

std::vector<DeviceCase> product_cases(const BlockSizes& s, std::int64_t samples, ElementType type,
                                      kernels::DeviceKernels& kernels, DeviceValues& values) {
  std::vector<DeviceCase> cases;
  const auto side = std::min<std::int64_t>(8192, 4 * s.width);
  add_linear(cases, "square", side, side, side, type, kernels, values);
  cases.resize(1);
  const auto rows = samples * s.layout.tokens(), d = s.width;
  add_linear(cases, "q, k and v", rows, d, 3 * d, type, kernels, values);
  add_linear(cases, "o", rows, d, d, type, kernels, values);
  add_linear(cases, "q to text", rows, d, d, type, kernels, values);
  add_linear(cases, "k and v of text", samples * s.text, d, 2 * d, type, kernels, values);
  add_linear(cases, "k and v of pictures", samples * s.image, d, 2 * d, type, kernels, values);
  add_linear(cases, "o of text", rows, d, d, type, kernels, values);
  add_linear(cases, "up", rows, d, s.hidden, type, kernels, values);
  add_linear(cases, "down", rows, s.hidden, d, type, kernels, values);
  return cases;
}

std::vector<DeviceCase> attention_cases(const BlockSizes& s, std::int64_t samples, ElementType type,
                                        kernels::DeviceKernels& kernels, DeviceValues& values) {
  std::vector<DeviceCase> cases;
  const auto queries = s.layout.tokens();
  const auto add = [&](const std::string& name, const std::vector<model::AttentionSegment>& segments,
                       std::int64_t keys) {
    const auto plan = kernels::plan_attention(planned(segments), narrow(keys));
    const kernels::DeviceAttentionPlan there{values.of(plan.query_tiles), values.of(plan.key_tiles),
                                             values.of(plan.ranges),
                                             narrow(static_cast<std::int64_t>(plan.query_tiles.size())),
                                             narrow(static_cast<std::int64_t>(plan.key_tiles.size()))};
    const kernels::AttentionSizes sizes{narrow(samples), narrow(s.heads), narrow(s.width / s.heads), narrow(queries),
                                        narrow(keys)};
    const auto q_count = samples * queries * s.width, k_count = samples * keys * s.width;
    const auto *q = values.drawn(type, q_count), *k = values.drawn(type, k_count), *v = values.drawn(type, k_count);
    auto* out = values.room(q_count * size_of(type));
    auto* lse = reinterpret_cast<float*>(values.room(samples * s.heads * queries * 4));
    const auto rows = [&](const void* data) { return kernels::DeviceRows<const void*>{data, s.width}; };
    const auto gradient = [&](std::int64_t count) {
      return kernels::DeviceRows<float*>{reinterpret_cast<float*>(values.room(4 * count)), s.width};
    };
    const kernels::DeviceAttention forward{type, there, sizes, rows(q), rows(k), rows(v), {out, s.width}, lse};
    const kernels::DeviceAttentionGradient backward{type,
                                                    there,
                                                    sizes,
                                                    rows(values.drawn(type, q_count)),
                                                    rows(q),
                                                    rows(k),
                                                    rows(v),
                                                    rows(out),
                                                    lse,
                                                    gradient(q_count),
                                                    gradient(k_count),
                                                    gradient(k_count)};
    // two products forward, and five in a gradient that forms the weights again
    const double flops = 2.0 * visible_pairs(segments) * static_cast<double>(s.width * samples);
    cases.push_back({name + ", forward", 2 * flops, 0,
                     [forward, &kernels](device::Stream& stream) { return kernels.attention(forward, stream); }});
    cases.push_back({name + ", gradient", 5 * flops, 0, [backward, &kernels](device::Stream& stream) {
                       return kernels.attention_gradient(backward, stream);
                     }});
  };
  const auto dense = [&](std::int64_t keys) {
    return std::vector<model::AttentionSegment>{{model::AttentionSegment::Kind::clean, {0, queries}, {{0, keys}}}};
  };
  add("segments", s.layout.segments(), queries);
  add("text", dense(s.text), s.text);
  add("pictures", dense(s.image), s.image);
  return cases;
}

std::vector<DeviceCase> memory_cases(const BlockSizes& s, std::int64_t samples, ElementType type,
                                     kernels::DeviceKernels& kernels, DeviceValues& values) {
  const auto rows = samples * s.layout.tokens(), d = s.width, count = rows * d;
  const auto e = size_of(type);
  std::vector<DeviceCase> cases;
  const auto add = [&](const char* name, std::int64_t bytes, std::function<Result<void>(device::Stream&)> enqueue) {
    cases.push_back({name, 0, static_cast<double>(bytes), std::move(enqueue)});
  };
  const auto floats = [&](std::int64_t n) { return reinterpret_cast<float*>(values.drawn(ElementType::f32, n)); };
  const auto *x = values.drawn(type, count), *y = values.drawn(type, count);
  auto* to = values.room(count * e);

  constexpr std::int64_t kCopied = 1 << 28;
  const auto copied = std::min<std::int64_t>(kCopied, 64 * count);
  auto *source = values.drawn(ElementType::f32, copied / 4), *target = values.room(copied);
  add("copy", 2 * copied, [=](device::Stream& stream) { return stream.copy(target, source, copied), Result<void>(); });

  // a frame has a row of the table
  std::vector<std::int32_t> table_row(static_cast<std::size_t>(s.layout.tokens()));
  for (std::size_t i = 0; i < table_row.size(); ++i)
    table_row[i] = narrow(static_cast<std::int64_t>(i) / s.layout.frame_tokens());
  const std::int64_t per_sample = table_row.back() + 1, table_rows = samples * per_sample;
  const auto sorted = kernels::sort_runs(
      kernels::row_runs(samples, s.layout.tokens(), table_row.data(), per_sample, /*per_sample=*/true), table_rows);
  const kernels::DeviceRuns runs{values.of(sorted.runs), static_cast<std::int64_t>(sorted.runs.size()),
                                 values.of(sorted.first), table_rows};
  const auto table = [&] { return kernels::DeviceTable{values.drawn(type, table_rows * d), d}; };
  const auto sums = [&] { return reinterpret_cast<float*>(values.room(4 * table_rows * d)); };

  auto* stats = reinterpret_cast<float*>(values.room(8 * rows));
  const kernels::DeviceModulatedNorm norm{type, runs, d, x, table(), table(), 1e-6, to, stats};
  add("modulated norm", 2 * count * e, [=, &kernels](device::Stream& on) { return kernels.modulated_norm(norm, on); });
  const kernels::DeviceModulatedNormGradient norm_gradient{type, runs, d, y, x, norm.factor, stats, to, sums(), sums()};
  add("modulated norm, gradient", 3 * count * e,
      [=, &kernels](device::Stream& on) { return kernels.modulated_norm_gradient(norm_gradient, on); });

  const auto head = d / s.heads;
  const kernels::DeviceRotation rotation{floats(s.layout.tokens() * head / 2), floats(s.layout.tokens() * head / 2),
                                         s.layout.tokens(), head};
  auto* rstd = reinterpret_cast<float*>(values.room(4 * rows));
  const kernels::DeviceRmsNorm rms{type, rows, d, x, d, values.drawn(type, d), 1e-6, rotation, to, rstd};
  add("RMS norm with rotation", 2 * count * e, [=, &kernels](device::Stream& on) { return kernels.rms_norm(rms, on); });
  const kernels::DeviceRmsNormGradient rms_gradient{
      type, rows, d, y, x, d, rms.gain, rstd, rotation, to, d, reinterpret_cast<float*>(values.room(4 * d))};
  add("RMS norm with rotation, gradient", 3 * count * e,
      [=, &kernels](device::Stream& on) { return kernels.rms_norm_gradient(rms_gradient, on); });

  const kernels::DeviceGatedResidual residual{type, runs, d, x, y, table(), to};
  add("gated residual", 3 * count * e,
      [=, &kernels](device::Stream& on) { return kernels.gated_residual(residual, on); });
  const kernels::DeviceGatedResidualGradient residual_gradient{type, runs, d, x, y, residual.gate, to, sums()};
  add("gated residual, gradient", 3 * count * e,
      [=, &kernels](device::Stream& on) { return kernels.gated_residual_gradient(residual_gradient, on); });

  const auto inner = rows * s.hidden;
  const auto *u = values.drawn(type, inner), *dy = values.drawn(type, inner);
  auto* activated = values.room(inner * e);
  add("GELU", 2 * inner * e, [=, &kernels](device::Stream& on) {
    return kernels.activation(type, kernels::Activation::gelu_tanh, inner, u, activated, on);
  });
  add("GELU, gradient", 3 * inner * e, [=, &kernels](device::Stream& on) {
    return kernels.activation_gradient(type, kernels::Activation::gelu_tanh, inner, dy, u, activated, on);
  });
  add("sum", 3 * count * e, [=, &kernels](device::Stream& on) { return kernels.add(type, count, x, y, 1, to, on); });

  // the optimizer, on the weights of two of the products
  const auto weights = 2 * d * s.hidden;
  const kernels::AdamWUpdate update{
      .b1 = 0.9f, .one_minus_b1 = 0.1f, .b2 = 0.99f, .one_minus_b2 = 0.01f, .step = 1e-4f, .eps = 1e-8f};
  kernels::AdamWRun adamw{.param = floats(weights), .m = floats(weights)};
  adamw.v = values.room(4 * weights);
  const auto* gradient = floats(weights);
  adamw.gradient = gradient;
  adamw.published = values.room(2 * weights);
  adamw.count = weights;
  adamw.update = values.of(std::vector{update});
  adamw.gradient_scale = values.of(std::vector{1.0f});
  adamw.skip = values.of(std::vector<std::int32_t>{0});
  add("AdamW with f32 moments", 30 * weights, [=, &kernels](device::Stream& on) { return kernels.adamw(adamw, on); });
  auto* total = reinterpret_cast<double*>(values.room(8));
  add("sum of squares", 4 * weights,
      [=, &kernels](device::Stream& on) { return kernels.sum_of_squares(gradient, weights, total, on); });
  auto* shard = floats(weights / 2);
  add("sum of two ranks' parts", 6 * weights,
      [=, &kernels](device::Stream& on) { return kernels.rank_sum(shard, gradient, 2, weights / 2, false, on); });
  return cases;
}

std::vector<DeviceCase> launch_cases(const BlockSizes& s, std::int64_t samples, ElementType type,
                                     kernels::DeviceKernels& kernels, DeviceValues& values) {
  constexpr std::int64_t kFew = 32, kCopied = 1 << 28;
  const auto *x = values.drawn(type, kFew), *y = values.drawn(type, kFew);
  auto* to = values.room(kFew * size_of(type));
  const auto kernel = [=, &kernels](device::Stream& on) { return kernels.add(type, kFew, x, y, 1, to, on); };
  std::vector<DeviceCase> cases{{"a kernel that does next to nothing", 0, 0, kernel}};
  for (const int count : {1, kGraphKernels}) {
    auto& stream = values.stream();
    const std::shared_ptr<device::Graph> graph = must(stream.capture([&]() -> Result<void> {
      for (int i = 0; i < count; ++i) TROUPE_TRY(kernel(stream));
      return {};
    }));
    cases.push_back({fmt::format("a graph of {} of them", count), 0, 0,
                     [graph](device::Stream& on) { return on.launch(*graph), Result<void>(); }});
  }
  const auto copied = std::min(kCopied, 64 * samples * s.layout.tokens() * s.width);
  const auto* source = values.pinned_room(copied);
  auto* target = values.room(copied);
  cases.push_back({"a copy from pinned memory", 0, static_cast<double>(copied),
                   [=](device::Stream& on) { return on.copy(target, source, copied), Result<void>(); }});
  return cases;
}

}  // namespace troupe::bench
