#include "comm/serve/npy.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "comm/serve/numpy_dtype.h"

namespace troupe::comm {

namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kMaxHeader = 10'000;  // numpy's own bound
constexpr std::size_t kAlign = 64;
constexpr std::size_t kGrowthDigits = 21;

struct Header {
  std::optional<std::string> descr;
  std::optional<bool> fortran_order;
  std::optional<std::vector<std::int64_t>> shape;
};

/// Reads "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }" and blanks.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, std::size_t offset) : text_(text), offset_(offset) {}

  Result<Header> parse() {
    Header header;
    if (!take('{')) return error("want '{'");
    while (!take('}')) {
      TROUPE_ASSIGN(const std::string name, quoted());
      if (!take(':')) return error("want ':'");
      TROUPE_TRY(entry(name, header));
      if (!take(',') && peek() != '}') return error("want ',' or '}'");
    }
    skip_blanks();
    if (at_ != text_.size()) return error("text after the dict");
    if (!header.descr || !header.fortran_order || !header.shape) return error("want descr, fortran_order and shape");
    return header;
  }

 private:
  Result<void> entry(const std::string& name, Header& header) {
    if (name == "descr" && !header.descr) {
      TROUPE_ASSIGN(header.descr, quoted());
    } else if (name == "fortran_order" && !header.fortran_order) {
      TROUPE_ASSIGN(header.fortran_order, boolean());
    } else if (name == "shape" && !header.shape) {
      TROUPE_ASSIGN(header.shape, tuple());
    } else {
      return error("an entry twice, or one that .npy does not have");
    }
    return {};
  }
  Result<std::string> quoted() {
    skip_blanks();
    const char quote = peek();
    if (quote != '\'' && quote != '"') return error("want a quoted text (structured dtypes are not taken)");
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) return error("a text without its end");
    const std::string_view inside = text_.substr(at_ + 1, end - at_ - 1);
    if (inside.find('\\') != std::string_view::npos) return error("an escape in a text");
    at_ = end + 1;
    return std::string(inside);
  }
  Result<bool> boolean() {
    skip_blanks();
    for (const bool value : {false, true}) {
      const std::string_view word = value ? "True" : "False";
      if (text_.substr(at_, word.size()) != word) continue;
      at_ += word.size();
      return value;
    }
    return error("want True or False");
  }
  Result<std::vector<std::int64_t>> tuple() {
    std::vector<std::int64_t> shape;
    if (!take('(')) return error("want a tuple");
    while (!take(')')) {
      skip_blanks();
      std::int64_t dim = 0;
      const auto [end, failed] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), dim);
      if (failed != std::errc()) return error("want a whole number");
      at_ = static_cast<std::size_t>(end - text_.data());
      shape.push_back(dim);
      if (!take(',') && peek() != ')') return error("want ',' or ')'");
    }
    return shape;
  }

  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
  }
  char peek() {
    skip_blanks();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char c) {
    if (peek() != c || at_ >= text_.size()) return false;
    ++at_;
    return true;
  }
  Error error(std::string_view what) const {
    return {Errc::invalid_argument, fmt::format(".npy: {} at byte {} of its header", what, offset_ + at_)};
  }

  std::string_view text_;
  std::size_t offset_;
  std::size_t at_ = 0;
};

/// Items of a column-major array in row-major order.
std::vector<std::byte> to_c_order(std::span<const std::byte> data, const std::vector<std::int64_t>& shape,
                                  std::size_t item) {
  std::vector<std::byte> out(data.size());
  std::vector<std::int64_t> index(shape.size(), 0);
  for (std::size_t to = 0; to + item <= out.size(); to += item) {
    std::int64_t from = 0;
    for (std::size_t d = shape.size(); d-- > 0;) from = from * shape[d] + index[d];
    std::memcpy(out.data() + to, data.data() + static_cast<std::size_t>(from) * item, item);
    for (std::size_t d = shape.size(); d-- > 0;) {
      if (++index[d] < shape[d]) break;
      index[d] = 0;
    }
  }
  return out;
}

Error malformed(std::string_view what) { return {Errc::invalid_argument, fmt::format(".npy: {}", what)}; }

}  // namespace

Result<NdArray> read_npy(std::span<const std::byte> bytes) {
  if (bytes.size() < 10 || std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) != 0)
    return malformed("the magic bytes 93 'NUMPY' are missing");
  const auto byte = [&](std::size_t i) { return std::to_integer<std::size_t>(bytes[i]); };
  const std::size_t version = byte(6);
  if ((version != 1 && version != 2) || byte(7) != 0)
    return malformed(fmt::format("version {}.{}; 1.0 and 2.0 are read", version, byte(7)));
  const std::size_t begin = version == 1 ? 10 : 12;
  if (bytes.size() < begin) return malformed("an end inside the header's length");
  std::size_t length = byte(8) | byte(9) << 8;
  if (version == 2) length |= byte(10) << 16 | byte(11) << 24;
  if (length > kMaxHeader)
    return malformed(fmt::format("a header of {} bytes; at most {} are taken", length, kMaxHeader));
  if (length > bytes.size() - begin)
    return malformed(fmt::format("a header of {} bytes where {} bytes are left", length, bytes.size() - begin));
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + begin, length);
  TROUPE_ASSIGN(const Header header, HeaderParser(text, begin).parse());
  const auto items = bytes.subspan(begin + length);
  auto array = make_ndarray(*header.descr, *header.shape, std::vector<std::byte>(items.begin(), items.end()));
  if (!array) return array.error().with(".npy");
  if (*header.fortran_order && array->shape.size() > 1 && !array->data.empty()) {
    const auto item = array->data.size() / static_cast<std::size_t>(array->numel());
    array->data = to_c_order(items, array->shape, item);
  }
  return array;
}

std::vector<std::byte> write_npy(const NdArray& array) {
  std::string shape;
  for (const std::int64_t d : array.shape) shape += fmt::format("{}{}", shape.empty() ? "" : ", ", d);
  if (array.shape.size() == 1) shape += ",";
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", array.dtype, shape);
  // numpy leaves room for the first dimension to grow in place
  if (!array.shape.empty())
    header.append(kGrowthDigits - std::min(kGrowthDigits, std::to_string(array.shape.front()).size()), ' ');
  const std::size_t unpadded = kMagic.size() + 4 + header.size() + 1;
  header.append((kAlign - unpadded % kAlign) % kAlign, ' ');
  header.push_back('\n');

  std::string front(kMagic);
  front += {'\x01', '\x00', static_cast<char>(header.size() & 0xff), static_cast<char>(header.size() >> 8)};
  front += header;
  std::vector<std::byte> out(front.size() + array.data.size());
  std::memcpy(out.data(), front.data(), front.size());
  if (!array.data.empty()) std::memcpy(out.data() + front.size(), array.data.data(), array.data.size());
  return out;
}

}  // namespace troupe::comm
