// cuBLASLt: products of row- or column-major matrices of f32 and bf16, with a bias. Sums are formed in f64 and rounded
// once, which is no worse than any order that the library may take; its choices are not imitated.
#include <cublasLt.h>
#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <vector>

#include "kernels/element.h"
#include "tests/device/standin/runtime.h"

namespace troupe::device::standin {
namespace {

using kernels::simd::Bf16;

struct Description {
  cublasOperation_t a = CUBLAS_OP_N, b = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void* bias = nullptr;
  cudaDataType_t bias_type = CUDA_R_32F;
};

/// Column-major: element (r, c) lies at c * stride + r.
struct Matrix {
  cudaDataType_t type = CUDA_R_32F;
  std::int64_t rows = 0, columns = 0, stride = 0;

  std::int64_t element_bytes() const { return type == CUDA_R_16BF ? 2 : 4; }
  bool is_known() const { return (type == CUDA_R_16BF || type == CUDA_R_32F) && stride >= rows; }
};

struct Preference {
  std::size_t workspace_bytes = 0;
  std::uint32_t alignment[4] = {256, 256, 256, 256};
};

/// Kept in the library's opaque algorithm: what the choice was made for.
struct Algorithm {
  std::uint32_t alignment[4];
  std::uint32_t magic;
};
constexpr std::uint32_t kMagic = 0x414c474fU;
static_assert(sizeof(Algorithm) <= sizeof(cublasLtMatmulAlgo_t));

double value_at(const std::byte* bytes, cudaDataType_t type, std::int64_t i) {
  if (type == CUDA_R_16BF) {
    Bf16 value;
    std::memcpy(&value, bytes + 2 * i, sizeof(value));
    return static_cast<double>(kernels::simd::to_float(value));
  }
  float value = 0;
  std::memcpy(&value, bytes + 4 * i, sizeof(value));
  return static_cast<double>(value);
}

void put_at(std::byte* bytes, cudaDataType_t type, std::int64_t i, double value) {
  const auto rounded = static_cast<float>(value);
  if (type == CUDA_R_16BF) {
    const Bf16 half = kernels::simd::to_bf16(rounded);
    std::memcpy(bytes + 2 * i, &half, sizeof(half));
  } else {
    std::memcpy(bytes + 4 * i, &rounded, sizeof(rounded));
  }
}

/// A product that was enqueued.
struct Product {
  Description description;
  Matrix a, b, c, d;
  std::uint64_t a_at = 0, b_at = 0, c_at = 0, d_at = 0, workspace = 0;
  std::size_t workspace_bytes = 0;
  double alpha = 1, beta = 0;
};

std::int64_t bytes_of(const Matrix& m) { return ((m.columns - 1) * m.stride + m.rows) * m.element_bytes(); }

/// The bytes of a matrix; null, with a finding, where they are not all in device memory or, to be read, not written.
std::byte* bytes_at(const Matrix& m, std::uint64_t at, bool reads, const char* which, std::vector<Access>& accesses) {
  auto& runtime = Runtime::get();
  const auto place = runtime.place(at, static_cast<std::uint64_t>(bytes_of(m)));
  if (!place || place->allocation == nullptr) {
    runtime.find(fmt::format("cublasLtMatmul: matrix {} at {:#x} is not in one allocation of a device", which, at));
    return nullptr;
  }
  for (std::int64_t c = 0; c < m.columns; ++c) {
    const auto begin = at + static_cast<std::uint64_t>(c * m.stride * m.element_bytes());
    const auto bytes = static_cast<std::uint64_t>(m.rows * m.element_bytes());
    if (reads && !place->allocation->is_written(begin - place->allocation->address, bytes))
      runtime.find(fmt::format("cublasLtMatmul: matrix {} at {:#x} has bytes that were never written", which, at));
    if (!reads) place->allocation->mark_written(begin - place->allocation->address, bytes);
    accesses.push_back({begin, begin + bytes, !reads});
  }
  return place->bytes;
}

/// op(m) as rows of its columns: element (i, p) of the result's [count, depth] at i * depth + p.
std::vector<double> gathered(const Matrix& m, const std::byte* bytes, bool depth_is_rows, std::int64_t count,
                             std::int64_t depth) {
  std::vector<double> all(static_cast<std::size_t>(count * depth));
  for (std::int64_t i = 0; i < count; ++i) {
    for (std::int64_t p = 0; p < depth; ++p)
      all[static_cast<std::size_t>(i * depth + p)] =
          value_at(bytes, m.type, depth_is_rows ? i * m.stride + p : p * m.stride + i);
  }
  return all;
}

double dot(const double* x, const double* y, std::int64_t count) {
  constexpr std::int64_t kLanes = 8;
  double lanes[kLanes] = {}, sum = 0;
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::int64_t j = 0; j < kLanes; ++j) lanes[j] += x[i + j] * y[i + j];
  }
  for (; i < count; ++i) sum += x[i] * y[i];
  for (const double lane : lanes) sum += lane;
  return sum;
}

