#pragma once

// Internal to data/convert: JSON values as typed Parquet columns and back.
#include <arrow/array.h>
#include <arrow/type.h>

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/result.h"

namespace troupe::data {

/// The column type that holds a set of JSON values: a scalar inside `depth` lists. Numbers with and without a fraction
/// together are float64; values without a common type become JSON text.
class JsonColumnType {
 public:
  /// Widens the type so that `value` fits too; null fits every type.
  void add(const nlohmann::ordered_json& value);
  /// list<element: ...>; utf8 when only nulls were seen.
  std::shared_ptr<arrow::DataType> arrow_type() const;

 private:
  enum class Kind : std::uint8_t { none, boolean, integer, real, text, mixed };
  static Kind common(Kind a, Kind b);
  static void shape_of(const nlohmann::ordered_json& value, int depth, int& leaf_depth, Kind& kind);
  Kind kind_ = Kind::none;
  int depth_ = -1;
};

/// One array of `type` (as given by JsonColumnType) from values that were all added to it; null for JSON null.
Result<std::shared_ptr<arrow::Array>> json_array(const std::shared_ptr<arrow::DataType>& type,
                                                 const std::vector<nlohmann::ordered_json>& values);

/// Element `row` as JSON: lists are arrays, structs objects, float32 widened, times and float16 text. Types without
/// a JSON form give null.
nlohmann::ordered_json json_value(const arrow::Array& array, std::int64_t row);

}  // namespace troupe::data
