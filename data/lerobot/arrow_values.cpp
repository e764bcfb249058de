#include "data/lerobot/arrow_values.h"

#include <arrow/array/array_binary.h>
#include <arrow/array/array_nested.h>
#include <arrow/array/array_primitive.h>
#include <arrow/scalar.h>
#include <arrow/util/float16.h>
#include <fmt/format.h>

#include <algorithm>
#include <type_traits>

namespace troupe::data {

namespace {

using Refusal = std::optional<std::string>;

/// Which of the values is null; `per_row` of them make a row of the file, whose first is `first`.
Refusal first_null(const arrow::Array& array, std::int64_t first, std::size_t per_row) {
  if (array.null_count() == 0) return std::nullopt;
  std::int64_t i = 0;
  while (i < array.length() && !array.IsNull(i)) ++i;
  return fmt::format("is null in row {}", first + i / static_cast<std::int64_t>(std::max<std::size_t>(1, per_row)));
}

/// Unsigned integers that neither int64 nor, with `to_float`, float64 holds exactly.
Refusal too_large(const arrow::Array& array, std::int64_t first, std::size_t per_row, bool to_float) {
  if (array.type_id() != arrow::Type::UINT64) return std::nullopt;
  const std::uint64_t most = to_float ? std::uint64_t{1} << 53 : std::uint64_t{INT64_MAX};
  const auto& values = static_cast<const arrow::UInt64Array&>(array);
  for (std::int64_t i = 0; i < values.length(); ++i) {
    if (values.Value(i) <= most) continue;
    const std::int64_t row = first + i / static_cast<std::int64_t>(std::max<std::size_t>(1, per_row));
    return fmt::format("holds {} in row {}; at most {} is read", values.Value(i), row, most);
  }
  return std::nullopt;
}

/// A value of the first row, for the message about a type that cannot be used.
std::string value_in(const arrow::Array& array) {
  const auto value = array.length() > 0 ? array.GetScalar(0) : arrow::Result<std::shared_ptr<arrow::Scalar>>(nullptr);
  return value.ok() && *value != nullptr ? "'" + (*value)->ToString().substr(0, 40) + "'" : std::string("nothing");
}

template <class T>
Refusal append_numbers(const arrow::Array& array, std::int64_t first, std::size_t per_row, std::vector<T>& out) {
  if (auto null = first_null(array, first, per_row)) return null;
  constexpr bool takes_floats = std::is_floating_point_v<T>;
  const arrow::Type::type type = array.type_id();
  if (auto large = too_large(array, first, per_row, takes_floats)) return large;
  const bool fits = takes_floats || !arrow::is_floating(type);
  const bool copied = fits && visit_numbers(array, [&](const auto& typed) {
                        const std::size_t begin = out.size();
                        out.resize(begin + static_cast<std::size_t>(typed.length()));
                        for (std::int64_t i = 0; i < typed.length(); ++i) {
                          // NOLINTNEXTLINE(bugprone-signed-char-misuse): an int8 is a number here
                          out[begin + static_cast<std::size_t>(i)] = static_cast<T>(typed.Value(i));
                        }
                      });
  if (copied) return {};
  if constexpr (takes_floats) {
    if (type == arrow::Type::HALF_FLOAT) {
      const auto& halves = static_cast<const arrow::HalfFloatArray&>(array);
      for (std::int64_t i = 0; i < halves.length(); ++i)
        out.push_back(static_cast<T>(arrow::util::Float16::FromBits(halves.Value(i)).ToFloat()));
      return {};
    }
  }
  return fmt::format("has type {}, which is no {} (row {} holds {})", array.type()->ToString(),
                     takes_floats ? "number" : "integer", first, value_in(array));
}

/// Sets `width` from the first list and checks the rest against it.
template <class List>
Refusal check_lengths(const List& list, std::int64_t first, std::size_t& width, bool& known) {
  for (std::int64_t i = 0; i < list.length(); ++i) {
    const auto n = static_cast<std::size_t>(list.value_length(i));
    if (!known) {
      width = n;
      known = true;
    }
    if (n != width) return fmt::format("has {} values in row {} and {} in the rows before", n, first + i, width);
  }
  return std::nullopt;
}

template <class T>
Refusal append_chunk(const arrow::Array& chunk, std::int64_t first, std::size_t& width, bool& known,
                     std::vector<T>& out) {
  const auto take = [&](const auto& list) -> Refusal {
    if (auto null = first_null(list, first, 1)) return null;
    if (auto uneven = check_lengths(list, first, width, known)) return uneven;
    auto values = list.Flatten();
    if (!values.ok()) return values.status().ToString();
    return append_numbers(**values, first, width, out);
  };
  switch (chunk.type_id()) {
    case arrow::Type::LIST:
      return take(static_cast<const arrow::ListArray&>(chunk));
    case arrow::Type::LARGE_LIST:
      return take(static_cast<const arrow::LargeListArray&>(chunk));
    case arrow::Type::FIXED_SIZE_LIST:
      return take(static_cast<const arrow::FixedSizeListArray&>(chunk));
    default:
      break;
  }
  width = 1;
  known = true;
  return append_numbers(chunk, first, 1, out);
}

Refusal append_text_array(const arrow::Array& array, std::vector<std::string>& out) {
  if (array.null_count() > 0) return "has nulls";
  const auto copy = [&](const auto& typed) {
    for (std::int64_t i = 0; i < typed.length(); ++i) out.emplace_back(typed.GetView(i));
    return Refusal{};
  };
  switch (array.type_id()) {
    case arrow::Type::STRING:
    case arrow::Type::BINARY:
      return copy(static_cast<const arrow::BinaryArray&>(array));
    case arrow::Type::LARGE_STRING:
    case arrow::Type::LARGE_BINARY:
      return copy(static_cast<const arrow::LargeBinaryArray&>(array));
    default:
      return fmt::format("has type {}, which is no text", array.type()->ToString());
  }
}

}  // namespace

template <class T>
std::optional<std::string> append_values(ArrowChunks chunks, std::int64_t first, std::size_t& width,
                                         std::vector<T>& out) {
  bool known = false;
  for (const auto& chunk : chunks) {
    if (auto why = append_chunk(*chunk, first, width, known, out)) return why;
    first += chunk->length();
  }
  return std::nullopt;
}
template std::optional<std::string> append_values(ArrowChunks, std::int64_t, std::size_t&, std::vector<double>&);
template std::optional<std::string> append_values(ArrowChunks, std::int64_t, std::size_t&, std::vector<std::int64_t>&);

std::optional<std::string> append_texts(ArrowChunks chunks, std::vector<std::string>& out) {
  for (const auto& chunk : chunks) {
    if (auto why = append_text_array(*chunk, out)) return why;
  }
  return std::nullopt;
}

std::optional<std::string> append_text_lists(ArrowChunks chunks, std::vector<std::vector<std::string>>& out) {
  const auto take = [&](const auto& list) -> Refusal {
    for (std::int64_t i = 0; i < list.length(); ++i) {
      std::vector<std::string>& texts = out.emplace_back();
      if (list.IsNull(i)) continue;
      if (auto why = append_text_array(*list.value_slice(i), texts)) return why;
    }
    return std::nullopt;
  };
  for (const auto& chunk : chunks) {
    Refusal why;
    if (chunk->type_id() == arrow::Type::LIST) {
      why = take(static_cast<const arrow::ListArray&>(*chunk));
    } else if (chunk->type_id() == arrow::Type::LARGE_LIST) {
      why = take(static_cast<const arrow::LargeListArray&>(*chunk));
    } else {
      std::vector<std::string> texts;
      why = append_text_array(*chunk, texts);
      for (std::string& text : texts) out.push_back({std::move(text)});
    }
    if (why) return why;
  }
  return std::nullopt;
}

}  // namespace troupe::data
