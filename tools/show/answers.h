// What `run` prints: the text while it is made, or a JSON record for each prompt that is done.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/options.h"
#include "generate/generate.h"
#include "inputs/prompts.h"
#include "text/tokenizer.h"

namespace fp8kv {

// In the order of input, the first unfinished prompt is shown as it is made, the others wait for
// their turn. A record is written in one piece.
class Answers {
 public:
  Answers(const Tokenizer& tokenizer, bool json, AnswerOrder order)
      : tokenizer_(tokenizer), json_(json), order_(order) {}

  // Prompts are numbered in the order in which they begin.
  void begin(Prompt prompt);
  void token(size_t index, int32_t id);
  void finished(size_t index, FinishReason reason);

 private:
  struct Answer {
    Answer(const Tokenizer& tokenizer, Prompt given)
        : prompt(std::move(given)), stream(tokenizer, prompt.request.prompt, true) {}

    Prompt prompt;
    TokenStream stream;
    std::vector<int32_t> ids;
    std::string text;
    std::optional<FinishReason> reason;
  };

  bool shown(size_t index) const {
    return !json_ && order_ == AnswerOrder::input && index == turn_;
  }
  void show(size_t index, const std::string& piece);
  void take_turn();
  void print_done(size_t index);

  const Tokenizer& tokenizer_;
  bool json_;
  AnswerOrder order_;
  std::map<size_t, Answer> answers_;  // begun and not printed
  size_t begun_ = 0;
  size_t turn_ = 0;  // the first that is not printed
  bool first_ = true;
};

}  // namespace fp8kv
