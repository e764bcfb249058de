#include "kernels/attention.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "kernels/dispatch.h"
#include "model/program/device_pass.h"
#include "model/program/gradient.h"
#include "model/program/operations.h"
#include "model/program/slices.h"

namespace troupe::model {
namespace {

std::int64_t size_of(const Range& range) { return range.end - range.begin; }

std::int64_t count_keys(const AttentionPart& part) {
  std::int64_t count = 0;
  for (const auto& range : part.keys) count += size_of(range);
  return count;
}

/// Most keys that a part reads from several ranges: they are joined in scratch.
std::int64_t most_joined(const std::vector<AttentionPart>& parts) {
  std::int64_t most = 0;
  for (const auto& part : parts) most = std::max(most, part.keys.size() > 1 ? count_keys(part) : 0);
  return most;
}

/// Scratch for them; kNoValue where there are none. `like` [B, S, d].
ValueId joined_scratch(Graph& graph, const std::vector<AttentionPart>& parts, ValueId like) {
  const auto most = most_joined(parts);
  const auto sizes = graph.value(like).sizes;
  return most == 0 ? kNoValue : graph.add_intermediate({sizes[0] * most * sizes[2]}, graph.value(like).dtype);
}

at::Tensor split_heads(const at::Tensor& x_BTd, std::int64_t heads) {
  return x_BTd.view({x_BTd.size(0), x_BTd.size(1), heads, -1});
}

/// The scratch as the part's joined rows [B, keys, H, D].
at::Tensor joined_rows(const at::Tensor& scratch, const AttentionPart& part, const at::Tensor& like_BSHD) {
  const auto keys = count_keys(part);
  const auto row = like_BSHD.size(2) * like_BSHD.size(3);
  return scratch.narrow(0, 0, like_BSHD.size(0) * keys * row)
      .view({like_BSHD.size(0), keys, like_BSHD.size(2), like_BSHD.size(3)});
}

/// The part's rows of x_BSHD: a view of one range, or a copy of several in the scratch.
at::Tensor rows_of(const AttentionPart& part, const at::Tensor& x_BSHD, const at::Tensor& scratch) {
  if (part.keys.size() == 1) return x_BSHD.narrow(1, part.keys[0].begin, size_of(part.keys[0]));
  auto joined = joined_rows(scratch, part, x_BSHD);
  std::int64_t row = 0;
  for (const auto& range : part.keys) {
    copy_rows(joined.narrow(1, row, size_of(range)), x_BSHD.narrow(1, range.begin, size_of(range)));
    row += size_of(range);
  }
  return joined;
}

at::Tensor optional_tensor(ValueTensors values, ValueId id) {
  return id == kNoValue ? at::Tensor() : tensor_of(values, id);
}

struct AttentionShape {
  std::int64_t heads;
  std::vector<AttentionPart> parts;
  /// i64 [B, 3]: samples share keys; one part then
  ValueId key_rows;
  /// constants of kernels::DeviceAttentionPlan
  ValueId query_tiles, key_tiles, ranges;

