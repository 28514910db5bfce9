// Scales of draft layers in files and folders.
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "checkpoint/describe_checkpoint.h"
#include "formats/safetensors.h"
#include "scales/read/find_scales.h"
#include "scales/rules/draft_rules.h"
#include "scales/scale_diff.h"
#include "scales/scale_file.h"
#include "scales/verify/folder_scales.h"
#include "scales/write/inject.h"
#include "support/expect_error.h"
#include "support/models/draft_golden.h"
#include "support/scale_texts.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

using test::DraftGolden;
using test::error_of;

KvScales with_draft() {
  KvScales scales = test::example();
  scales.drafts = {
      {"mtp.layers.0", {{0.5f, 2.0f}, {0.25f, 1.0f}}, {{224, 896}, {112, 448}, {3, 4}}}};
  return scales;
}

// Scales for every layer of a golden with a cache, and for its draft layer.
KvScales scales_for(const DraftGolden& golden) {
  const ModelDescription model = describe_model(golden.checkpoint);
  const bool latent = model.layers.back().v_in_k;
  KvScales scales;
  scales.model_type = model.model_type;
  scales.n_kv_heads = model.n_kv_heads();
  for (const bool has_cache : layers_with_cache(model)) {
    const float k = 0.5f + static_cast<float>(scales.layers.size());
    const float v = latent ? k : 0.125f;
    scales.layers.push_back(has_cache ? LayerScales{{k}, {v}} : LayerScales{});
  }
  const float v = latent ? 0.75f : 0.0625f;
  scales.drafts = {{golden.layer, {{0.75f}, {v}}, {}}};
  return scales;
}

std::vector<std::string> tensors_of(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry :
       read_safetensors_header(folder / "model-kv-scales.safetensors").tensors) {
    names.push_back(entry.name);
  }
  return names;
}

InjectReport inject_for(const DraftGolden& golden, const KvScales& scales,
                        const std::string& target) {
  return inject_scales(golden.checkpoint, scales, golden.folder / target,
                       {.target = target, .accept_foreign = true});
}

