// What `run` continues: from the command line, from a file, or from standard input as it comes.
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
#include "core/config.h"
#include "generate/generate.h"
#include "inputs/chat_text.h"
#include "inputs/line_reader.h"
#include "json/json.h"
#include "options/options.h"
#include "text/tokenizer.h"

namespace fp8kv {

struct Prompt {
  std::string name;               // for messages: "'prompts.jsonl':3"
  std::string text;               // what is shown of it; "" without a tokenizer
  std::optional<Json> id;         // a string or a number, as given
  std::optional<int64_t> answer;  // which of the answers that its record asks for, from 0
  std::vector<std::string> stops;
  Request request;
};

// A record of a stream that cannot be used.
struct RefusedPrompt {
  std::optional<Json> id;
  Error error;
};

class Prompts {
 public:
  // Reads all there is, but for standard input. Throws a usage Error when there is nothing to
  // continue, an input Error naming the line otherwise. Without a tokenizer (nullptr) prompts are
  // token ids, and `chats` is nullptr too.
  // Records have one of prompt, text, messages, conversations and input_ids, and may have id, and
  // the options of PromptRecord, which win over `defaults`.
  Prompts(const RunOptions& options, const Request& defaults, const Tokenizer* tokenizer,
          ChatText* chats, const ModelConfig& config);

  // Whether more may come than is known.
  bool streams() const { return input_.has_value(); }
  // Those that are known and have not been taken yet.
  std::vector<Request> requests() const;
  const std::deque<Prompt>& known() const { return known_; }

  // As a RequestSource, with the records that are refused among them. A stream that cannot be read
  // on ends: what came before is still continued.
  std::optional<std::variant<Prompt, RefusedPrompt>> next(bool wait);
  // Throws why a stream ended early, or else an Error of the kind check where records were refused.
  void fail_late() const;

  // From now on, what a stream brings is refused when it needs more pages than that.
  void limit_pages(int64_t pages) { pages_ = pages; }

 private:
  Prompt from_text(const std::string& text, const std::string& name) const;
  Prompt from_joined(const std::string& text, const std::string& name) const;
  Prompt from_said(const std::string& text, const std::string& name) const;
  Prompt from_chat(const Json& record) const;
  void need_tokenizer(const std::string& name) const;
  std::vector<Prompt> from_record(const Json& record);
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
