// Compares tables in the documentation with the tables in the code behind them.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include <doctest/doctest.h>

#include "backend/cpu/isa/cpu_isa.h"
#include "base/text.h"
#include "checkpoint/checkpoint.h"
#include "config/architectures.h"
#include "core/numbers/fp8.h"
#include "data/records.h"
#include "docs/markdown.h"
#include "eval/gates.h"
#include "json/json.h"
#include "policy/policies.h"
#include "scales/diagnose.h"
#include "scales/dialects.h"
#include "scales/rules/runtime_models.h"
#include "scales/rules/runtime_rules.h"
#include "scales/scale_file.h"
#include "scales/write/inject.h"
#include "support/models/golden_configs.h"
#include "support/models/tiny_checkpoint.h"
#include "support/places.h"
#include "support/temp_dir.h"

using namespace fp8kv;
using test::Cells;
using test::check_table;
using test::code;

namespace {

// All sources in these folders as one text.
std::string sources_in(const std::vector<std::string>& folders) {
  std::string text;
  for (const std::string& folder : folders) {
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(test::source_dir() / folder)) {
      const std::string extension = entry.path().extension().string();
      if (extension == ".cpp" || extension == ".h") text += test::read_file(entry.path());
    }
  }
  return text;
}

// Texts in quotes that follow any of `marks` and blanks.
std::set<std::string> quoted_behind(const std::vector<std::string>& marks,
                                    const std::string& text) {
  std::set<std::string> found;
  for (const std::string& mark : marks) {
    for (size_t at = text.find(mark); at != text.npos; at = text.find(mark, at + 1)) {
      const size_t quote = text.find_first_not_of(" \n", at + mark.size());
      if (quote == text.npos || text[quote] != '"') continue;
      found.insert(text.substr(quote + 1, text.find('"', quote + 1) - quote - 1));
    }
  }
  return found;
}

// One name per line, for readable failures.
std::string listed(const std::set<std::string>& names) {
  return join(std::vector<std::string>(names.begin(), names.end()), "\n");
}
std::string listed(const std::vector<std::string>& names) {
  return listed(std::set<std::string>(names.begin(), names.end()));
}
// One name per line, in the given order.
std::string lines(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += name + "\n";
  return text;
}

// "2^-6", "448".
std::string number_text(float value) {
  const int exponent = std::ilogb(value);
  return exponent < 0 && value == std::ldexp(1.0f, exponent) ? cat("2^", exponent) : cat(value);
}

std::string names_text(const std::vector<std::string>& names) {
  std::vector<std::string> coded;
  for (const std::string& name : names) coded.push_back(code(name));
  return join(coded, ", ");
}

std::string condition_text(const RuntimeRule& rule) {
  std::vector<std::string> without = rule.without.names();
  for (const std::string& name : rule.not_of.names()) without.push_back(name);
  std::string text = names_text(rule.with.names());
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : "; ") + part; };
  if (!without.empty()) add("not " + names_text(without));
  if (rule.any != FactSet{}) add("one of " + names_text(rule.any.names()));
  if (rule.families != FamilySet{}) add("one of " + names_text(rule.families.names()));
  return text.empty() ? "always" : text;
}

std::string versions_text(const RuntimeRule& rule) {
  const bool from = rule.since != RuntimeVersion{}, until = rule.before != RuntimeRule{}.before;
  const auto text = [](const RuntimeVersion& version) {
    return cat(version.major, ".", version.minor, version.patch > 0 ? cat(".", version.patch) : "");
  };
  if (from && until) return cat(text(rule.since), " up to ", text(rule.before));
  return from ? "from " + text(rule.since) : until ? "before " + text(rule.before) : "all";
}

}  // namespace

TEST_CASE("docs: models lists every architecture") {
  std::vector<Cells> rows;
  for (const Architecture& row : architectures()) rows.push_back({code(row.name), row.summary});
  check_table("docs/models.md", {"architecture", "models"}, rows);
}

