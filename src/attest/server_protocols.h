// A table of protocols: how to ask each kind of server for log probabilities, and how to read the
// answer. Sends nothing itself.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "json/json.h"

namespace fp8kv {

// A question about a prompt's own tokens, or about `new_tokens` that the server appends greedily.
struct ServerQuestion {
  std::string model;  // the server's name for it
  std::span<const int32_t> ids;
  std::string text;        // the text of `ids`, for servers that take no ids
  int64_t new_tokens = 0;  // 0: the question is about the prompt
};

// Tokens and their natural log probabilities. The first token of a prompt has none, so `log_probs`
// is one shorter than `ids`.
struct ServerAnswer {
  std::vector<int32_t> ids;
  std::vector<double> log_probs;
};

struct ServerProtocol {
  std::string name;     // the value of --api: "vllm"
  std::string runtime;  // "vLLM"
  std::string probe;    // a path whose answer satisfies `is_one` for this runtime only
  bool (*is_one)(const Json& answer);
  std::string version_key;  // the version's key in that answer; "" if there is none
  bool takes_text;          // prompts are text, not ids
  std::string path;         // the path for questions
  std::string (*question)(const ServerQuestion& question);
  // Throws if an answer has no log probabilities, saying what is missing.
  ServerAnswer (*answer)(const Json& answer, const ServerQuestion& question);
  std::string prompt_help;  // how to make the runtime give log probabilities of prompts
};

const std::vector<ServerProtocol>& server_protocols();

}  // namespace fp8kv