  bool copies_value(const AttentionPart& part) const { return key_rows == kNoValue && part.copies_value(); }
};

/// The kernels of all parts. `passes`: how often keys and values that several ranges hold are copied or added, in
/// passes over what is read or written.
void add_parts(const AttentionShape& shape, KernelFamily family, const Value& q, double passes,
               std::vector<KernelWork>& work) {
  const bool is_bf16 = q.dtype == at::kBFloat16;
  const auto samples = q.sizes[0], width = q.sizes[2];
  const auto row_bytes = static_cast<double>(samples * width) * static_cast<double>(c10::elementSize(q.dtype));
  for (const auto& part : shape.parts) {
    if (shape.copies_value(part)) {
      work.push_back({.family = KernelFamily::serial, .is_bf16 = is_bf16, .bytes = 2 * row_bytes});
      continue;
    }
    // where samples have their own keys among all, each is taken to have as many
    const auto keys = count_keys(part) / (shape.key_rows == kNoValue ? 1 : samples);
    work.push_back({.family = family,
                    .is_bf16 = is_bf16,
                    .m = size_of(part.queries),
                    .n = keys,
                    .k = width / shape.heads,
                    .heads = samples * shape.heads});
    if (part.keys.size() == 1) continue;
    const auto ranges = static_cast<double>(part.keys.size());
    work.push_back({.family = KernelFamily::elementwise,
                    .is_bf16 = is_bf16,
                    .bytes = 2 * row_bytes * static_cast<double>(keys) / ranges,
                    .calls = passes * ranges});
  }
}

/// With the tiles of a device's attention as constants of the graph. `keys`: rows of k in a sample.
AttentionShape device_shape(Graph& graph, std::int64_t heads, const std::vector<AttentionPart>& parts, ValueId key_rows,
                            std::int64_t keys) {
  const auto range = [](const Range& r) {
    return kernels::AttentionRange{static_cast<std::int32_t>(r.begin), static_cast<std::int32_t>(r.end)};
  };
  std::vector<kernels::AttentionSegment> segments;
  for (const auto& part : parts) {
    segments.push_back({range(part.queries), {}});
    for (const auto& seen : part.keys) segments.back().keys.push_back(range(seen));
  }
  const auto plan = kernels::plan_attention(segments, static_cast<std::int32_t>(keys));
  return {heads,
          parts,
          key_rows,
          graph.add_constant(words_of(plan.query_tiles)),
          graph.add_constant(words_of(plan.key_tiles)),
          graph.add_constant(words_of(plan.ranges))};
}

kernels::DeviceAttentionPlan device_plan(ValueTensors values, const AttentionShape& shape) {
  const auto &queries = tensor_of(values, shape.query_tiles), &keys = tensor_of(values, shape.key_tiles);
  constexpr std::int64_t words = sizeof(kernels::AttentionTile) / sizeof(std::int32_t);
  return {array_of<kernels::AttentionTile>(queries), array_of<kernels::AttentionTile>(keys),
          array_of<kernels::AttentionRange>(tensor_of(values, shape.ranges)),
          static_cast<std::int32_t>(queries.size(0) / words), static_cast<std::int32_t>(keys.size(0) / words)};
}

kernels::AttentionSizes device_sizes(ValueTensors values, const AttentionShape& shape, const at::Tensor& q,
                                     const at::Tensor& k) {
  return {.samples = static_cast<std::int32_t>(q.size(0)),
          .heads = static_cast<std::int32_t>(shape.heads),
          .head_dim = static_cast<std::int32_t>(q.size(2) / shape.heads),
          .queries = static_cast<std::int32_t>(q.size(1)),
          .keys = static_cast<std::int32_t>(k.size(1)),
          .key_rows = shape.key_rows == kNoValue ? nullptr : array_of<std::int64_t>(tensor_of(values, shape.key_rows))};
}

kernels::DeviceRows<const void*> device_rows(const at::Tensor& x) { return {x.const_data_ptr(), row_stride(x)}; }

struct AttentionGradientValues {
  ValueId dout, q, k, v, out, lse, dq, dk, dv, joined_k, joined_v, joined_dk, joined_dv;
};

class AttentionGradientOperation final : public Operation {
 public:
  AttentionGradientOperation(AttentionShape shape, const AttentionGradientValues& v)
      : Operation({v.dout, v.q, v.k, v.v, v.out, v.lse, shape.key_rows},
                  {v.dq, v.dk, v.dv, v.joined_k, v.joined_v, v.joined_dk, v.joined_dv}),
        shape_(std::move(shape)),
        v_(v) {}

