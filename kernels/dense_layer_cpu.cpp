// Which operand of a layer's products is cut into panels, and how threads share the products. The loops are in
// dense_loops.h.
#include <algorithm>
#include <memory>
#include <utility>

#include "base/simd.h"
#include "kernels/dense_code.h"
#include "kernels/dense_layer.h"
#include "kernels/threads.h"

namespace troupe::kernels {
namespace {

#if defined(__x86_64__)
constexpr const DenseCode* kDenseCodes[] = {&kDenseAvx512, &kDenseAvx2, &kDensePlain};
#else
constexpr const DenseCode* kDenseCodes[] = {&kDensePlain};
#endif

/// Rows that go through all panels before the next ones: a multiple of every tile's rows, and few enough that their
/// sums are still cached when the activation comes.
constexpr std::int64_t kRows = 48;
/// Numbers of x that a part transposes at a time, on its stack.
constexpr std::int64_t kStackFloats = 16384;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// Threads that so many multiply-adds keep busy: each has some 20 microseconds of them.
int busy_threads(std::int64_t multiply_adds, int threads) {
  return static_cast<int>(std::clamp<std::int64_t>(multiply_adds >> 20, 1, std::max(1, threads)));
}
std::int64_t multiply_adds(const DenseShape& shape) { return shape.rows * shape.inputs * shape.outputs; }
/// What one tanh costs.
constexpr std::int64_t kTanhMultiplyAdds = 32;

/// Columns of a matrix in panels of equal numbers of vectors.
class Panels {
 public:
  Panels(const DenseCode& code, std::int64_t columns)
      : lanes_(code.lanes),
        columns_(columns),
        vectors_(ceil_div(columns, code.lanes)),
        count_(ceil_div(vectors_, code.panel_vectors)) {}

  std::int64_t count() const { return count_; }
  /// Columns of all panels, each filled up to whole vectors.
  std::int64_t padded() const { return vectors_ * lanes_; }
  Range columns(std::int64_t panel) const {
    const Range vectors = part_of(vectors_, panel, count_);
    return {vectors.begin * lanes_, std::min(columns_, vectors.end * lanes_)};
  }
  /// Floats from row to row of a panel that is stored by itself.
  std::int64_t width(std::int64_t panel) const {
    const Range vectors = part_of(vectors_, panel, count_);
    return (vectors.end - vectors.begin) * lanes_;
  }

 private:
  std::int64_t lanes_, columns_, vectors_, count_;
};

/// Rows of x times a matrix in panels, rows of the result in blocks.
struct PanelsProduct {
  const DenseCode& code;
  Panels panels;
  /// Rows of a panel.
  std::int64_t depth;
  /// With stride 0, panels one behind the other: panel p begins at depth * columns(p).begin. Otherwise rows of all
  /// panels, so many elements apart.
  const float* matrix;
  std::int64_t stride;
  const float* column_start;
  const float* x;
  std::int64_t x_stride;
  float* y;
  std::int64_t y_stride;

  void run(std::int64_t begin, std::int64_t end) const {
    for (std::int64_t p = 0; p < panels.count(); ++p) {
      const Range columns = panels.columns(p);
      code.product({.m = end - begin,
                    .n = columns.end - columns.begin,
                    .k = depth,
                    .a = x + begin * x_stride,
                    .a_row = x_stride,
                    .a_column = 1,
                    .b = matrix + (stride == 0 ? depth : 1) * columns.begin,
                    .b_row = stride == 0 ? panels.width(p) : stride,
                    .c = y + begin * y_stride + columns.begin,
                    .c_row = y_stride,
                    .column_start = column_start == nullptr ? nullptr : column_start + columns.begin});
    }
  }
};

/// body(begin, end) for blocks of rows that threads share.
template <class F>
void each_row_block(std::int64_t rows, std::int64_t block, int threads, const F& body) {
  parallel_blocks(rows, block, threads, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t begin = first; begin < last; begin += block) body(begin, std::min(begin + block, last));
  });
}

/// A forward whose vectors are rows of x: outputs are tiled, and x and y are transposed instead of the weight.
struct RowVectors {
  const DenseCode& code;
  DenseShape shape;

