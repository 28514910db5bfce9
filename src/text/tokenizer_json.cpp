// Reads a tokenizer.json.
#include <algorithm>

#include "base/error.h"
#include "text/models/parts.h"
#include "text/tokenizer_parts.h"

namespace fp8kv {
namespace {

void check_document(const Json& json) {
  // "truncation" and "padding" were settings for batches. Every runtime sets its own.
  check_keys(json, {"version", "truncation", "padding", "added_tokens", "normalizer",
                    "pre_tokenizer", "post_processor", "decoder", "model"});
  const std::string version = json.get_string("version", "1.0");
  if (version != "1.0") {
    fail(json.at("version").where(), ": is ", quote(version), ", expected '1.0'");
  }
}

}  // namespace

TokenizerParts parts_from_json(const Json& json) {
  check_document(json);
  Normalizer normalizer = Normalizer::from_json(json.find("normalizer"));
  PreTokenizer pre_tokenizer = PreTokenizer::from_json(json.find("pre_tokenizer"), normalizer);
  TokenModel model = TokenModel::from_json(json.at("model"), pre_tokenizer.ends_in_byte_level());
  AddedTokens added(json.find("added_tokens"), model.vocabulary(), normalizer);
  const int32_t end_id = std::max(model.vocabulary().end_id(), added.end_id());
  Template affixes = Template::from_json(json.find("post_processor"), end_id);
  if (pre_tokenizer.asks_for_the_beginning() && !normalizer.empty() && added.any(true)) {
    fail(json.where(),
         ": prepend_scheme first is not supported with a normalizer and added tokens "
         "that are normalized");
  }
  return {std::move(normalizer), std::move(pre_tokenizer),
          std::move(model),      std::move(added),
          std::move(affixes),    Decoder::from_json(json.find("decoder"))};
}

}  // namespace fp8kv
