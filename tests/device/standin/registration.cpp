// What nvcc's stubs call: binaries and kernels are registered before main, and launches come with a grid that was
// pushed just before. Source: cuda_runtime's crt/host_runtime.h and crt/device_functions.h of CUDA 13.0.
#include <cuda_runtime_api.h>
#include <fmt/core.h>

#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "tests/device/standin/runtime.h"

namespace troupe::device::standin {
namespace {

struct Configuration {
  dim3 grid, block;
  std::size_t shared_bytes = 0;
  void* stream = nullptr;
};
thread_local Configuration configuration;

void add_counts(ptx::LaunchCounts& to, const ptx::LaunchCounts& from) {
  to.all.add(from.all);
  for (std::size_t i = 0; i < to.warps_by_class.size(); ++i) to.warps_by_class[i] += from.warps_by_class[i];
  for (const auto& line : from.lines) {
    auto same = std::find_if(to.lines.begin(), to.lines.end(),
                             [&](const auto& one) { return one.line == line.line && one.file == line.file; });
    if (same == to.lines.end()) same = to.lines.insert(to.lines.end(), {line.file, line.line, {}, {}});
    same->all.add(line.all);
  }
}

/// Runs one launch: its findings, counts and what it touched.
void run_kernel(const KernelEntry& entry, const ptx::Program& program, const ptx::Kernel& kernel,
                const ptx::LaunchShape& shape, std::span<const std::byte> parameters, std::uint64_t seed,
                std::vector<Access>& accesses) {
  auto& runtime = Runtime::get();
  auto result =
      ptx::launch(program, kernel, shape, parameters, {.seed = seed, .most_steps = runtime.options().most_steps});
  if (!result) return runtime.find(fmt::format("{}: {}", entry.name, result.error().message()));
  for (auto& finding : result->findings) {
    finding.kernel = entry.name;
    runtime.find(finding.to_string());
  }
  add_counts(runtime.report().kernels[entry.name], result->counts);
  for (const auto& touched : result->touched) {
    for (const auto& range : touched.reads) accesses.push_back({range.begin, range.end, false});
    for (const auto& range : touched.writes) accesses.push_back({range.begin, range.end, true});
  }
}

/// Exchanges the first two different addresses among a launch's parameters, and says at which bytes they lie; nothing
/// where it has no two.
std::optional<std::string> swap_addresses(std::vector<std::byte>& parameters) {
  constexpr std::size_t kWord = sizeof(std::uint64_t);
  std::optional<std::pair<std::size_t, std::uint64_t>> first;
  for (std::size_t at = 0; at + kWord <= parameters.size(); at += kWord) {
    std::uint64_t word = 0;
    std::memcpy(&word, parameters.data() + at, kWord);
    const auto place = Runtime::get().place(word, 1);
    if ((first && first->second == word) || !place || place->allocation == nullptr) continue;
    if (!first) {
      first = {at, word};
      continue;
    }
    std::memcpy(parameters.data() + at, &first->second, kWord);
    std::memcpy(parameters.data() + first->first, &word, kWord);
    return fmt::format("bytes {} and {}", first->first, at);
  }
  return std::nullopt;
}

cudaError_t launch(const KernelEntry* entry, dim3 grid, dim3 block, void** arguments, std::size_t shared_bytes,
                   cudaStream_t handle) {
  auto& runtime = Runtime::get();
  if (entry == nullptr) return fail(cudaErrorInvalidDeviceFunction);
  Stream* stream = runtime.stream(handle);
  if (stream == nullptr) return fail(cudaErrorInvalidResourceHandle);
  if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.y > 65535 || grid.z > 65535 || block.x == 0 ||
      block.x * block.y * block.z > 1024 || shared_bytes > static_cast<std::size_t>(entry->dynamic_shared_bytes))
    return fail(cudaErrorInvalidConfiguration);
  const auto* program = runtime.program(entry->binary, stream->device);
  const auto* kernel = program == nullptr ? nullptr : program->find(entry->mangled);
  if (kernel == nullptr) return fail(cudaErrorInvalidDeviceFunction);
  ++runtime.report().launches;
  const ptx::LaunchShape shape{.grid = {grid.x, grid.y, grid.z},
                               .block = {block.x, block.y, block.z},
                               .shared_bytes = static_cast<std::uint32_t>(shared_bytes)};
  const auto seed = runtime.options().seed + runtime.report().launches;
  auto parameters = ptx::pack_parameters(*kernel, arguments);
  if (stream->capture != nullptr) {
    auto swapped = parameters;
    const auto which = swap_addresses(swapped);
    if (which && runtime.report().captured++ == runtime.options().swapped_launch) {
      runtime.report().mutant = fmt::format("{}, {}", entry->name, *which);
      parameters = std::move(swapped);
    }
  }
  auto run = [entry, program, kernel, shape, parameters = std::move(parameters), seed](std::vector<Access>& accesses) {
    run_kernel(*entry, *program, *kernel, shape, parameters, seed, accesses);
  };
  runtime.enqueue(*stream, {.name = entry->name, .run = std::move(run)});
  return cudaSuccess;
}

}  // namespace
}  // namespace troupe::device::standin

using troupe::device::standin::Runtime;

extern "C" {

void** __cudaRegisterFatBinary(void* wrapper) {
  auto& runtime = Runtime::get();
  const auto lock = runtime.lock();
  return reinterpret_cast<void**>(runtime.add_binary(wrapper) + 1);
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterFunction(void** binary, const char* entry, char*, const char* name, int, uint3*, uint3*, dim3*,
                            dim3*, int*) {
  auto& runtime = Runtime::get();
  const auto lock = runtime.lock();
  runtime.add_kernel(entry, reinterpret_cast<std::size_t>(binary) - 1, name);
}
// variables of a module: kernels reach them, the host has no call that does
void __cudaRegisterVar(void**, char*, char*, const char*, int, std::size_t, int, int) {}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared_bytes, struct CUstream_st* stream) {
  troupe::device::standin::configuration = {grid, block, shared_bytes, stream};
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* shared_bytes, void* stream) {
  const auto& last = troupe::device::standin::configuration;
  *grid = last.grid, *block = last.block, *shared_bytes = last.shared_bytes;
  *static_cast<void**>(stream) = last.stream;
  return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* entry) {
  auto& runtime = Runtime::get();
  const auto lock = runtime.lock();
  *kernel = reinterpret_cast<cudaKernel_t>(runtime.kernel(entry));
  return *kernel == nullptr ? cudaErrorInvalidDeviceFunction : cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, std::size_t shared_bytes,
                               cudaStream_t stream) {
  const auto lock = Runtime::get().lock();
  return troupe::device::standin::launch(reinterpret_cast<troupe::device::standin::KernelEntry*>(kernel), grid, block,
                                         arguments, shared_bytes, stream);
}
cudaError_t cudaFuncSetAttribute(const void* entry, cudaFuncAttribute attribute, int value) {
  auto& runtime = Runtime::get();
  const auto lock = runtime.lock();
  auto* kernel = runtime.kernel(entry);
  // what a block may have on sm_90: 227 KiB
  if (kernel == nullptr || attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value > 227 * 1024)
    return troupe::device::standin::fail(cudaErrorInvalidValue);
  kernel->dynamic_shared_bytes = value;
  return cudaSuccess;
}

}  // extern "C"
