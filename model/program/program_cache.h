#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "model/program/unit_program.h"

namespace troupe::model {

/// Programs by what they depend on, each recorded once. Any thread.
class ProgramCache {
 public:
  /// The program of that graph, differentiated so, at that level. `key`: all that the graph depends on, as text;
  /// `record` makes the graph when it is new.
  std::shared_ptr<const UnitProgram> find(const std::string& key, const Differentiated& differentiated,
                                          RecomputeLevel level, const std::function<Graph()>& record);
  /// The same of a forward alone.
  std::shared_ptr<const UnitProgram> find(const std::string& key, const std::function<Graph()>& record);

 private:
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const UnitProgram>> programs_;
};

}  // namespace troupe::model
