// Reads the items of a task's file, and the few-shot examples before each item. Works for items of
// any form.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "tasks/items/few_shot.h"
#include "tasks/task.h"
#include "tasks/task_file.h"

namespace fp8kv {

template <typename Item>
struct ItemSet {
  std::vector<Item> items;
  std::vector<Example> examples;
  uint64_t few_shot = 0;

  // The text before `item`: the examples of its subject.
  std::string before(const Item& item) const {
    return few_shot_text(item.where, item.subject, examples, few_shot);
  }
};

// `read` makes an item of a record. The item must have a `subject`. `example` makes an Example of
// an item and its answer. Throws like both, and if the file has no items beside the examples.
template <typename Read, typename Show>
auto read_items(const TaskRequest& request, const Read& read, const Show& example) {
  ItemSet<decltype(read(std::declval<const Json&>()))> all;
  all.few_shot = request.few_shot;
  const bool own_examples = request.few_shot > 0 && request.few_shot_from.empty();
  std::map<std::string, uint64_t> kept;  // number of examples, by subject
  for_each_item(request.file, [&](const Json& record) {
    auto item = read(record);
    if (own_examples && kept[item.subject] < request.few_shot) {
      ++kept[item.subject];
      all.examples.push_back(example(item));
      return true;
    }
    all.items.push_back(std::move(item));
    return request.items == 0 || all.items.size() < request.items;
  });
  if (request.few_shot > 0 && !own_examples) {
    for_each_item(request.few_shot_from, [&](const Json& record) {
      const auto item = read(record);
      all.examples.push_back(example(item));
      return true;
    });
  }
  if (all.items.empty()) {
    throw Error(cat(quote(request.file.string()), ": has no items",
                    own_examples ? " beside the few-shot examples" : ""),
                own_examples ? "give examples of their own with --few-shot-from" : "");
  }
  return all;
}

}  // namespace fp8kv
