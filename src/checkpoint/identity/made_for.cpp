#include "checkpoint/identity/made_for.h"

#include <optional>

#include "base/error.h"
#include "checkpoint/drafts/drafter.h"
#include "checkpoint/identity/equalized_from.h"
#include "checkpoint/identity/fingerprint.h"
#include "checkpoint/identity/model_identity.h"
#include "checkpoint/identity/sampled_rows.h"
#include "checkpoint/model/read_model_config.h"
#include "core/scales/compare_models.h"

namespace fp8kv {
namespace {

class MadeFor {
 public:
  // `config`: null if it was not read
  MadeFor(const KvScales& scales, const Checkpoint& checkpoint, const ModelConfig* config,
          const std::string& source, const ForeignScales& foreign)
      : from_(scales.provenance),
        checkpoint_(checkpoint),
        config_(config),
        folder_(quote(checkpoint.folder().string())),
        source_(source),
        foreign_(foreign) {}

  ScalesFit check(const ModelDescription& model) {
    if (from_.model_fingerprint.empty()) return {};
    const std::optional<EqualizedFrom> original = equalized_from(checkpoint_.folder());
    if (original && original->fingerprint == from_.model_fingerprint) {
      refuse(cat(folder_, " was ", equalized_text(*original), ", which changed its K"));
      return std::move(fit_);
    }
    if (!from_.model_fingerprint.starts_with(kIdentityFingerprint)) {
      compare_projections(from_.model_fingerprint, model,
                          "its fingerprint is of version 1, which tells of the K and V projections "
                          "alone, not of norms, Q, O, MLP, embedding or config");
      return std::move(fit_);
    }
    try {
      compare(identity_of_model());
    } catch (const Error& error) {
      if (is_foreign_ || error.kind() != ErrorKind::input) throw;
      checkpoint_.check_unchanged();
      refuse(cat("that one was computed, and this one cannot be: ", error.what()));
    }
    return std::move(fit_);
  }

 private:
  ModelIdentity identity_of_model() const {
    if (config_ != nullptr) return identity_of(*config_);
    return identity_of(is_drafter(checkpoint_.tensors()) ? read_drafter_config(checkpoint_)
                                                         : read_model_config(checkpoint_));
  }

  // Samples rows only if the identity of the scales has rows.
  ModelIdentity identity_of(const ModelConfig& config) const {
    ModelIdentity identity = model_identity(checkpoint_, config);
    if (from_.model_identity && !from_.model_identity->rows.empty()) {
      identity.rows = sampled_rows(checkpoint_, config);
    }
    return identity;
  }

  // Throws unless foreign scales are accepted. If they are, records the difference and a warning.
  void refuse(const std::string& what) {
    is_foreign_ = true;
    if (!foreign_.accepted) {
      throw Error(cat(source_, ": was calibrated on another model than ", folder_, ": ", what),
                  cat("calibrate this model; where you know that the scales serve it, pass ",
                      foreign_.flag, ", which is recorded in what is written"));
    }
    fit_.foreign = what;
    fit_.warnings.push_back(cat(source_, ": was calibrated on another model than ", folder_, ": ",
                                what, "; taken because of ", foreign_.flag));
  }

  void compare_projections(const std::string& wanted, const ModelDescription& model,
                           const std::string& why) {
    const std::string found = model_fingerprint(checkpoint_, model);
    if (found != wanted) {
      return refuse(
          cat("the K and V projections are others (", found, " instead of ", plain(wanted), ")"));
    }
    fit_.notes.push_back(cat(source_, ": ", why));
  }

  void compare(const ModelIdentity& found) {
    if (!from_.model_identity) {
      const std::string fingerprint = fingerprint_of(found);
      if (fingerprint == from_.model_fingerprint) return;
      return refuse(
          cat("its fingerprint is ", fingerprint, " instead of ", plain(from_.model_fingerprint)));
    }
    const ModelComparison comparison = compare_models(*from_.model_identity, found);
    const std::string difference = difference_text(comparison);
    switch (comparison.match) {
      case ModelMatch::same:
        return;
      case ModelMatch::same_kv:
        fit_.notes.push_back(cat(source_, ": was calibrated on a model with the same K and V as ",
                                 folder_, "; different is ", difference));
        return;
      case ModelMatch::fine_tune:
        fit_.warnings.push_back(
            cat(source_, ": was calibrated on a model of which ", folder_,
                " is a fine-tune: ", difference,
                "; the scales may still serve: 'fp8kv eval' with --scales shows what they "
                "cost, and 'fp8kv calibrate' makes its own"));
        return;
      case ModelMatch::other:
        return refuse(difference);
    }
  }

  const Provenance& from_;
  const Checkpoint& checkpoint_;
  const ModelConfig* config_;
  const std::string folder_;
  const std::string& source_;
  const ForeignScales& foreign_;
  ScalesFit fit_;
  bool is_foreign_ = false;  // set by refuse(), so that check() lets its error through
};

}  // namespace

ScalesFit check_made_for(const KvScales& scales, const Checkpoint& checkpoint,
                         const ModelDescription& model, const std::string& source,
                         const ForeignScales& foreign) {
  check_values(scales, source);
  check_fits(scales, model, source);
  return MadeFor(scales, checkpoint, nullptr, source, foreign).check(model);
}

ScalesFit check_made_for(const KvScales& scales, const Checkpoint& checkpoint,
                         const ModelConfig& config, const std::string& source,
                         const ForeignScales& foreign) {
  check_values(scales, source);
  check_fits(scales, config, source);
  return MadeFor(scales, checkpoint, &config, source, foreign).check(config);
}

}  // namespace fp8kv
