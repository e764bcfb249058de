#include "data/language/sentencepiece_tokenizer.h"

#include <fmt/format.h>
#include <sentencepiece_processor.h>

#include <algorithm>
#include <utility>

#include "data/language/character_map.h"
#include "data/language/sentencepiece_model.h"

namespace troupe::data {
namespace {

class SentencePieceTokenizer final : public Tokenizer {
 public:
  SentencePieceTokenizer(std::unique_ptr<sentencepiece::SentencePieceProcessor> model, CharacterMap map,
                         std::int64_t max_length, UnknownBytes unknown, std::vector<AddedToken> added)
      : Tokenizer(max_length),
        model_(std::move(model)),
        map_(std::move(map)),
        unknown_(unknown),
        added_(std::move(added)) {
    vocab_ = model_->GetPieceSize();
    for (const AddedToken& token : added_) vocab_ = std::max(vocab_, token.id + 1);
  }

  std::int64_t vocab() const override { return vocab_; }

 protected:
  std::vector<std::int64_t> pieces(const std::string& cleaned) const override {
    const std::string_view text = cleaned;
    std::vector<std::int64_t> ids;
    std::size_t begin = 0;
    while (begin < cleaned.size()) {
      const auto [found, token] = next_added(cleaned, begin);
      std::size_t end = std::min(found, cleaned.size());
      if (token == nullptr) {
        append_plain(text.substr(begin), ids);
        break;
      }
      // a cleaned prompt has no white space but single blanks
      if (token->strip_left && end > begin && cleaned[end - 1] == ' ') --end;
      append_plain(text.substr(begin, end - begin), ids);
      ids.push_back(token->id);
      begin = found + token->content.size();
      if (token->strip_right && begin < cleaned.size() && cleaned[begin] == ' ') ++begin;
    }
    return ids;
  }
  std::int64_t pad_id() const override { return model_->pad_id(); }
  std::int64_t end_id() const override { return model_->eos_id(); }

 private:
  /// The first literal token from `begin` on, the longest where several begin; null for none.
  std::pair<std::size_t, const AddedToken*> next_added(const std::string& text, std::size_t begin) const {
    std::pair<std::size_t, const AddedToken*> first{std::string::npos, nullptr};
    for (const AddedToken& token : added_) {
      const std::size_t at = text.find(token.content, begin);
      const bool longer = first.second != nullptr && token.content.size() > first.second->content.size();
      if (at < first.first || (at == first.first && at != std::string::npos && longer)) first = {at, &token};
    }
    return first;
  }

  /// Ids of a text without literal tokens.
  void append_plain(std::string_view text, std::vector<std::int64_t>& ids) const {
    bool after_unknown = false;
    for (const int id : model_->EncodeAsIds(map_.apply(text))) {
      const bool unknown = id == model_->unk_id() || (unknown_ == UnknownBytes::to_unknown && model_->IsByte(id));
      if (!unknown) {
        ids.push_back(id);
      } else if (!after_unknown) {
        ids.push_back(model_->unk_id());
      }
      after_unknown = unknown;
    }
  }

  std::unique_ptr<sentencepiece::SentencePieceProcessor> model_;  // without its map of characters
  CharacterMap map_;
  UnknownBytes unknown_;
  std::vector<AddedToken> added_;
  std::int64_t vocab_ = 0;
};

}  // namespace

Result<std::unique_ptr<Tokenizer>> load_sentencepiece_tokenizer(const std::string& path, std::int64_t max_length,
                                                                UnknownBytes unknown, std::vector<AddedToken> added) {
  const auto unreadable = [&path](const std::string& why) {
    return Error{Errc::not_found,
                 fmt::format("model.text_encoder.tokenizer \"{}\" is no readable SentencePiece model: {}", path, why)};
  };
  const auto parts = read_sentencepiece_model(path);
  if (!parts) return unreadable(parts.error().message());
  CharacterMap map;
  if (!parts->character_map.empty()) {
    auto read = CharacterMap::read(parts->character_map);
    if (!read) return unreadable(read.error().message());
    map = std::move(read).value();
  }
  auto model = std::make_unique<sentencepiece::SentencePieceProcessor>();
  const auto status = model->LoadFromSerializedProto(parts->without_map);
  if (!status.ok()) return unreadable(status.ToString());
  if (model->pad_id() < 0 || model->eos_id() < 0) {
    return invalid_argument(fmt::format("model.text_encoder.tokenizer \"{}\" has no {} token", path,
                                        model->pad_id() < 0 ? "padding" : "end"));
  }
  if (added.empty()) {
    for (const int id : {model->pad_id(), model->eos_id(), model->unk_id()}) {
      if (id >= 0) added.push_back({.content = model->IdToPiece(id), .id = id});
    }
  }
  return std::unique_ptr<Tokenizer>(std::make_unique<SentencePieceTokenizer>(std::move(model), std::move(map),
                                                                             max_length, unknown, std::move(added)));
}

}  // namespace troupe::data
