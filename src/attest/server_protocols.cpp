#include "attest/server_protocols.h"

#include <charconv>

#include "base/error.h"

namespace fp8kv {
namespace {

JsonWriter begin_question() {
  JsonWriter json(JsonWriter::Layout::one_line);
  json.begin_object();
  return json;
}

void add_ids(JsonWriter& json, const char* key, std::span<const int32_t> ids) {
  const std::vector<int64_t> wide(ids.begin(), ids.end());
  json.key(key).value(std::span<const int64_t>(wide));
}

int32_t id_of(std::string_view digits, const Json& where) {
  int32_t id = -1;
  const char* const end = digits.data() + digits.size();
  const auto [at, error] = std::from_chars(digits.data(), end, id);
  if (error != std::errc() || at != end || id < 0) {
    fail(where.where(), " names the token ", quote(digits), ", expected an id");
  }
  return id;
}

int32_t id_of(const Json& number) {
  const int64_t id = number.as_int();
  if (id < 0 || id > INT32_MAX) fail(number.where(), " is ", id, ", expected the id of a token");
  return static_cast<int32_t>(id);
}

// The array `key`. Throws if it is missing or null, as when a runtime gives no log probabilities.
Json log_probs_in(const Json& parent, const char* key) {
  std::optional<Json> found = parent.find(key);
  if (!found || !found->is_array() || found->size() == 0) {
    fail(parent.where(), " has no ", key, ", expected log probabilities");
  }
  return *found;
}

// vLLM's /v1/completions.

bool is_vllm(const Json& answer) {
  return answer.is_object() && answer.has("version");
}

std::string vllm_question(const ServerQuestion& question) {
  JsonWriter json = begin_question();
  json.member("model", question.model);
  add_ids(json, "prompt", question.ids);
  json.member("temperature", 0).member("add_special_tokens", false);
  if (question.new_tokens == 0) {
    json.member("max_tokens", 1).member("prompt_logprobs", 0);
  } else {
    json.member("max_tokens", question.new_tokens).member("ignore_eos", true);
    json.member("logprobs", 0).member("return_tokens_as_token_ids", true);
  }
  return json.end_object().text();
}

// [null, {"284": {"logprob": -14.9, ...}}, ...]: entries may list other likely tokens as well.
ServerAnswer vllm_prompt(const Json& choice, const ServerQuestion& question) {
  const Json list = log_probs_in(choice, "prompt_logprobs");
  ServerAnswer out;
  for (size_t i = 0; i < list.size(); ++i) {
    const Json entry = list[i];
    const bool asked = i < question.ids.size();
    const std::string id = asked ? cat(question.ids[i]) : "";
    if (i == 0 && entry.is_null()) {
      out.ids.push_back(asked ? question.ids[0] : -1);
      continue;
    }
    const std::optional<Json> own = asked ? entry.find(id) : std::nullopt;
    if (!own) {
      out.ids.push_back(entry.size() > 0 ? id_of(entry.key(0), entry) : -1);
      out.log_probs.push_back(0);
      continue;
    }
    out.ids.push_back(question.ids[i]);
    out.log_probs.push_back(own->at("logprob").as_double());
  }
  return out;
}

ServerAnswer vllm_answer(const Json& answer, const ServerQuestion& question) {
  const Json choices = log_probs_in(answer, "choices");
  if (question.new_tokens == 0) return vllm_prompt(choices[0], question);
  const std::optional<Json> given = choices[0].find("logprobs");
  if (!given) fail(choices[0].where(), " has no logprobs, expected log probabilities");
  const Json tokens = log_probs_in(*given, "tokens");
  const Json values = log_probs_in(*given, "token_logprobs");
  if (tokens.size() != values.size()) {
    fail(values.where(), " has ", values.size(), " entries, expected ", tokens.size());
  }
  constexpr std::string_view kMark = "token_id:";
  ServerAnswer out;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const std::string& token = tokens[i].as_string();
    const bool marked = token.starts_with(kMark);
    out.ids.push_back(id_of(marked ? std::string_view(token).substr(kMark.size()) : token, tokens));
    out.log_probs.push_back(values[i].as_double());
  }
  return out;
}

// SGLang's /generate.

bool is_sglang(const Json& answer) {
  return answer.is_object() && answer.has("model_path") && answer.has("is_generation");
}

std::string sglang_question(const ServerQuestion& question) {
  JsonWriter json = begin_question();
  add_ids(json, "input_ids", question.ids);
  json.key("sampling_params").begin_object().member("temperature", 0);
  const int64_t new_tokens = question.new_tokens == 0 ? 1 : question.new_tokens;
  json.member("max_new_tokens", new_tokens).member("ignore_eos", true).end_object();
  json.member("return_logprob", true);
  if (question.new_tokens == 0) json.member("logprob_start_len", 0);
  return json.end_object().text();
}

// [[null, 715, null], [-14.9, 284, null], ...]
ServerAnswer sglang_answer(const Json& answer, const ServerQuestion& question) {
  const bool prompt = question.new_tokens == 0;
  const Json list = log_probs_in(answer.at("meta_info"),
                                 prompt ? "input_token_logprobs" : "output_token_logprobs");
  ServerAnswer out;
  for (size_t i = 0; i < list.size(); ++i) {
    const Json entry = list[i];
    if (!entry.is_array() || entry.size() < 2) {
      fail(entry.where(), " is ", entry.brief(), ", expected a log probability and an id");
    }
    out.ids.push_back(id_of(entry[1]));
    if (!(prompt && i == 0)) out.log_probs.push_back(entry[0].as_double());
  }
  return out;
}

// Text Generation Inference's /generate.

bool is_tgi(const Json& answer) {
  return answer.is_object() && answer.has("model_id") &&
         (answer.has("max_input_tokens") || answer.has("max_input_length"));
}

std::string tgi_question(const ServerQuestion& question) {
  JsonWriter json = begin_question();
  json.member("inputs", question.text).key("parameters").begin_object();
  json.member("do_sample", false).member("details", true);
  if (question.new_tokens == 0) {
    json.member("max_new_tokens", 1).member("decoder_input_details", true);
  } else {
    json.member("max_new_tokens", question.new_tokens);
  }
  return json.end_object().end_object().text();
}

ServerAnswer tgi_answer(const Json& answer, const ServerQuestion& question) {
  const Json reply = answer.is_array() && answer.size() > 0 ? answer[0] : answer;
  const std::optional<Json> details = reply.find("details");
  if (!details) fail(reply.where(), " has no details, expected log probabilities");
  const bool prompt = question.new_tokens == 0;
  const Json list = log_probs_in(*details, prompt ? "prefill" : "tokens");
  ServerAnswer out;
  for (size_t i = 0; i < list.size(); ++i) {
    out.ids.push_back(id_of(list[i].at("id")));
    if (prompt && i == 0) continue;
    out.log_probs.push_back(list[i].at("logprob").as_double());
  }
  return out;
}

}  // namespace

const std::vector<ServerProtocol>& server_protocols() {
  static const std::vector<ServerProtocol> protocols = {
      {"sglang", "SGLang", "/get_model_info", is_sglang, "", false, "/generate", sglang_question,
       sglang_answer, "SGLang gives them unless a router takes them out: ask a worker itself"},
      {"tgi", "Text Generation Inference", "/info", is_tgi, "version", true, "/generate",
       tgi_question, tgi_answer, "start text-generation-launcher with --enable-prefill-logprobs"},
      {"vllm", "vLLM", "/version", is_vllm, "version", false, "/v1/completions", vllm_question,
       vllm_answer,
       "vLLM gives them in /v1/completions unless a proxy takes them out: ask the server itself"},
  };
  return protocols;
}

}  // namespace fp8kv
