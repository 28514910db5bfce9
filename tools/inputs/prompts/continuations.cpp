#include "inputs/prompts/continuations.h"

#include "base/error.h"
#include "inputs/prompts/prompt_record.h"
#include "tasks/items/few_shot.h"

namespace fp8kv {
namespace {

void check_list(const Json& list) {
  if (!list.is_array()) fail(list.where(), ": is ", list.brief(), ", expected an array");
  if (list.size() == 0) fail(list.where(), ": is empty, expected at least one continuation");
}

// The text that ids add to the prompt.
std::string text_behind(std::span<const int32_t> prompt, std::span<const int32_t> ids,
                        const Tokenizer& tokenizer) {
  TokenStream stream(tokenizer, prompt, true);
  std::string text;
  for (const int32_t id : ids) text += stream.add(id);
  return text + stream.finish();
}

}  // namespace

GivenContinuations text_continuations(const Json& list, const std::string& prompt,
                                      const Tokenizer& tokenizer) {
  check_list(list);
  GivenContinuations given;
  for (size_t i = 0; i < list.size(); ++i) given.texts.push_back(list[i].as_string());
  given.alternatives = encode_continuations(prompt, given.texts, [&](std::string_view text) {
    std::vector<int32_t> ids = tokenizer.prefix();
    const std::vector<int32_t> own = tokenizer.encode(text, false);
    ids.insert(ids.end(), own.begin(), own.end());
    return ids;
  });
  for (size_t i = 0; i < list.size(); ++i) {
    const Alternative& each = given.alternatives[i];
    if (each.begin > 0 && each.begin >= static_cast<int64_t>(each.ids.size())) {
      fail(list[i].where(), ": ", quote(given.texts[i]), " adds no token to the prompt");
    }
  }
  return given;
}

GivenContinuations id_continuations(const Json& list, const std::vector<int32_t>& prompt,
                                    const Tokenizer* tokenizer, int64_t vocab_size) {
  check_list(list);
  GivenContinuations given;
  for (size_t i = 0; i < list.size(); ++i) {
    const std::vector<int32_t> own = ids_of(list[i], vocab_size);
    if (own.empty()) fail(list[i].where(), ": has no token ids");
    Alternative& each = given.alternatives.emplace_back();
    each.begin = static_cast<int64_t>(prompt.size());
    each.ids = prompt;
    each.ids.insert(each.ids.end(), own.begin(), own.end());
    given.texts.push_back(tokenizer == nullptr ? "" : text_behind(prompt, own, *tokenizer));
  }
  return given;
}

}  // namespace fp8kv
