#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <map>
#include <set>

#include "model/program/device_pass.h"
#include "model/program/gradient.h"
#include "model/program/operations.h"
#include "model/program/slices.h"

namespace troupe::model {
namespace {

/// Copies the ranges of `from` [B, N, d] one after the other into `to` [B, T, d], or back.
class TakeRowsOperation final : public Operation {
 public:
  TakeRowsOperation(std::vector<Range> ranges, ValueId all, ValueId taken, bool back)
      : Operation({back ? taken : all}, {back ? all : taken}),
        ranges_(std::move(ranges)),
        all_(all),
        taken_(taken),
        back_(back) {}

  void run(ValueTensors values) const override {
    const at::NoGradGuard no_grad;
    const auto &all = tensor_of(values, all_), &taken = tensor_of(values, taken_);
    // rows that were not taken have no gradient
    if (back_) clear_rows(all);
    std::int64_t row = 0;
    for (const auto& range : ranges_) {
      const auto count = range.end - range.begin;
      const auto there = all.narrow(1, range.begin, count), here = taken.narrow(1, row, count);
      copy_rows(back_ ? there : here, back_ ? here : there);
      row += count;
    }
  }
  Result<void> launch(ValueTensors values, const DeviceCompute& on) const override {
    const auto &all = tensor_of(values, all_), &taken = tensor_of(values, taken_);
    const auto samples = all.size(0), channels = all.size(2);
    if (back_) {
      kernels::DeviceBlock zeros = block_of(all);
      zeros.data = nullptr;
      TROUPE_TRY(on.kernels.copy_rows(samples, all.size(1), channels, zeros, block_of(all), on.stream));
    }
    std::int64_t row = 0;
    for (const auto& range : ranges_) {
      const auto count = range.end - range.begin;
      const auto there = block_of(all.narrow(1, range.begin, count)), here = block_of(taken.narrow(1, row, count));
      TROUPE_TRY(on.kernels.copy_rows(samples, count, channels, back_ ? here : there, back_ ? there : here, on.stream));
      row += count;
    }
    return {};
  }

  void add_work(const Graph& graph, std::vector<KernelWork>& work) const override {
    const Value &all = graph.value(all_), &taken = graph.value(taken_);
    const auto ranges = static_cast<double>(ranges_.size());
    const bool is_bf16 = all.dtype == at::kBFloat16;
    work.push_back({.family = KernelFamily::elementwise,
                    .is_bf16 = is_bf16,
                    .bytes = 2 * static_cast<double>(taken.bytes()) / ranges,
                    .calls = ranges});
    if (back_)
      work.push_back(
          {.family = KernelFamily::elementwise, .is_bf16 = is_bf16, .bytes = static_cast<double>(all.bytes())});
  }

  void differentiate(GradientBuilder& gradients) const override {
    const auto taken = gradients.rounded_gradient(taken_);
    const auto all = gradients.like(all_, gradients.graph().value(all_).dtype);
    gradients.record(std::make_unique<TakeRowsOperation>(ranges_, all, taken, true));
    gradients.add(all_, all);
  }

 private:
  std::vector<Range> ranges_;
  ValueId all_, taken_;
  bool back_;
};

/// Copies pieces of values [B, n, d] one after the other into `all` [B, N, d].
class JoinRowsOperation final : public Operation {
 public:
  JoinRowsOperation(std::vector<RowPiece> pieces, ValueId all)
      : Operation(sources_of(pieces), {all}), pieces_(std::move(pieces)), all_(all) {}

  void run(ValueTensors values) const override {
    const at::NoGradGuard no_grad;
    std::map<ValueId, std::int64_t> taken;
    std::int64_t row = 0;
    for (const auto& piece : pieces_) {
      auto& from = taken[piece.from];
      copy_rows(tensor_of(values, all_).narrow(1, row, piece.rows),
                tensor_of(values, piece.from).narrow(1, from, piece.rows));
      from += piece.rows, row += piece.rows;
    }
  }
  Result<void> launch(ValueTensors values, const DeviceCompute& on) const override {
    const auto& all = tensor_of(values, all_);
    std::map<ValueId, std::int64_t> taken;
    std::int64_t row = 0;
    for (const auto& piece : pieces_) {
      auto& from = taken[piece.from];
      TROUPE_TRY(on.kernels.copy_rows(all.size(0), piece.rows, all.size(2),
                                      block_of(tensor_of(values, piece.from).narrow(1, from, piece.rows)),
                                      block_of(all.narrow(1, row, piece.rows)), on.stream));
      from += piece.rows, row += piece.rows;
    }
    return {};
  }

