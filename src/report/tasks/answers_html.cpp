#include "report/tasks/answers_html.h"

#include <algorithm>
#include <vector>

#include "base/text.h"
#include "draw/html.h"
#include "report/pages/page_parts.h"
#include "report/pages/text_pair.h"
#include "report/tasks/standings.h"

namespace fp8kv {
namespace {

constexpr size_t kTextsPerCache = 3;
constexpr size_t kChoicesPerTask = 8;
constexpr size_t kNamedCaches = 4;    // with one choice
constexpr size_t kAnswerBytes = 240;  // shown of an answer

std::string right_badge(bool right) {
  return element("span", right ? "class=\"badge good\"" : "class=\"badge bad\"",
                 right ? "right" : "wrong");
}

std::string finish_note(const GeneratedText& text) {
  return text.finish == FinishReason::length ? ", cut off by the token limit" : "";
}

bool is_right(const TaskReport& report, const TaskAnswer& answer) {
  return answer.right[report.main_score] != 0;
}

std::string text_column(const TaskReport& report, const std::string& name, const TaskAnswer& answer,
                        size_t place) {
  return element("div", "",
                 cat("\n<h5>", escape_html(name), " ", right_badge(is_right(report, answer)),
                     escape_html(finish_note(*answer.generated)), "</h5>\n<pre>",
                     parted_text(answer.generated->text, place), "</pre>\n")) +
         "\n";
}

// The first different token, from 1.
size_t parting_token(const GeneratedText& a, const GeneratedText& b) {
  return static_cast<size_t>(std::ranges::mismatch(a.ids, b.ids).in1 - a.ids.begin()) + 1;
}

// Items that only one of the two got right. Those that only the baseline got right come first.
std::vector<size_t> flips_of(const TaskReport& report, const TaskCacheReport& cache) {
  std::vector<size_t> losses, wins;
  for (size_t i = 0; i < cache.answers.size(); ++i) {
    const bool own = is_right(report, cache.answers[i]);
    const bool other = is_right(report, report.baseline.answers[i]);
    if (own != other) (own ? wins : losses).push_back(i);
  }
  losses.insert(losses.end(), wins.begin(), wins.end());
  return losses;
}

std::string item_head(const TaskItem& item) {
  return cat("<h4>", escape_html(item.where),
             "</h4>\n<p class=\"note\">right: ", escape_html(cut_text(item.answer, kAnswerBytes)));
}

std::string pair_html(const TaskReport& report, const TaskCacheReport& cache, size_t i) {
  const TaskAnswer& own = cache.answers[i];
  const TaskAnswer& other = report.baseline.answers[i];
  const size_t place = parting_place(own.generated->text, other.generated->text);
  return cat(item_head(report.items[i]), "; the texts part at token ",
             parting_token(*own.generated, *other.generated), "</p>\n<div class=\"pair\">\n",
             text_column(report, report.baseline.name + " (baseline)", other, place),
             text_column(report, cache.name, own, place), "</div>\n");
}

// Says how many of all are shown.
std::string shown_note(size_t shown, size_t all) {
  return element("p", "class=\"note\"",
                 shown < all ? cat(shown, " of ", count_of(all, "such item"))
                             : count_of(all, "such item")) +
         "\n";
}

// A choice and the caches that made it.
struct ChosenBy {
  const TaskAnswer* answer = nullptr;
  std::vector<std::string> caches;
};

std::vector<ChosenBy> choices_of(const TaskReport& report, size_t i) {
  std::vector<ChosenBy> chosen;
  const auto add = [&](const TaskCacheReport& cache, const char* role) {
    if (i >= cache.answers.size()) return;
    const TaskAnswer& own = cache.answers[i];
    auto found = std::ranges::find_if(chosen, [&](const ChosenBy& each) {
      return each.answer->answers[report.main_score] == own.answers[report.main_score];
    });
    if (found == chosen.end()) found = chosen.insert(found, {&own, {}});
    found->caches.push_back(cache.name + role);
  };
  add(report.baseline, " (baseline)");
  for (const TaskCacheReport& cache : report.caches) add(cache, "");
  return chosen;
}

// "a, b, c and 9 others".
std::string few_names(std::vector<std::string> names) {
  if (names.size() > kNamedCaches) {
    const size_t others = names.size() - (kNamedCaches - 1);
    names.resize(kNamedCaches - 1);
    names.push_back(cat(others, " others"));
  }
  return join(names);
}

std::string choice_item(const TaskReport& report, size_t i) {
  std::string list;
  for (const ChosenBy& each : choices_of(report, i)) {
    list += cat("<dt>", escape_html(few_names(each.caches)), "</dt><dd>",
                right_badge(is_right(report, *each.answer)), " ",
                escape_html(cut_text(each.answer->answers[report.main_score], kAnswerBytes)),
                "</dd>\n");
  }
  return cat(item_head(report.items[i]), "</p>\n<dl class=\"answers\">\n", list, "</dl>\n");
}

}  // namespace

std::string parted_texts(const TaskReport& report) {
  if (!report.generates) return "";
  std::string out;
  for (const TaskCacheReport& cache : report.caches) {
    const std::vector<size_t> flips = flips_of(report, cache);
    if (flips.empty()) continue;
    const size_t shown = std::min(flips.size(), kTextsPerCache);
    out += element("h3", "", escape_html(cat(cache.name, ", ", task_title(report)))) + "\n" +
           shown_note(shown, flips.size());
    for (size_t i = 0; i < shown; ++i) out += pair_html(report, cache, flips[i]);
  }
  return out;
}

std::string flipped_choices(const TaskReport& report) {
  if (report.generates) return "";
  std::vector<size_t> caches(report.items.size());
  std::vector<size_t> flipped;
  for (const TaskCacheReport& cache : report.caches) {
    for (const size_t item : flips_of(report, cache)) {
      if (caches[item]++ == 0) flipped.push_back(item);
    }
  }
  if (flipped.empty()) return "";
  // Items that flipped with the most caches first, then in the order in which they were asked.
  std::ranges::sort(flipped, [&](size_t a, size_t b) {
    return caches[a] != caches[b] ? caches[a] > caches[b] : a < b;
  });
  const size_t shown = std::min(flipped.size(), kChoicesPerTask);
  std::string out =
      element("h3", "", escape_html(task_title(report))) + "\n" + shown_note(shown, flipped.size());
  for (size_t i = 0; i < shown; ++i) out += choice_item(report, flipped[i]);
  return out;
}

}  // namespace fp8kv
