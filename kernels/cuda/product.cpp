#include "kernels/cuda/product.h"

#include <cublasLt.h>
#include <fmt/core.h>

#include <map>
#include <tuple>
#include <utility>

namespace troupe::kernels::cuda {
namespace {

cudaDataType_t data_type(ElementType type) { return type == ElementType::f32 ? CUDA_R_32F : CUDA_R_16BF; }

/// A handle of cuBLASLt with the function that gives it back.
template <class Handle, cublasStatus_t (*kDestroy)(Handle)>
class Owned {
 public:
  Owned() = default;
  Owned(Owned&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Owned() {
    if (handle_ != nullptr) kDestroy(handle_);
  }
  Handle get() const { return handle_; }
  Handle* out() { return &handle_; }

 private:
  Handle handle_ = nullptr;
};
using Library = Owned<cublasLtHandle_t, cublasLtDestroy>;
using Description = Owned<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using Layout = Owned<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
using Preference = Owned<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;

#define TROUPE_CUBLAS(call)                                                                                  \
  do {                                                                                                       \
    if (const cublasStatus_t status = (call); status != CUBLAS_STATUS_SUCCESS)                               \
      return Error{Errc::internal, fmt::format("cuBLASLt: {}: {}", #call, cublasLtGetStatusString(status))}; \
  } while (false)

/// Bytes that an address is a multiple of, 256 at most.
std::uint32_t alignment_of(const void* pointer) {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer) | 256U;
  return static_cast<std::uint32_t>(address & (~address + 1));
}

/// What the choice of an algorithm depends on.
using Shape = std::tuple<ProductLayout, std::int64_t, std::int64_t, std::int64_t, ElementType, ElementType,
                         std::int64_t, std::int64_t, std::int64_t, bool, std::uint32_t, std::uint32_t, std::uint32_t>;

Shape shape_of(const DeviceProduct& p) {
  return {p.layout,
          p.m,
          p.n,
          p.k,
          p.operand_type,
          p.out_type,
          p.a_stride,
          p.b_stride,
          p.out_stride,
          p.bias != nullptr,
          alignment_of(p.a),
          alignment_of(p.b),
          alignment_of(p.out)};
}

struct Plan {
  Description description;
  Layout a, b, out;
  cublasLtMatmulAlgo_t algorithm;
};

class CublasLtProducts final : public Products {
 public:
  CublasLtProducts(Library library, void* workspace, std::int64_t bytes)
      : library_(std::move(library)), workspace_(workspace), workspace_bytes_(static_cast<std::size_t>(bytes)) {}

  Result<void> multiply(const DeviceProduct& product, cudaStream_t stream) override {
    if (product.m == 0 || product.n == 0) return {};
    const auto shape = shape_of(product);
    auto known = plans_.find(shape);
    if (known == plans_.end()) {
      auto made = plan(product);
      if (!made) return made.error();
      known = plans_.emplace(shape, *std::move(made)).first;
    }
    auto& plan = known->second;
    if (product.bias != nullptr)
      TROUPE_CUBLAS(cublasLtMatmulDescSetAttribute(plan.description.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                                                   &product.bias, sizeof(product.bias)));
    const float one = 1.0F, kept = product.add ? 1.0F : 0.0F;
    TROUPE_CUBLAS(cublasLtMatmul(library_.get(), plan.description.get(), &one, product.b, plan.b.get(), product.a,
                                 plan.a.get(), &kept, product.out, plan.out.get(), product.out, plan.out.get(),
                                 &plan.algorithm, workspace_, workspace_bytes_, stream));
    return {};
  }

 private:
  /// Of a row-major matrix of `rows` rows, as the library's column-major one.
  static Result<Layout> layout(ElementType type, std::int64_t rows, std::int64_t columns, std::int64_t stride) {
    Layout made;
    TROUPE_CUBLAS(cublasLtMatrixLayoutCreate(made.out(), data_type(type), static_cast<std::uint64_t>(columns),
                                             static_cast<std::uint64_t>(rows), stride == 0 ? columns : stride));
    return made;
  }

  Result<Plan> plan(const DeviceProduct& p) const {
    Plan made;
    auto& description = made.description;
    TROUPE_CUBLAS(cublasLtMatmulDescCreate(description.out(), CUBLAS_COMPUTE_32F, CUDA_R_32F));
    const auto set = [&](cublasLtMatmulDescAttributes_t key, const auto& value) {
      return cublasLtMatmulDescSetAttribute(description.get(), key, &value, sizeof(value));
    };
    const cublasOperation_t none = CUBLAS_OP_N, transposed = CUBLAS_OP_T;
    TROUPE_CUBLAS(set(CUBLASLT_MATMUL_DESC_TRANSA, p.layout == ProductLayout::nt ? transposed : none));
    TROUPE_CUBLAS(set(CUBLASLT_MATMUL_DESC_TRANSB, p.layout == ProductLayout::tn ? transposed : none));
    if (p.bias != nullptr) {
      const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
      TROUPE_CUBLAS(set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue));
      TROUPE_CUBLAS(set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, data_type(p.out_type)));
    }
    const bool is_tn = p.layout == ProductLayout::tn, is_nt = p.layout == ProductLayout::nt;
    auto a = layout(p.operand_type, is_tn ? p.k : p.m, is_tn ? p.m : p.k, p.a_stride);
    auto b = layout(p.operand_type, is_nt ? p.n : p.k, is_nt ? p.k : p.n, p.b_stride);
    auto out = layout(p.out_type, p.m, p.n, p.out_stride);
    for (const auto* one : {&a, &b, &out}) TROUPE_TRY(*one);
    made.a = *std::move(a), made.b = *std::move(b), made.out = *std::move(out);

    Preference preference;
    TROUPE_CUBLAS(cublasLtMatmulPreferenceCreate(preference.out()));
    const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t key, const auto& value) {
      return cublasLtMatmulPreferenceSetAttribute(preference.get(), key, &value, sizeof(value));
    };
    TROUPE_CUBLAS(prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace_bytes_));
    TROUPE_CUBLAS(prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment_of(p.b)));
    TROUPE_CUBLAS(prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment_of(p.a)));
    TROUPE_CUBLAS(prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment_of(p.out)));
    TROUPE_CUBLAS(prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment_of(p.out)));
    cublasLtMatmulHeuristicResult_t found = {};
    int count = 0;
    TROUPE_CUBLAS(cublasLtMatmulAlgoGetHeuristic(library_.get(), description.get(), made.b.get(), made.a.get(),
                                                 made.out.get(), made.out.get(), preference.get(), 1, &found, &count));
    if (count == 0)
      return Error{Errc::internal,
                   fmt::format("cuBLASLt has no algorithm for a product of {} x {} x {}", p.m, p.n, p.k)};
    made.algorithm = found.algo;
    return made;
  }

  Library library_;
  void* workspace_;
  std::size_t workspace_bytes_;
  std::map<Shape, Plan> plans_;
};

}  // namespace

Result<std::unique_ptr<Products>> Products::make(void* workspace, std::int64_t workspace_bytes) {
  Library library;
  TROUPE_CUBLAS(cublasLtCreate(library.out()));
  return std::unique_ptr<Products>(new CublasLtProducts(std::move(library), workspace, workspace_bytes));
}

}  // namespace troupe::kernels::cuda
