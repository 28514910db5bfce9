#include "report/pages/certificate_html.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "draw/chart.h"
#include "draw/html.h"
#include "draw/numbers.h"
#include "report/certificate_words.h"
#include "report/verdict.h"

namespace fp8kv {
namespace {

// Shares above this are drawn at the upper edge of the plot.
constexpr double kMostShare = 10;

HtmlCell octaves(const std::optional<double>& margin) {
  if (!margin) return {"–", "NaN"};
  // Scales are rounded, so a margin of 0 may come out slightly below 0.
  const double shown = std::fabs(*margin) < 0.005 ? 0 : *margin;
  return {cat(shown < 0 ? "−" : "+", fixed(std::fabs(shown), 2)), cat(*margin)};
}

HtmlCell flushed(const std::optional<ShareRange>& share) {
  if (!share) return {"–", "NaN"};
  const std::string least = fixed(share->least * 100, 1), most = fixed(share->most * 100, 1);
  return {cat(least == most ? "" : least + "–", most, " %"), cat(share->most)};
}

std::vector<HtmlCell> row_of(size_t layer, const char* name, const TensorCertificate& tensor) {
  const bool safe = tensor.verdict == Verdict::unit_safe;
  return {{cat(layer), ""},
          {name, ""},
          {verdict_name(tensor.verdict), ""},
          {safe ? "" : tensor.reason, ""},
          tensor.amax ? HtmlCell{short_number(double{*tensor.amax}, 5), cat(*tensor.amax)}
                      : HtmlCell{"–", "NaN"},
          octaves(tensor.in_force.saturation),
          octaves(tensor.in_force.underflow),
          flushed(tensor.in_force.flushed),
          octaves(tensor.unit.saturation),
          octaves(tensor.unit.underflow),
          flushed(tensor.unit.flushed)};
}

bool is_held_out(const EvalReport& report) {
  return report.calibration && !report.calibration->same_data &&
         !report.calibration->convergence.empty() && !report.magnitudes.empty();
}

using Heads = std::vector<float> LayerAmax::*;

// For each layer, the amax of a part of the text as a share of the amax of all of it. Layers that
// are zero throughout are left out.
std::vector<double> shares_of(const std::vector<LayerAmax>& part, const std::vector<LayerAmax>& all,
                              Heads heads) {
  std::vector<double> shares;
  for (size_t i = 0; i < std::min(part.size(), all.size()); ++i) {
    const double whole = largest(all[i].*heads);
    if (whole > 0) shares.push_back(double{largest(part[i].*heads)} / whole);
  }
  return shares;
}

struct Column {
  std::string name;
  std::vector<LayerAmax> amax;
};

// One column for each part of the calibration text, and a last one for the evaluated text.
std::vector<Column> columns_of(const EvalReport& report) {
  std::vector<Column> columns;
  for (const AmaxAfter& part : report.calibration->convergence) {
    columns.push_back({grouped(part.tokens), part.layers});
  }
  columns.push_back({"evaluated", {}});
  for (const LayerMagnitudes& layer : report.magnitudes) {
    columns.back().amax.push_back(layer_amax(layer));
  }
  return columns;
}

}  // namespace

std::string certificate_table(const EvalReport& report) {
  const std::optional<Certificate> certificate = certificate_of(report);
  return certificate ? certificate_table(*certificate, certified_candidate(report)->name) : "";
}

std::string certificate_table(const Certificate& certificate, const std::string& whose) {
  HtmlTable table{
      .caption =
          cat("Margins in octaves with the scales of ", whose,
              " and, last, with a scale of 1. Saturation: from the largest value to the largest "
              "code. Underflow: from full precision to the median. Flushed: values that "
              "become zero."),
      .header = {"layer", "tensor", "verdict", "reason", "largest", "saturation", "underflow",
                 "flushed", "at 1: saturation", "underflow", "flushed"},
      .rows = {},
      .names = 4,
      .sortable = true};
  for (size_t i = 0; i < certificate.layers.size(); ++i) {
    if (certificate.layers[i].verdict == Verdict::no_cache) {
      table.rows.push_back(
          {{cat(i), ""}, {"", ""}, {verdict_name(Verdict::no_cache), ""}, {"", ""}});
      table.rows.back().resize(table.header.size(), {"–", "NaN"});
      continue;
    }
    table.rows.push_back(row_of(i, "K", certificate.layers[i].k));
    table.rows.push_back(row_of(i, "V", certificate.layers[i].v));
    if (const auto& q = certificate.layers[i].q) table.rows.push_back(row_of(i, "Q", *q));
  }
  return html_table(table);
}

std::string certificate_verdict(const EvalReport& report) {
  const std::optional<Certificate> certificate = certificate_of(report);
  return certificate ? certificate_verdict(*certificate, certified_candidate(report)->name,
                                           "values of the evaluated text")
                     : "";
}

std::string certificate_verdict(const Certificate& certificate, const std::string& whose,
                                const char* values) {
  std::string text = element("p", "", escape_html(verdict_line(certificate)));
  const std::vector<size_t> lost = certificate.layers_that_do_not_hold();
  if (!lost.empty()) {
    text += element(
        "p", "",
        escape_html(cat("The scales of ", whose, " lose ", values, " in ", layer_list(lost), ".")));
  }
  const std::string flag = skip_flag(certificate);
  if (!flag.empty()) {
    text += element(
        "p", "",
        cat("vLLM keeps them in 16 bit with ", element("code", "", escape_html(flag)), "."));
  }
  if (const std::string q = q_sentence(certificate); !q.empty() && certificate.text.enough) {
    text += element("p", "", escape_html(cat("For attention that computes in FP8: ", q, ".")));
  }
  return text + "\n";
}

std::string convergence_figure(const EvalReport& report) {
  if (!is_held_out(report)) return "";
  const std::vector<Column> columns = columns_of(report);
  const std::vector<LayerAmax>& all = columns[columns.size() - 2].amax;
  Chart chart{.id = "convergence-amax",
              .title = "Largest magnitude by tokens calibrated on",
              .caption =
                  "Largest |K| and |V| as shares of what all of the calibration text "
                  "reached. Above 100 % the evaluated text went beyond it.",
              .x_label = "tokens of the calibration text; last, the evaluated text",
              .y_label = "share of the final amax",
              .places = {},
              .log = false,
              .tick = [](double value) { return short_percent(value); },
              .series = {}};
  for (const Column& column : columns) chart.places.push_back(column.name);
  const auto add = [&](const char* name, SeriesKind kind, int style, Heads heads, bool lowest) {
    Series series{name, kind, style, {}, {}, {}};
    for (const Column& column : columns) {
      const std::vector<double> shares = shares_of(column.amax, all, heads);
      if (shares.empty()) return;
      const auto [least, most] = std::minmax_element(shares.begin(), shares.end());
      const double share = lowest ? *least : *most;
      series.values.push_back(share > kMostShare ? INFINITY : share);
      series.tips.push_back(cat(column.name, ", ", name, ": ", short_percent(share, 4)));
    }
    chart.series.push_back(std::move(series));
  };
  add("K, lowest layer", SeriesKind::line, 4, &LayerAmax::k, true);
  add("K, highest layer", SeriesKind::line, 5, &LayerAmax::k, false);
  add("V, lowest layer", SeriesKind::line, 6, &LayerAmax::v, true);
  add("V, highest layer", SeriesKind::line, 7, &LayerAmax::v, false);
  return chart.series.empty() ? "" : draw_chart(chart);
}

std::string convergence_table(const EvalReport& report) {
  if (!is_held_out(report)) return "";
  const std::vector<Column> columns = columns_of(report);
  const std::vector<LayerAmax>& all = columns[columns.size() - 2].amax;
  HtmlTable table{.caption =
                      "Largest magnitude after so many tokens of the calibration text and "
                      "in the evaluated text, and the ratio of the last two.",
                  .header = {"layer", "tensor"},
                  .rows = {},
                  .names = 2,
                  .sortable = true};
  for (const Column& column : columns) table.header.push_back(column.name);
  table.header.push_back("ratio");
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].k.empty()) {
      table.rows.push_back({{cat(i), ""}, {verdict_name(Verdict::no_cache), ""}});
      table.rows.back().resize(table.header.size(), {"–", "NaN"});
      continue;
    }
    for (const Heads heads : {&LayerAmax::k, &LayerAmax::v}) {
      std::vector<HtmlCell> row = {{cat(i), ""}, {heads == &LayerAmax::k ? "K" : "V", ""}};
      double reached = 0;
      for (const Column& column : columns) {
        reached = i < column.amax.size() ? double{largest(column.amax[i].*heads)} : 0;
        row.push_back({short_number(reached, 4), cat(reached)});
      }
      const double ratio = reached / double{largest(all[i].*heads)};
      row.push_back({std::isfinite(ratio) ? short_number(ratio) : "–", cat(ratio)});
      table.rows.push_back(std::move(row));
    }
  }
  return html_table(table);
}

}  // namespace fp8kv
