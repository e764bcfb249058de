#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "base/namespaces.h"
#include "device/device.h"

namespace troupe::model {

/// What crosses between the host and a device while a micro-batch runs: by pinned memory, in the order of one stream,
/// so that the host does not wait. Buffers are used again, step after step. One thread.
class HostTransfers {
 public:
  /// Both outlive it.
  HostTransfers(device::Device& device, device::Stream& stream) : device_(device), stream_(stream) {}

  /// A host tensor's values on the device, dense; the same for the same tensor until begin().
  at::Tensor upload(const at::Tensor& host);
  /// A host tensor that has the values of one of the device once the stream's work is done, until begin().
  at::Tensor download(const at::Tensor& there);
  /// The same as upload() for as long as this lives.
  at::Tensor keep(const at::Tensor& constant);
  /// Forgets what has crossed. All work with it is done.
  void begin();

 private:
  struct Buffer {
    std::shared_ptr<device::Memory> pinned;
    /// of an upload
    std::shared_ptr<device::Memory> memory = {};
  };
  struct Crossed {
    /// keeps the host tensor, whose address is the key
    at::Tensor host;
    at::Tensor there;
    Buffer buffer;
  };
  /// Buffers by their bytes, in the order in which they were used: a micro-batch like the one before finds the same
  /// addresses, which is what graphs are launched between.
  using Free = std::map<std::int64_t, std::deque<Buffer>>;
  /// The first that has that many bytes, or a new one.
  Buffer take(Free& free, std::int64_t bytes, bool is_upload);
  Crossed cross(const at::Tensor& host, Buffer buffer);

  device::Device& device_;
  device::Stream& stream_;
  std::vector<Crossed> uploaded_;
  /// by host tensor
  std::map<const void*, std::size_t> uploads_by_host_;
  std::map<const void*, Crossed> kept_;
  std::vector<Buffer> downloaded_;
  Free free_uploads_, free_downloads_;
};

}  // namespace troupe::model
