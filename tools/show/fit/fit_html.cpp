#include "show/fit/fit_html.h"

#include <algorithm>

#include "base/text.h"
#include "draw/chart.h"
#include "draw/html.h"
#include "draw/numbers.h"
#include "draw/scatter.h"
#include "report/pages/page_parts.h"

namespace fp8kv {
namespace {

std::string frontier(const FitReport& report, const FitSubject& subject) {
  Scatter scatter{.id = "frontier",
                  .title = "What fewer bytes cost",
                  .caption =
                      "Each point is a cache measured on held-out text; bars are standard "
                      "errors. Points of a format that are joined have more layers in 16 "
                      "bit to the right. The ring is the choice, the dashed line the budget.",
                  .x_label = subject.unit == "B/token" ? "bytes a token" : "bytes a sequence",
                  .y_label = "KL divergence from 16 bit, nats a token",
                  .series = {}};
  scatter.y_limit = report.budget.max_kld;
  if (report.budget.most_bytes) scatter.x_limit = static_cast<double>(*report.budget.most_bytes);
  for (size_t format = 0; format < report.formats.size(); ++format) {
    ScatterSeries series{report.formats[format].name, {}};
    for (size_t i = 0; i < report.points.size(); ++i) {
      const ConfirmedPoint& each = report.points[i];
      if (each.point.format != format) continue;
      series.points.push_back(
          {static_cast<double>(each.point.bytes), each.total.kld, each.total.kld_error,
           cat(fit_point_name(report, each.point), ": ", short_number(each.total.kld), " ± ",
               short_number(each.total.kld_error, 2)),
           report.chosen == i});
    }
    scatter.series.push_back(std::move(series));
  }
  return draw_scatter(scatter);
}

std::string costs_chart(const FitReport& report, const FitSubject& subject) {
  Chart chart{.id = "costs",
              .title = "What each layer costs alone",
              .caption = cat("KL divergence when that layer's cache alone has the format, on ",
                             grouped(report.cost_tokens), " tokens; bars are standard errors."),
              .x_label = "layer",
              .y_label = "nats a token",
              .places = {},
              .log = true,
              .tick = [](double value) { return short_number(value); },
              .series = {}};
  std::vector<int64_t> layers;
  for (int64_t i = 0; i < subject.config.n_layers(); ++i) {
    if (subject.config.writes_cache(i)) layers.push_back(i);
  }
  for (const int64_t layer : layers) chart.places.push_back(cat(layer));
  for (size_t format = 0; format < report.formats.size(); ++format) {
    // A layer that the runtime leaves in 16 bit costs nothing.
    Series series{
        report.formats[format].name, SeriesKind::line, static_cast<int>(format), {}, {}, {}};
    for (const int64_t layer : layers) {
      const auto& costs = report.costs[format].layers;
      const auto found = std::find_if(costs.begin(), costs.end(),
                                      [&](const LayerCost& each) { return each.layer == layer; });
      series.values.push_back(found == costs.end() ? 0 : found->kld);
      series.errors.push_back(found == costs.end() ? 0 : found->error);
    }
    chart.series.push_back(std::move(series));
  }
  return draw_chart(chart);
}

std::string points_table(const FitReport& report) {
  HtmlTable table{.caption = "Every cache that was measured",
                  .header = {"cache", "bytes a token", "predicted", "KLD", "± ", "perplexity"},
                  .rows = {},
                  .sortable = true};
  const auto number = [](double value) { return HtmlCell{short_number(value), cat(value)}; };
  for (size_t i = 0; i < report.points.size(); ++i) {
    const ConfirmedPoint& each = report.points[i];
    HtmlCell name{fit_point_name(report, each.point) + (report.chosen == i ? " (chosen)" : ""), ""};
    table.rows.push_back({name,
                          {grouped(each.point.bytes_per_token), cat(each.point.bytes_per_token)},
                          number(each.point.predicted),
                          number(each.total.kld),
                          number(each.total.kld_error),
                          {signed_percent(each.total.ppl_delta, each.total.ppl_delta_error),
                           cat(each.total.ppl_delta)}});
  }
  return html_table(table);
}

}  // namespace

std::string fit_html(const FitReport& report, const FitSubject& subject, const FitPageHead& head) {
  const std::string name = last_part(subject.model);
  std::string body =
      page_head({"The smallest cache that is still good", name, head.date, head.tool_version});
  body += verdict_box(report.chosen ? "good" : "bad", fit_sentences(report, subject));
  const std::vector<std::string> commands = fit_commands(report, subject);
  if (!commands.empty()) body += section("serve", "Serve it", command_box(commands));
  body += section("frontier-section", "The frontier", frontier(report, subject));
  body += section("costs-section", "Layers", costs_chart(report, subject));
  body += section("points", "All points", points_table(report));
  return html_page("fp8kv fit: " + name, body);
}

}  // namespace fp8kv