  /// Rows of one block.
  std::int64_t block() const {
    return std::min(kStackFloats / shape.inputs, code.lanes * code.panel_vectors) / code.lanes * code.lanes;
  }
  void run(std::int64_t begin, std::int64_t end, const float* x, std::int64_t x_stride, const float* w, const float* b,
           float* y) const {
    alignas(64) float inputs[kStackFloats];
    constexpr std::int64_t kOutputs = 48, kMostRows = 64;
    alignas(64) float outputs[kOutputs * kMostRows];
    const std::int64_t rows = end - begin, width = block();
    code.transpose(rows, shape.inputs, x + begin * x_stride, x_stride, inputs, width);
    for (std::int64_t first = 0; first < shape.outputs; first += kOutputs) {
      const std::int64_t count = std::min(kOutputs, shape.outputs - first);
      code.product({.m = count,
                    .n = rows,
                    .k = shape.inputs,
                    .a = w + first * shape.inputs,
                    .a_row = shape.inputs,
                    .a_column = 1,
                    .b = inputs,
                    .b_row = width,
                    .c = outputs,
                    .c_row = width,
                    .row_start = b == nullptr ? nullptr : b + first});
      code.transpose(count, rows, outputs, width, y + begin * shape.outputs + first, shape.outputs);
    }
  }
  /// Whether it takes fewer cycles than vectors of outputs: two multiply-adds a cycle, four numbers transposed a cycle.
  bool is_faster() const {
    if (block() == 0) return false;
    const std::int64_t by_rows = ceil_div(shape.rows, code.lanes) * shape.outputs * shape.inputs / 2 +
                                 shape.rows * (shape.inputs + shape.outputs) / 4;
    const std::int64_t by_outputs =
        ceil_div(shape.outputs, code.lanes) * shape.rows * shape.inputs / 2 + shape.inputs * shape.outputs / 4;
    return by_rows < by_outputs;
  }
};

/// A product over rows of both factors, summed in blocks of kDenseRowBlock of them. It is cut into strips: kStripRows
/// rows of one panel of the result.
class RowBlockProduct {
 public:
  RowBlockProduct(const DenseCode& code, const Panels& panels, const PanelProduct& whole)
      : code_(code), panels_(panels), whole_(whole), strips_per_panel_(ceil_div(whole.m, kStripRows)) {}

  std::int64_t strips() const { return panels_.count() * strips_per_panel_; }
  /// Strips [first, last): all blocks of rows, in order.
  void run(std::int64_t first, std::int64_t last) const {
    for (std::int64_t row = 0; row < whole_.k; row += kDenseRowBlock) {
      for (std::int64_t strip = first; strip < last;) {
        const std::int64_t panel = strip / strips_per_panel_, panel_begin = panel * strips_per_panel_;
        const std::int64_t end = std::min(last, panel_begin + strips_per_panel_);
        add_block(row, panel, (strip - panel_begin) * kStripRows, std::min(whole_.m, (end - panel_begin) * kStripRows));
        strip = end;
      }
    }
  }

 private:
  static constexpr std::int64_t kStripRows = 12, kChunk = 8 * kStripRows, kMostColumns = 64;

  /// The block that begins at `row`, into rows [begin, end) of the result in one panel. Parts of wider rows are copied
  /// first: at a stride of 1 KB, say, most of them would meet in a few sets of the cache.
  void add_block(std::int64_t row, std::int64_t panel, std::int64_t begin, std::int64_t end) const {
    alignas(64) float a[kDenseRowBlock * kChunk];
    alignas(64) float b[kDenseRowBlock * kMostColumns];
    const Range columns = panels_.columns(panel);
    PanelProduct part = whole_;
    part.n = columns.end - columns.begin;
    part.k = std::min(kDenseRowBlock, whole_.k - row);
    part.add = row > 0;
    part.b += row * whole_.b_row + columns.begin;
    if (end - begin >= kLeastReuse) copy_rows(part.k, part.n, part.b, part.b_row, b, panels_.width(panel));
    for (std::int64_t chunk = begin; chunk < end; chunk += kChunk) {
      part.m = std::min(kChunk, end - chunk);
      part.a = whole_.a + row * whole_.a_column + chunk;
      part.a_column = whole_.a_column;
      part.c = whole_.c + chunk * whole_.c_row + columns.begin;
      if (part.n >= kLeastReuse) copy_rows(part.k, part.m, part.a, part.a_column, a, kChunk);
      code_.product(part);
    }
  }
  /// Makes `from` point to a copy, unless the rows lie side by side.
  static void copy_rows(std::int64_t rows, std::int64_t columns, const float*& from, std::int64_t& stride, float* to,
                        std::int64_t to_stride) {
    if (stride <= columns) return;
    for (std::int64_t r = 0; r < rows; ++r) std::copy_n(from + r * stride, columns, to + r * to_stride);
    from = to;
    stride = to_stride;
  }
  /// Times that numbers must be used for a copy to be worth its cost.
  static constexpr std::int64_t kLeastReuse = 32;

  const DenseCode& code_;
  Panels panels_;
  PanelProduct whole_;
  std::int64_t strips_per_panel_;
};

}  // namespace

std::span<const DenseCode* const> dense_codes() { return runnable(kDenseCodes); }

float* DenseWorkspace::floats(std::int64_t count) {
  // from a cache line's beginning on, so that no vector lies in two
  constexpr std::size_t kLine = 64;
  const std::size_t floats = static_cast<std::size_t>(count) + kLine / sizeof(float);
  if (floats > memory_.size()) memory_.resize(floats);
  void* first = memory_.data();
  std::size_t space = memory_.size() * sizeof(float);
  return static_cast<float*>(std::align(kLine, static_cast<std::size_t>(count) * sizeof(float), first, space));
}

