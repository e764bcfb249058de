#include "model/io/pickle_names.h"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace troupe::model {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 10> kStorages = {{{"FloatStorage", "F32"},
                                                                                      {"BFloat16Storage", "BF16"},
                                                                                      {"HalfStorage", "F16"},
                                                                                      {"DoubleStorage", "F64"},
                                                                                      {"LongStorage", "I64"},
                                                                                      {"IntStorage", "I32"},
                                                                                      {"ShortStorage", "I16"},
                                                                                      {"CharStorage", "I8"},
                                                                                      {"ByteStorage", "U8"},
                                                                                      {"BoolStorage", "BOOL"}}};

/// Every opcode of protocols 0 to 5, for messages.
constexpr std::array<std::pair<std::uint8_t, std::string_view>, 68> kOpcodes = {{{'(', "MARK"},
                                                                                 {'.', "STOP"},
                                                                                 {'0', "POP"},
                                                                                 {'1', "POP_MARK"},
                                                                                 {'2', "DUP"},
                                                                                 {'F', "FLOAT"},
                                                                                 {'I', "INT"},
                                                                                 {'J', "BININT"},
                                                                                 {'K', "BININT1"},
                                                                                 {'L', "LONG"},
                                                                                 {'M', "BININT2"},
                                                                                 {'N', "NONE"},
                                                                                 {'P', "PERSID"},
                                                                                 {'Q', "BINPERSID"},
                                                                                 {'R', "REDUCE"},
                                                                                 {'S', "STRING"},
                                                                                 {'T', "BINSTRING"},
                                                                                 {'U', "SHORT_BINSTRING"},
                                                                                 {'V', "UNICODE"},
                                                                                 {'X', "BINUNICODE"},
                                                                                 {'a', "APPEND"},
                                                                                 {'b', "BUILD"},
                                                                                 {'c', "GLOBAL"},
                                                                                 {'d', "DICT"},
                                                                                 {'}', "EMPTY_DICT"},
                                                                                 {'e', "APPENDS"},
                                                                                 {'g', "GET"},
                                                                                 {'h', "BINGET"},
                                                                                 {'i', "INST"},
                                                                                 {'j', "LONG_BINGET"},
                                                                                 {'l', "LIST"},
                                                                                 {']', "EMPTY_LIST"},
                                                                                 {'o', "OBJ"},
                                                                                 {'p', "PUT"},
                                                                                 {'q', "BINPUT"},
                                                                                 {'r', "LONG_BINPUT"},
                                                                                 {'s', "SETITEM"},
                                                                                 {'t', "TUPLE"},
                                                                                 {')', "EMPTY_TUPLE"},
                                                                                 {'u', "SETITEMS"},
                                                                                 {'G', "BINFLOAT"},
                                                                                 {'B', "BINBYTES"},
                                                                                 {'C', "SHORT_BINBYTES"},
                                                                                 {0x80, "PROTO"},
                                                                                 {0x81, "NEWOBJ"},
                                                                                 {0x82, "EXT1"},
                                                                                 {0x83, "EXT2"},
                                                                                 {0x84, "EXT4"},
                                                                                 {0x85, "TUPLE1"},
                                                                                 {0x86, "TUPLE2"},
                                                                                 {0x87, "TUPLE3"},
                                                                                 {0x88, "NEWTRUE"},
                                                                                 {0x89, "NEWFALSE"},
                                                                                 {0x8a, "LONG1"},
                                                                                 {0x8b, "LONG4"},
                                                                                 {0x8c, "SHORT_BINUNICODE"},
                                                                                 {0x8d, "BINUNICODE8"},
                                                                                 {0x8e, "BINBYTES8"},
                                                                                 {0x8f, "EMPTY_SET"},
                                                                                 {0x90, "ADDITEMS"},
                                                                                 {0x91, "FROZENSET"},
                                                                                 {0x92, "NEWOBJ_EX"},
                                                                                 {0x93, "STACK_GLOBAL"},
                                                                                 {0x94, "MEMOIZE"},
                                                                                 {0x95, "FRAME"},
                                                                                 {0x96, "BYTEARRAY8"},
                                                                                 {0x97, "NEXT_BUFFER"},
                                                                                 {0x98, "READONLY_BUFFER"}}};

}  // namespace

std::optional<PickleFunction> pickle_function(std::string_view module, std::string_view name) {
  if (module == "collections" && name == "OrderedDict") return PickleFunction::ordered_dict;
  if (module != "torch._utils") return std::nullopt;
  if (name == "_rebuild_tensor_v2") return PickleFunction::rebuild_tensor;
  if (name == "_rebuild_parameter") return PickleFunction::rebuild_parameter;
  return std::nullopt;
}

std::string_view storage_dtype(std::string_view module, std::string_view name) {
  if (module != "torch") return {};
  for (const auto& [storage, dtype] : kStorages) {
    if (storage == name) return dtype;
  }
  return {};
}

std::string pickle_opcode_name(std::uint8_t opcode) {
  for (const auto& [code, name] : kOpcodes) {
    if (code == opcode) return fmt::format("{} (0x{:02x})", name, opcode);
  }
  return fmt::format("0x{:02x}", opcode);
}

}  // namespace troupe::model
