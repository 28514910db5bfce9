#include "show/fit/fit_text.h"

#include <algorithm>
#include <optional>

#include "base/shell.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "core/model/model_description.h"
#include "report/loss_places.h"
#include "report/serving_names.h"
#include "show/eval/figure_text.h"
#include "show/output.h"
#include "show/scales/layer_bars.h"

namespace fp8kv {
namespace {

std::string points_table(const FitReport& report, const FitSubject& subject) {
  const bool per_token = subject.unit == "B/token";
  std::vector<std::string> header = {"cache", "B/token"};
  if (!per_token) header.push_back(subject.unit);
  for (const char* name : {"predicted", "KLD", "perplexity", ""}) header.emplace_back(name);
  Table table(header);
  const auto add = [&](const std::string& name, uint64_t bytes_per_token, uint64_t bytes,
                       std::vector<std::string> figures) {
    std::vector<std::string> row = {name, grouped(bytes_per_token)};
    if (!per_token) row.push_back(grouped(bytes));
    row.insert(row.end(), figures.begin(), figures.end());
    table.add(std::move(row));
  };
  for (size_t i = 0; i < report.points.size(); ++i) {
    const ConfirmedPoint& each = report.points[i];
    add(fit_point_name(report, each.point), each.point.bytes_per_token, each.point.bytes,
        {significant(each.point.predicted, 2), kld_text(each.total), delta_text(each.total),
         report.chosen == i ? "chosen" : ""});
  }
  add(cat(torch_name(subject.config.dtype), " (baseline)"), report.baseline_bytes_per_token,
      report.baseline_bytes, {"-", "-", "-", ""});
  return table.text();
}

// A bar for each layer's cost, in the chosen format, or in the first format without a choice.
std::string cost_lines(const FitReport& report, const FitSubject& subject) {
  const size_t format = report.chosen ? report.points[*report.chosen].point.format : 0;
  std::vector<LayerCost> costs = report.costs[format].layers;
  if (costs.empty()) return "";
  std::stable_sort(costs.begin(), costs.end(),
                   [](const LayerCost& a, const LayerCost& b) { return a.kld > b.kld; });
  std::vector<std::optional<double>> shares(static_cast<size_t>(subject.config.n_layers()));
  for (const LayerCost& each : costs) {
    shares[static_cast<size_t>(each.layer)] = costs[0].kld > 0 ? each.kld / costs[0].kld : 0;
  }
  std::vector<std::string> worst;
  for (size_t i = 0; i < std::min<size_t>(3, costs.size()); ++i) {
    worst.push_back(cat(significant(costs[i].kld, 2), " ± ", significant(costs[i].error, 1),
                        " in layer ", costs[i].layer));
  }
  return layer_bars("layers", shares) +
         noted("",
               cat("KLD of one layer alone in ", report.formats[format].name, ": ", join(worst)));
}

std::string budget_words(const FitReport& report, const FitSubject& subject) {
  if (report.budget.max_kld) return cat("a KLD of at most ", significant(*report.budget.max_kld));
  return cat(grouped(*report.budget.most_bytes), " ", subject.unit);
}

// "int8_per_token_head with layers 0 and 8 in 16 bit".
std::string choice_words(const FitReport& report, const FitPoint& point) {
  const std::string& name = report.formats[point.format].name;
  if (point.left.empty()) return name + " in every layer";
  return cat(name, " with ", layer_list({point.left.begin(), point.left.end()}), " in 16 bit");
}

const ConfirmedPoint* uniform_of(const FitReport& report, size_t format) {
  for (const ConfirmedPoint& each : report.points) {
    const bool uniform = each.point.left == report.formats[format].always_left;
    if (each.point.format == format && uniform) return &each;
  }
  return nullptr;
}

}  // namespace

std::string fit_point_name(const FitReport& report, const FitPoint& point) {
  const std::string& name = report.formats[point.format].name;
  if (point.left.empty()) return name;
  return cat(name, ", 16-bit ", layer_list({point.left.begin(), point.left.end()}));
}

std::vector<std::string> fit_sentences(const FitReport& report, const FitSubject& subject) {
  std::vector<std::string> lines;
  if (!report.chosen) {
    lines.push_back(
        cat("No cache measured meets the budget, ", budget_words(report, subject), "."));
    return lines;
  }
  const ConfirmedPoint& chosen = report.points[*report.chosen];
  const double share = static_cast<double>(chosen.point.bytes) /
                       static_cast<double>(std::max<uint64_t>(report.baseline_bytes, 1));
  lines.push_back(cat(choice_words(report, chosen.point), " meets the budget, ",
                      budget_words(report, subject), ": a KLD of ", kld_text(chosen.total), " at ",
                      grouped(chosen.point.bytes_per_token), " bytes a token, ",
                      significant(share * 100, 3), " % of 16 bit."));
  const ConfirmedPoint* uniform = uniform_of(report, chosen.point.format);
  if (uniform != nullptr && uniform->point.left != chosen.point.left) {
    lines.push_back(cat("The same format in every layer: ", kld_text(uniform->total), " at ",
                        grouped(uniform->point.bytes_per_token), " bytes a token."));
  }
  const std::string places = loss_places_words(chosen.total);
  if (!places.empty()) lines.push_back(places);
  if (!subject.dropped.empty()) {
    lines.push_back(
        cat("Measured with scales of 1. ", subject.runtime, ": ", subject.dropped, "."));
  }
  lines.push_back(cat("Confirmed on ", grouped(report.confirming_tokens),
                      " tokens that no choice was made on."));
  return lines;
}

std::vector<std::string> fit_commands(const FitReport& report, const FitSubject& subject) {
  if (!report.chosen) return {};
  const FitPoint& point = report.points[*report.chosen].point;
  const FitFormat& format = report.formats[point.format];
  const ServingNames names =
      serving_names(subject.scales.empty() ? "scales.json" : subject.scales, subject.model,
                    format.scales ? format.scales->format : KvFormat::e4m3fn);
  std::vector<std::string> commands;
  const bool copied = format.scales && subject.dropped.empty();
  if (copied) {
    commands.push_back(cat("fp8kv inject ", names.model, " --scales ", names.scales, " -o ",
                           names.copy, subject.copy_for));
  }
  if (subject.launcher.empty()) return commands;
  std::string serve = cat(subject.launcher, copied ? names.copy : names.model, " --kv-cache-dtype ",
                          subject.dtype_flag);
  std::string flag;
  for (const int64_t layer : point.left) {
    const auto& always = format.always_left;
    if (!std::binary_search(always.begin(), always.end(), layer)) flag += cat(" ", layer);
  }
  if (!flag.empty()) serve += " --kv-cache-dtype-skip-layers" + flag;
  commands.push_back(std::move(serve));
  return commands;
}

std::string fit_text(const FitReport& report, const FitSubject& subject) {
  std::string text = points_table(report, subject) + "\n" + cost_lines(report, subject);
  const std::vector<std::string> lines = fit_sentences(report, subject);
  for (size_t i = 0; i < lines.size(); ++i) text += noted(i == 0 ? "choice" : "", lines[i]);
  if (!report.chosen) return text;
  const FitFormat& format = report.formats[report.points[*report.chosen].point.format];
  if (format.scales && subject.dropped.empty() && subject.scales.empty()) {
    text += noted("", "No scale file was written: run the same command with -o scales.json.");
  }
  text += noted("next", subject.launcher.empty() ? cat("Ask ", subject.runtime, " for a cache of ",
                                                       subject.dtype_flag, ".")
                                                 : cat("Serve it with ", subject.runtime, ":"));
  const std::vector<std::string> commands = fit_commands(report, subject);
  for (const std::string& command : commands) text += "  " + command + "\n";
  return text;
}

}  // namespace fp8kv
