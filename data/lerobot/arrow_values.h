#pragma once

// Internal to data: Arrow's types.
#include <arrow/array.h>
#include <arrow/type.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace troupe::data {

/// Calls visit(typed) with the array as its own class when its type is a number or bool (16-bit floats excepted,
/// whose class holds bits); else
/// returns false.
template <class Visit>
bool visit_numbers(const arrow::Array& array, const Visit& visit) {
  switch (array.type_id()) {
    case arrow::Type::BOOL:
      visit(static_cast<const arrow::BooleanArray&>(array));
      return true;
    case arrow::Type::INT8:
      visit(static_cast<const arrow::Int8Array&>(array));
      return true;
    case arrow::Type::INT16:
      visit(static_cast<const arrow::Int16Array&>(array));
      return true;
    case arrow::Type::INT32:
      visit(static_cast<const arrow::Int32Array&>(array));
      return true;
    case arrow::Type::INT64:
      visit(static_cast<const arrow::Int64Array&>(array));
      return true;
    case arrow::Type::UINT8:
      visit(static_cast<const arrow::UInt8Array&>(array));
      return true;
    case arrow::Type::UINT16:
      visit(static_cast<const arrow::UInt16Array&>(array));
      return true;
    case arrow::Type::UINT32:
      visit(static_cast<const arrow::UInt32Array&>(array));
      return true;
    case arrow::Type::UINT64:
      visit(static_cast<const arrow::UInt64Array&>(array));
      return true;
    case arrow::Type::FLOAT:
      visit(static_cast<const arrow::FloatArray&>(array));
      return true;
    case arrow::Type::DOUBLE:
      visit(static_cast<const arrow::DoubleArray&>(array));
      return true;
    default:
      return false;
  }
}

using ArrowChunks = std::span<const std::shared_ptr<arrow::Array>>;

/// Appends the values of a column of numbers, or of lists of numbers of one width, row by row. Returns why it cannot,
/// as the end of a sentence about the column, or nothing. `first` is the row of the file that the chunks begin with.
/// T = double takes every number type, T = std::int64_t integers and bool.
template <class T>
std::optional<std::string> append_values(ArrowChunks chunks, std::int64_t first, std::size_t& width,
                                         std::vector<T>& out);

/// Appends a column of texts. Same result.
std::optional<std::string> append_texts(ArrowChunks chunks, std::vector<std::string>& out);

/// Appends a column of lists of texts, or of texts, which are lists of one. Same result.
std::optional<std::string> append_text_lists(ArrowChunks chunks, std::vector<std::vector<std::string>>& out);

}  // namespace troupe::data
