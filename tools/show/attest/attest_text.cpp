#include "show/attest/attest_text.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "core/scales/scales.h"
#include "show/output.h"

namespace fp8kv {
namespace {

std::string server_text(const AttestedServer& server) {
  return cat(server.runtime, server.version.empty() ? "" : " ", plain(server.version));
}

// The distinct outcomes of the chosen hypotheses; several missing layers are one outcome.
std::vector<std::string> outcomes(const AttestReport& report, const std::vector<size_t>& chosen) {
  std::vector<std::string> names;
  std::set<size_t> layers;
  for (const size_t h : chosen) {
    const Hypothesis& each = report.hypotheses[h];
    if (each.outcome == Outcome::layer_missing) {
      layers.insert(static_cast<size_t>(each.layer));
      continue;
    }
    const std::string name = outcome_text(each);
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  if (layers.empty()) return names;
  const std::string list = layer_list(std::vector<size_t>(layers.begin(), layers.end()));
  names.push_back(cat("these scales without ", layers.size() == 1 ? "" : "one of ", list));
  return names;
}

// The best hypothesis first, then the others that were not excluded.
std::vector<size_t> in_order(const AttestReport& report) {
  std::vector<size_t> order(report.hypotheses.size());
  for (size_t h = 0; h < order.size(); ++h) order[h] = h;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const Evidence& evidence = report.evidence;
    if (evidence.is_excluded(a) != evidence.is_excluded(b)) return evidence.is_excluded(b);
    return evidence.explained(a) > evidence.explained(b);
  });
  return order;
}

// The odds for a capital: "1,200", which means 1 : 1,200.
std::string odds(double log_capital) {
  if (log_capital < std::log(2.0)) return "-";
  if (log_capital > std::log(1e6)) return "over a million";
  return grouped(static_cast<uint64_t>(std::exp(log_capital)));
}

std::string percent(double share) {
  return share > 0 ? cat(fixed(100 * share, 0), " %") : "none";
}

// The outcomes that these tokens cannot tell from the named one.
std::vector<std::string> alike(const AttestReport& report) {
  std::vector<size_t> others;
  for (const size_t h : report.left) {
    if (!same_outcome(report.hypotheses[h], report.hypotheses[report.best])) others.push_back(h);
  }
  return outcomes(report, others);
}

std::string layer_note(const AttestReport& report) {
  const auto list = [](const std::vector<int64_t>& layers) {
    return layer_list(std::vector<size_t>(layers.begin(), layers.end()));
  };
  if (report.seen_layers.empty() && report.unseen_layers.empty()) return "";
  const size_t all = report.seen_layers.size() + report.unseen_layers.size();
  if (report.unseen_layers.empty())
    return noted("layers", cat("the scales of all ", all, " are seen"));
  return noted("layers", cat("the scales of ", report.seen_layers.size(), " of ", all,
                             " are seen; without those of ", list(report.unseen_layers),
                             " these tokens would be the same within noise"));
}

}  // namespace

std::string attest_cache(const AttestReport& report) {
  const Hypothesis& best = report.hypotheses[report.best];
  size_t others = 0, excluded = 0;
  for (size_t h = 0; h < report.hypotheses.size(); ++h) {
    if (h == report.best || !same_outcome(report.hypotheses[h], best)) continue;
    ++others;
    excluded += report.evidence.is_excluded(h) ? 1 : 0;
  }
  return others > 0 && others == excluded ? best.name : outcome_text(best);
}

std::string attest_answer(const AttestReport& report, const AttestedServer& server) {
  switch (report.verdict) {
    case AttestVerdict::fits: {
      const std::string named = cat(server.address, " computes with ", attest_cache(report));
      const std::vector<std::string> others = alike(report);
      if (others.empty()) return named;
      return cat(named, ", or with ", join(others, " or "), ": they cannot be told apart here");
    }
    case AttestVerdict::none:
      return cat(server.address, " computes with none of these: ",
                 report.evidence.departure(std::min<size_t>(1, report.hypotheses.size() - 1)) > 2
                     ? "another model, or other weights"
                     : "an FP8 cache with other scales, or another model");
    case AttestVerdict::undecided:
      break;
  }
  return cat("undecided: ", server.address, " computes with ",
             join(outcomes(report, report.left), " or "));
}

std::string attest_text(const AttestReport& report, const AttestedServer& server) {
  const Evidence& evidence = report.evidence;
  std::string text = sentence(attest_answer(report, server)) + "\n\n";
  text += noted("server", cat(server_text(server), ", model ", quote(server.model)));
  text += noted("asked",
                cat(grouped(evidence.tokens()), server.decoded ? " generated" : "", " tokens in ",
                    count_of(evidence.windows().size(), "window"), "; wrong in ",
                    significant(100 * server.level, 3), " % of such answers at most"));
  text += noted("deviation", cat(significant(evidence.residual(0), 3),
                                 " a token from a 16-bit cache computed here, in log probability"));
  text += layer_note(report) + "\n";
  Table table({"the server's numbers fit", "off by", "explained", "odds against", "excluded after"},
              {true, false, false, false, false});
  for (const size_t h : in_order(report)) {
    const size_t after = evidence.excluded_after(h);
    if (report.hypotheses[h].outcome == Outcome::layer_missing && h != report.best) continue;
    table.add({report.hypotheses[h].name, significant(evidence.residual(h), 3),
               h == 0 ? "-" : percent(evidence.explained(h)), odds(evidence.against(h)),
               after == 0 ? "-" : count_of(after, "window")});
  }
  return text + table.text();
}

}  // namespace fp8kv
