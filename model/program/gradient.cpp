#include "model/program/gradient.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "base/check.h"
#include "kernels/dispatch.h"
#include "model/program/operations.h"

namespace troupe::model {

GradientBuilder::GradientBuilder(Graph& graph, const std::set<std::string>& trained)
    : graph_(graph),
      forward_(graph.operations().size()),
      needs_(graph.values().size(), false),
      gradients_(graph.values().size(), kNoValue) {
  for (std::size_t i = 0; i < needs_.size(); ++i) {
    const auto& value = graph.values()[i];
    needs_[i] = value.role == ValueRole::input || value.role == ValueRole::conditioning ||
                (value.role == ValueRole::parameter && trained.count(value.name) != 0);
  }
  for (const auto& operation : graph.operations()) {
    const auto& reads = operation->reads();
    if (std::none_of(reads.begin(), reads.end(), [&](ValueId id) { return needs_[index_of(id)]; })) continue;
    for (const auto id : operation->writes()) needs_[index_of(id)] = true;
  }
}

bool GradientBuilder::needs(ValueId value) const { return value != kNoValue && needs_[index_of(value)]; }

ValueId GradientBuilder::rounded_gradient(ValueId value) {
  return graph_.converted(gradient(value), graph_.value(value).dtype);
}

ValueId GradientBuilder::like(ValueId value, at::ScalarType dtype) {
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
  return gradient = graph_.add_value({of.name, of.sizes, dtype, ValueRole::parameter_gradient});
}

ValueId GradientBuilder::build() {
  graph_.begin_backward();
  const auto output = graph_.output(), input = graph_.input();
  const auto& result = graph_.value(output);
  gradients_[index_of(output)] = graph_.add_value({"", result.sizes, result.dtype, ValueRole::output_gradient});
  for (std::size_t i = forward_; i-- > 0;) {
    const auto& writes = graph_.operations()[i]->writes();
    // operations are appended meanwhile: the list may move, the operation does not
    const Operation& operation = *graph_.operations()[i];
    if (std::any_of(writes.begin(), writes.end(), [&](ValueId id) { return gradients_[index_of(id)] != kNoValue; }))
      operation.differentiate(*this);
  }
  TROUPE_CHECK(gradient(input) != kNoValue, "a unit's result depends on its input");
  const auto found = rounded_gradient(input);
  // where the result is the input plus something, its gradient arrives as it is bound
  return graph_.value(found).role == ValueRole::intermediate ? found : graph_.copied(found, graph_.value(found).dtype);
}

}  // namespace troupe::model
