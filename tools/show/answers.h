// What `run` prints: the text while it is made, or a JSON record for each prompt that is done.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "generate/generate.h"
#include "inputs/prompts.h"
#include "options/options.h"
#include "text/stop_text.h"
#include "text/tokenizer.h"

namespace fp8kv {

// In the order of input, the first unfinished prompt is shown as it is made, the others wait for
// their turn. A record is written in one piece. Without a tokenizer (nullptr) answers are ids,
// which only JSON has.
class Answers {
 public:
  Answers(const Tokenizer* tokenizer, bool json, AnswerOrder order)
      : tokenizer_(tokenizer), json_(json), order_(order) {}

  // Those that begin are numbered in that order in the calls below.
  void begin(Prompt prompt);
  // In the place of an answer: a record with the error, or without JSON a line on stderr at once.
  void refuse(const RefusedPrompt& refused);
  void token(size_t number, int32_t id);
  // Whether the text of an answer came to one of its stops.
  bool ended(size_t number) const;
  void finished(size_t number, FinishReason reason);
  // How many ids came that the tokenizer has no token for; 0 without a tokenizer.
  uint64_t ids_without_text() const { return ids_without_text_; }

 private:
  struct Answer {
    Answer(const Tokenizer* tokenizer, Prompt given)
        : prompt(std::move(given)), stops(prompt.stops) {
      if (tokenizer != nullptr) stream.emplace(*tokenizer, prompt.request.prompt, true);
    }

    Prompt prompt;
    std::optional<TokenStream> stream;  // absent without a tokenizer
    StopText stops;
    std::vector<int32_t> ids = {};
    std::string text = {};
    std::optional<FinishReason> reason = {};
    std::optional<Error> error = {};  // in place of all that

    bool done() const { return reason || error; }
  };

  bool shown(size_t index) const {
    return !json_ && order_ == AnswerOrder::input && index == turn_;
  }
  Answer& add(Prompt prompt);
  void show(size_t index, const std::string& piece);
  void take_turn();
  void settle(size_t index);
  void print_done(size_t index);

  const Tokenizer* tokenizer_;
  bool json_;
  AnswerOrder order_;
  std::map<size_t, Answer> answers_;  // by index: begun or refused, and not printed
  std::map<size_t, size_t> indices_;  // of those that are not finished, by number
  size_t begun_ = 0;
  size_t count_ = 0;  // begun or refused
  size_t turn_ = 0;   // the index of the first that is not printed
  bool first_ = true;
  uint64_t ids_without_text_ = 0;
};

}  // namespace fp8kv
