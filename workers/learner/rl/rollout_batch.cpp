#include "workers/learner/rl/rollout_batch.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>

#include "model/loss/rl_keys.h"
#include "workers/rollout/ended_rows.h"

namespace troupe::workers {

namespace {

at::ScalarType dtype_of(RecordType type) {
  switch (type) {
    case RecordType::u8:
      return at::kByte;
    case RecordType::i32:
      return at::kInt;
    case RecordType::i64:
      return at::kLong;
    case RecordType::f32:
      return at::kFloat;
    case RecordType::f64:
      return at::kDouble;
  }
  return at::kFloat;
}

/// [S, n, ...] of every item -> [S, items * n, ...]; undefined where the items do not have the field.
at::Tensor side_by_side(const RecordField& field, std::span<const CollectedItem> items) {
  if (!field.is_present()) return {};
  std::vector<std::int64_t> shape = field.shape;
  const std::int64_t steps = shape.at(0);
  const auto count = static_cast<std::int64_t>(items.size());
  shape.at(1) *= count;
  at::Tensor out = at::empty(shape, dtype_of(field.type));
  const auto row = static_cast<std::size_t>(field.bytes / steps);
  auto* to = static_cast<std::byte*>(out.mutable_data_ptr());
  for (std::int64_t t = 0; t < steps; ++t) {
    for (const CollectedItem& item : items) {
      std::memcpy(to, item.bytes.data() + field.offset + static_cast<std::size_t>(t) * row, row);
      to += row;
    }
  }
  return out;
}

/// Final observations of every item, in order of (policy step, item, row).
void add_final_observations(const TrajectoryLayout& layout, const PolicyShape& shape,
                            std::span<const CollectedItem> items, RolloutBatch& batch) {
  std::vector<EndedRows> ended;
  std::int64_t count = 0;
  for (const CollectedItem& item : items) {
    ended.emplace_back(ConstTrajectoryView(layout, item.bytes.data()));
    count += ended.back().count();
  }
  const auto make = [&](const RecordField& field, std::vector<std::int64_t> sizes) {
    sizes.insert(sizes.begin(), count);
    return at::empty(sizes, dtype_of(field.type));
  };
  at::Tensor state;
  if (layout.final_state.is_present())
    state = batch.final_observation[rl_keys::kState] = make(layout.final_state, {layout.state_dim});
  std::vector<at::Tensor> images;
  for (std::size_t i = 0; i < layout.final_images.size(); ++i) {
    images.push_back(make(layout.final_images[i], layout.final_images[i].shape));
    batch.final_observation[rl_keys::kImagePrefix + shape.images.at(i).name] = images.back();
  }
  std::vector<std::int64_t> rows;
  for (std::int64_t t = 0; t < layout.calls; ++t) {
    for (std::size_t m = 0; m < items.size(); ++m) {
      const ConstTrajectoryView item(layout, items[m].bytes.data());
      for (std::int64_t row = 0; row < layout.rows; ++row) {
        const std::int32_t number = ended[m].number(t, row);
        if (number < 0) continue;
        const auto to = static_cast<std::int64_t>(rows.size());
        rows.push_back((t * static_cast<std::int64_t>(items.size()) + static_cast<std::int64_t>(m)) * layout.rows +
                       row);
        if (state.defined()) {
          std::copy_n(item.final_state(t).data() + row * layout.state_dim, layout.state_dim,
                      state.mutable_data_ptr<float>() + to * layout.state_dim);
        }
        for (std::size_t i = 0; i < images.size(); ++i) {
          const auto picture = item.final_image(i, number);
          std::copy(picture.begin(), picture.end(),
                    static_cast<std::uint8_t*>(images[i].mutable_data_ptr()) + to * layout.final_images[i].bytes);
        }
      }
    }
  }
  batch.final_rows = at::tensor(rows, at::kLong);
  for (std::size_t i = 0; i < layout.texts.size(); ++i) {
    const std::string key = rl_keys::kTextPrefix + shape.texts.at(i).name;
    batch.final_observation[key] = batch.observation.at(key).flatten(0, 1).index_select(0, batch.final_rows);
  }
}

}  // namespace

RolloutBatch make_rollout_batch(const TrajectoryLayout& layout, const PolicyNet& net, const PolicyShape& shape,
                                std::span<const CollectedItem> items) {
  RolloutBatch batch;
  if (layout.state.is_present()) batch.observation[rl_keys::kState] = side_by_side(layout.state, items);
  for (std::size_t i = 0; i < layout.images.size(); ++i) {
    batch.observation[rl_keys::kImagePrefix + shape.images.at(i).name] = side_by_side(layout.images[i], items);
  }
  for (std::size_t i = 0; i < layout.texts.size(); ++i)
    batch.observation[rl_keys::kTextPrefix + shape.texts.at(i).name] = side_by_side(layout.texts[i], items);
  batch.action = side_by_side(layout.action, items);
  batch.logp = side_by_side(layout.logp, items);
  batch.value = side_by_side(layout.value, items);
  batch.final_value = side_by_side(layout.final_value, items);
  if (layout.keeps_finals) add_final_observations(layout, shape, items, batch);
  for (std::size_t i = 0; i < layout.extras.size(); ++i)
    batch.extras[net.extras().at(i).name] = side_by_side(layout.extras[i], items);
  for (std::size_t i = 0; i < layout.policy_memory.size(); ++i)
    batch.memory[net.memory().at(i).name] = side_by_side(layout.policy_memory[i], items).squeeze(0);
  batch.version = side_by_side(layout.version, items);
  batch.reward = side_by_side(layout.reward, items);
  batch.terminated = side_by_side(layout.terminated, items).to(at::kBool);
  batch.truncated = side_by_side(layout.truncated, items).to(at::kBool);
  batch.lost = side_by_side(layout.lost, items).to(at::kBool);
  const at::Tensor ended = side_by_side(layout.done, items).to(at::kBool).logical_or(batch.lost);
  batch.begins = at::cat({at::zeros_like(ended[0]).unsqueeze(0), ended.narrow(0, 0, layout.calls - 1)});
  batch.mask = side_by_side(layout.valid, items).to(at::kBool).logical_and(batch.lost.logical_not().unsqueeze(-1));
  return batch;
}

Batch memory_inputs(const RolloutBatch& batch) {
  Batch inputs;
  for (const auto& [name, tensor] : batch.memory) inputs[rl_keys::kMemoryPrefix + name] = tensor;
  if (!inputs.empty()) inputs[rl_keys::kBegins] = batch.begins.reshape({-1, 1});
  return inputs;
}

Batch density_inputs(const RolloutBatch& batch, double noise_level) {
  Batch rows = memory_inputs(batch);
  for (const auto& [key, tensor] : batch.observation) rows[key] = tensor.narrow(0, 0, batch.calls()).flatten(0, 1);
  for (const auto& [key, tensor] : batch.extras) rows[rl_keys::kExtraPrefix + key] = tensor.flatten(0, 1);
  rows[rl_keys::kAction] = batch.action.flatten(0, 1);
  rows[rl_keys::kNoiseLevel] = at::scalar_tensor(noise_level, at::kFloat);
  return rows;
}

}  // namespace troupe::workers