TEST_CASE("docs: accuracy lists the random models of every architecture") {
  const auto models = test::golden_configs();
  std::vector<Cells> rows;
  for (auto first = models.begin(); first != models.end();) {
    const auto last = models.upper_bound(first->first);
    std::set<std::string> has;
    for (auto each = first; each != last; ++each) has.merge(test::oddities(each->second));
    rows.push_back({code(first->first), cat(models.count(first->first)),
                    join(std::vector<std::string>(has.begin(), has.end()), ", ")});
    first = last;
  }
  check_table("docs/accuracy.md", {"architecture", "models", "among them"}, rows);
}

TEST_CASE("docs: dialects lists every dialect") {
  std::vector<Cells> rows;
  for (const Dialect& row : dialects()) {
    std::vector<std::string> tensors;
    for (const std::string& form : tensor_forms(row)) tensors.push_back(code(form));
    rows.push_back(
        {code(row.name), join(tensors, ", "), row.written_by, row.config_says, row.k_measured});
  }
  check_table("docs/dialects.md",
              {"dialect", "tensors of a layer", "written by", "config", "K measured"}, rows);
}

TEST_CASE("docs: dialects lists the targets of inject, and what each refuses") {
  const std::vector<std::pair<QuantMethod, std::string>> kMethods = {
      {QuantMethod::compressed_tensors, "compressed-tensors"},
      {QuantMethod::fp8, "fp8"},
      {QuantMethod::modelopt, "ModelOpt"},
      {QuantMethod::quark, "Quark"},
      {QuantMethod::other, "any other"}};
  std::vector<Cells> targets, refusals;
  for (const InjectTarget& target : inject_targets()) {
    targets.push_back({code(target.name), target.summary});
    for (const auto& [method, name] : kMethods) {
      const std::string reason = why_refused(target, method);
      if (!reason.empty()) refusals.push_back({code(target.name), name, reason});
    }
  }
  check_table("docs/dialects.md", {"`--for`", "what is written"}, targets);
  check_table("docs/dialects.md", {"`--for`", "quantised by", "why not"}, refusals);
}

TEST_CASE("docs: dialects lists every diagnosis and every pattern of diff") {
  const auto column = [](const Cells& head) {
    return listed(test::first_column("docs/dialects.md", head));
  };
  const auto source = [](const char* path) { return test::read_file(test::source_dir() / path); };
  std::vector<Cells> diagnoses;
  for (const DiagnosisKind& kind : diagnosis_kinds()) {
    diagnoses.push_back({code(kind.id), kind.meaning});
  }
  check_table("docs/dialects.md", {"id", "what it means"}, diagnoses);
  CHECK(column({"name", "the second is, compared with the first"}) ==
        listed(quoted_behind({"DiffFinding{", "DiffFinding{bf16 ?", "\"bf16-rounding\" :"},
                             source("src/scales/scale_diff.cpp"))));
}

TEST_CASE("docs: runtimes says what each runtime does with what each target writes") {
  const test::TempDir folder;
  test::TinyConfig config = test::tiny_config();
  config.dtype = DType::f16;
  test::write_tiny_checkpoint(folder / "model", config);
  KvScales scales;
  for (int64_t i = 0; i < config.n_layers; ++i) scales.layers.push_back({{0.5f}, {0.25f}});
  Cells head = {"runtime"};
  std::vector<Cells> rows;
  for (const RuntimeColumn& column : runtime_columns()) {
    rows.push_back({cat(column.runtime, ", ", versions_text(column))});
  }
  for (const InjectTarget& target : inject_targets()) {
    if (target.is_file) continue;
    head.push_back(code(target.name));
    const InjectReport report =
        inject_scales(Checkpoint::open(folder / "model"), scales, folder / target.name,
                      {.target = target.name, .dry_run = true});
    const std::vector<RuntimeVerdict> verdicts = runtime_verdicts(report.facts);
    for (size_t i = 0; i < rows.size(); ++i) {
      rows[i].push_back(rule_result(*verdicts[i].rule));
    }
  }
  check_table("docs/runtimes.md", head, rows);
}

