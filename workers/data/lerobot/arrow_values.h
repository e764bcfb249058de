#pragma once

// Internal to workers/data/lerobot: Arrow's types.
#include <arrow/array.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace troupe {

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

}  // namespace troupe
