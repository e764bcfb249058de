// A message of a policy client: MessagePack with NumPy arrays.
#include "comm/serve/msgpack_numpy.h"
#include "tests/fuzz/fuzz.h"

namespace troupe::testing {

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto tree = decode_wire_tree(bytes_of(data, size));
  if (!tree) return refused(tree.error()), 0;
  for (const ArrayForm form : {ArrayForm::openpi, ArrayForm::groot}) {
    const auto sent = encode_wire_tree(*tree, form);
    const auto back = decode_wire_tree(sent);
    // bytes and not values: a NaN is no value of its own
    TROUPE_CHECK(back && encode_wire_tree(*back, form) == sent, "what was sent is read as it was");
  }
  return 0;
}

}  // namespace troupe::testing
