// What `run` continues: from the command line, from a file, or from standard input as it comes.
#pragma once

#include <cstdint>
#include <deque>
#include <exception>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/options.h"
#include "core/config.h"
#include "generate/generate.h"
#include "inputs/line_reader.h"
#include "json/json.h"
#include "text/tokenizer.h"

namespace fp8kv {

struct Prompt {
  std::string name;        // for messages: "'prompts.jsonl':3"
  std::string text;        // what is shown of it
  std::optional<Json> id;  // a string or a number, as given
  Request request;
};

class Prompts {
 public:
  // Reads all there is, but for standard input. Throws a usage Error when there is nothing to
  // continue, an input Error naming the line otherwise.
  // Records have one of prompt, text, messages and input_ids, and may have id, max_tokens,
  // temperature, top_k, top_p and seed, which win over the command line's.
  Prompts(const RunOptions& options, const Tokenizer& tokenizer, const ModelConfig& config);

  // Whether more may come than is known.
  bool streams() const { return input_.has_value(); }
  // Those that are known and have not been taken yet.
  std::vector<Request> requests() const;
  const std::deque<Prompt>& known() const { return known_; }

  // As a RequestSource. A record that cannot be used ends the stream: what came before it is still
  // continued, then fail_late() throws.
  std::optional<Prompt> next(bool wait);
  void fail_late() const;

  // From now on, what a stream brings is refused when it needs more pages than that.
  void limit_pages(int64_t pages) { pages_ = pages; }

 private:
  Prompt from_text(const std::string& text, const std::string& name) const;
  Prompt from_record(const Json& record) const;
  std::optional<Prompt> from_line(std::string_view line, const std::string& label);
  std::optional<Prompt> read_one(bool wait);
  Prompt finished(Prompt prompt);

  const RunOptions& options_;
  const Tokenizer& tokenizer_;
  const ModelConfig& config_;
  std::deque<Prompt> known_;
  std::optional<LineReader> input_;
  size_t line_ = 0;
  uint64_t count_ = 0;
  int64_t pages_ = kMostPages;
  std::exception_ptr failure_;
};

}  // namespace fp8kv
