#include "model/io/pickle_machine.h"

#include <unordered_map>
#include <utility>

#include "model/io/byte_cursor.h"
#include "model/io/pickle_names.h"

namespace troupe::model {
namespace {

class PickleMachine {
 public:
  PickleMachine(std::span<const std::byte> pickle, std::int64_t base) : in_(pickle, base, "pickle") {}

  PickleTree run() {
    while (!stopped_) step();
    if (!in_.at_end()) throw FormatError(in_.offset(), "the pickle has bytes behind STOP");
    return std::move(tree_);
  }

 private:
  [[noreturn]] void fail(const std::string& message) const { throw FormatError(at_, message); }

  PickleNode& node(PickleRef ref) { return tree_.nodes[ref]; }
  PickleNode& make(PickleKind kind) {
    if (tree_.nodes.size() >= kMaxPickleNodes) fail(fmt::format("more than {} values in a pickle", kMaxPickleNodes));
    push(static_cast<PickleRef>(tree_.nodes.size()));
    PickleNode& made = tree_.nodes.emplace_back();
    made.kind = kind;
    made.offset = at_;
    return made;
  }
  void push(PickleRef ref) {
    if (stack_.size() >= kMaxPickleStack) fail(fmt::format("more than {} values on the stack", kMaxPickleStack));
    stack_.push_back(ref);
  }
  /// The newest value, which must not lie below a mark.
  PickleRef pop() {
    if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) fail("the stack is empty");
    const PickleRef ref = stack_.back();
    stack_.pop_back();
    return ref;
  }
  PickleRef top(PickleKind kind, const char* wanted) {
    const PickleRef ref = pop();
    stack_.push_back(ref);
    if (node(ref).kind != kind) fail(fmt::format("the value on the stack is not a {}", wanted));
    return ref;
  }
  /// Values above the newest mark, which goes away.
  std::vector<PickleRef> pop_to_mark() {
    if (marks_.empty()) fail("there is no mark on the stack");
    const auto begin = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<PickleRef> values(begin, stack_.end());
    stack_.erase(begin, stack_.end());
    marks_.pop_back();
    return values;
  }

  void step();
  void step_value(std::uint8_t opcode);
  void step_container(std::uint8_t opcode);
  void step_call(std::uint8_t opcode);
  void make_integer(std::int64_t value) { make(PickleKind::integer).integer = value; }
  void make_long();
  void make_tuple(std::size_t count);
  void put(std::uint32_t slot);
  void get(std::uint32_t slot);
  void append(std::vector<PickleRef> values);
  void set_items(std::vector<PickleRef> values);
  void global();
  void reduce();
  void rebuild_tensor(const std::vector<PickleRef>& arguments);
  void persistent();
  void build();
  void stop();

