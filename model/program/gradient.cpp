#include "model/program/gradient.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "base/check.h"
#include "kernels/dispatch.h"
#include "model/program/operations.h"

namespace troupe::model {

namespace {

/// Whether it is differentiated; one that is several: all of them are, or none.
bool is_differentiated(const Value& parameter, const std::set<std::string>& names) {
  const bool is = names.count(parameter.name) != 0;
  for (const auto& name : parameter.followers)
    TROUPE_CHECK((names.count(name) != 0) == is, "of parameters that lie together all are trained, or none");
  return is;
}

}  // namespace

GradientBuilder::GradientBuilder(Graph& graph, const Differentiated& differentiated)
    : graph_(graph),
      forward_(graph.operations().size()),
      needs_(graph.values().size(), false),
      gradients_(graph.values().size(), kNoValue) {
  for (std::size_t i = 0; i < needs_.size(); ++i) {
    const auto& value = graph.values()[i];
    needs_[i] = value.role == ValueRole::input ||
                (value.role == ValueRole::conditioning && c10::isFloatingType(value.dtype) &&
                 differentiated.has_conditioning(value.index)) ||
                (value.role == ValueRole::parameter && is_differentiated(value, differentiated.parameters));
  }
  for (const auto& operation : graph.operations()) {
    const auto& reads = operation->reads();
    if (std::none_of(reads.begin(), reads.end(), [&](ValueId id) { return needs(id); })) continue;
    for (const auto id : operation->writes()) needs_[index_of(id)] = true;
  }
}

bool GradientBuilder::needs(ValueId value) const {
  return value != kNoValue && needs_[index_of(graph_.memory_of(value))];
}

ValueId GradientBuilder::rounded_gradient(ValueId value) {
  return graph_.converted(gradient(value), graph_.value(value).dtype);
}

ValueId GradientBuilder::place_in_whole(ValueId columns) {
  auto& place = gradients_[index_of(columns)];
  if (place != kNoValue) return place;
  const Value of = graph_.value(columns);
  auto& whole = gradients_[index_of(of.whole)];
  if (whole == kNoValue) whole = graph_.add_intermediate(graph_.value(of.whole).sizes, of.dtype);
  return place = graph_.add_columns(whole, of.first_column, of.sizes);
}

bool GradientBuilder::has_all_columns(ValueId whole) const {
  for (std::size_t i = 0; i < gradients_.size(); ++i) {
    if (graph_.values()[i].whole == whole && written_columns_.count(static_cast<ValueId>(i)) == 0) return false;
  }
  return true;
}

ValueId GradientBuilder::like(ValueId value, at::ScalarType dtype) {
  const Value& of = graph_.value(value);
  if (needs(value) && of.whole != kNoValue && of.dtype == dtype) return place_in_whole(value);
  return graph_.add_intermediate(graph_.value(value).sizes, dtype);
}

ValueId GradientBuilder::conditioning_sum(ValueId conditioning) {
  auto& sum = gradients_[index_of(conditioning)];
  if (sum != kNoValue) return sum;
  const auto& of = graph_.value(conditioning);
  return sum = graph_.add_value(
             {of.name, of.sizes, accumulate_dtype(of.dtype), ValueRole::conditioning_gradient, of.index});
}

void GradientBuilder::add(ValueId value, ValueId gradient) {
  if (!needs(value) || gradient == kNoValue) return;
  const auto role = graph_.value(value).role;
  TROUPE_CHECK(role != ValueRole::parameter, "operations write the gradients of parameters themselves");
  if (role == ValueRole::conditioning) {
    const auto sum = conditioning_sum(value);
    return record_add_to(graph_, sum, graph_.converted(gradient, graph_.value(sum).dtype));
  }
  if (graph_.value(value).whole != kNoValue) {
    TROUPE_CHECK(written_columns_.insert(value).second, "columns are read by one operation");
    if (const auto place = place_in_whole(value); place != gradient) graph_.copy(gradient, place);
    return;
  }
  auto& known = gradients_[index_of(value)];
  if (known == kNoValue) {
    known = gradient;
    return;
  }
  const auto dtype = graph_.value(value).dtype;
  known = record_add(graph_, graph_.converted(known, dtype), graph_.converted(gradient, dtype));
}

ValueId GradientBuilder::parameter_gradient(ValueId parameter) {
  const auto& of = graph_.value(parameter);
  const auto dtype = accumulate_dtype(of.dtype);
  if (!needs(parameter)) return graph_.add_intermediate(of.sizes, dtype);
  auto& gradient = gradients_[index_of(parameter)];
  TROUPE_CHECK(gradient == kNoValue, "a parameter is used by one operation of a program");
  return gradient = graph_.add_value({.name = of.name,
                                      .sizes = of.sizes,
                                      .dtype = dtype,
                                      .role = ValueRole::parameter_gradient,
                                      .followers = of.followers});
}

ValueId GradientBuilder::input_gradient(ValueId input) {
  if (gradient(input) == kNoValue) return kNoValue;
  const auto found = rounded_gradient(input);
  // where a result is the input plus something, its gradient arrives as it is bound
  return graph_.value(found).role == ValueRole::intermediate ? found : graph_.copied(found, graph_.value(found).dtype);
}

std::vector<ValueId> GradientBuilder::build() {
  graph_.begin_backward();
  for (std::size_t i = 0; i < graph_.outputs().size(); ++i) {
    const auto& output = graph_.outputs()[i];
    if (!needs(output.value)) continue;
    gradients_[index_of(output.value)] =
        graph_.add_value({"", graph_.value(output.value).sizes, output.gradient_dtype, ValueRole::output_gradient, i});
  }
  for (std::size_t i = forward_; i-- > 0;) {
    const auto& writes = graph_.operations()[i]->writes();
    // operations are appended meanwhile: the list may move, the operation does not
    const Operation& operation = *graph_.operations()[i];
    if (std::none_of(writes.begin(), writes.end(), [&](ValueId id) { return gradients_[index_of(id)] != kNoValue; }))
      continue;
    for (const auto id : writes) TROUPE_CHECK(has_all_columns(id), "columns without a gradient");
    operation.differentiate(*this);
  }
  std::vector<ValueId> found;
  for (const auto input : graph_.inputs()) found.push_back(input_gradient(input));
  return found;
}

}  // namespace troupe::model
