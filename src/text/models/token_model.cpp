#include "text/models/token_model.h"

#include "base/error.h"
#include "text/models/parts.h"

namespace fp8kv {

TokenModel TokenModel::from_json(const Json& model, bool byte_spelled) {
  // Early files have no type. Only BPE models have merges.
  const bool says_type = model.has("type") || !model.has("merges");
  const std::string type = says_type ? model.at("type").as_string() : "BPE";
  if (type == "BPE") return TokenModel(Bpe(bpe_table_from_json(model), byte_spelled));
  if (type == "Unigram") return TokenModel(Unigram(unigram_table_from_json(model)));
  fail_unsupported(model, type, {"BPE", "Unigram"});
}

const Vocabulary& TokenModel::vocabulary() const {
  return std::visit([](const auto& model) -> const Vocabulary& { return model.vocabulary(); },
                    model_);
}

bool TokenModel::takes_raw_bytes() const {
  const auto* bpe = std::get_if<Bpe>(&model_);
  return bpe != nullptr && bpe->takes_raw_bytes();
}

void TokenModel::encode(std::string_view word, Scratch& scratch, std::vector<int32_t>& ids) const {
  if (const auto* bpe = std::get_if<Bpe>(&model_)) return bpe->encode(word, scratch.bpe, ids);
  std::get<Unigram>(model_).encode(word, scratch.unigram, ids);
}

}  // namespace fp8kv