void dense_forward(const DenseShape& shape, const float* x, std::int64_t x_stride, const float* w, const float* b,
                   DenseActivation f, float* y, DenseWorkspace& workspace, int threads) {
  const DenseCode& code = workspace.code();
  const std::int64_t activations = f == DenseActivation::tanh ? shape.rows * shape.outputs * kTanhMultiplyAdds : 0;
  const int useful = busy_threads(multiply_adds(shape) + activations, threads);
  const auto activate = [&](std::int64_t begin, std::int64_t end) {
    float* const rows = y + begin * shape.outputs;
    code.activate(f, (end - begin) * shape.outputs, rows, rows);
  };
  if (const RowVectors by_rows{code, shape}; by_rows.is_faster()) {
    each_row_block(shape.rows, by_rows.block(), useful, [&](std::int64_t begin, std::int64_t end) {
      by_rows.run(begin, end, x, x_stride, w, b, y);
      activate(begin, end);
    });
    return;
  }
  const Panels panels(code, shape.outputs);
  float* const packed = workspace.floats(shape.inputs * panels.padded());
  for (std::int64_t p = 0; p < panels.count(); ++p) {
    const Range outputs = panels.columns(p);
    code.transpose(outputs.end - outputs.begin, shape.inputs, w + outputs.begin * shape.inputs, shape.inputs,
                   packed + shape.inputs * outputs.begin, panels.width(p));
  }
  const PanelsProduct product{code, panels, shape.inputs, packed, 0, b, x, x_stride, y, shape.outputs};
  each_row_block(shape.rows, kRows, useful, [&](std::int64_t begin, std::int64_t end) {
    product.run(begin, end);
    activate(begin, end);
  });
}

void dense_backward_input(const DenseShape& shape, const float* d, const float* w, DenseActivation f, const float* h,
                          float* dx, DenseWorkspace& workspace, int threads) {
  const DenseCode& code = workspace.code();
  const Panels panels(code, shape.inputs);
  PanelsProduct product{code, panels, shape.outputs, w, shape.inputs, nullptr, d, shape.outputs, dx, shape.inputs};
  // a copy in panels, whose rows share no sets of the cache, pays where it is read several times
  constexpr std::int64_t kFewRows = 24;
  if (shape.rows > kFewRows && panels.count() > 1) {
    float* const packed = workspace.floats(shape.outputs * panels.padded());
    for (std::int64_t p = 0; p < panels.count(); ++p) {
      const Range inputs = panels.columns(p);
      float* to = packed + shape.outputs * inputs.begin;
      for (std::int64_t o = 0; o < shape.outputs; ++o, to += panels.width(p))
        std::copy(w + o * shape.inputs + inputs.begin, w + o * shape.inputs + inputs.end, to);
    }
    product.matrix = packed;
    product.stride = 0;
  }
  const int useful = busy_threads(multiply_adds(shape), threads);
  each_row_block(shape.rows, kRows, useful, [&](std::int64_t begin, std::int64_t end) {
    product.run(begin, end);
    if (f == DenseActivation::none) return;
    code.multiply_slope(f, (end - begin) * shape.inputs, h + begin * shape.inputs, dx + begin * shape.inputs);
  });
}

void dense_backward_params(const DenseShape& shape, const float* d, const float* x, std::int64_t x_stride, float* dw,
                           float* db, DenseWorkspace& workspace, int threads) {
  const DenseCode& code = workspace.code();
  PanelProduct whole{.m = shape.outputs,
                     .n = shape.inputs,
                     .k = shape.rows,
                     .a = d,
                     .a_row = 1,
                     .a_column = shape.outputs,
                     .b = x,
                     .b_row = x_stride,
                     .c = dw,
                     .c_row = shape.inputs};
  // vectors of outputs where that takes fewer cycles: the gradient's transpose, from the same sums
  const std::int64_t by_inputs = shape.rows * ceil_div(shape.inputs, code.lanes) * shape.outputs / 2;
  const std::int64_t by_outputs = shape.rows * ceil_div(shape.outputs, code.lanes) * shape.inputs / 2;
  const bool is_transposed = by_outputs + shape.inputs * shape.outputs / 2 < by_inputs;
  if (is_transposed) {
    std::swap(whole.m, whole.n);
    std::swap(whole.a, whole.b);
    std::swap(whole.a_column, whole.b_row);
    whole.c = workspace.floats(shape.inputs * shape.outputs);
    whole.c_row = shape.outputs;
  }
  if (shape.rows == 0) std::fill(whole.c, whole.c + shape.inputs * shape.outputs, 0.0F);
  // threads share strips of the gradient, each of which goes through all blocks of rows
  const RowBlockProduct product{code, Panels(code, whole.n), whole};
  const int useful = busy_threads(multiply_adds(shape), threads);
  parallel(product.strips(), useful, [&](std::int64_t begin, std::int64_t end) { product.run(begin, end); });
  if (is_transposed) code.transpose(shape.inputs, shape.outputs, whole.c, shape.outputs, dw, shape.inputs);
  if (db != nullptr) code.sum_columns(shape.rows, shape.outputs, d, db);
}

}  // namespace troupe::kernels