bool contains(const std::vector<std::string>& list, const std::string& text) {
  for (const std::string& each : list) {
    if (each.find(text) != std::string::npos) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("draft scales: a scale file has them beside the model's layers, whose bytes stay") {
  const KvScales scales = with_draft();
  const std::string text = scale_file_text(scales);
  CHECK(test::parse(text) == scales);
  KvScales without = scales;
  without.drafts.clear();
  const std::string plain = scale_file_text(without);
  CHECK(plain.find("draft") == std::string::npos);
  const size_t at = text.find(",\n    \"draft_layers\"");
  REQUIRE(at != std::string::npos);
  CHECK(text.substr(0, at) == plain.substr(0, at));
}

TEST_CASE("draft scales: entries of another form are refused by their place") {
  const std::string text = scale_file_text(with_draft());
  const auto error = [&](const char* what, const char* by) {
    return test::error_in(test::with(text, what, by));
  };
  CHECK(error("\"mtp.layers.0\"", "\"\"").find("fp8kv.draft_layers[0].layer: is empty") !=
        std::string::npos);
  CHECK(error("\"mtp.layers.0\"", "3").find("draft_layers[0].layer") != std::string::npos);
  KvScales twice = with_draft();
  twice.drafts.push_back(twice.drafts[0]);
  CHECK(test::error_in(scale_file_text(twice)).find("'mtp.layers.0' is there twice") !=
        std::string::npos);
  KvScales negative = with_draft();
  negative.drafts[0].scales.v[1] = -1;
  CHECK(test::error_in(scale_file_text(negative))
            .find("draft layer mtp.layers.0: the V scale of head 1 is -1") != std::string::npos);
  KvScales uneven = with_draft();
  uneven.drafts[0].scales.v.pop_back();
  CHECK(test::error_in(scale_file_text(uneven)).find("has 2 K and 1 V scales") !=
        std::string::npos);
  KvScales other = with_draft();
  other.drafts[0].amax.q.pop_back();
  CHECK(test::error_in(scale_file_text(other)).find("different numbers of heads") !=
        std::string::npos);
}

TEST_CASE("draft scales: another format and fewer heads are made of them too") {
  const KvScales doubled = with_format(with_draft(), KvFormat::e4m3fnuz);
  CHECK(doubled.drafts[0].scales.k == std::vector<float>{1, 4});
  const KvScales reduced = per_tensor(with_draft());
  CHECK(reduced.drafts[0].scales == LayerScales{{2}, {1}});
}

TEST_CASE("draft scales: inject writes the names that loaders of drafts read, and they come back") {
  const std::map<std::string, std::vector<std::string>> kNames = {
      {"glm4-moe",
       {"model.layers.3.self_attn.attn.k_scale", "model.layers.3.self_attn.attn.v_scale"}},
      {"qwen3.5", {"mtp.layers.0.self_attn.attn.k_scale", "mtp.layers.0.self_attn.attn.v_scale"}},
      {"deepseek-v3",
       {"model.layers.3.self_attn.k_proj.k_scale", "model.layers.3.self_attn.v_proj.v_scale"}}};
  for (const auto& [name, expected] : kNames) {
    CAPTURE(name);
    const DraftGolden golden(name);
    const KvScales scales = scales_for(golden);
    const InjectReport report = inject_for(golden, scales, "portable");
    CHECK(!contains(report.warnings, "draft"));
    std::vector<std::string> found;
    for (const std::string& tensor : tensors_of(golden.folder / "portable")) {
      if (tensor.starts_with(golden.layer + ".")) found.push_back(tensor);
    }
    CHECK(found == expected);
    const FoundScales again = scales_at(golden.folder / "portable");
    CHECK(again.scales.layers == scales.layers);
    CHECK(again.scales.drafts == scales.drafts);
  }
}

TEST_CASE("draft scales: they change nothing of what runtimes do with the model's own") {
  const DraftGolden golden("qwen3.5");
  const KvScales scales = scales_for(golden);
  KvScales without = scales;
  without.drafts.clear();
  for (const char* target : {"vllm", "sglang", "vllm-rocm"}) {
    CAPTURE(target);
    const FactSet facts = inject_for(golden, scales, target).facts;
    CHECK(facts == scales_on_disk(Checkpoint::open(golden.folder / target)).facts);
    std::filesystem::remove_all(golden.folder / target);
    CHECK(facts == inject_for(golden, without, target).facts);
  }
}

TEST_CASE("draft scales: what gets none is warned of, and what cannot be written is noted") {
  const DraftGolden golden("glm4-moe");
  KvScales scales = scales_for(golden);
  CHECK(contains(inject_for(golden, scales, "tgi").notes,
                 "draft layer model.layers.3 are left out: TGI has no draft layers"));
  CHECK(tensors_of(golden.folder / "tgi").back().starts_with("model.layers.2."));
  scales.drafts[0].layer = "mtp.layers.7";
  const InjectReport report = inject_for(golden, scales, "vllm");
  CHECK(
      contains(report.notes, "draft layer mtp.layers.7 are left out: the model has no such layer"));
  CHECK(contains(report.warnings, "the draft layer model.layers.3 gets no scales"));
}

TEST_CASE("draft scales: those of mtp.layers.0 are no second name of layer 0's") {
  const DraftGolden golden("qwen3.5");
  KvScales scales = scales_for(golden);
  inject_for(golden, scales, "portable");
  const ScalesOnDisk on_disk = scales_on_disk(Checkpoint::open(golden.folder / "portable"));
  REQUIRE(on_disk.layers.size() == 1);
  CHECK(on_disk.layers[0].layer == 3);
  REQUIRE(on_disk.drafts.size() == 1);
  CHECK(on_disk.drafts[0].scales.size() == 2);
  CHECK(on_disk.drafts[0].facts.spellings == std::vector{ScaleSpelling::parameter});
}

TEST_CASE("draft scales: half of a pair is an error that names it") {
  const DraftGolden golden("qwen3.5");
  inject_for(golden, scales_for(golden), "portable");
  std::string bytes = test::read_file(golden.folder / "portable/model-kv-scales.safetensors");
  const std::string name = "mtp.layers.0.self_attn.attn.v_scale";
  REQUIRE(bytes.find(name) != std::string::npos);
  bytes.replace(bytes.find(name), name.size(), "mtp.layers.0.self_attn.attn.x_scale");
  golden.folder.write("portable/model-kv-scales.safetensors", bytes);
  std::string index = test::read_file(golden.folder / "portable/model.safetensors.index.json");
  index.replace(index.find(name), name.size(), "mtp.layers.0.self_attn.attn.x_scale");
  golden.folder.write("portable/model.safetensors.index.json", index);
  CHECK(error_of([&] {
          scales_at(golden.folder / "portable");
        }).find("'mtp.layers.0.self_attn.attn.k_scale': the scale of V for it is missing") !=
        std::string::npos);
}

TEST_CASE("draft scales: a difference in them is one, and so is a side without") {
  const KvScales a = with_draft();
  KvScales b = a;
  CHECK(!diff_scales(a, b, 0).drafts.at(0).differs);
  b.drafts[0].scales.k[0] = 0.625f;
  CHECK(diff_scales(a, b, 0).drafts.at(0).differs);
  CHECK(!diff_scales(a, b, 0.5).drafts.at(0).differs);
  b.drafts.clear();
  const ScaleDiff diff = diff_scales(a, b, 0.5);
  CHECK(diff.drafts.at(0).differs);
  CHECK(diff.drafts[0].b == LayerScales{});
  CHECK(diff_scales(b, a, 0.5).drafts.at(0).a == LayerScales{});
}

TEST_CASE("draft scales: vLLM takes each kind under one spelling, or drops it, or stops") {
  const RuntimeColumn* vllm = find_runtime_column("vLLM", {0, 33});
  REQUIRE(vllm != nullptr);
  const auto outcome = [&](const char* kind, bool latent, std::vector<ScaleSpelling> spellings,
                           RuntimeVersion version = {0, 33}) {
    for (const DraftKind& each : draft_kinds()) {
      if (each.name != kind) continue;
      return draft_verdict({{"x", &each, 0}, latent, std::move(spellings)}, *vllm, version).outcome;
    }
    return RuntimeOutcome::note;
  };
  using enum ScaleSpelling;
  CHECK(outcome("nextn", false, {parameter}) == RuntimeOutcome::loads);
  CHECK(outcome("nextn", false, {apart}) == RuntimeOutcome::fails);
  CHECK(outcome("nextn", false, {parameter, apart}) == RuntimeOutcome::fails);
  CHECK(outcome("nextn", false, {parameter}, {0, 14}) == RuntimeOutcome::unknown);
  CHECK(outcome("nextn", true, {projection}) == RuntimeOutcome::loads);
  CHECK(outcome("nextn", true, {apart}) == RuntimeOutcome::ignores);
  CHECK(outcome("mtp", false, {apart}) == RuntimeOutcome::loads);
  CHECK(outcome("mtp", false, {parameter}, {0, 32}) == RuntimeOutcome::loads);
  CHECK(outcome("mtp", false, {parameter}, {0, 28}) == RuntimeOutcome::unknown);
  CHECK(outcome("mtp", false, {}) == RuntimeOutcome::ignores);
  CHECK(draft_spelling(false) == parameter);
  CHECK(draft_spelling(true) == projection);
}

}  // namespace fp8kv
