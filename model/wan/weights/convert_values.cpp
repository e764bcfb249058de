#include "model/wan/weights/convert_values.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>

#include "model/wan/weights/float_type.h"

namespace troupe::model {
namespace {

constexpr std::int64_t kPieceElements = 1 << 20;
constexpr std::size_t kPieceBytes = std::size_t{16} << 20;

/// `count` values from element `first`, copied (the source may be unaligned).
at::Tensor piece(std::span<const std::byte> bytes, std::string_view dtype, std::int64_t first, std::int64_t count) {
  const auto type = float_type(dtype).value();
  auto out = at::empty({count}, at::TensorOptions().dtype(type));
  const std::size_t size = c10::elementSize(type);
  if (count > 0)
    std::memcpy(out.data_ptr(), bytes.data() + static_cast<std::size_t>(first) * size,
                static_cast<std::size_t>(count) * size);
  return out;
}

Result<void> append(SafetensorsWriter& writer, const at::Tensor& values, std::string_view dtype) {
  const auto out = values.to(float_type(dtype).value()).contiguous();
  return writer.append({static_cast<const std::byte*>(out.data_ptr()), out.nbytes()});
}

/// A whole matrix in f32.
Result<at::Tensor> matrix(const TensorSource& source, const std::string& name, std::vector<std::byte>& gathered) {
  TROUPE_ASSIGN(const auto declared, source.declaration(name));
  TROUPE_ASSIGN(const auto bytes, source.read(name, gathered));
  const auto count = declared.shape[0] * declared.shape[1];
  return piece(bytes, declared.dtype, 0, count).to(at::kFloat).view({declared.shape[0], declared.shape[1]});
}

/// W + scale * B A in f32, some rows at a time.
Result<void> write_merged(const TensorSource& source, const PlannedTensor& tensor, std::span<const std::byte> bytes,
                          double scale, SafetensorsWriter& writer) {
  std::vector<std::byte> gathered;
  TROUPE_ASSIGN(const at::Tensor a, matrix(source, tensor.adapter.a, gathered));
  TROUPE_ASSIGN(const at::Tensor b, matrix(source, tensor.adapter.b, gathered));
  const auto rows = tensor.declared.shape[0], columns = tensor.declared.shape[1];
  const auto step = std::max<std::int64_t>(1, kPieceElements / std::max<std::int64_t>(columns, 1));
  for (std::int64_t row = 0; row < rows; row += step) {
    const auto count = std::min(step, rows - row);
    const auto weight =
        piece(bytes, tensor.stored_dtype, row * columns, count * columns).to(at::kFloat).view({count, columns});
    TROUPE_TRY(append(writer, at::addmm(weight, b.narrow(0, row, count), a, 1, scale), tensor.declared.dtype));
  }
  return {};
}

}  // namespace

Result<void> write_values(const TensorSource& source, const PlannedTensor& tensor, double lora_scale,
                          SafetensorsWriter& writer) {
  std::vector<std::byte> gathered;
  TROUPE_ASSIGN(std::span<const std::byte> bytes, source.read(tensor.stored, gathered));
  if (!tensor.adapter.a.empty()) return write_merged(source, tensor, bytes, lora_scale, writer);
  if (tensor.stored_dtype == tensor.declared.dtype) {
    for (; !bytes.empty(); bytes = bytes.subspan(std::min(kPieceBytes, bytes.size()))) {
      TROUPE_TRY(writer.append(bytes.first(std::min(kPieceBytes, bytes.size()))));
    }
    return {};
  }
  const auto total = static_cast<std::int64_t>(bytes.size()) / *safetensors_dtype_size(tensor.stored_dtype);
  for (std::int64_t first = 0; first < total; first += kPieceElements) {
    TROUPE_TRY(append(writer, piece(bytes, tensor.stored_dtype, first, std::min(kPieceElements, total - first)),
                      tensor.declared.dtype));
  }
  return {};
}

}  // namespace troupe::model