void run_product(const Product& p, std::vector<Access>& accesses) {
  auto& runtime = Runtime::get();
  const bool a_transposed = p.description.a == CUBLAS_OP_T, b_transposed = p.description.b == CUBLAS_OP_T;
  const auto depth = a_transposed ? p.a.rows : p.a.columns;
  const auto* a = bytes_at(p.a, p.a_at, true, "A", accesses);
  const auto* b = bytes_at(p.b, p.b_at, true, "B", accesses);
  const auto* c = p.beta == 0 ? nullptr : bytes_at(p.c, p.c_at, true, "C", accesses);
  auto* d = bytes_at(p.d, p.d_at, false, "D", accesses);
  const std::byte* bias = nullptr;
  if (p.description.epilogue == CUBLASLT_EPILOGUE_BIAS) {
    const Matrix row{p.description.bias_type, p.d.rows, 1, p.d.rows};
    bias = bytes_at(row, reinterpret_cast<std::uint64_t>(p.description.bias), true, "bias", accesses);
  }
  if (p.workspace_bytes > 0) {
    if (!runtime.place(p.workspace, p.workspace_bytes))
      return runtime.find("cublasLtMatmul: the workspace is not in one allocation of a device");
    accesses.push_back({p.workspace, p.workspace + p.workspace_bytes, true});
  }
  if (a == nullptr || b == nullptr || d == nullptr || (p.beta != 0 && c == nullptr)) return;
  const auto left = gathered(p.a, a, a_transposed, p.d.rows, depth);
  const auto right = gathered(p.b, b, !b_transposed, p.d.columns, depth);
  for (std::int64_t column = 0; column < p.d.columns; ++column) {
    for (std::int64_t row = 0; row < p.d.rows; ++row) {
      double value = p.alpha * dot(left.data() + row * depth, right.data() + column * depth, depth);
      if (c != nullptr) value += p.beta * value_at(c, p.c.type, column * p.c.stride + row);
      if (bias != nullptr) value += value_at(bias, p.description.bias_type, row);
      put_at(d, p.d.type, column * p.d.stride + row, value);
    }
  }
}