TEST_CASE("docs: runtimes has every rule, with its versions and its source") {
  std::map<const RuntimeRule*, std::vector<const RuntimeColumn*>> tables;
  for (const RuntimeColumn& column : runtime_columns()) {
    tables[column.rules.data()].push_back(&column);
  }
  for (const auto& [data, columns] : tables) {
    std::vector<Cells> rows;
    for (const RuntimeRule& rule : columns[0]->rules) {
      const char* how = rule.basis == Basis::reports ? " (reported)" : "";
      rows.push_back({condition_text(rule), versions_text(rule), rule_result(rule), rule.sentence,
                      cat(rule.source, how)});
    }
    const RuntimeColumn& first = *columns[0];
    check_table("docs/runtimes.md", {"when", "versions", "result", "what it does", "source"}, rows,
                cat("### ", first.runtime,
                    columns.size() > 1 ? std::string() : ", " + versions_text(first)));
  }
}

TEST_CASE("docs: runtimes explains every fact and every result") {
  std::vector<std::string> facts, families, outcomes;
  for (size_t i = 0; i < static_cast<size_t>(Fact::count); ++i) {
    facts.push_back(fact_name(static_cast<Fact>(i)));
  }
  CHECK(lines(test::first_column("docs/runtimes.md", {"fact", "what it says"})) == lines(facts));
  for (size_t i = 1; i < kFamilyCount; ++i) {
    families.push_back(family_name(static_cast<Family>(i)));
  }
  CHECK(lines(test::first_column("docs/runtimes.md", {"family", "models"})) == lines(families));
  for (int i = 0; i <= static_cast<int>(RuntimeOutcome::note); ++i) {
    outcomes.push_back(runtime_outcome_name(static_cast<RuntimeOutcome>(i)));
  }
  CHECK(lines(test::first_column("docs/runtimes.md", {"result", "meaning"})) == lines(outcomes));
}

TEST_CASE("docs: runtimes says which models each runtime has, and what that was read from") {
  Cells head = {"`architectures`", "`model_type`"};
  std::vector<Cells> models, sources;
  for (const RuntimeSource& source : runtime_model_sources()) {
    head.push_back(source.runtime);
    sources.push_back({source.runtime, source.releases, source.place});
  }
  for (const RuntimeModel& model : runtime_models()) {
    models.push_back({code(std::string(model.architecture)), code(std::string(model.model_type))});
    for (const KnownVersions& known : model.known) {
      models.back().push_back(known_versions_text(known));
    }
  }
  check_table("docs/runtimes.md", head, models);
  check_table("docs/runtimes.md", {"runtime", "releases", "where they list their models"}, sources);
}

TEST_CASE("docs: commands lists every policy, metric and form of records") {
  std::vector<Cells> policies, metrics, checks, records;
  for (const PolicyKind& kind : policy_kinds()) {
    policies.push_back({code(kind.spelling), kind.summary});
  }
  for (const Metric& metric : fp8kv::metrics()) {
    metrics.push_back({code(metric.name), metric.unit, better_name(metric.better), metric.summary});
  }
  for (const DefaultGate& gate : default_gates()) checks.push_back({code(gate.text), gate.why});
  for (const RecordForm& form : record_forms())
    records.push_back({code(form.name()), form.summary});
  check_table("docs/commands.md", {"policy", "what it does"}, policies);
  check_table("docs/commands.md", {"metric", "unit", "better", "what it is"}, metrics);
  check_table("docs/commands.md", {"check", "why the limit is there"}, checks);
  check_table("docs/commands.md", {"fields", "what it is"}, records);
}

TEST_CASE("docs: commands lists every JSON schema") {
  const std::string text = sources_in({"src", "tools"});
  std::set<std::string> schemas;
  for (size_t at = text.find("\"fp8kv."); at != text.npos; at = text.find("\"fp8kv.", at + 1)) {
    const std::string name = text.substr(at + 1, text.find('"', at + 1) - at - 1);
    if (name.find('/') != name.npos) schemas.insert(name);
  }
  CHECK(listed(test::first_column("docs/commands.md", {"schema", "what it is"})) ==
        listed(schemas));
}

TEST_CASE("docs: accuracy lists the FP8 formats") {
  std::vector<Cells> rows;
  for (const KvFormat format :
       {KvFormat::e4m3fn, KvFormat::e4m3fnuz, KvFormat::e5m2, KvFormat::e5m2fnuz}) {
    const Fp8Spec spec = kv_range(format);
    rows.push_back({code(format_name(format)), cat(7 - spec.mantissa_bits), cat(spec.mantissa_bits),
                    number_text(spec.max), number_text(spec.min_normal),
                    number_text(spec.min_subnormal)});
  }
  check_table(
      "docs/accuracy.md",
      {"format", "exponent bits", "mantissa bits", "largest", "least normal", "least subnormal"},
      rows);
}

