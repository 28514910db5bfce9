#include "tasks/few_shot.h"

#include "base/error.h"
#include "tasks/python_text.h"

namespace fp8kv {

std::string description_of(const ChoiceItem& item) {
  if (item.subject.empty()) return "";
  return cat("The following are multiple choice questions (with answers) about ",
             replaced(item.subject, "_", " "), ".\n\n");
}

std::string few_shot_prompt(const ChoiceItem& item, std::span<const ChoiceItem> examples,
                            size_t count) {
  std::string prompt = description_of(item);
  size_t taken = 0;
  for (const ChoiceItem& each : examples) {
    if (taken == count) break;
    if (each.subject != item.subject) continue;
    prompt += cat(each.prompt, " ", each.choices[each.answer], "\n\n");
    ++taken;
  }
  if (taken < count) {
    const std::string of = item.subject.empty() ? "" : cat(" of the subject ", quote(item.subject));
    throw Error(cat(item.where, ": --few-shot asks for ", count_of(count, "example"), ", and ",
                    taken, of, " are there"),
                "give more with --few-shot-from, or ask for fewer");
  }
  return prompt + item.prompt;
}

Alternatives encode_choices(const ChoiceItem& item, const std::string& prompt,
                            const EncodeText& encode) {
  const std::string_view context = stripped_right(prompt);
  const std::string blanks = prompt.substr(context.size());
  const auto begin = static_cast<int64_t>(encode(context).size());
  Alternatives made;
  for (const std::string& choice : item.choices) {
    Alternative each{encode(cat(context, blanks, " ", choice)), begin};
    if (begin < 1 || static_cast<int64_t>(each.ids.size()) <= begin) {
      fail(item.where, ": the choice ", quote(choice), " adds no token to its prompt");
    }
    made.push_back(std::move(each));
  }
  return made;
}

}  // namespace fp8kv
