// How servers are asked for the log probabilities of tokens, as a table: what to send, and how to
// read the answer. Sends nothing itself.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "json/json.h"

namespace fp8kv {

// A prompt, whose own tokens are asked about, or `new_tokens` that the server appends greedily.
struct ServerQuestion {
  std::string model;  // as the server names it
  std::span<const int32_t> ids;
  std::string text;        // what `ids` are the tokens of, for servers that take no ids
  int64_t new_tokens = 0;  // 0: the prompt is asked about
};

// Tokens and their natural log probabilities. The first token of a prompt has none: it is left out
// of `log_probs`, so that these are one fewer.
struct ServerAnswer {
  std::vector<int32_t> ids;
  std::vector<double> log_probs;
};

struct ServerProtocol {
  std::string name;     // of --api: "vllm"
  std::string runtime;  // "vLLM"
  std::string probe;    // a path that only this runtime answers so that `is_one` holds
  bool (*is_one)(const Json& answer);
  std::string version_key;  // of that answer; "" where it does not tell
  bool takes_text;          // prompts are text, not ids
  std::string path;         // of questions
  std::string (*question)(const ServerQuestion& question);
  // Throws, saying what is missing, for an answer without log probabilities.
  ServerAnswer (*answer)(const Json& answer, const ServerQuestion& question);
  std::string prompt_help;  // what makes the runtime give log probabilities of prompts
};

const std::vector<ServerProtocol>& server_protocols();

}  // namespace fp8kv
