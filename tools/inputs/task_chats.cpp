#include "inputs/task_chats.h"

#include "data/records.h"
#include "tasks/items/few_shot.h"
#include "tasks/items/python_text.h"

namespace fp8kv {
namespace {

std::string joined_messages(const Json& record) {
  return read_record(record).text + "\nassistant:";
}

std::vector<int32_t> joined_ids(const ChatText& chats, const Tokenizer& tokenizer,
                                std::string_view text) {
  std::vector<int32_t> ids = tokenizer.prefix();
  const std::vector<int32_t> own = chats.joined(text);
  ids.insert(ids.end(), own.begin(), own.end());
  return ids;
}

Alternatives joined_answers(const ChatText& chats, const Tokenizer& tokenizer, const Json& record,
                            std::span<const std::string> answers) {
  std::vector<std::string> behind;
  for (const std::string& each : answers) behind.push_back(" " + each);
  return encode_continuations(joined_messages(record), behind, [&](std::string_view text) {
    return joined_ids(chats, tokenizer, text);
  });
}

Alternatives rendered_answers(ChatText& chats, const Json& record,
                              std::span<const std::string> answers) {
  const jinja::MarkedText text = chats.record(record, true).text;
  const size_t end = stripped_right(text.bytes()).size();
  const auto begin = static_cast<int64_t>(chats.answered(text.part(0, end), "").size());
  Alternatives made;
  for (const std::string& each : answers) made.push_back({chats.answered(text, each), begin});
  return made;
}

}  // namespace

EncodeMessages messages_encoder(ChatText& chats, const Tokenizer& tokenizer) {
  return [&](const Json& record) {
    if (!chats.joins()) return chats.record(record, true).ids;
    std::vector<int32_t> ids = joined_ids(chats, tokenizer, joined_messages(record));
    ids.insert(ids.end(), tokenizer.suffix().begin(), tokenizer.suffix().end());
    return ids;
  };
}

EncodeAnswers answers_encoder(ChatText& chats, const Tokenizer& tokenizer) {
  return [&](const Json& record, std::span<const std::string> answers) {
    return chats.joins() ? joined_answers(chats, tokenizer, record, answers)
                         : rendered_answers(chats, record, answers);
  };
}

}  // namespace fp8kv
