#pragma once

#include <optional>
#include <string>

#include "configs/diagnostics.h"
#include "configs/node.h"

namespace troupe::configs {

/// A configuration text and the name it was found under.
struct Document {
  std::string name;
  std::string text;
  /// Inside the binary.
  bool embedded = false;
};

/// The contents of a file; nothing after adding an error that starts with `where`. A byte order mark is cut off.
std::optional<std::string> read_config_file(const std::string& path, const std::string& where, Diagnostics& errors);

/// The document that `name` stands for in the document `from`: a file beside it, else the embedded file
/// `folder` + name (folder "" for the whole table). Adds an error that starts with `key` when there is none.
std::optional<Document> find_document(const ConfigNode& name, const std::string& folder, const std::string& from,
                                      bool from_embedded, const std::string& key, Diagnostics& errors);

}  // namespace troupe::configs
