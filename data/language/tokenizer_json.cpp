#include "data/language/tokenizer_json.h"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

namespace troupe::data {
namespace {

using nlohmann::json;

/// Follows the path of keys through the document and keeps the few values wanted.
class FieldReader final : public json::json_sax_t {
 public:
  TokenizerJson take() { return std::move(out_); }
  const std::string& problem() const { return problem_; }

  bool null() override { return true; }
  bool boolean(bool value) override {
    if (at({"model", "byte_fallback"})) out_.byte_fallback = value;
    if (at({"added_tokens", "", "lstrip"})) token_.strip_left = value;
    if (at({"added_tokens", "", "rstrip"})) token_.strip_right = value;
    return true;
  }
  bool number_integer(number_integer_t value) override { return integer(value); }
  bool number_unsigned(number_unsigned_t value) override { return integer(static_cast<std::int64_t>(value)); }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t& value) override {
    if (at({"added_tokens", "", "content"})) token_.content = value;
    if (at({"model", "type"}) && value != "Unigram") return fail(fmt::format("model.type is {}, want Unigram", value));
    return true;
  }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override {
    path_.emplace_back();
    if (path_.size() == 3 && path_[0] == "added_tokens") token_ = AddedToken{.content = {}, .id = -1};
    return true;
  }
  bool key(string_t& name) override {
    path_.back() = name;
    return true;
  }
  bool end_object() override {
    const bool token = path_.size() == 3 && path_[0] == "added_tokens";
    path_.pop_back();
    if (!token) return true;
    if (token_.id < 0 || token_.content.empty()) return fail("an added token has no id or no content");
    out_.added.push_back(std::move(token_));
    return true;
  }
  bool start_array(std::size_t) override {
    path_.emplace_back();  // its elements have no key
    return true;
  }
  bool end_array() override {
    path_.pop_back();
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    return fail(fmt::format("it is no JSON from byte {} on", position));
  }

 private:
  bool at(std::initializer_list<std::string_view> path) const {
    return std::equal(path_.begin(), path_.end(), path.begin(), path.end());
  }
  bool integer(std::int64_t value) {
    if (at({"added_tokens", "", "id"})) token_.id = value;
    return true;
  }
  bool fail(std::string problem) {
    problem_ = std::move(problem);
    return false;
  }

  std::vector<std::string> path_;  // one key per open object, an empty one per open array
  TokenizerJson out_;
  AddedToken token_;
  std::string problem_;
};

}  // namespace

Result<TokenizerJson> read_tokenizer_json(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return Error{Errc::not_found, fmt::format("{} cannot be read", path)};
  FieldReader reader;
  if (!json::sax_parse(in, &reader)) {
    return invalid_argument(fmt::format("{}: {}", path, reader.problem()));
  }
  return reader.take();
}

}  // namespace troupe::data
