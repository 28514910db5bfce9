#include "tasks/needle_task.h"

#include <memory>
#include <string>
#include <utility>

#include "base/error.h"
#include "data/data_source.h"
#include "data/documents.h"
#include "data/records.h"
#include "tasks/items/needle.h"
#include "tasks/text_answerer.h"

namespace fp8kv {
namespace {

// Enough for every context that models have today.
constexpr size_t kMostTextBytes = size_t{16} << 20;

Haystack read_haystack(const std::filesystem::path& path) {
  const DataSource source = open_data(path);
  std::string text;
  for_each_document(source, {[&] { return text.size() < kMostTextBytes; },
                             [&](TextStream& whole) { text = whole.peek(kMostTextBytes); },
                             [&](const Json& record) { text += read_record(record).text + "\n"; }});
  return {std::move(text), source.label};
}

// The prompts of all places, which take the model's tokenizer.
std::shared_ptr<const TextItems> make_items(const Haystack& haystack,
                                            const std::vector<NeedlePlace>& places, uint64_t seed,
                                            const TaskModel& model) {
  const EncodeText encode = prompt_encoder(model);
  const CountTokens count = [&](const std::string& prompt) {
    return static_cast<int64_t>(encode(prompt).size());
  };
  TextItems all;
  for (const NeedlePlace& place : places) {
    if (place.length > model.config.max_seq_len) {
      throw Error(cat("--needle-lengths: has ", place.length, ", the model's context is ",
                      model.config.max_seq_len, " (", model.config.context_key, ")"),
                  "leave it out", ErrorKind::usage);
    }
    all.items.push_back(needle_item(haystack, place, seed, count));
  }
  return std::make_shared<const TextItems>(std::move(all));
}

}  // namespace

Task read_needle_task(const TaskRequest& request) {
  if (request.few_shot > 0) {
    throw Error("--few-shot: needle has no examples", "leave it out", ErrorKind::usage);
  }
  const auto haystack = std::make_shared<const Haystack>(read_haystack(request.file));
  std::vector<NeedlePlace> places = needle_places(request.needle);
  if (request.items > 0 && request.items < places.size()) places.resize(request.items);
  Task task;
  task.form = "needle";
  task.generates = true;
  task.scores = {"found"};
  for (const NeedlePlace& place : places) {
    task.items.push_back({needle_name(haystack->label(), place),
                          needle_answer(*haystack, place, request.needle.seed), place});
  }
  task.open = [haystack, places,
               seed = request.needle.seed](const TaskModel& model) -> AnswerItems {
    const auto all = make_items(*haystack, places, seed, model);
    const auto answerer = std::make_shared<TextAnswerer>(all, model);
    return [all, answerer](size_t cache, std::span<const size_t> items, Progress& progress) {
      std::vector<TaskAnswer> answers;
      for (GeneratedText& text : answerer->generate(cache, items, progress)) {
        TextGrade graded = grade_needle(all->items[items[answers.size()]], text.text);
        answers.push_back({std::move(graded.right), std::move(graded.answers), std::move(text)});
      }
      return answers;
    };
  };
  return task;
}

}  // namespace fp8kv