  ByteCursor in_;
  std::int64_t at_ = 0;  ///< of the opcode at hand
  PickleTree tree_;
  std::vector<PickleRef> stack_;
  std::vector<std::size_t> marks_;  ///< heights of the stack
  std::unordered_map<std::uint32_t, PickleRef> memo_;
  bool started_ = false, stopped_ = false;
};

void PickleMachine::step() {
  at_ = in_.offset();
  const auto opcode = in_.number<std::uint8_t>();
  if (!started_ && opcode != 0x80) fail("the pickle does not begin with PROTO");
  switch (opcode) {
    case 0x80: {  // PROTO
      const auto protocol = in_.number<std::uint8_t>();
      if (started_ || protocol != 2) {
        fail(
            fmt::format("opcode PROTO {}; wanted one PROTO 2, as torch.save writes without pickle_protocol", protocol));
      }
      started_ = true;
      return;
    }
    case '.':
      return stop();
    case '(':
      if (marks_.size() >= kMaxPickleStack) fail("too many marks");
      return marks_.push_back(stack_.size());
    case 'q':
      return put(in_.number<std::uint8_t>());
    case 'r':
      return put(in_.number<std::uint32_t>());
    case 'h':
      return get(in_.number<std::uint8_t>());
    case 'j':
      return get(in_.number<std::uint32_t>());
    default:
      return step_value(opcode);
  }
}

void PickleMachine::step_value(std::uint8_t opcode) {
  switch (opcode) {
    case 'N':
      make(PickleKind::none);
      return;
    case 0x88:
      make(PickleKind::boolean).integer = 1;
      return;
    case 0x89:
      make(PickleKind::boolean).integer = 0;
      return;
    case 'J':
      return make_integer(static_cast<std::int32_t>(in_.number<std::uint32_t>()));
    case 'K':
      return make_integer(in_.number<std::uint8_t>());
    case 'M':
      return make_integer(in_.number<std::uint16_t>());
    case 0x8a:
      return make_long();
    case 'G':  // eight bytes; no number of a state dict is needed
      in_.take(8);
      make(PickleKind::real);
      return;
    case 'X': {
      const auto length = in_.number<std::uint32_t>();
      const auto text = in_.text(length);
      make(PickleKind::text).text = text;
      return;
    }
    default:
      return step_container(opcode);
  }
}

void PickleMachine::step_container(std::uint8_t opcode) {
  switch (opcode) {
    case ')':
      make(PickleKind::tuple);
      return;
    case 0x85:
      return make_tuple(1);
    case 0x86:
      return make_tuple(2);
    case 0x87:
      return make_tuple(3);
    case 't': {
      auto values = pop_to_mark();
      make(PickleKind::tuple).items = std::move(values);
      return;
    }
    case ']':
      make(PickleKind::list);
      return;
    case 'a':
      return append({pop()});
    case 'e':
      return append(pop_to_mark());
    case '}':
      make(PickleKind::dict);
      return;
    case 's': {
      const PickleRef value = pop();
      return set_items({pop(), value});
    }
    case 'u':
      return set_items(pop_to_mark());
    default:
      return step_call(opcode);
  }
}

void PickleMachine::step_call(std::uint8_t opcode) {
  switch (opcode) {
    case 'c':
      return global();
    case 'R':
      return reduce();
    case 'Q':
      return persistent();
    case 'b':
      return build();
    default:
      fail(fmt::format("opcode {} is refused: a state dict does not need it", pickle_opcode_name(opcode)));
  }
}

void PickleMachine::make_long() {
  const auto length = in_.number<std::uint8_t>();
  const auto bytes = in_.take(length);
  if (length > 8) fail(fmt::format("opcode LONG1 of {} bytes; no size needs more than 8", length));
  std::uint64_t value = 0;
  if (length > 0 && (static_cast<unsigned>(bytes.back()) & 0x80U) != 0) value = ~std::uint64_t{0};
  for (std::size_t i = length; i-- > 0;) value = value << 8 | static_cast<std::uint64_t>(bytes[i]);
  make_integer(static_cast<std::int64_t>(value));
}

void PickleMachine::make_tuple(std::size_t count) {
  std::vector<PickleRef> values(count);
  for (std::size_t i = count; i-- > 0;) values[i] = pop();
  make(PickleKind::tuple).items = std::move(values);
}

void PickleMachine::put(std::uint32_t slot) {
  const PickleRef ref = pop();
  stack_.push_back(ref);
  if (memo_.size() >= kMaxPickleNodes) fail(fmt::format("more than {} values in the memo", kMaxPickleNodes));
  memo_[slot] = ref;
}

void PickleMachine::get(std::uint32_t slot) {
  const auto found = memo_.find(slot);
  if (found == memo_.end()) fail(fmt::format("the memo has no value {}", slot));
  push(found->second);
}

void PickleMachine::append(std::vector<PickleRef> values) {
  auto& items = node(top(PickleKind::list, "list")).items;
  items.insert(items.end(), values.begin(), values.end());
}

void PickleMachine::set_items(std::vector<PickleRef> values) {
  auto& items = node(top(PickleKind::dict, "dict")).items;
  if (values.size() % 2 != 0) fail("SETITEMS has a key without a value");
  items.insert(items.end(), values.begin(), values.end());
}

void PickleMachine::global() {
  const auto module = in_.line(256);
  const auto name = in_.line(256);
  if (const auto dtype = storage_dtype(module, name); !dtype.empty()) {
    make(PickleKind::storage_type).dtype = dtype;
    return;
  }
  const auto function = pickle_function(module, name);
  if (!function) {
    fail(fmt::format(
        "global {}.{} is refused: only tensors and containers are read; with PyTorch, save the state dict alone",
        module, name));
  }
  make(PickleKind::function).integer = static_cast<std::int64_t>(*function);
}

void PickleMachine::reduce() {
  const PickleRef arguments = top(PickleKind::tuple, "tuple of arguments");
  const auto items = node(arguments).items;
  pop();
  const PickleRef callable = top(PickleKind::function, "function");
  pop();
  switch (static_cast<PickleFunction>(node(callable).integer)) {
    case PickleFunction::ordered_dict:
      if (!items.empty()) fail("OrderedDict is made with arguments");
      make(PickleKind::dict);
      return;
    case PickleFunction::rebuild_tensor:
      return rebuild_tensor(items);
    case PickleFunction::rebuild_parameter:
      if (items.size() != 3 || node(items[0]).kind != PickleKind::tensor) {
        fail("_rebuild_parameter is not called with (tensor, requires_grad, hooks)");
      }
      return push(items[0]);
  }
}

void PickleMachine::rebuild_tensor(const std::vector<PickleRef>& arguments) {
  const auto is = [&](std::size_t i, PickleKind kind) { return node(arguments[i]).kind == kind; };
  const bool fits = (arguments.size() == 6 || arguments.size() == 7) && is(0, PickleKind::storage) &&
                    is(1, PickleKind::integer) && is(2, PickleKind::tuple) && is(3, PickleKind::tuple);
  if (!fits) fail("_rebuild_tensor_v2 is not called with (storage, offset, sizes, strides, requires_grad, hooks)");
  // a seventh argument says that values are stored conjugated or negated
  if (arguments.size() == 7 && !node(arguments[6]).items.empty()) fail("a tensor with metadata is not plain values");
  const std::int64_t first = node(arguments[1]).integer;
  PickleNode& tensor = make(PickleKind::tensor);
  tensor.integer = first;
  tensor.items = {arguments[0], arguments[2], arguments[3]};
}

void PickleMachine::persistent() {
  const PickleRef id = top(PickleKind::tuple, "tuple ('storage', type, key, location, elements)");
  const auto items = node(id).items;
  pop();
  const auto is = [&](std::size_t i, PickleKind kind) { return node(items[i]).kind == kind; };
  const bool fits = items.size() == 5 && is(0, PickleKind::text) && node(items[0]).text == "storage" &&
                    is(1, PickleKind::storage_type) && is(2, PickleKind::text) && is(4, PickleKind::integer);
  constexpr std::size_t kLongestKey = 64;
  if (!fits || node(items[2]).text.size() > kLongestKey)
    fail("a persistent id is not ('storage', type, key, location, elements)");
  const auto dtype = node(items[1]).dtype;
  const auto key = node(items[2]).text;
  const auto elements = node(items[4]).integer;
  PickleNode& storage = make(PickleKind::storage);
  storage.dtype = dtype;
  storage.text = key;
  storage.integer = elements;
}

void PickleMachine::build() {
  top(PickleKind::dict, "dict of attributes");
  pop();
  top(PickleKind::dict, "OrderedDict");
}

void PickleMachine::stop() {
  if (stack_.size() != 1 || !marks_.empty()) fail(fmt::format("{} values on the stack at STOP", stack_.size()));
  tree_.root = stack_.front();
  stopped_ = true;
}

}  // namespace

PickleTree run_pickle(std::span<const std::byte> pickle, std::int64_t base) {
  if (pickle.size() > static_cast<std::size_t>(kMaxPickleBytes)) {
    throw FormatError(base,
                      fmt::format("a pickle of {} bytes; at most {} are allowed", pickle.size(), kMaxPickleBytes));
  }
  return PickleMachine(pickle, base).run();
}

}  // namespace troupe::model