  void add_work(const Graph& graph, std::vector<KernelWork>& work) const override {
    const Value& all = graph.value(all_);
    const auto calls = static_cast<double>(pieces_.size());
    work.push_back({.family = KernelFamily::elementwise,
                    .is_bf16 = all.dtype == at::kBFloat16,
                    .bytes = 2 * static_cast<double>(all.bytes()) / calls,
                    .calls = calls});
  }

  void differentiate(GradientBuilder& gradients) const override {
    const auto all = gradients.rounded_gradient(all_);
    for (const auto source : reads()) {
      if (!gradients.needs(source)) continue;
      const auto part = gradients.like(source, gradients.graph().value(source).dtype);
      gradients.record(std::make_unique<TakeRowsOperation>(ranges_of(source), all, part, false));
      gradients.add(source, part);
    }
  }

 private:
  static std::vector<ValueId> sources_of(const std::vector<RowPiece>& pieces) {
    std::set<ValueId> sources;
    for (const auto& piece : pieces) sources.insert(piece.from);
    return {sources.begin(), sources.end()};
  }
  /// Where the source's rows lie among all.
  std::vector<Range> ranges_of(ValueId source) const {
    std::vector<Range> ranges;
    std::int64_t row = 0;
    for (const auto& piece : pieces_) {
      if (piece.from == source) ranges.push_back({row, row + piece.rows});
      row += piece.rows;
    }
    return ranges;
  }

  std::vector<RowPiece> pieces_;
  ValueId all_;
};

/// Copies the first channels of `from` to `to`, or, with `second`, `from` and behind it `second`.
class JoinChannelsOperation final : public Operation {
 public:
  JoinChannelsOperation(ValueId from, ValueId second, ValueId to)
      : Operation({from, second}, {to}), from_(from), second_(second), to_(to) {}

  void run(ValueTensors values) const override {
    const at::NoGradGuard no_grad;
    const auto &from = tensor_of(values, from_), &to = tensor_of(values, to_);
    if (second_ == kNoValue) {
      to.copy_(from.narrow(-1, 0, to.size(-1)));
      return;
    }
    to.narrow(-1, 0, from.size(-1)).copy_(from);
    to.narrow(-1, from.size(-1), to.size(-1) - from.size(-1)).copy_(tensor_of(values, second_));
  }
  Result<void> launch(ValueTensors values, const DeviceCompute& on) const override {
    const auto &from = tensor_of(values, from_), &to = tensor_of(values, to_);
    const auto first = std::min(from.size(2), to.size(2)), rest = to.size(2) - first;
    TROUPE_TRY(on.kernels.copy_rows(to.size(0), to.size(1), first, block_of(from), block_of(to), on.stream));
    if (second_ == kNoValue) return {};
    return on.kernels.copy_rows(to.size(0), to.size(1), rest, block_of(tensor_of(values, second_)),
                                block_of(to.narrow(2, first, rest)), on.stream);
  }

  void differentiate(GradientBuilder& gradients) const override {
    const auto joined = gradients.rounded_gradient(to_);
    const auto first = gradients.like(from_, gradients.graph().value(from_).dtype);
    gradients.record(std::make_unique<JoinChannelsOperation>(joined, kNoValue, first));
    gradients.add(from_, first);
  }

 protected:
  KernelFamily family() const override { return KernelFamily::serial; }

 private:
  ValueId from_, second_, to_;
};

/// Writes each sample's rows where it sees its last ones.
class AppendRowsOperation final : public Operation {
 public:
  AppendRowsOperation(ValueId x, ValueId to, ValueId key_rows)
      : Operation({x, key_rows}, {to}), x_(x), to_(to), key_rows_(key_rows) {}

