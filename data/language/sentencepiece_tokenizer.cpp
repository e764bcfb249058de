#include "data/language/sentencepiece_tokenizer.h"

#include <fmt/format.h>
#include <sentencepiece_processor.h>

#include <algorithm>
#include <utility>

namespace troupe::data {
namespace {

class SentencePieceTokenizer final : public Tokenizer {
 public:
  SentencePieceTokenizer(std::unique_ptr<sentencepiece::SentencePieceProcessor> model, std::int64_t max_length,
                         UnknownBytes unknown, std::vector<AddedToken> added)
      : Tokenizer(max_length), model_(std::move(model)), unknown_(unknown), added_(std::move(added)) {
    vocab_ = model_->GetPieceSize();
    for (const AddedToken& token : added_) vocab_ = std::max(vocab_, token.id + 1);
  }

  std::int64_t vocab() const override { return vocab_; }

 protected:
  std::vector<std::int64_t> pieces(const std::string& cleaned) const override {
    std::vector<std::int64_t> ids;
    std::size_t begin = 0;
    while (begin < cleaned.size()) {
      const auto [found, token] = next_added(cleaned, begin);
      std::size_t end = std::min(found, cleaned.size());
      if (token == nullptr) {
        append_plain(cleaned.substr(begin), ids);
        break;
      }
      // a cleaned prompt has no white space but single blanks
      if (token->strip_left && end > begin && cleaned[end - 1] == ' ') --end;
      append_plain(cleaned.substr(begin, end - begin), ids);
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

  void append_plain(const std::string& text, std::vector<std::int64_t>& ids) const {
    bool after_unknown = false;
    for (const int id : model_->EncodeAsIds(text)) {
      const bool unknown = id == model_->unk_id() || (unknown_ == UnknownBytes::to_unknown && model_->IsByte(id));
      if (!unknown) {
        ids.push_back(id);
      } else if (!after_unknown) {
        ids.push_back(model_->unk_id());
      }
      after_unknown = unknown;
    }
  }

  std::unique_ptr<sentencepiece::SentencePieceProcessor> model_;
  UnknownBytes unknown_;
  std::vector<AddedToken> added_;
  std::int64_t vocab_ = 0;
};

}  // namespace

Result<std::unique_ptr<Tokenizer>> load_sentencepiece_tokenizer(const std::string& path, std::int64_t max_length,
                                                                UnknownBytes unknown, std::vector<AddedToken> added) {
  auto model = std::make_unique<sentencepiece::SentencePieceProcessor>();
  const auto status = model->Load(path);
  if (!status.ok()) {
    return Error{Errc::not_found,
                 fmt::format("model.text_encoder.tokenizer \"{}\" is no readable SentencePiece model: {}", path,
                             status.ToString())};
  }
  if (model->pad_id() < 0 || model->eos_id() < 0) {
    return Error{Errc::invalid_argument, fmt::format("model.text_encoder.tokenizer \"{}\" has no {} token", path,
                                                     model->pad_id() < 0 ? "padding" : "end")};
  }
  if (added.empty()) {
    for (const int id : {model->pad_id(), model->eos_id(), model->unk_id()}) {
      if (id >= 0) added.push_back({.content = model->IdToPiece(id), .id = id});
    }
  }
  return std::unique_ptr<Tokenizer>(
      std::make_unique<SentencePieceTokenizer>(std::move(model), max_length, unknown, std::move(added)));
}

}  // namespace troupe::data
