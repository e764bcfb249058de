#include "workers/learner/rl/minibatch_rows.h"

#include <ATen/ATen.h>

#include <cstring>
#include <type_traits>

#include "base/check.h"
#include "model/loss/rl_keys.h"

namespace troupe::workers {

namespace {
/// Rows of `from`, `bytes` each, one behind the other into `to`.
void copy_rows(const std::byte* from, std::size_t bytes, std::span<const std::int64_t> rows, std::byte* to) {
  const auto copy = [&](auto size) {  // of a size that the compiler knows, or of any
    for (const std::int64_t row : rows) {
      std::memcpy(to, from + static_cast<std::size_t>(row) * size, size);
      to += size;
    }
  };
  if (bytes == 1) return copy(std::integral_constant<std::size_t, 1>());
  if (bytes == 4) return copy(std::integral_constant<std::size_t, 4>());
  if (bytes == 8) return copy(std::integral_constant<std::size_t, 8>());
  if (bytes == 16) return copy(std::integral_constant<std::size_t, 16>());
  copy(bytes);
}
}  // namespace

MinibatchRows::MinibatchRows(const RolloutRows& rows, std::int64_t part_rows)
    : steps_(rows.sequence),
      num_sequences_(rows.count / rows.sequence),
      part_rows_(part_rows),
      advantage_(rows.rows.at(rl_keys::kAdvantage).to(at::kFloat).contiguous()),
      valid_cells_(rows.valid_cells.contiguous()) {
  TROUPE_CHECK(part_rows % steps_ == 0, "a part has whole sequences");
  TROUPE_CHECK(advantage_.sizes() == valid_cells_.sizes(), "every cell of the loss has an advantage");
  for (const auto& [name, tensor] : rows.rows) {
    const bool is_memory = name.starts_with(rl_keys::kMemoryPrefix);
    Field field{.source = tensor.contiguous(), .steps = is_memory ? 1 : steps_};
    auto shape = tensor.sizes().vec();
    shape[0] = part_rows / steps_ * field.steps;
    const at::Tensor gathered = at::empty(shape, tensor.options());
    field.from = static_cast<const std::byte*>(field.source.const_data_ptr());
    field.to = static_cast<std::byte*>(gathered.mutable_data_ptr());
    field.row_bytes = gathered.nbytes() / static_cast<std::size_t>(shape[0]);
    part_[name] = gathered;
    fields_.push_back(std::move(field));
  }
  const at::Tensor& advantage = part_.at(rl_keys::kAdvantage);
  advantages_ = {advantage.data_ptr<float>(), static_cast<std::size_t>(advantage.numel())};
}

MinibatchRows::Counted MinibatchRows::count(std::span<const std::int64_t> sequences) const {
  const std::int64_t width = valid_cells_.size(1);
  const bool* const valid = valid_cells_.const_data_ptr<bool>();
  const float* const advantages = advantage_.const_data_ptr<float>();
  Counted counted{.cells = static_cast<std::int64_t>(sequences.size()) * steps_ * width};
  for (std::int64_t t = 0; t < steps_; ++t) {
    for (const std::int64_t sequence : sequences) {
      const std::int64_t first = (t * num_sequences_ + sequence) * width;
      for (std::int64_t cell = first; cell < first + width; ++cell) {
        if (!valid[cell]) continue;
        ++counted.valid;
        counted.advantages.add(static_cast<double>(advantages[cell]));
      }
    }
  }
  return counted;
}

Batch& MinibatchRows::gather(std::span<const std::int64_t> sequences, const AdvantageMoments* moments) {
  TROUPE_CHECK(static_cast<std::int64_t>(sequences.size()) * steps_ == part_rows_, "a part is full");
  for (const Field& field : fields_) {
    const std::size_t part_bytes = sequences.size() * field.row_bytes;
    for (std::int64_t t = 0; t < field.steps; ++t) {
      const std::byte* const step = field.from + static_cast<std::size_t>(t * num_sequences_) * field.row_bytes;
      copy_rows(step, field.row_bytes, sequences, field.to + static_cast<std::size_t>(t) * part_bytes);
    }
  }
  if (moments != nullptr) normalise(advantages_, *moments);
  return part_;
}

}  // namespace troupe::workers
