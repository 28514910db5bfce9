// The prompts of `run`: from the command line, from a file, or from standard input as they arrive.
#pragma once

#include <cstdint>
#include <deque>
#include <exception>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/error.h"
#include "core/model/config.h"
#include "generate/requests.h"
#include "inputs/chat_text.h"
#include "inputs/prompts/line_reader.h"
#include "json/json.h"
#include "options/options.h"
#include "text/tokenizer.h"

namespace fp8kv {

struct Prompt {
  std::string name;               // for messages: "'prompts.jsonl':3"
  std::string text;               // the text to print; "" without a tokenizer
  std::optional<Json> id;         // a string or a number, unchanged
  std::optional<int64_t> answer;  // its number among the answers of its record, from 0
  std::vector<std::string> stops;
  std::vector<std::string> continuations = {};  // texts of the request's continuations
  Request request;
};

// A record from a stream that cannot be used.
struct RefusedPrompt {
  std::optional<Json> id;
  Error error;
};

class Prompts {
 public:
  // Reads all prompts, except those from standard input. Throws a usage Error if there is nothing
  // to continue, and an input Error that names the line of a bad record.
  // Without a tokenizer (nullptr), prompts are token ids and `chats` is nullptr too.
  // A record has one of prompt, text, messages, conversations and input_ids. It may have an id, and
  // options of PromptRecord, which override `defaults`, or continuations.
  Prompts(const RunOptions& options, const Request& defaults, const Tokenizer* tokenizer,
          ChatText* chats, const ModelConfig& config);

  // Whether more prompts may arrive.
  bool streams() const { return input_.has_value(); }
  // The prompts that are known and not yet taken.
  std::vector<Request> requests() const;
  const std::deque<Prompt>& known() const { return known_; }

  // A RequestSource that also returns refused records. A stream that fails ends; prompts from
  // before the failure are still continued.
  std::optional<std::variant<Prompt, RefusedPrompt>> next(bool wait);
  // Throws the reason why a stream ended early. If records were refused, throws an Error of kind
  // check.
  void fail_late() const;

  // From now on refuses prompts from a stream that need more than `pages` pages.
  void limit_pages(int64_t pages) { pages_ = pages; }

 private:
  Prompt from_text(const std::string& text, const std::string& name) const;
  Prompt from_joined(const std::string& text, const std::string& name) const;
  Prompt from_said(const std::string& text, const std::string& name) const;
  Prompt from_chat(const Json& record) const;
  void need_tokenizer(const std::string& name,
                      const char* way_out = "records with input_ids need none") const;
  Prompt from_ids(const Json& record) const;
  Prompt from_continuations(const Json& record, const std::string& text_key) const;
  void need_json(const Json& value) const;
  void take_record(const Json& record, const std::optional<Json>& id);
  void ask(const Prompt& prompt, std::optional<int64_t> answers, std::optional<uint64_t> seed);
  void take_line(std::string_view line, const std::string& label, std::optional<Json>& id);
  void take_stream(bool wait);
  void check(const Prompt& prompt) const;

  const RunOptions& options_;
  Request defaults_;
  const Tokenizer* tokenizer_;
  ChatText* chats_;
  const ModelConfig& config_;
  std::deque<Prompt> known_;
  std::optional<LineReader> input_;
  std::optional<RefusedPrompt> refused_;
  size_t line_ = 0;
  uint64_t count_ = 0;
  uint64_t records_ = 0;
  uint64_t refused_count_ = 0;
  int64_t pages_ = kMostPages;
  std::exception_ptr failure_;
};

}  // namespace fp8kv
