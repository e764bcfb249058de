#include "tests/device/ptx/launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>

#include "tests/device/ptx/block.h"

namespace troupe::device::ptx {
namespace {

Result<void> check_shape(const Kernel& kernel, const LaunchShape& shape, std::size_t parameter_bytes) {
  std::uint64_t blocks = 1, threads = 1;
  for (int i = 0; i < 3; ++i) {
    blocks *= shape.grid[static_cast<std::size_t>(i)];
    threads *= shape.block[static_cast<std::size_t>(i)];
  }
  const bool is_legal = blocks > 0 && threads > 0 && threads <= 1024 && shape.block[2] <= 64 &&
                        blocks < GlobalShadow::kBlock && shape.grid[1] <= 65535 && shape.grid[2] <= 65535 &&
                        kernel.dynamic_shared + std::uint64_t{shape.shared_bytes} <= 227 * 1024;
  if (!is_legal) {
    return invalid_argument(fmt::format("{}: no device takes {} blocks of {} threads with {} bytes of shared memory",
                                        kernel.name, blocks, threads, kernel.dynamic_shared + shape.shared_bytes));
  }
  if (parameter_bytes != kernel.parameter_bytes) {
    return invalid_argument(fmt::format("{}: {} bytes of parameters, the kernel takes {}", kernel.name, parameter_bytes,
                                        kernel.parameter_bytes));
  }
  return {};
}

void run_blocks(LaunchState& state) {
  const auto& [x, y, z] = state.shape.grid;
  const auto& [bx, by, bz] = state.shape.block;
  std::vector<std::uint32_t> order(std::size_t{x} * y * z);
  std::iota(order.begin(), order.end(), 0);
  CounterRng random(state.options.seed, 0x707479, 0);
  for (std::size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[random.below(static_cast<std::uint32_t>(i))]);
  }
  const std::uint32_t warps = (bx * by * bz + kLanes - 1) / kLanes;
  std::vector<std::unique_ptr<Block>> residents;
  std::size_t next = 0;
  while (residents.size() < std::max<std::uint32_t>(state.options.resident_blocks, 1) && next < order.size()) {
    residents.push_back(std::make_unique<Block>(state, warps));
    residents.back()->start(order[next++]);
  }
  while (!residents.empty()) {
    const std::uint32_t chosen = random.below(static_cast<std::uint32_t>(residents.size()));
    const std::uint32_t steps = 1 + random.below(64);
    bool goes_on = true;
    for (std::uint32_t i = 0; i < steps && goes_on; ++i) goes_on = residents[chosen]->step();
    if (goes_on) continue;
    if (next < order.size()) {
      residents[chosen]->start(order[next++]);
    } else {
      residents.erase(residents.begin() + chosen);
    }
  }
}

}  // namespace

Result<LaunchResult> launch(const Program& program, const Kernel& kernel, const LaunchShape& shape,
                            std::span<const std::byte> parameters, const LaunchOptions& options) {
  TROUPE_TRY(check_shape(kernel, shape, parameters.size()));
#if defined(__x86_64__)
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) {
    return Error{Errc::failed_precondition, "the interpreter of PTX needs a processor with AVX2 and FMA"};
  }
#endif
  LaunchState state;
  state.program = &program;
  state.kernel = &kernel;
  state.memory = &program.memory();
  state.shape = shape;
  state.options = options;
  state.parameters = parameters;
  state.shadow = GlobalShadow(kernel.global_granule);
  state.counts.resize(kernel.code.size());
  run_blocks(state);
  LaunchResult result;
  result.findings = std::move(state.findings);
  result.touched = state.shadow.touched(program.memory());
  result.counts = sum_counts(program.module(), kernel, state.counts);
  return result;
}

std::vector<std::byte> pack_parameters(const Kernel& kernel, const void* const* pointers) {
  std::vector<std::byte> bytes(kernel.parameter_bytes);
  for (std::size_t i = 0; i < kernel.parameters.size(); ++i) {
    std::memcpy(bytes.data() + kernel.parameters[i].offset, pointers[i], kernel.parameters[i].size);
  }
  return bytes;
}

void WarpState::report(FindingKind kind, const Op& op, std::uint32_t lanes, std::string_view text,
                       std::uint64_t address, const Allocation* allocation) {
  LaunchState& launch = *block->launch;
  const SourcePosition& position = launch.kernel->positions[op.index];
  const auto [known, is_new] =
      launch.known_findings.try_emplace({kind, position.file, position.line}, launch.findings.size());
  if (!is_new) {
    if (known->second < launch.findings.size()) ++launch.findings[known->second].times;
    return;
  }
  if (launch.findings.size() >= launch.options.most_findings) return;
  const Module& module = launch.program->module();
  Finding finding{.kind = kind, .kernel = launch.kernel->name};
  const auto file = module.files.find(position.file);
  if (file != module.files.end()) finding.file = file->second;
  finding.line = position.line;
  finding.source = module.describe(position);
  finding.block = block->index;
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
    if ((lanes >> lane & 1) != 0) finding.threads.push_back(index * kLanes + lane);
  }
  finding.address = address;
  if (allocation != nullptr) {
    finding.allocation = allocation->address;
    finding.allocation_bytes = allocation->size;
  }
  finding.text = fmt::format("{}: {}", launch.kernel->mnemonics[op.index], text);
  launch.findings.push_back(std::move(finding));
}

void WarpState::report_unwritten(const Op& op, std::uint32_t lanes) {
  report(FindingKind::uninitialised_register, op, lanes, "reads a register that was never written");
}

}  // namespace troupe::device::ptx