  void run(ValueTensors values) const override {
    const at::NoGradGuard no_grad;
    const auto heads = [&](ValueId id) { return split_heads(tensor_of(values, id), shape_.heads); };
    const auto dout = heads(v_.dout), q = heads(v_.q), k = heads(v_.k), v = heads(v_.v), out = heads(v_.out);
    const auto dq = heads(v_.dq), dk = heads(v_.dk), dv = heads(v_.dv);
    const auto& lse = tensor_of(values, v_.lse);
    const bool whole = shape_.parts.size() == 1 && shape_.parts[0].keys.size() == 1 &&
                       count_keys(shape_.parts[0]) == k.size(1) && !shape_.copies_value(shape_.parts[0]);
    if (!whole) clear_rows(dk), clear_rows(dv);
    for (const auto& part : shape_.parts) {
      const auto begin = part.queries.begin, count = size_of(part.queries);
      const auto dout_part = dout.narrow(1, begin, count), dq_part = dq.narrow(1, begin, count);
      if (shape_.copies_value(part)) {
        dq_part.zero_();
        dv.narrow(1, part.keys[0].begin, 1).add_(dout_part);
        continue;
      }
      const auto gradients = [&](const at::Tensor& dk_part, const at::Tensor& dv_part, bool accumulate) {
        attention_gradients_out(dq_part, dk_part, dv_part, accumulate, dout_part, q.narrow(1, begin, count),
                                rows_of(part, k, optional_tensor(values, v_.joined_k)),
                                rows_of(part, v, optional_tensor(values, v_.joined_v)), out.narrow(1, begin, count),
                                lse.narrow(2, begin, count), optional_tensor(values, shape_.key_rows));
      };
      if (part.keys.size() == 1) {
        const auto& range = part.keys[0];
        gradients(dk.narrow(1, range.begin, size_of(range)), dv.narrow(1, range.begin, size_of(range)), !whole);
        continue;
      }
      const auto joined_dk = joined_rows(tensor_of(values, v_.joined_dk), part, dk);
      const auto joined_dv = joined_rows(tensor_of(values, v_.joined_dv), part, dv);
      gradients(joined_dk, joined_dv, false);
      std::int64_t row = 0;
      for (const auto& range : part.keys) {
        add_rows(dk.narrow(1, range.begin, size_of(range)), joined_dk.narrow(1, row, size_of(range)));
        add_rows(dv.narrow(1, range.begin, size_of(range)), joined_dv.narrow(1, row, size_of(range)));
        row += size_of(range);
      }
    }
  }

  Result<void> launch(ValueTensors values, const DeviceCompute& on) const override {
    const auto rows = [&](ValueId id) { return device_rows(tensor_of(values, id)); };
    const auto gradient = [&](ValueId id) {
      const auto& x = tensor_of(values, id);
      return kernels::DeviceRows<float*>{floats_of(x), row_stride(x)};
    };
    const auto &q = tensor_of(values, v_.q), &k = tensor_of(values, v_.k);
    return on.kernels.attention_gradient({.type = element_type(q),
                                          .plan = device_plan(values, shape_),
                                          .sizes = device_sizes(values, shape_, q, k),
                                          .dout = rows(v_.dout),
                                          .q = rows(v_.q),
                                          .k = rows(v_.k),
                                          .v = rows(v_.v),
                                          .out = rows(v_.out),
                                          .lse = floats_of(tensor_of(values, v_.lse)),
                                          .dq = gradient(v_.dq),
                                          .dk = gradient(v_.dk),
                                          .dv = gradient(v_.dv)},
                                         on.stream);
  }

  void add_work(const Graph& graph, std::vector<KernelWork>& work) const override {
    const Value& dk = graph.value(v_.dk);
    // keys and values are set to zero and joined, and their gradients added back
    if (shape_.parts.size() > 1) {
      work.push_back({.family = KernelFamily::elementwise, .bytes = static_cast<double>(dk.bytes()), .calls = 2});
    }
    add_parts(shape_, KernelFamily::attention_gradient, graph.value(v_.q), 5, work);
  }

 private:
  AttentionShape shape_;
  AttentionGradientValues v_;
};

struct AttentionValues {
  ValueId q, k, v, q_operand, k_operand, v_operand, joined_k, joined_v, out, lse;
};

class AttentionOperation final : public Operation {
 public:
  AttentionOperation(AttentionShape shape, const AttentionValues& v)
      : Operation({v.q_operand, v.k_operand, v.v_operand, shape.key_rows}, {v.joined_k, v.joined_v, v.out, v.lse}),
        shape_(std::move(shape)),
        v_(v) {}

