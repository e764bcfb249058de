#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// What a restricted pickle can hold.
enum class PickleKind : std::uint8_t {
  none,
  boolean,
  integer,
  real,
  text,
  tuple,
  list,
  dict,
  function,
  storage_type,
  storage,
  tensor
};

/// Place of a value in PickleTree::nodes.
using PickleRef = std::uint32_t;

/// One value. Containers refer to others and may share them; a list or dict may contain itself.
struct PickleNode {
  PickleKind kind = PickleKind::none;
  std::int64_t offset = 0;       ///< of the opcode that made it, in the file
  std::int64_t integer = 0;      ///< integer, boolean; storage: elements; tensor: first element
  std::string text;              ///< text; storage: its key
  std::string_view dtype;        ///< storage_type, storage: "F32", ...
  std::vector<PickleRef> items;  ///< tuple, list; dict: key, value, key, value; tensor: storage, sizes, strides
};

struct PickleTree {
  std::vector<PickleNode> nodes;
  PickleRef root = 0;
};

/// Limits on one pickle. Wan's largest state dict has 1,300 tensors in 200 KB.
inline constexpr std::int64_t kMaxPickleBytes = 64 << 20;
inline constexpr std::size_t kMaxPickleNodes = 1'000'000;
inline constexpr std::size_t kMaxPickleStack = 1'000'000;

/// Runs the pickle of a state dict as torch.save writes it (protocol 2) on a machine that can only build containers,
/// numbers, text and descriptions of tensors: nothing is imported and nothing is called. Opcodes: PROTO STOP MARK NONE
/// NEWTRUE NEWFALSE BININT BININT1 BININT2 LONG1 BINFLOAT BINUNICODE EMPTY_TUPLE TUPLE TUPLE1-3 EMPTY_LIST APPEND
/// APPENDS EMPTY_DICT SETITEM SETITEMS BINPUT LONG_BINPUT BINGET LONG_BINGET GLOBAL REDUCE BINPERSID BUILD. Globals:
/// collections.OrderedDict, torch._utils._rebuild_tensor_v2, torch._utils._rebuild_parameter, torch.*Storage. BUILD is
/// for the attributes of an OrderedDict, which are dropped. `base` is where the pickle begins in the file.
/// Throws FormatError naming every other opcode or global, and what breaks a limit or the machine's rules.
PickleTree run_pickle(std::span<const std::byte> pickle, std::int64_t base);

}  // namespace troupe
