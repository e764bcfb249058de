#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "device/device.h"
#include "model/program/device_compute.h"
#include "model/program/host_transfers.h"
#include "model/program/pass.h"
#include "model/program/pass_graphs.h"

namespace troupe::model {

/// The memory of the programs of a network's units: one workspace, since units run one after the other, a stash for
/// each place (a unit, and behind the last one the loss), and two input gradients, for even and odd places in turn.
/// Grows to the largest program that asks and is used step after step: once warm, nothing is allocated. Values live
/// until the next run that writes them; tensors keep the memory alive that they lie in. One thread at a time, but for
/// stash_out and stash_in.
class UnitMemory {
 public:
  /// On the machine's cores; each place has a stash of its own.
  UnitMemory();
  /// Places 1 to `blocks` share `slots` stashes (0: each has its own), place p has stash p mod slots; what a place
  /// keeps lies in `folder` meanwhile (device::Device::allocate_behind). `device` outlives the memory, and so does what
  /// `compute` names: it runs the programs where the device is not the host.
  UnitMemory(int blocks, int slots, device::Device& device, std::string folder,
             std::optional<DeviceCompute> compute = std::nullopt);

  /// The tensors of the pass' values at `place`, by id, made when first asked for; those of bound values are the
  /// caller's to set. `graph` is the pass' and lives as long as the pass. Valid until the next call.
  std::vector<at::Tensor>& tensors(const Graph& graph, const std::shared_ptr<const Pass>& pass, int place);

  /// What runs the programs; null: the host does.
  const DeviceCompute* compute() const { return compute_ ? &*compute_ : nullptr; }
  /// The passes that ran on the device. None on the host.
  PassGraphs& graphs() { return *graphs_; }
  /// A host tensor where the programs run: itself, or on a device its values there until begin().
  at::Tensor placed(const at::Tensor& tensor);
  /// The other way (HostTransfers::download): the values are there once the device's work is done.
  at::Tensor downloaded(const at::Tensor& tensor);
  /// A micro-batch begins. On a device the work of the one before may be under way.
  void begin();
  /// All work is done, or skipped behind a failure that the device's stream has returned.
  void settle(bool succeeded);
  /// Zeros for a bound value; those of a device are the value's until they are asked for again.
  at::Tensor zeros(const Graph& graph, ValueId id);
  /// Writes zeros to a dense tensor.
  void clear(const at::Tensor& tensor) const;

  /// Copies what the last forward at `place` keeps out of its stash, and back. Another thread than that of the runs may
  /// call both, ordered with what uses that stash. Errors: those of allocate_behind.
  Result<void> stash_out(int place);
  Result<void> stash_in(int place);

  /// Allocated so far, without what lies in the folder.
  std::int64_t bytes() const;

 private:
  struct Made {
    std::shared_ptr<const Pass> pass;
    std::vector<at::Tensor> tensors;
  };
  using Arena = std::shared_ptr<device::Memory>;
  /// Makes the arena at least as large; whatever was made over it is forgotten then.
  void reserve(Arena& arena, std::int64_t bytes);
  /// Shared ones have negative numbers.
  int stash_of(int place) const {
    const bool shares = slots_ > 0 && place >= 1 && place <= blocks_;
    return shares ? -1 - place % slots_ : place;
  }
  /// The bytes that the last forward at a place keeps, where they are used.
  std::span<std::byte> kept_at(int place);

  const int blocks_ = 0, slots_ = 0;
  device::Device& device_;
  const std::string folder_;
  const std::optional<DeviceCompute> compute_;
  /// of each place; of the thread that copies
  std::map<int, std::shared_ptr<device::Memory>> behind_;

  /// guards the next two, not the bytes
  std::mutex mutex_;
  Arena workspace_;
  std::map<int, Arena> stashes_;
  /// by place
  std::map<int, std::int64_t> kept_bytes_;
  std::array<Arena, 2> gradients_;
  /// of a device
  std::optional<HostTransfers> transfers_;
  std::optional<PassGraphs> graphs_;
  std::map<std::pair<const Graph*, ValueId>, at::Tensor> zeros_;
  std::map<std::pair<const Pass*, int>, Made> made_;
};

}  // namespace troupe::model
