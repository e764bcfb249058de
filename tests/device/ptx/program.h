#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "tests/device/ptx/device_memory.h"
#include "tests/device/ptx/module.h"

namespace troupe::device::ptx {

struct WarpState;
struct Op;

/// Runs one instruction for the active lanes of a warp.
using Handler = void (*)(WarpState&, const Op&);

/// A register or a constant: the bytes from the start of the warp's registers, or with the top bit set of the kernel's
/// constants, to the 32 values. The word kHeader before them has a bit for each lane that is written.
struct Ref {
  std::uint32_t offset = 0;
};
inline constexpr std::uint32_t kConstantBit = 0x80000000u;
inline constexpr std::uint32_t kHeader = 32;
inline constexpr std::uint32_t kNone = 0xFFFFFFFFu;

/// What the scheduler of a warp must do with an instruction; `plain` ones are their handler alone.
enum class Flow : std::uint8_t { plain, branch, indexed_branch, call, ret, exit, rendezvous, barrier };

/// Of a rendezvous: the register with the mask of lanes that must come, or all lanes if Op::target says so.
inline constexpr std::size_t kMaskRef = 13;
inline constexpr std::uint32_t kAllLanesMask = 0;

/// Classes that counters tell apart.
enum class OpClass : std::uint8_t { integer, f32, f64, half, mma, global, shared, local, constant, warp, control };
inline constexpr int kOpClasses = 11;

/// One decoded instruction. What `refs`, `a`, `b` and `c` mean is up to its handler (beside its decoder).
struct Op {
  Handler run = nullptr;
  Flow flow = Flow::plain;
  OpClass op_class = OpClass::control;
  bool guard_negated = false;
  /// Offset of the guard's register, or kNone.
  std::uint32_t guard = kNone;
  /// Of branches and calls the next instruction; of an indexed branch its table; of a rendezvous kAllLanesMask.
  std::uint32_t target = kNone;
  /// Of branches: where the lanes meet again, or kNone.
  std::uint32_t join = kNone;
  /// Its own place in Kernel::code.
  std::uint32_t index = 0;
  std::uint32_t a = 0, b = 0, c = 0;
  std::int64_t offset = 0;
  Ref refs[14] = {};
};

/// A special register that a kernel reads, filled when a warp starts.
enum class Special : std::uint8_t {
  tid_x,
  tid_y,
  tid_z,
  ntid_x,
  ntid_y,
  ntid_z,
  ctaid_x,
  ctaid_y,
  ctaid_z,
  nctaid_x,
  nctaid_y,
  nctaid_z,
  laneid,
  warpid,
  nwarpid,
  lanemask_eq,
  lanemask_le,
  lanemask_lt,
  lanemask_ge,
  lanemask_gt,
  dynamic_smem_size,
  total_smem_size
};

/// An entry with all functions it calls, ready to run.
struct Kernel {
  struct Parameter {
    std::uint32_t offset = 0, size = 0;
  };
  /// Bytes of a lane's local memory that a call or a return moves.
  struct Copy {
    std::uint32_t from = 0, to = 0, size = 0;
  };
  std::string name;
  std::vector<Op> code;
  /// By instruction.
  std::vector<SourcePosition> positions;
  std::vector<std::string> mnemonics;
  std::vector<std::vector<std::uint32_t>> branch_tables;
  std::vector<std::vector<Copy>> copies;
  /// As cudaLaunchKernel sees them, and all of them packed.
  std::vector<Parameter> parameters;
  std::uint32_t parameter_bytes = 0;
  /// Of a block without the dynamic part, which follows at `dynamic_shared`.
  std::uint32_t shared_bytes = 0, dynamic_shared = 0;
  /// Of one lane: depots, parameters and results of functions.
  std::uint32_t local_bytes = 0;
  /// Of one warp, a multiple of 32.
  std::uint32_t register_bytes = 0;
  /// Offsets of the words that say which lanes are written.
  std::vector<std::uint32_t> register_headers;
  std::vector<std::pair<Special, Ref>> specials;
  std::vector<std::byte> constants;
  /// Smallest width of its accesses, as a power of two: 0 to 4. Races are looked for in granules of that many bytes.
  std::uint32_t shared_granule = 4, global_granule = 4;
};

/// The kernels of a module, decoded, with the module's variables in a device's memory. Immutable but for that memory.
class Program {
 public:
  /// Allocates `.global` and `.const` variables in `memory`, which must outlive the program.
  /// Errors: invalid_argument that names an instruction, modifier or directive outside the supported set and its
  /// source line; resource_exhausted.
  static Result<Program> load(Module module, DeviceMemory& memory);

  /// The kernel of that mangled name, or null.
  const Kernel* find(std::string_view name) const;
  const std::vector<Kernel>& kernels() const { return kernels_; }
  /// Address of a `.global` or `.const` variable. Errors: not_found.
  Result<std::uint64_t> address_of(std::string_view variable) const;
  const Module& module() const { return *module_; }
  DeviceMemory& memory() const { return *memory_; }

 private:
  Result<void> place_variables();

  std::unique_ptr<const Module> module_;
  DeviceMemory* memory_ = nullptr;
  std::vector<Kernel> kernels_;
  std::map<std::string, std::uint64_t, std::less<>> addresses_;
};

/// Generic addresses of what is not in a device's memory: a window a space.
namespace window {
inline constexpr std::uint64_t kShared = std::uint64_t{1} << 60;
inline constexpr std::uint64_t kLocal = std::uint64_t{2} << 60;
inline constexpr std::uint64_t kParam = std::uint64_t{3} << 60;
}  // namespace window

}  // namespace troupe::device::ptx
