#include "inputs/scale_source.h"

#include "base/text.h"
#include "checkpoint/identity/made_for.h"
#include "scales/read/scale_file_survey.h"

namespace fp8kv {
namespace {

// Throws the refusal of scales that cannot be used. Otherwise logs the notes of the survey.
FoundScales usable(const std::filesystem::path& path, FoundScales found, Log& log) {
  if (found.refusal) throw *found.refusal;
  const ShardNote& shards = found.scales.provenance.shards;
  if (shards.of > 0) {
    log.warn(cat(quote(path.string()), ": is of ", shards.taken.size(), " of ",
                 count_of(shards.of, "shard"), " of a calibration; 'fp8kv merge' adds the rest"));
  }
  for (const std::string& note : found.notes) log.note("note: " + note);
  return found;
}

void say_grave(const std::filesystem::path& source, std::span<const Diagnosis> diagnoses,
               Log& log) {
  for (const Diagnosis& diagnosis : diagnoses) {
    if (diagnosis.grave) say_diagnoses(source, {&diagnosis, 1}, log);
  }
}

}  // namespace

KvScales load_scales(const std::filesystem::path& path, Log& log) {
  FoundScales found = survey_scales(path);
  say_grave(path, found.diagnoses, log);
  return usable(path, std::move(found), log).scales;
}

KvScales load_scales_for(const std::filesystem::path& path, bool accept_foreign,
                         const Checkpoint& checkpoint, const ModelConfig& config, Log& log) {
  KvScales scales = load_scales(path, log);
  const ScalesFit fit = check_made_for(scales, checkpoint, config, quote(path.string()),
                                       {accept_foreign, kAcceptForeign});
  for (const std::string& note : fit.notes) log.note("note: " + note);
  for (const std::string& warning : fit.warnings) log.warn(warning);
  if (!fit.foreign.empty()) scales.provenance.accepted_foreign = fit.foreign;
  return scales;
}

std::optional<KvScales> scales_carried_by(const Checkpoint& checkpoint, const ModelConfig& config,
                                          Log& log) {
  std::optional<FoundScales> found = find_scales(checkpoint);
  if (!found) return std::nullopt;
  for (const std::string& note : found->notes) log.note("note: " + note);
  say_grave(checkpoint.folder(), found->diagnoses, log);
  check_fits(found->scales, config, quote(checkpoint.folder().string()));
  return std::move(found->scales);
}

KvScales load_scale_file(const std::filesystem::path& path, Log& log) {
  FoundScales found = survey_scale_file(path);
  say_grave(path, found.diagnoses, log);
  return std::move(found.scales);
}

FoundScales load_diagnosed(const std::filesystem::path& path, Log& log) {
  FoundScales found = survey_scales(path);
  say_diagnoses(path, found.diagnoses, log);
  return usable(path, std::move(found), log);
}

void say_diagnoses(const std::filesystem::path& source, std::span<const Diagnosis> diagnoses,
                   Log& log) {
  for (const Diagnosis& diagnosis : diagnoses) {
    const std::string text = cat(quote(source.string()), ": ", diagnosis_text(diagnosis));
    diagnosis.harmless ? log.note("note: " + text) : log.warn(text);
  }
}

}  // namespace fp8kv
