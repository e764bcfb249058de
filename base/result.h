#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/check.h"

namespace troupe {

/// What the caller should do about a failure; nothing else carries that information (style.md section 5).
/// Codes start at 1 because CAF reads 0 as success.
enum class Errc : std::uint8_t {
  invalid_argument = 1,  ///< the input is wrong: mend it
  not_found,             ///< the named thing does not exist
  failed_precondition,   ///< do not retry until someone changes the state
  resource_exhausted,    ///< back off: full, over budget, out of memory or disk
  deadline_exceeded,     ///< a named wait ran out
  unavailable,           ///< retry this call
  aborted,               ///< redo the whole step
  data_loss,             ///< stored bytes are damaged or missing
  cancelled,             ///< someone asked for it
  internal,              ///< our own defect
};

/// The code's name as written in the enum, such as "not_found".
std::string_view to_string(Errc code) noexcept;

/// A failure: a code and a sentence that says what was found, what was wanted and where to change it.
class Error {
 public:
  Error(Errc code, std::string message) : code_(code), message_(std::move(message)) {}

  Errc code() const noexcept { return code_; }
  const std::string& message() const noexcept { return message_; }

  /// The same failure with "context: " in front of its message. Used where a caller knows the file, key or actor.
  Error with(std::string_view context) const { return {code_, std::string(context) + ": " + message_}; }

  /// "not_found: data/x.mp4 does not exist"
  std::string to_string() const;

 private:
  Errc code_;
  std::string message_;
};

/// Either a value or an Error. Reading the absent side is an invariant violation and aborts.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: implicit by design
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: implicit by design

  explicit operator bool() const noexcept { return state_.index() == 0; }
  bool has_value() const noexcept { return state_.index() == 0; }

  T& value() & { return require(), std::get<0>(state_); }
  const T& value() const& { return require(), std::get<0>(state_); }
  T&& value() && { return require(), std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const {
    TROUPE_CHECK(!has_value(), "error() of a Result that holds a value");
    return std::get<1>(state_);
  }

 private:
  void require() const { TROUPE_CHECK(has_value(), std::get<1>(state_).to_string()); }
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT: implicit by design

  explicit operator bool() const noexcept { return !error_; }
  bool has_value() const noexcept { return !error_; }
  void value() const { TROUPE_CHECK(!error_, error_->to_string()); }
  const Error& error() const {
    TROUPE_CHECK(error_.has_value(), "error() of a Result that holds no error");
    return *error_;
  }

 private:
  std::optional<Error> error_;
};

}  // namespace troupe

/// Returns the Error of `expr` from the enclosing function, if there is one.
#define TROUPE_TRY(expr)                           \
  do {                                             \
    if (auto troupe_try_ = (expr); !troupe_try_) { \
      return troupe_try_.error();                  \
    }                                              \
  } while (false)

#define TROUPE_CONCAT_(a, b) a##b
#define TROUPE_CONCAT(a, b) TROUPE_CONCAT_(a, b)
#define TROUPE_ASSIGN_(tmp, lhs, expr) \
  auto tmp = (expr);                   \
  if (!tmp) return tmp.error();        \
  lhs = std::move(tmp).value()

/// `TROUPE_ASSIGN(auto x, f());` binds the value of f() or returns its Error.
#define TROUPE_ASSIGN(lhs, expr) TROUPE_ASSIGN_(TROUPE_CONCAT(troupe_assign_, __LINE__), lhs, expr)
