#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tests/device/ptx/types.h"

namespace troupe::device::ptx {

/// One token of PTX text. Words hold their dots ("ld.global.v4.f32", ".reg", "%tid.x") and end before `<`.
struct Token {
  enum class Kind : std::uint8_t { end, word, number, string, punctuation };
  Kind kind = Kind::end;
  /// A view into the text; of a string without its quotes.
  std::string_view text = {};
  /// Line of the PTX text, from 1.
  std::uint32_t line = 0;

  bool is(std::string_view what) const { return kind != Kind::string && text == what; }
};

/// Cuts PTX text into tokens, one ahead of the reader. Comments and preprocessor lines are skipped. The text must
/// outlive the lexer and its tokens. Source: PTX ISA 9.0, "Syntax".
class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) { next(); }

  const Token& peek() const { return token_; }
  /// Returns the token in hand and reads the next one.
  Token take();
  /// Takes the token if it is `what`.
  bool take_if(std::string_view what);

 private:
  void skip_blank();
  void next();

  std::string_view text_;
  std::size_t at_ = 0;
  std::uint32_t line_ = 1;
  Token token_;
};

}  // namespace troupe::device::ptx
