#include "data/lerobot/number_table.h"

#include <arrow/api.h>
#include <arrow/io/file.h>
#include <fmt/format.h>
#include <parquet/arrow/writer.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "data/lerobot/write_failure.h"

namespace troupe::data {

namespace {

using Json = nlohmann::ordered_json;
using Type = NumberTableColumn::Type;

/// Appends the values to a builder of numbers.
template <class Builder, class Value>
arrow::Status fill_builder(const std::vector<double>& values, Builder& builder) {
  ARROW_RETURN_NOT_OK(builder.Reserve(static_cast<std::int64_t>(values.size())));
  for (const double value : values) ARROW_RETURN_NOT_OK(builder.Append(static_cast<Value>(value)));
  return arrow::Status::OK();
}

template <class Builder, class Value>
arrow::Status make_array(const NumberTableColumn& column, std::shared_ptr<arrow::Array>& array) {
  const auto values = std::make_shared<Builder>();
  if (column.width == 1) {
    ARROW_RETURN_NOT_OK((fill_builder<Builder, Value>(column.values, *values)));
    return values->Finish(&array);
  }
  arrow::FixedSizeListBuilder lists(arrow::default_memory_pool(), values, static_cast<std::int32_t>(column.width));
  for (std::size_t row = 0; row < column.values.size() / column.width; ++row) ARROW_RETURN_NOT_OK(lists.Append());
  ARROW_RETURN_NOT_OK((fill_builder<Builder, Value>(column.values, *values)));
  return lists.Finish(&array);
}

arrow::Status make_array(const NumberTableColumn& column, std::shared_ptr<arrow::Array>& array) {
  switch (column.type) {
    case Type::float32:
      return make_array<arrow::FloatBuilder, float>(column, array);
    case Type::int64:
      return make_array<arrow::Int64Builder, std::int64_t>(column, array);
    case Type::boolean:
      break;
  }
  return make_array<arrow::BooleanBuilder, bool>(column, array);
}

arrow::Status write_table(const std::string& path, const arrow::Table& table) {
  ARROW_ASSIGN_OR_RAISE(const auto file, arrow::io::FileOutputStream::Open(path));
  const auto settings = parquet::WriterProperties::Builder().compression(parquet::Compression::SNAPPY)->build();
  ARROW_RETURN_NOT_OK(
      parquet::arrow::WriteTable(table, arrow::default_memory_pool(), file, table.num_rows(), settings));
  return file->Close();
}

}  // namespace

Result<void> write_number_table(const std::string& path, const std::vector<NumberTableColumn>& columns) {
  std::vector<std::shared_ptr<arrow::Field>> fields;
  std::vector<std::shared_ptr<arrow::Array>> arrays;
  for (const NumberTableColumn& column : columns) {
    std::shared_ptr<arrow::Array> array;
    if (const arrow::Status status = make_array(column, array); !status.ok()) return write_failure(path, status);
    if (!arrays.empty() && array->length() != arrays.front()->length()) {
      return invalid_argument(fmt::format("{}: column {} has {} rows, {} has {}", path, column.name, array->length(),
                                          columns.front().name, arrays.front()->length()));
    }
    fields.push_back(arrow::field(column.name, array->type()));
    arrays.push_back(std::move(array));
  }
  const auto table = arrow::Table::Make(arrow::schema(fields), arrays);
  if (const arrow::Status status = write_table(path, *table); !status.ok()) return write_failure(path, status);
  return {};
}

double interpolated(const std::vector<double>& sorted, double p) {
  const double at = p * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<std::size_t>(at);
  const std::size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (sorted[high] - sorted[low]) * (at - static_cast<double>(low));
}

Json column_statistics(const NumberTableColumn& column) {
  const std::size_t width = column.width, count = column.values.size() / width;
  const auto typed = [&](double v) { return column.type == Type::boolean ? Json(v != 0) : Json(v); };
  Json stats = {{"min", Json::array()},
                {"max", Json::array()},
                {"mean", Json::array()},
                {"std", Json::array()},
                {"count", {count}}};
  for (const StatedQuantile& q : kStatedQuantiles) stats[q.name] = Json::array();
  std::vector<double> values(count);
  for (std::size_t d = 0; d < width; ++d) {
    double sum = 0, deviation = 0;
    for (std::size_t r = 0; r < count; ++r) sum += values[r] = column.values[r * width + d];
    const double mean = sum / static_cast<double>(count);
    for (const double v : values) deviation += (v - mean) * (v - mean);
    std::sort(values.begin(), values.end());
    stats["min"].push_back(typed(values.front()));
    stats["max"].push_back(typed(values.back()));
    stats["mean"].push_back(mean);
    stats["std"].push_back(std::sqrt(deviation / static_cast<double>(count)));
    for (const StatedQuantile& q : kStatedQuantiles) stats[q.name].push_back(interpolated(values, q.p));
  }
  return stats;
}

}  // namespace troupe::data
