#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/result.h"
#include "device/device.h"
#include "model/program/device_compute.h"
#include "model/program/pass.h"

namespace troupe::model {

/// Passes of programs as graphs of a device. What a pass does between some addresses is enqueued kernel by kernel the
/// first time, which makes what a capture must not make (scratch memory, plans of products); captured the second time;
/// from then on launched as a whole. Results are the same bits. One thread.
class PassGraphs {
 public:
  /// Keeps that many graphs; 0: none is captured.
  explicit PassGraphs(std::size_t most) : most_(most) {}

  /// Enqueues the pass over the values' tensors. Errors: those of its operations and of the capture.
  Result<void> run(const std::shared_ptr<const Pass>& pass, std::vector<at::Tensor>& tensors,
                   const DeviceCompute& device);
  /// After memory has moved; all work is done.
  void forget() { known_.clear(); }

 private:
  /// A pass, and where its values lie.
  using Key = std::pair<const Pass*, std::vector<const void*>>;
  struct Known {
    /// whose address is in the key
    std::shared_ptr<const Pass> pass;
    std::unique_ptr<device::Graph> graph;
  };

  const std::size_t most_;
  std::map<Key, Known> known_;
};

}  // namespace troupe::model
