#include "show/answers.h"

#include <utility>

#include "json/json.h"
#include "show/output.h"

namespace fp8kv {
namespace {

std::string json_line(size_t index, const Prompt& prompt, const std::vector<int32_t>& ids,
                      const std::string& text, FinishReason reason) {
  JsonWriter json(JsonWriter::Layout::one_line);
  json.begin_object().member("schema", "fp8kv.run/1").member("index", uint64_t{index});
  if (prompt.id) json.member("id", *prompt.id);
  json.member("prompt", prompt.text).member("text", text);
  json.member("prompt_tokens", uint64_t{prompt.request.prompt.size()}).key("ids").begin_array();
  for (const int32_t id : ids) json.value(int64_t{id});
  json.end_array().member("finish_reason", finish_reason_name(reason));
  return json.end_object().text() + "\n";
}

}  // namespace

void Answers::begin(Prompt prompt) {
  const size_t index = begun_++;
  answers_.try_emplace(index, tokenizer_, std::move(prompt));
  if (shown(index)) take_turn();
}

// Shows what there is of the answer whose turn it is.
void Answers::take_turn() {
  const auto answer = answers_.find(turn_);
  if (answer == answers_.end()) return;
  print((std::exchange(first_, false) ? "" : "\n") + answer->second.prompt.text +
        answer->second.text);
}

void Answers::show(size_t index, const std::string& piece) {
  answers_.at(index).text += piece;
  if (shown(index) && !piece.empty()) print(piece);
}

void Answers::token(size_t index, int32_t id) {
  Answer& answer = answers_.at(index);
  answer.ids.push_back(id);
  show(index, answer.stream.add(id));
}

void Answers::finished(size_t index, FinishReason reason) {
  Answer& answer = answers_.at(index);
  show(index, answer.stream.finish());
  answer.reason = reason;
  if (order_ == AnswerOrder::finished) {
    print_done(index);
    return;
  }
  for (auto next = answers_.find(turn_); next != answers_.end() && next->second.reason;
       next = answers_.find(turn_)) {
    print_done(turn_++);
    if (!json_) take_turn();
  }
}

void Answers::print_done(size_t index) {
  const auto at = answers_.find(index);
  const Answer& answer = at->second;
  if (json_) {
    print(json_line(index, answer.prompt, answer.ids, answer.text, *answer.reason));
  } else if (order_ == AnswerOrder::finished) {
    print((std::exchange(first_, false) ? "" : "\n") + answer.prompt.text + answer.text + "\n");
  } else {
    print("\n");  // the rest is there
  }
  answers_.erase(at);
}

}  // namespace fp8kv
