#include "model/wan/policy/dreamzero_window.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "model/loss/rl_keys.h"
#include "model/wan/batch_keys.h"

namespace troupe::model {
namespace {

namespace key = batch_keys;

/// What an observer looks at, of some rows.
Batch observed(const Batch& rows, const at::Tensor& index) {
  Batch chosen;
  for (const auto& [name, tensor] : rows) {
    // kState too begins with kImagePrefix
    if (name.starts_with(rl_keys::kImagePrefix)) chosen[name] = tensor.index_select(0, index);
  }
  return chosen;
}

at::Tensor index_of(const std::vector<std::int64_t>& places) { return at::tensor(places, at::kLong); }

std::vector<std::int64_t> with_rows(std::int64_t rows, std::vector<std::int64_t> shape) {
  shape.insert(shape.begin(), rows);
  return shape;
}

/// Writes rows into windows; the destination is made, of zeros, for the first of them.
void put(at::Tensor& to, std::int64_t windows, const at::Tensor& at_windows, const at::Tensor& from) {
  if (!to.defined()) to = at::zeros(with_rows(windows, from.sizes().slice(1).vec()), from.options());
  to.index_copy_(0, at_windows, from);
}

}  // namespace

at::Tensor WindowedRows::slots() const { return index_of(window) * blocks + index_of(block); }

at::Tensor WindowedRows::of_blocks(const at::Tensor& rows) const {
  const auto shape = rows.sizes().slice(1).vec();
  return at::zeros(with_rows(windows * blocks, shape), rows.options())
      .index_copy_(0, slots(), rows)
      .unflatten(0, {windows, blocks});
}

DreamZeroWindow::DreamZeroWindow(const ModelConfig& model, std::int64_t blocks)
    : blocks_(blocks),
      frames_per_block_(model.latent_frames_per_block),
      has_first_frame_(model.dit.concat_first_frame_latent) {
  if (blocks_ == 1) return;
  const auto rows = model.target_height / model.codec.stride_hw, cols = model.target_width / model.codec.stride_hw;
  const auto patches = model.image_encoder.image_size / model.image_encoder.patch_size;
  const auto add = [this](const char* name, std::vector<std::int64_t> shape) {
    const auto width = std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
    memory_.push_back({name, width});
    shapes_[name] = std::move(shape);
  };
  add(dreamzero_memory::kCalls, {1});
  add(dreamzero_memory::kLatents, {model.dit.out_dim, 1 + (blocks_ - 1) * frames_per_block_, rows, cols});
  add(dreamzero_memory::kClip, {1 + patches * patches, model.image_encoder.dim});
  if (has_first_frame_)
    add(dreamzero_memory::kFirstFrame, {4 + model.dit.out_dim, 1 + blocks_ * frames_per_block_, rows, cols});
}

const at::Tensor& DreamZeroWindow::memory_of(const Batch& rows, const char* name) const {
  return batch_tensor(rows, std::string(rl_keys::kMemoryPrefix) + name);
}

std::int64_t DreamZeroWindow::sequences(const Batch& rows, std::int64_t num_rows) const {
  if (blocks_ == 1) return num_rows;
  const auto sequences = memory_of(rows, dreamzero_memory::kCalls).size(0);
  TORCH_CHECK(sequences > 0 && num_rows % sequences == 0, num_rows, " rows of ", sequences, " sequences");
  return sequences;
}

std::vector<DreamZeroWindow::Continued> DreamZeroWindow::assign(const Batch& rows, std::int64_t num_rows,
                                                                WindowedRows& placed) const {
  std::vector<Continued> continued;
  const auto sequences = this->sequences(rows, num_rows);
  std::vector<std::int64_t> calls(static_cast<std::size_t>(sequences), 0);
  if (blocks_ > 1) {
    const at::Tensor before = memory_of(rows, dreamzero_memory::kCalls).round().to(at::kLong).flatten().contiguous();
    std::copy_n(before.const_data_ptr<std::int64_t>(), sequences, calls.begin());
  }
  const auto found = rows.find(rl_keys::kBegins);
  const at::Tensor begins = found == rows.end() ? at::Tensor() : found->second.flatten().contiguous();
  TORCH_CHECK(!begins.defined() || begins.numel() == num_rows, rl_keys::kBegins, " has ", begins.numel(),
              " rows, want ", num_rows);
  std::vector<std::int64_t> under_way(static_cast<std::size_t>(sequences), 0);
  for (std::int64_t row = 0; row < num_rows; ++row) {
    const auto s = static_cast<std::size_t>(row % sequences);
    if (begins.defined() && begins.const_data_ptr<bool>()[row]) calls[s] = 0;
    const bool is_first = row < sequences;
    if (is_first || calls[s] == 0) under_way[s] = placed.windows++;
    if (is_first && calls[s] > 0) continued.push_back({under_way[s], row});
    placed.window.push_back(under_way[s]);
    placed.block.push_back(calls[s]);
    calls[s] = (calls[s] + 1) % blocks_;
  }
  placed.windows = (placed.windows + sequences - 1) / sequences * sequences;
  return continued;
}

void DreamZeroWindow::take_frames(const Batch& made, const std::vector<std::int64_t>& of_rows,
                                  WindowedRows& placed) const {
  const auto& latents = batch_tensor(made, key::kCleanLatents);
  auto& clean = placed.seen[key::kCleanLatents];
  if (!clean.defined()) {
    const std::vector<std::int64_t> shape{placed.windows, latents.size(1), 1 + blocks_ * frames_per_block_,
                                          latents.size(3), latents.size(4)};
    clean = at::zeros(shape, latents.options());
  }
  for (std::size_t i = 0; i < of_rows.size(); ++i) {
    const auto row = static_cast<std::size_t>(of_rows[i]);
    clean[placed.window[row]]
        .narrow(1, frames_before(placed.block[row]), latents.size(2))
        .copy_(latents[static_cast<std::int64_t>(i)]);
  }
  const auto& state = batch_tensor(made, key::kState);
  if (!placed.state.defined()) {
    const auto num_rows = static_cast<std::int64_t>(placed.window.size());
    placed.state = at::empty(with_rows(num_rows, state.sizes().slice(1).vec()), state.options());
  }
  placed.state.index_copy_(0, index_of(of_rows), state);
}

void DreamZeroWindow::go_on(const Batch& rows, const Batch& made, const std::vector<Continued>& continued,
                            WindowedRows& placed) const {
  std::vector<std::int64_t> windows, sequences;
  for (const auto& [window, sequence] : continued) {
    windows.push_back(window);
    sequences.push_back(sequence);
  }
  const auto count = static_cast<std::int64_t>(continued.size());
  const auto fill = [&](const char* name, const at::Tensor& from) {
    put(placed.seen[name], placed.windows, index_of(windows), from);
  };
  const auto remembered = [&](const char* name) {
    return memory_of(rows, name).index_select(0, index_of(sequences)).view(with_rows(count, shapes_.at(name)));
  };
  // their rows are the first of `made`, in the same order
  fill(key::kContext, batch_tensor(made, key::kContext).narrow(0, 0, count));
  fill(key::kClip, remembered(dreamzero_memory::kClip));
  if (has_first_frame_) fill(key::kFirstFrame, remembered(dreamzero_memory::kFirstFrame));
  const auto latents = remembered(dreamzero_memory::kLatents);
  for (std::int64_t i = 0; i < count; ++i) {
    const auto& [window, sequence] = continued[static_cast<std::size_t>(i)];
    const auto frames = frames_before(placed.block[static_cast<std::size_t>(sequence)]);
    placed.seen.at(key::kCleanLatents)[window].narrow(1, 0, frames).copy_(latents[i].narrow(1, 0, frames));
  }
}

WindowedRows DreamZeroWindow::place(const Batch& rows, std::int64_t num_rows, const DreamZeroObserver& observer) const {
  WindowedRows placed;
  placed.blocks = blocks_;
  const auto continued = assign(rows, num_rows, placed);
  std::vector<std::int64_t> first, later, begun;
  for (std::size_t row = 0; row < placed.block.size(); ++row) {
    if (placed.block[row] == 0) begun.push_back(placed.window[row]);
    (placed.block[row] == 0 ? first : later).push_back(static_cast<std::int64_t>(row));
  }
  if (!first.empty()) {
    const auto made = observer.encode(later.empty() ? rows : observed(rows, index_of(first)));
    take_frames(made, first, placed);
    std::vector<const char*> names{key::kContext, key::kClip};
    if (has_first_frame_) names.push_back(key::kFirstFrame);
    for (const char* name : names) put(placed.seen[name], placed.windows, index_of(begun), batch_tensor(made, name));
  }
  if (!later.empty()) {
    const auto made = observer.encode_later(first.empty() ? rows : observed(rows, index_of(later)));
    take_frames(made, later, placed);
    if (!continued.empty()) go_on(rows, made, continued, placed);
  }
  return placed;
}

std::map<std::string, at::Tensor> DreamZeroWindow::remembered(const WindowedRows& placed) const {
  std::map<std::string, at::Tensor> memory;
  if (blocks_ == 1) return memory;
  const auto of_rows = index_of(placed.window);
  const auto rows = [&](const char* name) { return placed.seen.at(name).index_select(0, of_rows); };
  memory[dreamzero_memory::kCalls] = (index_of(placed.block) + 1).remainder(blocks_).to(at::kFloat).unsqueeze(1);
  memory[dreamzero_memory::kLatents] =
      rows(key::kCleanLatents).narrow(2, 0, 1 + (blocks_ - 1) * frames_per_block_).flatten(1);
  memory[dreamzero_memory::kClip] = rows(key::kClip).flatten(1);
  if (has_first_frame_) memory[dreamzero_memory::kFirstFrame] = rows(key::kFirstFrame).flatten(1);
  return memory;
}

}  // namespace troupe::model
