#include "scales/write/inject.h"

#include "base/error.h"
#include "base/interrupt.h"
#include "checkpoint/describe_checkpoint.h"
#include "checkpoint/hf_quant.h"
#include "checkpoint/identity/made_for.h"
#include "checkpoint/model/quantised_tensors.h"
#include "files/output/staged_directory.h"
#include "files/output/write_file.h"
#include "scales/dialects.h"
#include "scales/read/find_scales.h"
#include "scales/scale_file.h"
#include "scales/scale_names.h"
#include "scales/scale_rounding.h"
#include "scales/write/arrival.h"
#include "scales/write/draft_tensors.h"
#include "scales/write/inject_plan.h"
#include "scales/write/output_folder.h"
#include "scales/write/scale_patch.h"

namespace fp8kv {
namespace fs = std::filesystem;
namespace {

void check_free_of_scales(const Checkpoint& checkpoint, const std::string& replace_name) {
  const std::string folder = quote(checkpoint.folder().string());
  const std::string help = cat("inject into the original model, or pass ", replace_name,
                               "; 'fp8kv extract' reads the scales this one has");
  if (const auto found = find_scales(checkpoint)) {
    throw Error(cat(folder, ": already carries scales (", found->dialect, ")"), help);
  }
  if (fs::exists(checkpoint.folder() / kScaleShard)) {
    throw Error(cat(folder, ": already has a file ", quote(kScaleShard)), help);
  }
}

// Throws for tensors that would stay beside the new scales and look like KV scales to our readers.
void check_all_replaceable(const Checkpoint& checkpoint, const std::string& replace_name) {
  for (const auto& [name, location] : checkpoint.tensors()) {
    if (scale_spelling(name) || !looks_like_kv_scale(name)) continue;
    throw Error(cat(quote(checkpoint.folder().string()), ": has ", quote(name),
                    ", which looks like a KV scale, but is in a form that ", replace_name,
                    " does not know and would leave there"),
                "inject into the original model, or take that tensor out of it");
  }
}

// The new scale shard replaces an old one of its name, so the old one must hold nothing but scales.
void check_scale_shard(const Checkpoint& checkpoint) {
  for (const Shard& shard : checkpoint.shards()) {
    if (shard.file != kScaleShard) continue;
    for (const TensorEntry& entry : shard.header.tensors) {
      if (scale_spelling(entry.name)) continue;
      throw Error(cat(quote((checkpoint.folder() / kScaleShard).string()), ": holds ",
                      quote(entry.name), ", expected nothing but KV scales"),
                  "give that file another name, in the index too");
    }
  }
}

void add_to(InjectReport& report, const fs::path& name, FileMade made, uint64_t bytes) {
  const bool costs =
      made == FileMade::written || made == FileMade::rewritten || made == FileMade::copied;
  if (costs) report.written_bytes += bytes;
  report.files.push_back({name.string(), made, bytes});
}

// The facts of the output, which does not exist yet.
FactSet facts_of(const Checkpoint& checkpoint, const ScalePatch& patch, const InjectPlan& plan) {
  ModelFiles model{checkpoint.tensors(),
                   Json::parse(patch.files.at("config.json"), "config.json", JsonNumbers::python),
                   checkpoint.hf_quant(),
                   {}};
  for (const std::string& name : patch.changes.dropped) model.tensors.erase(name);
  const std::string& shard = patch.files.at(kScaleShard);
  for (const TensorEntry& entry : parse_safetensors(shard, shard.size(), kScaleShard).tensors) {
    model.tensors[entry.name] = {0, entry};
  }
  drop_draft_scales(model.tensors, model.config);
  if (const auto changed = patch.files.find(kModelOptFile); changed != patch.files.end()) {
    model.modelopt = Json::parse(changed->second, kModelOptFile, JsonNumbers::python);
  }
  for (const auto& [name, file] : plan.files) model.names.push_back(name.string());
  return runtime_facts(model);
}

// Reports everything that is known about the output before it is written.
InjectReport report_on(const Checkpoint& checkpoint, const KvScales& scales,
                       const ScalePatch& patch, const InjectPlan& plan,
                       const InjectTarget& target) {
  InjectReport report;
  report.skipped = plan.skipped;
  report.notes = patch.notes;
  report.facts = facts_of(checkpoint, patch, plan);
  if (!scales.skipped.empty()) {
    std::string flag = "serve with vLLM's --kv-cache-dtype-skip-layers";
    report.in_16_bit = scales.skipped;
    for (const int64_t layer : scales.skipped) flag += cat(" ", layer);
    report.notes.push_back(cat(flag, ": the scale file leaves these layers in 16 bit"));
  }
  const KvScales written = with_format(scales, stored_format(scales.format));
  const ArrivalNotes rounding = rounding_notes(written, report.facts, serving_dtype(checkpoint));
  report.notes.insert(report.notes.end(), rounding.notes.begin(), rounding.notes.end());
  report.warnings = rounding.warnings;
  for (std::string& each : drafts_at_one(checkpoint, scales)) {
    report.warnings.push_back(std::move(each));
  }
  if (!target.portable) return report;
  const std::vector<std::string> lost = loss_warnings(report.facts);
  report.warnings.insert(report.warnings.end(), lost.begin(), lost.end());
  return report;
}

InjectReport write_folder(const Checkpoint& checkpoint, const KvScales& scales,
                          const InjectTarget& target, const fs::path& out,
                          const InjectOptions& options) {
  const ScalePatch patch = make_patch(checkpoint, scales, target, options.replace);
  const InjectPlan plan = plan_injection(checkpoint, patch);
  InjectReport report = report_on(checkpoint, scales, patch, plan, target);
  if (options.dry_run) {
    for (const auto& [name, file] : plan.files) {
      add_to(report, name, planned_making(file, options.link), file.bytes);
    }
    return report;
  }
  checkpoint.check_has_weights();
  StagedDirectory staged(out, options.overwrite);
  for (const auto& [name, file] : plan.files) {
    check_interrupt();
    const FileMade made = with_context(cat(quote(out.string()), " was not made"), [&] {
      return carry_out(file, staged.path() / name, options.link);
    });
    add_to(report, name, made, file.bytes);
  }
  checkpoint.check_unchanged();
  staged.publish();
  return report;
}

// Scales may end before the model does, if none of the remaining layers writes a cache.
void add_last_layers(KvScales& scales, size_t n_layers) {
  Provenance& from = scales.provenance;
  scales.layers.resize(n_layers);
  if (!scales.layer_kv_heads.empty()) scales.layer_kv_heads.resize(n_layers);
  if (!from.amax.empty()) from.amax.resize(n_layers);
  if (!from.octaves.empty()) from.octaves.resize(n_layers);
  for (AmaxAfter& part : from.parts) {
    if (!part.layers.empty()) part.layers.resize(n_layers);
  }
}

InjectReport write_scale_file(const ModelDescription& model, const KvScales& scales,
                              const fs::path& out, const InjectOptions& options) {
  KvScales written = with_format(scales, stored_format(scales.format));
  written.model_type = model.model_type;
  written.n_kv_heads = model.n_kv_heads();
  add_last_layers(written, model.layers.size());
  const std::string text = scale_file_text(written);
  InjectReport report;
  add_to(report, out.filename(), FileMade::written, text.size());
  report.facts = scale_file_facts(written.model_type);
  if (!options.dry_run) write_file_atomically(out, text, options.overwrite);
  return report;
}

// Throws if a layer with scales does not fit their format.
void check_holds(const KvScales& scales, const ModelDescription& model, const std::string& source) {
  const CacheType type{scales.format, scales.format};
  for (int64_t i = 0; !model.unclear && i < std::ssize(scales.layers); ++i) {
    if (!scales.layers[static_cast<size_t>(i)].has_cache()) continue;
    const auto misfit = cache_misfit(model, i, type);
    if (!misfit) continue;
    throw Error(cat(source, ": is for ", format_name(scales.format), ", but ", misfit->found,
                    ", expected ", misfit->expected),
                "calibrate with --kv-cache-dtype fp8");
  }
}

// The scales, with those of Q that the folder gets. Adds a note if some are left out.
KvScales with_wanted_q(const KvScales& scales, const InjectTarget& target,
                       const InjectOptions& options, std::vector<std::string>& notes) {
  const bool takes = target.queries && !is_nvfp4(scales.format);
  if (options.q_scales && !takes) {
    throw Error(cat("no scales of Q can be written for ", quote(target.name),
                    is_nvfp4(scales.format) ? " beside those of an NVFP4 cache" : ""),
                "vLLM alone is known to take some, in its attention in FP8: --for vllm",
                ErrorKind::usage);
  }
  if (options.q_scales) return with_q_scales(scales, options.scales_name);
  if (takes || !has_q_scales(scales)) return scales;
  notes.push_back(
      cat("the scales of Q are left out: ", target.runtime, " is not known to take them"));
  KvScales without = scales;
  for_each_layer(without, [](LayerScales& layer) { layer.q.clear(); });
  return without;
}

InjectReport write_output(const Checkpoint& checkpoint, const ModelDescription& model,
                          const KvScales& scales, const fs::path& out,
                          const InjectOptions& options) {
  const InjectTarget& target = inject_target_at(options.target);
  if (target.is_file) {
    checkpoint.check_unchanged();
    return write_scale_file(model, scales, out, options);
  }
  return write_folder(checkpoint, options.powers_of_two ? at_powers_of_two(scales) : scales, target,
                      out, options);
}

}  // namespace

InjectReport inject_scales(const Checkpoint& checkpoint, const KvScales& scales,
                           const fs::path& out, const InjectOptions& options) {
  return as_our_error([&] {
    const InjectTarget& target = inject_target_at(options.target);
    if (!target.is_file) checkpoint.check_is_hugging_face();
    const ModelDescription model = describe_model(checkpoint);
    check_quantised_tensors(checkpoint);
    check_output(checkpoint.folder(), out, target.is_file, options.overwrite);
    if (!target.is_file) {
      if (options.replace) {
        check_all_replaceable(checkpoint, options.replace_name);
        check_scale_shard(checkpoint);
      } else {
        check_free_of_scales(checkpoint, options.replace_name);
      }
    }
    const ScalesFit fit = check_made_for(scales, checkpoint, model, options.scales_name,
                                         {options.accept_foreign, options.accept_foreign_name});
    check_holds(scales, model, options.scales_name);
    KvScales taken = scales;
    if (!fit.foreign.empty()) taken.provenance.accepted_foreign = fit.foreign;
    std::vector<std::string> notes = fit.notes;
    if (!target.is_file) taken = with_wanted_q(taken, target, options, notes);
    InjectReport report = write_output(checkpoint, model, taken, out, options);
    report.notes.insert(report.notes.begin(), notes.begin(), notes.end());
    report.warnings.insert(report.warnings.begin(), fit.warnings.begin(), fit.warnings.end());
    return report;
  });
}

FactSet injected_facts(const Checkpoint& checkpoint, const KvScales& scales,
                       const std::string& target) {
  const ScalePatch patch = make_patch(checkpoint, scales, inject_target_at(target), true);
  return facts_of(checkpoint, patch, plan_injection(checkpoint, patch));
}

}  // namespace fp8kv
