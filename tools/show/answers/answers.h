// The output of `run`: text as it is generated, or one JSON record for each finished prompt.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "generate/requests.h"
#include "inputs/prompts/prompts.h"
#include "options/options.h"
#include "text/stop_text.h"
#include "text/tokenizer.h"

namespace fp8kv {

// In input order, the first unfinished answer is printed as it is generated; the others wait. A
// JSON record is written in one piece. Without a tokenizer (nullptr) answers are ids, which only
// JSON can show.
class Answers {
 public:
  Answers(const Tokenizer* tokenizer, bool json, AnswerOrder order)
      : tokenizer_(tokenizer), json_(json), order_(order) {}

  // Starts an answer. The calls below number answers by the order of begin().
  void begin(Prompt prompt);
  // Takes the place of an answer. Writes a JSON record with the error, or without JSON an immediate
  // line on stderr.
  void refuse(const RefusedPrompt& refused);
  void token(size_t number, int32_t id);
  // Whether the answer's text has reached one of its stops.
  bool ended(size_t number) const;
  void finished(size_t number, FinishReason reason);
  void logprobs(size_t number, const TokenLogProbabilities& found);
  // Replaces token(), logprobs() and finished() for a prompt with continuations.
  void scored(size_t number, std::span<const ContinuationScore> scores);
  // The number of ids without a token in the tokenizer; 0 without a tokenizer.
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
    std::vector<TokenLogProbabilities> logprobs = {};  // one per id, or empty
    std::vector<ContinuationScore> scores = {};        // of given continuations
    std::string text = {};
    std::optional<FinishReason> reason = {};
    std::optional<Error> error = {};  // set instead of all of the above

    bool done() const { return reason || error || !scores.empty(); }
  };

  bool shown(size_t index) const {
    return !json_ && order_ == AnswerOrder::input && index == turn_;
  }
  Answer& add(Prompt prompt);
  void show(size_t index, const std::string& piece);
  void take_turn();
  void settle(size_t index);
  void print_done(size_t index);
  std::string answer_line(size_t index, const Answer& answer) const;

  const Tokenizer* tokenizer_;
  bool json_;
  AnswerOrder order_;
  std::map<size_t, Answer> answers_;  // by index; begun or refused, and not yet printed
  std::map<size_t, size_t> indices_;  // index of each unfinished answer, by number
  size_t begun_ = 0;
  size_t count_ = 0;  // answers begun or refused
  size_t turn_ = 0;   // the index of the first answer not yet printed
  bool first_ = true;
  uint64_t ids_without_text_ = 0;
};

}  // namespace fp8kv
