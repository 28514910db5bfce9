#include "tasks/items/few_shot.h"

#include "base/error.h"
#include "tasks/items/python_text.h"

namespace fp8kv {

Example example_of(const std::string& subject, std::string_view prompt, std::string_view answer) {
  return {subject, cat(prompt, " ", answer, "\n\n")};
}

std::string description_of(const ChoiceItem& item) {
  if (item.subject.empty()) return "";
  return cat("The following are multiple choice questions (with answers) about ",
             replaced(item.subject, "_", " "), ".\n\n");
}

std::string few_shot_text(const std::string& where, const std::string& subject,
                          std::span<const Example> examples, size_t count) {
  std::string text;
  size_t taken = 0;
  for (const Example& each : examples) {
    if (taken == count) break;
    if (each.subject != subject) continue;
    text += each.text;
    ++taken;
  }
  if (taken < count) {
    const std::string of = subject.empty() ? "" : cat(" of the subject ", quote(subject));
    throw Error(cat(where, ": --few-shot asks for ", count_of(count, "example"), ", and ", taken,
                    of, " are there"),
                "give more with --few-shot-from, or ask for fewer");
  }
  return text;
}

void refuse_few_shot(const std::string& where) {
  throw Error(cat(where, ": --few-shot needs prompts, and the item has messages"),
              "write the examples as messages of the item");
}

Alternatives encode_continuations(const std::string& prompt,
                                  std::span<const std::string> continuations,
                                  const EncodeText& encode) {
  const auto begin = static_cast<int64_t>(encode(stripped_right(prompt)).size());
  Alternatives made;
  for (const std::string& each : continuations) made.push_back({encode(prompt + each), begin});
  return made;
}

Alternatives encode_choices(const ChoiceItem& item, const std::string& prompt,
                            const EncodeText& encode) {
  std::vector<std::string> choices;
  for (const std::string& choice : item.choices) choices.push_back(" " + choice);
  return checked_choices(item, encode_continuations(prompt, choices, encode));
}

Alternatives checked_choices(const ChoiceItem& item, Alternatives made) {
  for (size_t i = 0; i < made.size(); ++i) {
    if (made[i].begin >= 1 && made[i].begin < static_cast<int64_t>(made[i].ids.size())) continue;
    fail(item.where, ": the choice ", quote(item.choices[i]), " adds no token to its prompt");
  }
  return made;
}

}  // namespace fp8kv
