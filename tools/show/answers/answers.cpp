#include "show/answers/answers.h"

#include <cstdio>
#include <utility>

#include "base/error_text.h"
#include "json/json.h"
#include "show/answers/answer_json.h"
#include "show/output.h"

namespace fp8kv {
namespace {

JsonWriter begun_line(size_t index, const std::optional<Json>& id) {
  JsonWriter json(JsonWriter::Layout::one_line);
  json.begin_object().member("schema", "fp8kv.run/1").member("index", uint64_t{index});
  if (id) json.member("id", *id);
  return json;
}

std::string error_line(size_t index, const std::optional<Json>& id, const Error& error) {
  JsonWriter json = begun_line(index, id);
  json.key("error").begin_object().member("message", utf8_name(error.what()));
  if (!error.help().empty()) json.member("help", error.help());
  return json.end_object().end_object().text() + "\n";
}

}  // namespace

Answers::Answer& Answers::add(Prompt prompt) {
  return answers_.try_emplace(count_++, tokenizer_, std::move(prompt)).first->second;
}

void Answers::begin(Prompt prompt) {
  indices_[begun_++] = count_;
  add(std::move(prompt));
  if (shown(count_ - 1)) take_turn();
}

void Answers::refuse(const RefusedPrompt& refused) {
  if (!json_) {
    const std::string text = error_text("fp8kv: run: ", refused.error);
    std::fwrite(text.data(), 1, text.size(), stderr);
  }
  Prompt prompt;
  prompt.id = refused.id;
  add(std::move(prompt)).error = refused.error;
  settle(count_ - 1);
}

// Prints the text so far of the answer whose turn it is.
void Answers::take_turn() {
  const auto answer = answers_.find(turn_);
  if (answer == answers_.end() || answer->second.error) return;
  print_made((std::exchange(first_, false) ? "" : "\n") + answer->second.prompt.text +
             answer->second.text);
}

void Answers::show(size_t index, const std::string& piece) {
  answers_.at(index).text += piece;
  if (shown(index) && !piece.empty()) print_made(piece);
}

void Answers::token(size_t number, int32_t id) {
  const size_t index = indices_.at(number);
  Answer& answer = answers_.at(index);
  answer.ids.push_back(id);
  if (tokenizer_ != nullptr && !tokenizer_->has(id)) ++ids_without_text_;
  if (answer.stream) show(index, answer.stops.add(answer.stream->add(id)));
}

void Answers::logprobs(size_t number, const TokenLogProbabilities& found) {
  answers_.at(indices_.at(number)).logprobs.push_back(found);
}

void Answers::scored(size_t number, std::span<const ContinuationScore> scores) {
  const size_t index = indices_.extract(number).mapped();
  answers_.at(index).scores.assign(scores.begin(), scores.end());
  settle(index);
}

bool Answers::ended(size_t number) const {
  return answers_.at(indices_.at(number)).stops.found();
}

void Answers::finished(size_t number, FinishReason reason) {
  const size_t index = indices_.extract(number).mapped();
  Answer& answer = answers_.at(index);
  if (answer.stream) {
    const std::string rest = answer.stops.add(answer.stream->finish());
    show(index, rest + answer.stops.finish());
  }
  answer.reason = answer.stops.found() ? FinishReason::stop : reason;
  settle(index);
}

// Prints the answers that can be printed now that answer `index` is done.
void Answers::settle(size_t index) {
  if (order_ == AnswerOrder::finished) {
    print_done(index);
    return;
  }
  for (auto next = answers_.find(turn_); next != answers_.end() && next->second.done();
       next = answers_.find(turn_)) {
    print_done(turn_++);
    if (!json_) take_turn();
  }
}

void Answers::print_done(size_t index) {
  const auto printed = answers_.extract(index);
  const Answer& answer = printed.mapped();
  const Prompt& prompt = answer.prompt;
  if (answer.error) {
    if (json_) print(error_line(index, prompt.id, *answer.error));
    return;
  }
  if (!json_) {
    const bool whole = order_ == AnswerOrder::finished;  // otherwise only its end is unprinted
    const std::string begin = whole && !std::exchange(first_, false) ? "\n" : "";
    print_made(whole ? cat(begin, prompt.text, answer.text, "\n") : "\n");
    return;
  }
  print(answer_line(index, answer));
}

std::string Answers::answer_line(size_t index, const Answer& answer) const {
  const Prompt& prompt = answer.prompt;
  const bool scored = !answer.scores.empty();
  JsonWriter json = begun_line(index, prompt.id);
  if (prompt.answer) json.member("answer", *prompt.answer);
  json.key("prompt");
  tokenizer_ == nullptr ? json.null() : json.value(prompt.text);
  if (!scored) {
    json.key("text");
    tokenizer_ == nullptr ? json.null() : json.value(answer.text);
  }
  json.member("prompt_tokens", uint64_t{prompt.request.prompt.size()});
  if (scored) {
    add_continuations(json, prompt, answer.scores, tokenizer_);
    return json.end_object().text() + "\n";
  }
  json.key("ids").begin_array();
  for (const int32_t id : answer.ids) json.value(int64_t{id});
  json.end_array();
  if (prompt.request.logprobs) add_logprobs(json, answer.logprobs, tokenizer_);
  json.member("finish_reason", finish_reason_name(*answer.reason));
  return json.end_object().text() + "\n";
}

}  // namespace fp8kv
