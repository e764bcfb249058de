#include <bit>
#include <msgpack/pack.hpp>

#include "comm/serve/msgpack_numpy.h"
#include "comm/serve/npy.h"

namespace troupe::comm {

namespace {

struct ByteSink {
  std::vector<std::byte> bytes;
  void write(const char* data, std::size_t size) {
    const auto* begin = reinterpret_cast<const std::byte*>(data);
    bytes.insert(bytes.end(), begin, begin + size);
  }
};

class TreeWriter {
 public:
  TreeWriter(ByteSink& sink, ArrayForm form) : sink_(sink), packer_(sink), form_(form) {}

  void write(const WireValue& value) {
    std::visit([this](const auto& v) { put(v); }, value.storage);
  }

 private:
  void put(std::monostate) { packer_.pack_nil(); }
  void put(bool value) { value ? packer_.pack_true() : packer_.pack_false(); }
  void put(std::int64_t value) { packer_.pack_int64(value); }
  void put(double value) {
    // not pack_double, which shortens whole numbers to integers: a Python client then sees another type
    auto bits = std::bit_cast<std::uint64_t>(value);
    char bytes[9] = {'\xcb'};
    for (int i = 8; i > 0; --i, bits >>= 8) bytes[i] = static_cast<char>(bits & 0xff);
    sink_.write(bytes, sizeof bytes);
  }
  void put(const std::string& value) {
    packer_.pack_str(static_cast<std::uint32_t>(value.size()));
    packer_.pack_str_body(value.data(), static_cast<std::uint32_t>(value.size()));
  }
  void put_bin(std::span<const std::byte> value) {
    packer_.pack_bin(static_cast<std::uint32_t>(value.size()));
    packer_.pack_bin_body(reinterpret_cast<const char*>(value.data()), static_cast<std::uint32_t>(value.size()));
  }
  void put(const WireBytes& value) { put_bin(value); }
  void put(const WireArray& value) {
    packer_.pack_array(static_cast<std::uint32_t>(value.size()));
    for (const WireValue& item : value) write(item);
  }
  void put(const WireMap& value) {
    packer_.pack_map(static_cast<std::uint32_t>(value.size()));
    for (const WirePair& pair : value) {
      put(pair.name);
      write(pair.value);
    }
  }
  void put(const NdArray& array) {
    if (form_ == ArrayForm::groot) {
      packer_.pack_map(2);
      put(std::string("__ndarray_class__"));
      packer_.pack_true();
      put(std::string("as_npy"));
      return put_bin(write_npy(array));
    }
    // Python decoders test b"__ndarray__": the names must be bin
    packer_.pack_map(4);
    put_name("__ndarray__");
    packer_.pack_true();
    put_name("data");
    put_bin(array.data);
    put_name("dtype");
    put(array.dtype);
    put_name("shape");
    packer_.pack_array(static_cast<std::uint32_t>(array.shape.size()));
    for (const std::int64_t d : array.shape) packer_.pack_int64(d);
  }
  void put_name(std::string_view name) { put_bin(std::as_bytes(std::span(name))); }

  ByteSink& sink_;
  msgpack::packer<ByteSink> packer_;
  ArrayForm form_;
};

}  // namespace

std::vector<std::byte> encode_wire_tree(const WireValue& value, ArrayForm form) {
  ByteSink sink;
  TreeWriter(sink, form).write(value);
  return std::move(sink.bytes);
}

}  // namespace troupe::comm