  void run(ValueTensors values) const override {
    const at::NoGradGuard no_grad;
    const auto &x = tensor_of(values, x_), &to = tensor_of(values, to_);
    const auto seen = tensor_of(values, key_rows_).accessor<std::int64_t, 2>();
    for (std::int64_t b = 0; b < x.size(0); ++b)
      copy_rows(to.narrow(1, seen[b][1] - x.size(1), x.size(1)), x.narrow(0, b, 1));
  }
  Result<void> launch(ValueTensors values, const DeviceCompute& on) const override {
    const auto& x = tensor_of(values, x_);
    return on.kernels.append_rows(x.size(0), x.size(1), x.size(2), block_of(x), block_of(tensor_of(values, to_)),
                                  array_of<std::int64_t>(tensor_of(values, key_rows_)), on.stream);
  }

  void add_work(const Graph& graph, std::vector<KernelWork>& work) const override {
    const Value& x = graph.value(x_);
    work.push_back({.family = KernelFamily::elementwise,
                    .is_bf16 = x.dtype == at::kBFloat16,
                    .bytes = 2 * static_cast<double>(x.bytes())});
  }

 private:
  ValueId x_, to_, key_rows_;
};

class RepeatSamplesOperation final : public Operation {
 public:
  RepeatSamplesOperation(ValueId x, ValueId out, std::int64_t times)
      : Operation({x}, {out}), x_(x), out_(out), times_(times) {}

  void run(ValueTensors values) const override {
    const at::NoGradGuard no_grad;
    for (std::int64_t i = 0; i < times_; ++i) copy_rows(copies(values, i), tensor_of(values, x_));
  }
  Result<void> launch(ValueTensors values, const DeviceCompute& on) const override {
    const auto& x = tensor_of(values, x_);
    for (std::int64_t i = 0; i < times_; ++i)
      TROUPE_TRY(
          on.kernels.copy_rows(x.size(0), x.size(1), x.size(2), block_of(x), block_of(copies(values, i)), on.stream));
    return {};
  }

 private:
  /// The i-th copy of every sample.
  at::Tensor copies(ValueTensors values, std::int64_t i) const {
    const auto& out = tensor_of(values, out_);
    return out.view({out.size(0) / times_, times_, out.size(1), out.size(2)}).select(1, i);
  }

  ValueId x_, out_;
  std::int64_t times_;
};

}  // namespace

ValueId record_take_rows(Graph& graph, ValueId x, const std::vector<Range>& ranges) {
  auto sizes = graph.value(x).sizes;
  sizes[1] = 0;
  for (const auto& range : ranges) sizes[1] += range.end - range.begin;
  const auto taken = graph.add_intermediate(sizes, graph.value(x).dtype);
  graph.add(std::make_unique<TakeRowsOperation>(ranges, x, taken, false));
  return taken;
}

ValueId record_join_rows(Graph& graph, const std::vector<RowPiece>& pieces) {
  auto sizes = graph.value(pieces.front().from).sizes;
  sizes[1] = 0;
  for (const auto& piece : pieces) sizes[1] += piece.rows;
  const auto all = graph.add_intermediate(sizes, graph.value(pieces.front().from).dtype);
  graph.add(std::make_unique<JoinRowsOperation>(pieces, all));
  return all;
}

void record_append_rows(Graph& graph, ValueId x, ValueId to, ValueId key_rows) {
  graph.add(std::make_unique<AppendRowsOperation>(x, to, key_rows));
}

ValueId record_repeat_samples(Graph& graph, ValueId x, std::int64_t times) {
  auto sizes = graph.value(x).sizes;
  sizes[0] *= times;
  const auto out = graph.add_intermediate(sizes, graph.value(x).dtype);
  graph.add(std::make_unique<RepeatSamplesOperation>(x, out, times));
  return out;
}

ValueId record_join_channels(Graph& graph, ValueId a, ValueId b) {
  auto sizes = graph.value(a).sizes;
  sizes.back() += graph.value(b).sizes.back();
  const auto joined = graph.add_intermediate(sizes, graph.value(a).dtype);
  graph.add(std::make_unique<JoinChannelsOperation>(a, b, joined));
  return joined;
}

}  // namespace troupe::model
