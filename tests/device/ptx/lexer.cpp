#include "tests/device/ptx/lexer.h"

#include <cctype>

namespace troupe::device::ptx {
namespace {

bool starts_word(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '%' || c == '.';
}
bool continues_word(char c) { return starts_word(c) || std::isdigit(static_cast<unsigned char>(c)); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

Token Lexer::take() {
  const Token taken = token_;
  next();
  return taken;
}

bool Lexer::take_if(std::string_view what) {
  if (!token_.is(what)) return false;
  next();
  return true;
}

void Lexer::skip_blank() {
  while (at_ < text_.size()) {
    const std::string_view rest = text_.substr(at_);
    if (rest.starts_with("//") || rest[0] == '#') {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (rest.starts_with("/*")) {
      const std::size_t end = std::min(text_.find("*/", at_ + 2), text_.size() - 2) + 2;
      for (; at_ < end; ++at_) line_ += text_[at_] == '\n';
    } else if (std::isspace(static_cast<unsigned char>(rest[0]))) {
      line_ += rest[0] == '\n';
      ++at_;
    } else {
      return;
    }
  }
}

void Lexer::next() {
  skip_blank();
  token_ = Token{.line = line_};
  if (at_ >= text_.size()) return;
  const std::size_t begin = at_++;
  const char first = text_[begin];
  if (first == '"') {
    at_ = std::min(text_.find('"', at_), text_.size());
    token_.kind = Token::Kind::string;
    token_.text = text_.substr(begin + 1, at_ - begin - 1);
    at_ = std::min(at_ + 1, text_.size());
    return;
  }
  token_.kind = Token::Kind::punctuation;
  if (is_digit(first)) {
    token_.kind = Token::Kind::number;
    while (at_ < text_.size() && std::isalnum(static_cast<unsigned char>(text_[at_]))) ++at_;
  } else if (starts_word(first)) {
    token_.kind = Token::Kind::word;
    // the "::" of "L2::128B" belongs to the word, the ":" behind a label does not
    while (at_ < text_.size() && (continues_word(text_[at_]) || text_.substr(at_, 2) == "::")) {
      at_ += text_[at_] == ':' ? 2 : 1;
    }
  }
  token_.text = text_.substr(begin, at_ - begin);
}

}  // namespace troupe::device::ptx
