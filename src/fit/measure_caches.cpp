#include "fit/measure_caches.h"

#include <cmath>
#include <utility>

#include "base/error.h"
#include "eval/evaluate.h"
#include "files/output/write_file.h"
#include "json/json.h"

namespace fp8kv {
namespace fs = std::filesystem;
namespace {

struct Figure {
  const char* name;
  double TokenFigures::*member;
};
constexpr Figure kFigures[] = {
    {"nll", &TokenFigures::nll},
    {"nll_error", &TokenFigures::nll_error},
    {"perplexity", &TokenFigures::perplexity},
    {"perplexity_error", &TokenFigures::perplexity_error},
    {"ppl_delta", &TokenFigures::ppl_delta},
    {"ppl_delta_error", &TokenFigures::ppl_delta_error},
    {"kld", &TokenFigures::kld},
    {"kld_error", &TokenFigures::kld_error},
    {"kld_p999", &TokenFigures::kld_p999},
    {"kld_max", &TokenFigures::kld_max},
    {"top1", &TokenFigures::top1},
    {"first_kld", &TokenFigures::first_kld},
    {"first_kld_error", &TokenFigures::first_kld_error},
    {"later_kld", &TokenFigures::later_kld},
    {"later_kld_error", &TokenFigures::later_kld_error},
    {"heavy_share", &TokenFigures::heavy_share},
};

bool is_finite(const TokenFigures& figures) {
  for (const Figure& each : kFigures) {
    if (!std::isfinite(figures.*each.member)) return false;
  }
  return true;
}

bool is_finite(const MeasuredCaches& measured) {
  if (!is_finite(measured.baseline)) return false;
  for (const MeasuredCache& cache : measured.caches) {
    if (!is_finite(cache.total)) return false;
    for (const PartSums& part : cache.parts) {
      if (!std::isfinite(part.kld)) return false;
    }
  }
  return true;
}

void write_figures(JsonWriter& json, const TokenFigures& figures) {
  json.begin_object().member("first_depth", figures.first_depth);
  json.member("end_depth", figures.end_depth).member("tokens", figures.tokens);
  json.member("first_tokens", figures.first_tokens);
  for (const Figure& each : kFigures) json.member(each.name, figures.*each.member);
  json.end_object();
}

TokenFigures read_figures(const Json& json) {
  TokenFigures figures;
  figures.first_depth = json.at("first_depth").as_int();
  figures.end_depth = json.at("end_depth").as_int();
  figures.tokens = static_cast<uint64_t>(json.at("tokens").as_int());
  figures.first_tokens = static_cast<uint64_t>(json.at("first_tokens").as_int());
  for (const Figure& each : kFigures) figures.*each.member = json.at(each.name).as_double();
  return figures;
}

std::string text_of(const MeasuredCaches& measured) {
  JsonWriter json;
  json.begin_object().key("baseline");
  write_figures(json, measured.baseline);
  json.key("caches").begin_array();
  for (const MeasuredCache& cache : measured.caches) {
    json.begin_object().key("total");
    write_figures(json, cache.total);
    json.key("parts").begin_array();
    for (const PartSums& part : cache.parts) {
      json.begin_object().member("tokens", part.tokens).member("kld", part.kld).end_object();
    }
    json.end_array().end_object();
  }
  return json.end_array().end_object().text();
}

MeasuredCaches read_measured(const fs::path& path) {
  const Json json = Json::read(path);
  MeasuredCaches measured{.baseline = read_figures(json.at("baseline")), .caches = {}};
  const Json caches = json.at("caches");
  for (size_t i = 0; i < caches.size(); ++i) {
    MeasuredCache cache{.total = read_figures(caches[i].at("total")), .parts = {}};
    const Json parts = caches[i].at("parts");
    for (size_t part = 0; part < parts.size(); ++part) {
      cache.parts.push_back({static_cast<uint64_t>(parts[part].at("tokens").as_int()),
                             parts[part].at("kld").as_double()});
    }
    measured.caches.push_back(std::move(cache));
  }
  return measured;
}

}  // namespace

std::optional<MeasuredCaches> KeptMeasurements::next(size_t caches) {
  const std::string& name = names_.emplace_back(cat("measured-", names_.size(), ".json"));
  const fs::path path = files_.path() / name;
  if (!fs::exists(path)) return std::nullopt;
  if (files_.has(name, fs::file_size(path)) == Kept::whole) {
    MeasuredCaches found = read_measured(path);
    if (found.caches.size() == caches) return found;
  }
  log_.warn(cat(quote(path.string()),
                ": changed since it was finished: these caches are measured again"));
  return std::nullopt;
}

void KeptMeasurements::keep(const MeasuredCaches& measured) {
  if (!is_finite(measured)) return;
  write_new_file(files_.unfinished(names_.back()), text_of(measured));
  files_.finish(names_.back());
}

MeasuredCaches measure_caches(const ModelOnBackend& model, const WindowIds& windows,
                              std::vector<CandidateReport> candidates,
                              const MeasureOptions& options, Log& log) {
  if (options.kept != nullptr) {
    if (auto found = options.kept->next(candidates.size())) {
      log.note(cat("took ", count_of(candidates.size(), "measurement"), " of an earlier run"));
      return std::move(*found);
    }
  }
  EvalReport report;
  report.candidates = std::move(candidates);
  evaluate(model, windows,
           {.baseline = model.config.dtype,
            .greedy_tokens = 0,
            .layer_errors = false,
            .threads = options.threads,
            .doing = options.doing},
           report, log);
  MeasuredCaches measured{.baseline = report.baseline.total, .caches = {}};
  for (CandidateReport& each : report.candidates) {
    measured.caches.push_back({each.total, std::move(each.parts)});
  }
  if (options.kept != nullptr) options.kept->keep(measured);
  return measured;
}

}  // namespace fp8kv
