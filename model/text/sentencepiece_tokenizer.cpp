#include "model/text/sentencepiece_tokenizer.h"

#include <fmt/format.h>
#include <sentencepiece_processor.h>

#include <utility>

namespace troupe {
namespace {

class SentencePieceTokenizer final : public Tokenizer {
 public:
  SentencePieceTokenizer(std::unique_ptr<sentencepiece::SentencePieceProcessor> model, std::int64_t max_length,
                         UnknownBytes unknown)
      : Tokenizer(max_length), model_(std::move(model)), unknown_(unknown) {
    for (const int id : {model_->pad_id(), model_->eos_id(), model_->unk_id()}) {
      if (id >= 0) specials_.emplace_back(model_->IdToPiece(id), id);
    }
  }

  std::int64_t vocab() const override { return model_->GetPieceSize(); }

 protected:
  std::vector<std::int64_t> pieces(const std::string& cleaned) const override {
    std::vector<std::int64_t> ids;
    std::size_t begin = 0;
    while (begin < cleaned.size()) {
      // the nearest literal special token splits the text
      std::size_t found = std::string::npos;
      const Special* special = nullptr;
      for (const auto& candidate : specials_) {
        const auto at = cleaned.find(candidate.first, begin);
        if (at < found) {
          found = at;
          special = &candidate;
        }
      }
      append_plain(cleaned.substr(begin, found - begin), ids);
      if (special == nullptr) break;
      ids.push_back(special->second);
      begin = found + special->first.size();
    }
    return ids;
  }
  std::int64_t pad_id() const override { return model_->pad_id(); }
  std::int64_t end_id() const override { return model_->eos_id(); }

 private:
  using Special = std::pair<std::string, std::int64_t>;

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
  std::vector<Special> specials_;
};

}  // namespace

Result<std::unique_ptr<Tokenizer>> load_sentencepiece_tokenizer(const std::string& path, std::int64_t max_length,
                                                                UnknownBytes unknown) {
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
  return std::unique_ptr<Tokenizer>(std::make_unique<SentencePieceTokenizer>(std::move(model), max_length, unknown));
}

}  // namespace troupe