/// Reads an attribute of that many bytes.
template <class T>
cublasStatus_t take(T& to, const void* from, std::size_t bytes) {
  if (bytes != sizeof(T)) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&to, from, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

bool fits(const Description& description, const Matrix& a, const Matrix& b, const Matrix& d) {
  const bool a_transposed = description.a == CUBLAS_OP_T, b_transposed = description.b == CUBLAS_OP_T;
  return a.is_known() && b.is_known() && d.is_known() && a.type == b.type &&
         (a_transposed ? a.columns : a.rows) == d.rows && (b_transposed ? b.rows : b.columns) == d.columns &&
         (a_transposed ? a.rows : a.columns) == (b_transposed ? b.columns : b.rows);
}

const Description& description_of(cublasLtMatmulDesc_t handle) { return *reinterpret_cast<Description*>(handle); }
const Matrix& matrix_of(cublasLtMatrixLayout_t handle) { return *reinterpret_cast<Matrix*>(handle); }
std::uint64_t address_of(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

}  // namespace

cublasStatus_t enqueue_product(cublasLtMatmulDesc_t description, const void* alpha, const void* beta, Product product,
                               const cublasLtMatmulAlgo_t* algorithm, cudaStream_t handle) {
  product.description = description_of(description);
  Algorithm chosen{};
  std::memcpy(&chosen, algorithm, sizeof(chosen));
  if (chosen.magic != kMagic || !fits(product.description, product.a, product.b, product.d) ||
      product.c.type != product.d.type || product.c.rows != product.d.rows || product.c.columns != product.d.columns)
    return CUBLAS_STATUS_INVALID_VALUE;
  product.alpha = static_cast<double>(*static_cast<const float*>(alpha));
  product.beta = static_cast<double>(*static_cast<const float*>(beta));
  auto& runtime = Runtime::get();
  const auto lock = runtime.lock();
  auto* stream = runtime.stream(handle);
  if (stream == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  const std::uint64_t at[4] = {product.a_at, product.b_at, product.c_at, product.d_at};
  for (int i = 0; i < 4; ++i) {
    if (at[i] % chosen.alignment[i] != 0)
      runtime.find(fmt::format("cublasLtMatmul: matrix {} at {:#x}, its algorithm was chosen for multiples of {} bytes",
                               "ABCD"[i], at[i], chosen.alignment[i]));
  }
  ++runtime.report().products;
  runtime.enqueue(*stream, {.name = "cublasLtMatmul",
                            .run = [product](std::vector<Access>& accesses) { run_product(product, accesses); }});
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace troupe::device::standin

using troupe::device::standin::address_of;
using troupe::device::standin::Algorithm;
using troupe::device::standin::description_of;
using troupe::device::standin::fits;
using troupe::device::standin::kMagic;
using troupe::device::standin::matrix_of;
using troupe::device::standin::take;
namespace standin = troupe::device::standin;

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  *handle = reinterpret_cast<cublasLtHandle_t>(new int);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete reinterpret_cast<int*>(handle);
  return CUBLAS_STATUS_SUCCESS;
}
const char* cublasLtGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_INVALID_VALUE ? "CUBLAS_STATUS_INVALID_VALUE" : "a status of the stand-in";
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* description, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  if (compute != CUBLAS_COMPUTE_32F || scale != CUDA_R_32F) return CUBLAS_STATUS_NOT_SUPPORTED;
  *description = reinterpret_cast<cublasLtMatmulDesc_t>(new standin::Description);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t description) {
  delete reinterpret_cast<standin::Description*>(description);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t handle, cublasLtMatmulDescAttributes_t key,
                                              const void* value, std::size_t bytes) {
  auto& description = *reinterpret_cast<standin::Description*>(handle);
  switch (key) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return take(description.a, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return take(description.b, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return take(description.epilogue, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return take(description.bias, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
      return take(description.bias_type, value, bytes);
    default:
      return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type, std::uint64_t rows,
                                          std::uint64_t columns, std::int64_t stride) {
  *layout = reinterpret_cast<cublasLtMatrixLayout_t>(
      new standin::Matrix{type, static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns), stride});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete reinterpret_cast<standin::Matrix*>(layout);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  *preference = reinterpret_cast<cublasLtMatmulPreference_t>(new standin::Preference);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete reinterpret_cast<standin::Preference*>(preference);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t handle,
                                                    cublasLtMatmulPreferenceAttributes_t key, const void* value,
                                                    std::size_t bytes) {
  auto& preference = *reinterpret_cast<standin::Preference*>(handle);
  switch (key) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
      return take(preference.workspace_bytes, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
      return take(preference.alignment[0], value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
      return take(preference.alignment[1], value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
      return take(preference.alignment[2], value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
      return take(preference.alignment[3], value, bytes);
    default:
      return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t description,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t* results, int* count) {
  *count = 0;
  if (wanted < 1 || !fits(description_of(description), matrix_of(a), matrix_of(b), matrix_of(d)))
    return CUBLAS_STATUS_INVALID_VALUE;
  Algorithm chosen{{}, kMagic};
  const auto& alignment = reinterpret_cast<standin::Preference*>(preference)->alignment;
  std::copy(std::begin(alignment), std::end(alignment), chosen.alignment);
  std::memcpy(&results[0].algo, &chosen, sizeof(chosen));
  results[0].state = CUBLAS_STATUS_SUCCESS;
  *count = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t description, const void* alpha, const void* a,
                              cublasLtMatrixLayout_t a_layout, const void* b, cublasLtMatrixLayout_t b_layout,
                              const void* beta, const void* c, cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* algorithm, void* workspace,
                              std::size_t workspace_bytes, cudaStream_t stream) {
  return standin::enqueue_product(description, alpha, beta,
                                  {.description = {},
                                   .a = matrix_of(a_layout),
                                   .b = matrix_of(b_layout),
                                   .c = matrix_of(c_layout),
                                   .d = matrix_of(d_layout),
                                   .a_at = address_of(a),
                                   .b_at = address_of(b),
                                   .c_at = address_of(c),
                                   .d_at = address_of(d),
                                   .workspace = address_of(workspace),
                                   .workspace_bytes = workspace_bytes},
                                  algorithm, stream);
}

}  // extern "C"
