#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::model {

/// What a restricted pickle can hold. function, storage_type, storage and tensor are no values of Python but
/// descriptions: the allowed callables, torch.*Storage, a persistent id, and a call of _rebuild_tensor_v2.
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

/// One value; which members mean something depends on the kind. A tuple is complete when it is made; lists and dicts
/// grow. Containers refer to others and may share them; a list or dict may contain itself.
struct PickleNode {
  PickleKind kind = PickleKind::none;
  /// of the opcode that made it, in the file
  std::int64_t offset = 0;
  /// integer, boolean; storage: elements; tensor: first element
  std::int64_t integer = 0;
  /// text: the characters, UTF-8 and unchecked; storage: its key, the entry `data/<key>` of the archive
  std::string text;
  /// storage_type, storage: safetensors' name of the dtype, such as "F32"
  std::string_view dtype;
  /// tuple, list; dict: key, value, key, value; tensor: storage, sizes, strides
  std::vector<PickleRef> items;
};

/// All values that a pickle made, in the order they were made, and the one that STOP returned. Owns its memory but for
/// PickleNode::dtype, which is a constant of the program.
struct PickleTree {
  std::vector<PickleNode> nodes;
  PickleRef root = 0;
};

/// Limits on one pickle: its bytes, the values it makes (and its memo has), the height of its stack. Wan's largest
/// state dict has 1,300 tensors in 200 KB.
inline constexpr std::int64_t kMaxPickleBytes = 64 << 20;
inline constexpr std::size_t kMaxPickleNodes = 1'000'000;
inline constexpr std::size_t kMaxPickleStack = 1'000'000;

/// Runs the pickle of a state dict as torch.save writes it (protocol 2) on a machine that can only build containers,
/// numbers, text and descriptions of tensors: nothing is imported and nothing is called. Opcodes: PROTO STOP MARK NONE
/// NEWTRUE NEWFALSE BININT BININT1 BININT2 LONG1 BINFLOAT BINUNICODE EMPTY_TUPLE TUPLE TUPLE1-3 EMPTY_LIST APPEND
/// APPENDS EMPTY_DICT SETITEM SETITEMS BINPUT LONG_BINPUT BINGET LONG_BINGET GLOBAL REDUCE BINPERSID BUILD. Globals:
/// collections.OrderedDict, torch._utils._rebuild_tensor_v2, torch._utils._rebuild_parameter, torch.*Storage. BUILD is
/// for the attributes of an OrderedDict, which are dropped. `base` is where the pickle begins in the file.
/// The stack, its marks and the memo are those of Python's pickletools; a value that several containers refer to is one
/// node. Pure, so threads may run it at once. Time and memory are linear in the bytes and bounded by the limits above.
/// Throws FormatError naming every other opcode or global, and what breaks a limit or the machine's rules.
PickleTree run_pickle(std::span<const std::byte> pickle, std::int64_t base);

}  // namespace troupe::model
