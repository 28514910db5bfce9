#include "show/verify/verify_text.h"

#include <algorithm>
#include <map>

#include "base/terminal_text.h"
#include "base/text.h"
#include "show/junit.h"
#include "show/markdown.h"
#include "show/output.h"
#include "show/scales/scales_text.h"
#include "show/verify/runtime_report.h"

namespace fp8kv {
namespace {

// Neighbouring runtimes with the same result, as one row of the table.
struct Row {
  const VerifiedRuntime* first;
  const VerifiedRuntime* last;

  std::string versions() const {
    if (!first->chosen.version.empty()) return first->chosen.version;
    return versions_text(*first->chosen.column, *last->chosen.column);
  }
  std::string name() const { return cat(first->chosen.column->runtime, " ", versions()); }
};

bool is_the_same(const VerifiedRuntime& a, const VerifiedRuntime& b) {
  return a.chosen.column->runtime == std::string_view(b.chosen.column->runtime) &&
         a.chosen.version.empty() && b.chosen.version.empty() &&
         a.fate.verdict.rule == b.fate.verdict.rule &&
         a.fate.verdict.notes == b.fate.verdict.notes && fate_text(a.fate) == fate_text(b.fate);
}

bool is_lost(const VerifiedRuntime& runtime) {
  return runtime.asked && !runtime.fate.arrives;
}

std::vector<Row> all_rows(const VerifyReport& report) {
  std::vector<Row> rows;
  for (const VerifiedRuntime& each : report.runtimes) {
    if (!rows.empty() && is_the_same(*rows.back().last, each)) {
      rows.back().last = &each;
    } else {
      rows.push_back({&each, &each});
    }
  }
  return rows;
}

// The runtimes that were asked for and lose scales. Neighbours share a row if their remedies are
// the same too.
std::vector<Row> lost_rows(const VerifyReport& report) {
  std::vector<Row> rows;
  for (const VerifiedRuntime& each : report.runtimes) {
    if (!is_lost(each)) continue;
    const bool again = !rows.empty() && is_the_same(*rows.back().last, each) &&
                       rows.back().last->fixes == each.fixes;
    if (again) {
      rows.back().last = &each;
    } else {
      rows.push_back({&each, &each});
    }
  }
  return rows;
}

// "exact", "rounded, FP8 on", "partly lost". "FP8 on" means that the folder turns the FP8 cache on.
std::string result_of(const RuntimeFate& fate) {
  const char* result = "missing";
  if (!fate.layers.empty()) {
    const Fate first = fate.layers[0].fate;
    const bool alike = std::all_of(fate.layers.begin(), fate.layers.end(),
                                   [&](const LayerFate& each) { return each.fate == first; });
    result = alike ? fate_name(first) : fate.arrives ? fate_name(Fate::rounded) : "partly lost";
  }
  const bool nvfp4 = fate.verdict.rule->with.has(Fact::nvfp4_scheme);
  return cat(result, !fate.turns_on ? "" : nvfp4 ? ", NVFP4 on" : ", FP8 on");
}

Table table_of(const std::vector<Row>& rows) {
  Table table({"runtime", "version", "scales", "how"}, {true, true, true, true}, 2);
  for (const Row& row : rows) {
    const RuntimeFate& fate = row.first->fate;
    table.add({fate.verdict.column->runtime, row.versions(), result_of(fate),
               fate.verdict.rule->sentence});
    const std::string more = fate_text(fate);
    if (!result_of(fate).starts_with(more)) table.add({"", "", "", more});
    for (const RuntimeRule* note : fate.verdict.notes) {
      table.add({"", "", runtime_outcome_name(note->outcome), note->sentence});
    }
  }
  return table;
}

// The rows for the newest versions of each runtime.
std::string newest_of(const std::vector<Row>& rows) {
  std::vector<RuntimeLine> lines;
  for (const Row& row : rows) {
    const RuntimeFate& fate = row.first->fate;
    if (!has_newest(*row.last->chosen.column)) continue;
    const std::string more = fate_text(fate);
    const char* how = fate.verdict.rule->sentence;
    lines.push_back(
        {newest_text(*row.first->chosen.column, *row.last->chosen.column), result_of(fate),
         result_of(fate).starts_with(more) ? how : cat(how, "; ", more), fate.verdict.notes});
  }
  return runtime_lines(lines, "--all");
}

// The fate of the scales of draft layers; "" if there are none.
std::string drafts_of(const VerifyReport& report, VerifyDetail detail) {
  if (report.scales.drafts.empty()) return "";
  Table table({"draft layer", "runtime", "version", "scales", "how"},
              {true, true, true, true, true}, 2);
  for (size_t draft = 0; draft < report.scales.drafts.size(); ++draft) {
    const std::string name = plain(report.scales.drafts[draft].facts.layer.name);
    for (size_t i = 0; i < report.runtimes.size();) {
      const VerifiedRuntime& first = report.runtimes[i];
      const DraftVerdict& verdict = first.drafts[draft];
      size_t end = i + 1;
      const auto is_alike = [&](const VerifiedRuntime& next) {
        return next.chosen.version.empty() && first.chosen.version.empty() &&
               std::string_view(next.chosen.column->runtime) == first.chosen.column->runtime &&
               next.drafts[draft].sentence == verdict.sentence;
      };
      while (end < report.runtimes.size() && is_alike(report.runtimes[end])) ++end;
      const Row row{&first, &report.runtimes[end - 1]};
      const bool shown = detail == VerifyDetail::all || has_newest(*row.last->chosen.column);
      if (shown)
        table.add({name, first.chosen.column->runtime, row.versions(),
                   runtime_outcome_name(verdict.outcome), verdict.sentence});
      i = end;
    }
  }
  return "\n" + table.text();
}

// "32 scales, model.layers.3.self_attn.k_scale to model.layers.63.self_attn.v_scale".
std::string names_of(const std::vector<const LayerOnDisk*>& layers) {
  std::vector<std::string> names;
  size_t count = 0;
  for (const LayerOnDisk* layer : layers) {
    count += layer->scales.size();
    for (const NamedScale& scale : layer->scales) {
      if (!scale.name.empty()) names.push_back(scale.name);
    }
  }
  if (count == 0) return "";
  std::string text = cat(": ", count_of(count, "scale"));
  if (names.empty()) return text;
  text += cat(", ", plain(names.front()));
  if (names.size() == 1) return text;
  return cat(text, names.size() == 2 ? " and " : " to ", plain(names.back()));
}

// The layers that lose scales, one line for each reason.
std::string losses_of(const RuntimeFate& fate, const ScalesOnDisk& scales) {
  std::map<std::pair<Fate, std::string>, std::vector<const LayerOnDisk*>> groups;
  for (size_t i = 0; i < fate.layers.size(); ++i) {
    const LayerFate& each = fate.layers[i];
    if (!arrives(each.fate)) groups[{each.fate, each.why}].push_back(&scales.layers[i]);
  }
  std::string text;
  for (const auto& [what, layers] : groups) {
    std::vector<size_t> numbers;
    for (const LayerOnDisk* layer : layers) numbers.push_back(static_cast<size_t>(layer->layer));
    const std::string lost =
        cat("  ", fate_name(what.first), " in ", layer_list(numbers), names_of(layers));
    text += cat(sentence(lost, 4), "\n", sentence("    " + terminal_line(what.second), 4), "\n");
  }
  return fate.layers.empty() ? "  there are no scales\n" : text;
}

// The commands that serve the folder in the requested runtimes.
std::vector<std::string> commands_of(const VerifyReport& report) {
  std::vector<std::string> commands;
  for (const VerifiedRuntime& each : report.runtimes) {
    const bool known = std::find(commands.begin(), commands.end(), each.serve) != commands.end();
    if (each.asked && !each.serve.empty() && !known) commands.push_back(each.serve);
  }
  return commands;
}

std::string serving_lines(const VerifyReport& report) {
  const std::vector<std::string> commands = commands_of(report);
  std::string text = commands.empty() ? "" : "\nServe it with\n";
  for (const std::string& command : commands) text += cat("  ", terminal_line(command), "\n");
  return text;
}

// Names the tool that made the scales, if the dialect alone does not say so.
std::string producer_line(const VerifyReport& report) {
  const std::string producer = producer_text(report.provenance);
  if (producer.empty() || producer == "fp8kv" || producer == report.dialect) return "";
  return sentence(cat("The scales are by ", producer, ", in the dialect ", report.dialect, ".")) +
         "\n";
}

}  // namespace

std::string verify_text(const VerifyReport& report, VerifyDetail detail) {
  const std::vector<Row> rows = all_rows(report);
  std::string text =
      detail == VerifyDetail::all ? table_of(rows).text() + runtime_sources() : newest_of(rows);
  text += producer_line(report) + drafts_of(report, detail);
  for (const Row& row : lost_rows(report)) {
    text += cat("\n", row.name(), ":\n", losses_of(row.first->fate, report.scales));
    for (const std::string& fix : row.first->fixes)
      text += cat("  fix: ", terminal_line(fix), "\n");
  }
  return report.refusal ? text : text + serving_lines(report);
}

std::vector<std::string> verify_failures(const VerifyReport& report) {
  std::vector<std::string> failures;
  for (const Row& row : lost_rows(report)) {
    failures.push_back(cat(row.name(), ": ", fate_text(row.first->fate)));
  }
  return failures;
}

std::string verify_markdown(const std::string& path, const VerifyReport& report,
                            VerifyDetail detail) {
  std::string outcome = "Every scale arrives.";
  if (report.refusal) {
    outcome = cat("The scales cannot be used: ", report.refusal->what());
  } else if (!report.arrives) {
    outcome = cat("Not every scale arrives: ", join(verify_failures(report), "; "));
  }
  std::vector<Row> rows = all_rows(report);
  if (detail == VerifyDetail::newest)
    std::erase_if(rows, [](const Row& row) { return !has_newest(*row.last->chosen.column); });
  std::string text = cat("### fp8kv verify ", markdown_text(path), "\n\n**", markdown_text(outcome),
                         "**\n\n", table_of(rows).markdown());
  std::vector<std::string> more = report.warnings;
  for (const Row& row : lost_rows(report)) {
    for (const std::string& fix : row.first->fixes) more.push_back(cat(row.name(), ": ", fix));
  }
  text += markdown_list(more);
  return report.refusal ? text : text + markdown_commands(commands_of(report));
}

std::string verify_junit(const std::string& path, const VerifyReport& report) {
  std::vector<JunitCase> cases;
  if (report.refusal) cases.push_back({"fp8kv", "the scales can be used", report.refusal->what()});
  for (const VerifiedRuntime& each : report.runtimes) {
    if (!each.asked) continue;
    cases.push_back(
        {each.chosen.column->runtime,
         each.chosen.version.empty() ? versions_text(*each.chosen.column) : each.chosen.version,
         std::nullopt});
    if (each.fate.arrives) continue;
    std::string message = cat(fate_text(each.fate), ": ", each.fate.verdict.rule->sentence);
    for (const std::string& fix : each.fixes) message += cat("; fix: ", fix);
    cases.back().failure = message;
  }
  return junit_text("fp8kv verify " + path, cases);
}

}  // namespace fp8kv
