#include "data/convert/json_columns.h"

#include <arrow/builder.h>
#include <fmt/format.h>

#include <algorithm>

#include "data/lerobot/arrow_values.h"

namespace troupe::data {

namespace {

using Json = nlohmann::ordered_json;

arrow::Status append(const Json& value, arrow::ArrayBuilder& builder) {
  if (value.is_null()) return builder.AppendNull();
  switch (builder.type()->id()) {
    case arrow::Type::BOOL:
      return static_cast<arrow::BooleanBuilder&>(builder).Append(value.get<bool>());
    case arrow::Type::INT64:
      return static_cast<arrow::Int64Builder&>(builder).Append(value.get<std::int64_t>());
    case arrow::Type::DOUBLE:
      return static_cast<arrow::DoubleBuilder&>(builder).Append(value.get<double>());
    case arrow::Type::STRING:
      return static_cast<arrow::StringBuilder&>(builder).Append(value.is_string() ? value.get<std::string>()
                                                                                  : value.dump());
    case arrow::Type::LIST: {
      auto& list = static_cast<arrow::ListBuilder&>(builder);
      ARROW_RETURN_NOT_OK(list.Append());
      for (const Json& item : value) ARROW_RETURN_NOT_OK(append(item, *list.value_builder()));
      return arrow::Status::OK();
    }
    default:
      return arrow::Status::TypeError("no JSON column of type ", builder.type()->ToString());
  }
}

template <class ArrayType>
Json list_value(const arrow::Array& array, std::int64_t row) {
  const auto items = static_cast<const ArrayType&>(array).value_slice(row);
  Json out = Json::array();
  for (std::int64_t i = 0; i < items->length(); ++i) out.push_back(json_value(*items, i));
  return out;
}

Json struct_value(const arrow::StructArray& array, std::int64_t row) {
  Json out = Json::object();
  for (int f = 0; f < array.num_fields(); ++f)
    out[array.struct_type()->field(f)->name()] = json_value(*array.field(f), row);
  return out;
}

}  // namespace

JsonColumnType::Kind JsonColumnType::common(Kind a, Kind b) {
  if (a == b || b == Kind::none) return a;
  if (a == Kind::none) return b;
  const auto number = [](Kind k) { return k == Kind::integer || k == Kind::real; };
  return number(a) && number(b) ? Kind::real : Kind::mixed;
}

void JsonColumnType::shape_of(const Json& value, int depth, int& leaf_depth, Kind& kind) {
  if (value.is_null()) return;
  if (value.is_array()) {
    leaf_depth = std::max(leaf_depth, depth + 1);
    for (const Json& item : value) shape_of(item, depth + 1, leaf_depth, kind);
    return;
  }
  Kind mine = Kind::mixed;
  if (value.is_boolean()) mine = Kind::boolean;
  if (value.is_number_integer()) mine = Kind::integer;
  if (value.is_number_float()) mine = Kind::real;
  if (value.is_string()) mine = Kind::text;
  if (depth < leaf_depth) mine = Kind::mixed;  // a scalar beside a list
  leaf_depth = std::max(leaf_depth, depth);
  kind = common(kind, mine);
}

void JsonColumnType::add(const Json& value) {
  if (value.is_null()) return;
  int depth = -1;
  Kind kind = Kind::none;
  shape_of(value, 0, depth, kind);
  // an empty list says nothing about its depth beyond its own
  const bool clash = depth_ >= 0 && depth != depth_ && kind != Kind::none && kind_ != Kind::none;
  kind_ = clash ? Kind::mixed : common(kind_, kind);
  depth_ = std::max(depth_, depth);
}

std::shared_ptr<arrow::DataType> JsonColumnType::arrow_type() const {
  if (kind_ == Kind::mixed) return arrow::utf8();
  std::shared_ptr<arrow::DataType> type = arrow::utf8();
  if (kind_ == Kind::boolean) type = arrow::boolean();
  if (kind_ == Kind::integer) type = arrow::int64();
  if (kind_ == Kind::real) type = arrow::float64();
  for (int d = 0; d < depth_; ++d) type = arrow::list(arrow::field("element", type));
  return type;
}

Result<std::shared_ptr<arrow::Array>> json_array(const std::shared_ptr<arrow::DataType>& type,
                                                 const std::vector<Json>& values) {
  try {
    std::unique_ptr<arrow::ArrayBuilder> builder;
    arrow::Status status = arrow::MakeBuilder(arrow::default_memory_pool(), type, &builder);
    for (const Json& value : values) {
      if (status.ok()) status = append(value, *builder);
    }
    std::shared_ptr<arrow::Array> array;
    if (status.ok()) status = builder->Finish(&array);
    if (!status.ok()) return Error{Errc::internal, fmt::format("a metadata column: {}", status.ToString())};
    return array;
  } catch (const nlohmann::json::exception& e) {
    return Error{Errc::internal, fmt::format("a metadata column of type {}: {}", type->ToString(), e.what())};
  }
}

Json json_value(const arrow::Array& array, std::int64_t row) {
  if (array.IsNull(row)) return nullptr;
  Json number;
  if (visit_numbers(array, [&](const auto& typed) { number = typed.Value(row); })) return number;
  switch (array.type_id()) {
    case arrow::Type::STRING:
      return static_cast<const arrow::StringArray&>(array).GetString(row);
    case arrow::Type::LARGE_STRING:
      return static_cast<const arrow::LargeStringArray&>(array).GetString(row);
    case arrow::Type::LIST:
      return list_value<arrow::ListArray>(array, row);
    case arrow::Type::LARGE_LIST:
      return list_value<arrow::LargeListArray>(array, row);
    case arrow::Type::FIXED_SIZE_LIST:
      return list_value<arrow::FixedSizeListArray>(array, row);
    case arrow::Type::STRUCT:
      return struct_value(static_cast<const arrow::StructArray&>(array), row);
    case arrow::Type::DICTIONARY: {
      const auto& coded = static_cast<const arrow::DictionaryArray&>(array);
      return json_value(*coded.dictionary(), coded.GetValueIndex(row));
    }
    case arrow::Type::TIMESTAMP:
    case arrow::Type::DATE32:
    case arrow::Type::DURATION:
    case arrow::Type::HALF_FLOAT: {
      const auto value = array.GetScalar(row);
      return value.ok() ? Json((*value)->ToString()) : Json();
    }
    default:
      return nullptr;
  }
}

}  // namespace troupe::data