TEST_CASE("docs: performance lists the instruction sets, the best first") {
  std::vector<std::string> names;
  for (const CpuIsaRow& row : cpu_isas()) names.insert(names.begin(), std::string(row.name));
  CHECK(lines(test::first_column("docs/performance.md",
                                 {"name", "what the processor must have"})) == lines(names));
}

namespace {

// Every key of a JSON document, at any level.
void add_keys(const Json& json, std::set<std::string>& keys) {
  if (json.is_array()) {
    for (size_t i = 0; i < json.size(); ++i) add_keys(json[i], keys);
  } else if (json.is_object()) {
    for (size_t i = 0; i < json.size(); ++i) {
      keys.insert(json.key(i));
      add_keys(json.value(i), keys);
    }
  }
}

// The text between each "```json" and "```" of a page.
std::vector<std::string> json_examples(const std::string& page) {
  const std::string text = test::page_text(page), mark = "```json\n";
  std::vector<std::string> examples;
  for (size_t at = 0; (at = text.find(mark, at)) != text.npos;) {
    at += mark.size();
    examples.push_back(text.substr(at, text.find("```", at) - at));
  }
  return examples;
}

}  // namespace

TEST_CASE("docs: the scale file's examples are such files") {
  const std::vector<std::string> examples = json_examples("docs/scale-file.md");
  REQUIRE(examples.size() == 2);
  const auto read = [](const std::string& text) {
    return parse_scale_file(Json::parse(text, "example"), "example");
  };
  const KvScales dense = read(examples[0]), sparse = read(examples[1]);
  CHECK(dense.layers.size() == 2);
  CHECK(dense.layers[1].v == std::vector<float>{0.0078125f});
  CHECK(dense.provenance.octaves.size() == 2);
  CHECK(sparse.layers.size() == 3);
  CHECK_FALSE(sparse.layers[1].has_cache());
  for (const KvScales& scales : {dense, sparse}) CHECK(read(scale_file_text(scales)) == scales);
}

TEST_CASE("docs: the scale file's specification names every key that is written") {
  KvScales scales;
  scales.n_kv_heads = 1;
  scales.layers = {{{0.5f}, {0.25f}}};
  scales.provenance = {
      .source = "modelopt",
      .tool_version = "1",
      .producer = "modelopt",
      .producer_version = "0.27",
      .stored_dtype = "BF16",
      .observer = "static_minmax",
      .observation = Observation::after_rope,
      .model_fingerprint = "kv-v2:0",
      .model_identity = ModelIdentity{.config = {},
                                      .layers = {{"0", "0"}},
                                      .embedding = {"0", "0"},
                                      .rest = "0",
                                      .rows = {{"0", {{1, 1, ""}}}},
                                      .projections = "kv-proj-v1:0"},
      .accepted_foreign = "rope_theta is 2 instead of 1",
      .compute_dtype = "bfloat16",
      .policy = "mse",
      .amax = {{{224}, {112}, {1}}},
      .octaves = {{{0, 7, {1}}, {0, 6, {1}}}},
      .parts = {AmaxAfter{1, {{{112}, {112}, {1}}}}, AmaxAfter{1, {{{112}, {112}, {1}}}},
                AmaxAfter{1, {{{112}, {112}, {1}}}}},
      .documents = 1,
      .windows = 1,
      .tokens = 1,
      .data = {{"a.txt", 1, "00"}},
      .shards = {.of = 2, .taken = {0}, .documents = 1, .windows = 2, .tokens = 2}};
  std::set<std::string> keys;
  add_keys(Json::parse(scale_file_text(scales), "written"), keys);
  const std::string text = test::page_text("docs/scale-file.md");
  CHECK(keys.size() > 30);
  for (const std::string& key : keys) {
    CAPTURE(key);
    const bool named = text.find(code(key)) != text.npos ||
                       text.find("." + key + "`") != text.npos ||
                       text.find(cat("`\"", key, "\"`")) != text.npos;
    CHECK(named);
  }
}
