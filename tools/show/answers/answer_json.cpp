#include "show/answers/answer_json.h"

#include <cmath>

namespace fp8kv {
namespace {

// Writes null for infinity, which JSON does not have.
void add_logprob(JsonWriter& json, double log_probability) {
  json.key("logprob");
  std::isfinite(log_probability) ? json.value(log_probability) : json.null();
}

// Adds the members of a token to an object that has begun.
void add_token(JsonWriter& json, const TokenLogProbability& each, const Tokenizer* tokenizer) {
  json.member("id", int64_t{each.id});
  if (tokenizer == nullptr) {
    json.key("token").null();
    add_logprob(json, each.log_probability);
    json.key("bytes").null();
    return;
  }
  const std::string bytes = tokenizer->bytes_of(each.id);
  json.member("token", tokenizer->text_of(each.id));
  add_logprob(json, each.log_probability);
  json.key("bytes").begin_array();
  for (const char byte : bytes) json.value(int64_t{static_cast<unsigned char>(byte)});
  json.end_array();
}

}  // namespace

void add_logprobs(JsonWriter& json, std::span<const TokenLogProbabilities> tokens,
                  const Tokenizer* tokenizer) {
  json.key("logprobs").begin_object().key("content").begin_array();
  for (const TokenLogProbabilities& each : tokens) {
    json.begin_object();
    add_token(json, each.token, tokenizer);
    json.key("top_logprobs").begin_array();
    for (const TokenLogProbability& likely : each.likeliest) {
      json.begin_object();
      add_token(json, likely, tokenizer);
      json.end_object();
    }
    json.end_array().end_object();
  }
  json.end_array().end_object();
}

void add_continuations(JsonWriter& json, const Prompt& prompt,
                       std::span<const ContinuationScore> scores, const Tokenizer* tokenizer) {
  json.key("continuations").begin_array();
  for (size_t i = 0; i < scores.size(); ++i) {
    const Alternative& each = prompt.request.continuations[i];
    const auto own = std::span(each.ids).subspan(static_cast<size_t>(each.begin));
    json.begin_object().key("text");
    tokenizer == nullptr ? json.null() : json.value(prompt.continuations[i]);
    json.key("ids").begin_array();
    for (const int32_t id : own) json.value(int64_t{id});
    json.end_array().member("tokens", uint64_t{own.size()});
    add_logprob(json, scores[i].log_probability);
    json.member("greedy", scores[i].greedy).end_object();
  }
  json.end_array();
}

}  // namespace fp8kv
