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

/// What crosses between the host and a device while a micro-batch runs, so that the host does not wait. An upload goes
/// by pinned memory into a buffer of the device, on a stream of its own, while the micro-batch before still computes;
/// the computation then copies it to where programs read it, at the same address step after step. One thread.
class HostTransfers {
 public:
  /// Both outlive it. `compute`: the stream of the programs.
  HostTransfers(device::Device& device, device::Stream& compute);

  /// A host tensor's values on the device for what is enqueued on `compute` from here on, dense; the same for the same
  /// tensor until begin(). The host tensor may change as soon as this returns.
  at::Tensor upload(const at::Tensor& host);
  /// A host tensor that has the values of one of the device once the work of `compute` is done, until the first upload
  /// or download behind settle().
  at::Tensor download(const at::Tensor& there);
  /// The same as upload() for as long as this lives.
  at::Tensor keep(const at::Tensor& constant);
  /// A micro-batch begins: forgets what was uploaded. Work with it may still be under way.
  void begin();
  /// All work is done, or skipped behind a failure that `compute` has returned: pinned memory that it used is used
  /// again from here on. After a failure what is kept is copied once more, since its copy may have been skipped.
  void settle(bool succeeded);

 private:
  using Shared = std::shared_ptr<device::Memory>;
  /// Where an upload arrives, and where programs read it.
  struct Place {
    Shared staging, memory;
    std::unique_ptr<device::Event> arrived, taken;
    /// `taken` has been recorded since settle()
    bool is_used = false;
  };
  struct Uploaded {
    /// whose address is the key
    at::Tensor host;
    at::Tensor there;
    Place place;
  };
  struct Kept {
    at::Tensor host;
    Shared memory;
    at::Tensor there;
  };
  /// The first that has that many bytes, or a new one.
  Place take_place(std::int64_t bytes);
  Shared take_pinned(std::int64_t bytes);
  /// The values in pinned memory; null for no bytes.
  Shared pinned_copy(const at::Tensor& host);
  void copy_constant(const Kept& kept);

  device::Device& device_;
  device::Stream& compute_;
  const std::unique_ptr<device::Stream> inputs_;
  std::vector<Uploaded> uploaded_;
  /// by host tensor
  std::map<const void*, std::size_t> uploads_by_host_;
  std::map<const void*, Kept> kept_;
  /// By bytes, in the order in which they were used: a micro-batch like the one before finds the same addresses, which
  /// is what graphs are launched between.
  std::map<std::int64_t, std::deque<Place>> free_places_;
  std::map<std::int64_t, std::vector<Shared>> free_pinned_;
  /// since settle()
  std::vector<Shared> used_pinned_;
};

}  // namespace troupe::model
