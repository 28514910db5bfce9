#include "scales/verify/remedies.h"

#include <filesystem>

#include "base/error.h"
#include "base/shell.h"
#include "base/text.h"
#include "checkpoint/describe_checkpoint.h"
#include "checkpoint/model/read_model_config.h"
#include "scales/rules/runtime_caches.h"
#include "scales/scale_rounding.h"
#include "scales/write/inject.h"

namespace fp8kv {
namespace {

namespace fs = std::filesystem;

constexpr const char* kNewScales = "scales.json";

// A path beside the model that does not exist yet.
fs::path free_output(const fs::path& model) {
  const fs::path named = model.filename().empty() ? model.parent_path() : model;
  const bool has_name = named.filename() != "." && named.filename() != ".." && !named.empty();
  const fs::path stem =
      has_name ? named
               : fs::path("..") / fs::absolute(model).lexically_normal().parent_path().filename();
  fs::path out = stem.string() + "-kv";
  for (int i = 2; fs::exists(fs::symlink_status(out)); ++i) out = cat(stem.string(), "-kv", i);
  return out;
}

// Scales in the form that a calibration would make.
KvScales stand_ins(const Checkpoint& checkpoint) {
  KvScales scales;
  for (const bool has_cache : layers_with_cache(describe_model(checkpoint))) {
    scales.layers.push_back(has_cache ? LayerScales{{1}, {1}} : LayerScales{});
  }
  return scales;
}

bool can_calibrate(const Checkpoint& checkpoint) {
  try {
    read_model_config(checkpoint);
    return true;
  } catch (const Error&) {
    return false;
  }
}

// "TGI 2.4 and newer": neighbouring columns are joined into one.
std::vector<std::string> arriving(const ScalesOnDisk& on_disk, const ServingCase& serving,
                                  const char* runtime) {
  std::vector<std::string> names;
  const auto columns = runtime_columns();
  const auto is_one = [&](const RuntimeColumn& column) {
    return std::string_view(column.runtime) == runtime &&
           runtime_fate(on_disk, column, serving).arrives;
  };
  for (size_t i = 0; i < columns.size(); ++i) {
    if (!is_one(columns[i])) continue;
    const size_t first = i;
    while (i + 1 < columns.size() && is_one(columns[i + 1])) ++i;
    names.push_back(
        cat(columns[first].runtime, " ", versions_text(columns[first], columns[i], on_disk.facts)));
  }
  return names;
}

// The remedy if no other form and no other version helps.
std::string last_resort(const RuntimeFate& fate) {
  for (const LayerFate& each : fate.layers) {
    if (each.fate == Fate::not_doubled) {
      return "make the scales with 'fp8kv calibrate --headroom 2': those are safe without doubling";
    }
    if (each.fate == Fate::vanishes) return "a model in bfloat16 has room for such scales";
  }
  return "no form of scales is known that it loads for such a model";
}

}  // namespace

std::vector<Reinjection> reinjections(const Checkpoint& checkpoint, const FoundScales& found,
                                      const ScalesOnDisk& on_disk) {
  const bool own = !found.refusal;
  const KvScales scales = own ? found.scales : stand_ins(checkpoint);
  const fs::path named = checkpoint.named();
  const fs::path out = free_output(checkpoint.is_partial() ? named.filename() : named);
  const std::string folder = shell_path(named.string());
  const std::string source = own ? folder : can_calibrate(checkpoint) ? kNewScales : "SCALES";
  const bool replace = on_disk.facts.has(Fact::scales);
  std::vector<Reinjection> made;
  for (const bool powers : {false, true}) {
    for (const InjectTarget& target : inject_targets()) {
      if (target.is_file) continue;
      std::string command = cat("fp8kv inject ", folder, " --scales ", source, " -o ",
                                shell_path(out.string()), replace ? " --replace" : "");
      if (target.name != inject_targets()[0].name) command += " --for " + target.name;
      if (powers) command += " --scale-rounding power-of-two";
      if (source == kNewScales) {
        command = cat("fp8kv calibrate ", folder, " --data TEXT -o ", kNewScales, " && ", command);
      }
      try {
        const InjectReport report = inject_scales(
            checkpoint, scales, out,
            {.target = target.name, .powers_of_two = powers, .dry_run = true, .replace = replace});
        const KvScales written =
            with_format(powers ? at_powers_of_two(scales) : scales, stored_format(scales.format));
        made.push_back({command, planned_scales(written, report.facts, on_disk.dtype)});
      } catch (const Error& error) {
        if (error.kind() == ErrorKind::interrupted) throw;  // else the target refuses it
      }
    }
  }
  return made;
}

std::vector<std::string> remedies(const std::string& path, const ScalesOnDisk& on_disk,
                                  const ChosenRuntime& chosen, const ServingCase& serving,
                                  const std::vector<Reinjection>& reinjections) {
  std::vector<std::string> ways;
  const RuntimeColumn& column = *chosen.column;
  const Server* server = find_server(column);
  const ServingCase as_meant{CacheFlag::of_scales, serving.fnuz};
  const CacheFlag meant = asked_cache(CacheFlag::of_scales, on_disk.facts);
  if (serving.flag != meant && server &&
      runtime_fate(on_disk, column, as_meant, chosen.number).arrives) {
    return {serve_command(*server, {.path = path,
                                    .flag = meant,
                                    .skipped = skippable(chosen, on_disk.skipped),
                                    .drafter = on_disk.facts.family() == Family::drafter})};
  }
  for (const Reinjection& each : reinjections) {
    if (!runtime_fate(each.scales, column, as_meant, chosen.number).arrives) continue;
    ways.push_back(each.command);
    break;
  }
  if (on_disk.facts.has(Fact::scale_file)) {
    ways.push_back(cat("fp8kv inject MODEL --scales ", shell_path(path), " -o MODEL-kv"));
  }
  const std::vector<std::string> others = arriving(on_disk, serving, column.runtime);
  const bool in_pairs = !on_disk.facts.has_any({Fact::k_only, Fact::v_only});
  if (!others.empty() && in_pairs) {
    ways.push_back(cat("use ", others.back(), ", which loads these scales as they are"));
  }
  if (ways.empty())
    ways.push_back(last_resort(runtime_fate(on_disk, column, as_meant, chosen.number)));
  return ways;
}

}  // namespace fp8kv