  OperationCost cost() const override { return OperationCost::attention; }
  void add_work(const Graph& graph, std::vector<KernelWork>& work) const override {
    add_parts(shape_, KernelFamily::attention, graph.value(v_.q_operand), 2, work);
  }
  void run(ValueTensors values) const override {
    const at::NoGradGuard no_grad;
    const auto heads = [&](ValueId id) { return split_heads(tensor_of(values, id), shape_.heads); };
    const auto q = heads(v_.q_operand), k = heads(v_.k_operand), v = heads(v_.v_operand), out = heads(v_.out);
    const auto& lse = tensor_of(values, v_.lse);
    for (const auto& part : shape_.parts) {
      const auto begin = part.queries.begin, count = size_of(part.queries);
      const auto out_part = out.narrow(1, begin, count);
      if (shape_.copies_value(part)) {
        out_part.copy_(v.narrow(1, part.keys[0].begin, 1));
        continue;
      }
      attention_out(out_part, lse.narrow(2, begin, count), q.narrow(1, begin, count),
                    rows_of(part, k, optional_tensor(values, v_.joined_k)),
                    rows_of(part, v, optional_tensor(values, v_.joined_v)), optional_tensor(values, shape_.key_rows));
    }
  }

  Result<void> launch(ValueTensors values, const DeviceCompute& on) const override {
    const auto rows = [&](ValueId id) { return device_rows(tensor_of(values, id)); };
    const auto &q = tensor_of(values, v_.q_operand), &k = tensor_of(values, v_.k_operand);
    const auto& out = tensor_of(values, v_.out);
    return on.kernels.attention({.type = element_type(q),
                                 .plan = device_plan(values, shape_),
                                 .sizes = device_sizes(values, shape_, q, k),
                                 .q = rows(v_.q_operand),
                                 .k = rows(v_.k_operand),
                                 .v = rows(v_.v_operand),
                                 .out = {out.data_ptr(), row_stride(out)},
                                 .lse = floats_of(tensor_of(values, v_.lse))},
                                on.stream);
  }

  void differentiate(GradientBuilder& gradients) const override {
    auto& graph = gradients.graph();
    // sums over the parts are f32
    const auto dtype = accumulate_dtype(graph.value(v_.q).dtype);
    AttentionGradientValues g{};
    g.dout = graph.converted(gradients.gradient(v_.out), graph.value(v_.q_operand).dtype);
    g.q = graph.operand(v_.q), g.k = graph.operand(v_.k), g.v = graph.operand(v_.v), g.out = graph.operand(v_.out);
    g.lse = v_.lse;
    g.dq = gradients.like(v_.q, dtype), g.dk = gradients.like(v_.k, dtype), g.dv = gradients.like(v_.v, dtype);
    g.joined_k = joined_scratch(graph, shape_.parts, g.k), g.joined_v = joined_scratch(graph, shape_.parts, g.v);
    g.joined_dk = joined_scratch(graph, shape_.parts, g.dk), g.joined_dv = joined_scratch(graph, shape_.parts, g.dv);
    gradients.record(std::make_unique<AttentionGradientOperation>(shape_, g));
    gradients.add(v_.q, g.dq);
    gradients.add(v_.k, g.dk);
    gradients.add(v_.v, g.dv);
  }

 private:
  AttentionShape shape_;
  AttentionValues v_;
};

}  // namespace

ValueId record_attention(Graph& graph, ValueId q, ValueId k, ValueId v, std::int64_t heads,
                         const std::vector<AttentionPart>& parts, ValueId key_rows) {
  AttentionValues values{};
  values.q = q, values.k = k, values.v = v;
  // keys that are bound are the rows of many: each head converts those that it sees
  const auto operand = [&](ValueId id) { return graph.value(k).role == ValueRole::input ? id : graph.operand(id); };
  values.q_operand = operand(q), values.k_operand = operand(k), values.v_operand = operand(v);
  values.joined_k = joined_scratch(graph, parts, values.k_operand);
  values.joined_v = joined_scratch(graph, parts, values.v_operand);
  const auto sizes = graph.value(q).sizes;
  const auto dtype = graph.value(q).dtype;
  values.out = graph.add_intermediate(sizes, dtype);
  values.lse = graph.add_intermediate({sizes[0], heads, sizes[1]}, accumulate_dtype(dtype));
  graph.add(std::make_unique<AttentionOperation>(device_shape(graph, heads, parts, key_rows, graph.value(k).sizes[1]),
                                                 values));
  return values.out;
}

}  // namespace troupe::model
