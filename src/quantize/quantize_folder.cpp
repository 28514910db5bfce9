#include "quantize/quantize_folder.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/machine/cpu_topology.h"
#include "base/machine/thread_pool.h"
#include "files/output/copy_file.h"
#include "files/output/finished_files.h"
#include "files/output/staged_directory.h"
#include "files/output/write_file.h"
#include "json/json.h"
#include "quantize/weights_block.h"
#include "quantize/write_shard.h"
#include "scales/read/find_scales.h"
#include "scales/scale_rounding.h"
#include "scales/write/arrival.h"
#include "scales/write/draft_tensors.h"
#include "scales/write/output_folder.h"
#include "scales/write/scale_patch.h"

namespace fp8kv {
namespace fs = std::filesystem;
namespace {

// The target for KV scales: the form that most runtimes load.
constexpr const char* kScalesForm = "portable";

void check_free_of_scales(const Checkpoint& checkpoint) {
  const auto found = find_scales(checkpoint);
  if (!found) return;
  const std::string folder = quote(checkpoint.folder().string());
  throw Error(cat(folder, ": already carries scales (", found->dialect, ")"),
              cat("quantise the model that this one was made from; --scales ", folder,
                  " brings its scales along"));
}

// Everything that decides the bits of the shards, as one text.
std::string identity_of(const Checkpoint& checkpoint, const QuantizeFolderOptions& options,
                        const std::string& config) {
  JsonWriter out;
  out.begin_object().member("version", options.version).member("scheme", options.scheme->name);
  out.key("shards").begin_array();
  for (const Shard& shard : checkpoint.shards()) {
    out.begin_object().member("file", utf8_name(shard.file)).member("bytes", shard.bytes);
    out.member("changed_ns", shard.stamp.modified_ns).member("inode", shard.stamp.inode);
    out.end_object();
  }
  out.end_array().member("config", config);
  if (options.inputs != nullptr) {
    out.key("inputs").begin_object();
    for (const auto& [name, amax] : *options.inputs) out.member(name, amax);
    out.end_object();
  }
  return out.end_object().text();
}

// Builds one output folder.
class Folder {
 public:
  Folder(const Checkpoint& checkpoint, const LinearChoice& choice,
         const QuantizeFolderOptions& options)
      : checkpoint_(checkpoint), options_(options) {
    report_.plan = plan_shards(checkpoint, choice, *options.scheme, options.inputs);
    report_.ignore = choice.ignore;
    ScalePatch patch;
    patch.files["config.json"] =
        json_with_member(read_regular_text(checkpoint.config_path()), "quantization_config",
                         weights_block(*options.scheme, choice.ignore));
    if (auto index = index_text(checkpoint, report_.plan)) patch.files[kIndexFile] = *index;
    config_ = patch.files["config.json"];
    plan_files(patch);
    if (!report_.plan.uneven.empty()) {
      report_.warnings.push_back(
          cat(report_.plan.uneven, ": ", options.scheme->block_rows, " x ",
              options.scheme->block_columns,
              " does not divide it; vLLM takes such a matrix only where it is not split"));
    }
  }

  const std::string& config() const { return config_; }
  QuantizeReport& report() { return report_; }

  void say_planned() {
    for (const auto& [name, file] : files_)
      add(name.string(), planned_making(file, LinkMode::copy), file.bytes);
    for (const ShardPlan& shard : report_.plan.shards)
      add(shard.file, FileMade::written, shard.bytes);
  }

  // Writes all files except the shards.
  void write_files(const fs::path& folder) {
    for (const auto& [name, file] : files_) {
      check_interrupt();
      add(name.string(), carry_out(file, folder / name, LinkMode::copy), file.bytes);
    }
  }

  // `finished`: the store of finished shards, or null to keep none.
  void write_shards(const fs::path& folder, const FinishedFiles* finished, Log& log) {
    ThreadPool threads(options_.threads > 0 ? options_.threads : usable_cores());
    Progress progress(log, "quantising", report_.plan.before_bytes);
    const ShardTools tools{checkpoint_, *options_.scheme, threads, progress};
    for (const ShardPlan& shard : report_.plan.shards) {
      if (finished == nullptr) {
        fs::create_directories((folder / shard.file).parent_path());
        write_shard(tools, shard, folder / shard.file);
      } else {
        write_or_keep(tools, shard, *finished, log);
      }
      add(shard.file, FileMade::written, shard.bytes);
    }
    for (const ShardPlan& shard : report_.plan.shards) {
      if (finished != nullptr) finished->take(shard.file, folder / shard.file);
    }
  }

  std::vector<std::string> shard_names() const {
    std::vector<std::string> names;
    for (const ShardPlan& shard : report_.plan.shards) names.push_back(shard.file);
    return names;
  }

  // Adds scales to the folder, which is otherwise complete. Files that change are written again.
  void write_scales(const fs::path& folder, const KvScales& scales) {
    const Checkpoint made = Checkpoint::open(folder);
    const ScalePatch patch = make_patch(made, scales, inject_target_at(kScalesForm), false);
    for (const auto& [from, to] : patch.changes.renamed) {
      fs::rename(folder / from, folder / to);  // in the staged folder, which this run fills
      for (InjectedFile& file : report_.files) {
        if (file.name == from) file.name = to;
      }
    }
    for (const auto& [name, contents] : patch.files) {
      std::erase_if(report_.files, [&](const InjectedFile& file) { return file.name == name; });
      fs::remove(folder / name);  // in the staged folder, which this run fills
      write_new_file(folder / name, contents);
      add(name, FileMade::written, contents.size());
    }
    report_.notes.insert(report_.notes.end(), patch.notes.begin(), patch.notes.end());
    const FactSet facts = runtime_facts(model_files(Checkpoint::open(folder)));
    const ArrivalNotes rounding =
        rounding_notes(with_format(scales, KvFormat::e4m3fn), facts, serving_dtype(checkpoint_));
    const auto append = [](std::vector<std::string>& to, const std::vector<std::string>& from) {
      to.insert(to.end(), from.begin(), from.end());
    };
    append(report_.notes, rounding.notes);
    append(report_.warnings, rounding.warnings);
    append(report_.warnings, drafts_at_one(made, scales));
    append(report_.warnings, loss_warnings(facts));
    report_.facts = facts;
  }

 private:
  void write_or_keep(const ShardTools& tools, const ShardPlan& shard, const FinishedFiles& finished,
                     Log& log) {
    const Kept kept = finished.has(shard.file, shard.bytes);
    if (kept == Kept::whole) {
      ++report_.kept_shards;
      return tools.progress.advance(bytes_in(shard));
    }
    if (kept == Kept::damaged) {
      log.warn(cat(quote((finished.path() / shard.file).string()),
                   ": changed since it was finished: its size or its SHA-256 is not the one that "
                   "was recorded; it is written anew"));
    }
    write_shard(tools, shard, finished.unfinished(shard.file));
    finished.finish(shard.file);
  }

  static uint64_t bytes_in(const ShardPlan& shard) {
    uint64_t bytes = 0;
    for (const MovedTensor& tensor : shard.tensors) bytes += tensor.from.end - tensor.from.begin;
    return bytes;
  }

  void plan_files(const ScalePatch& patch) {
    InjectPlan plan = plan_injection(checkpoint_, patch);
    report_.skipped = plan.skipped;
    for (const ShardPlan& shard : report_.plan.shards) plan.files.erase(shard.file);
    for (auto& [name, file] : plan.files) {
      if (file.is_linked() && holds_tensors(name)) {
        report_.skipped.push_back(
            cat(quote(name.string()), ": weights that the model is not read from"));
      } else {
        files_[name] = std::move(file);
      }
    }
  }

  void add(const std::string& name, FileMade made, uint64_t bytes) {
    report_.written_bytes += bytes;
    report_.files.push_back({name, made, bytes});
  }

  const Checkpoint& checkpoint_;
  const QuantizeFolderOptions& options_;
  QuantizeReport report_;
  std::string config_;
  std::map<fs::path, PlannedFile> files_;  // without the shards
};

void sort_files(QuantizeReport& report) {
  std::sort(report.files.begin(), report.files.end(),
            [](const InjectedFile& a, const InjectedFile& b) { return a.name < b.name; });
}

// Plans the scale shard. Throws if make_patch would.
void plan_scales(const Checkpoint& checkpoint, const KvScales& scales, QuantizeReport& report) {
  const ScalePatch patch = make_patch(checkpoint, scales, inject_target_at(kScalesForm), false);
  const std::string& shard = patch.files.at(kScaleShard);
  report.files.push_back({kScaleShard, FileMade::written, shard.size()});
  report.written_bytes += shard.size();
}

}  // namespace

LinearChoice check_quantisable(const Checkpoint& checkpoint, const ModelConfig& config,
                               const fs::path& out, const QuantizeFolderOptions& options) {
  return as_our_error([&] {
    check_output(checkpoint.folder(), out, false, options.overwrite);
    checkpoint.check_is_hugging_face();
    check_unquantised(checkpoint);
    check_free_of_scales(checkpoint);
    return choose_linears(checkpoint, config);
  });
}

QuantizeReport quantize_folder(const Checkpoint& checkpoint, const LinearChoice& choice,
                               const fs::path& out, const QuantizeFolderOptions& options,
                               Log& log) {
  FP8KV_ASSERT(options.dry_run || options.scheme->static_inputs == (options.inputs != nullptr));
  return as_our_error([&] {
    Folder folder(checkpoint, choice, options);
    if (options.dry_run) {
      folder.say_planned();
      if (options.scales != nullptr) plan_scales(checkpoint, *options.scales, folder.report());
      sort_files(folder.report());
      return folder.report();
    }
    std::optional<FinishedFiles> finished;
    if (options.resume) {
      finished.emplace(out, identity_of(checkpoint, options, folder.config()));
    }
    checkpoint.check_has_weights();
    StagedDirectory staged(out, options.overwrite);
    const auto write = [&] {
      with_context(cat(quote(out.string()), " was not made"), [&] {
        folder.write_files(staged.path());
        folder.write_shards(staged.path(), finished ? &*finished : nullptr, log);
        if (options.scales != nullptr) folder.write_scales(staged.path(), *options.scales);
      });
      checkpoint.check_unchanged();
      staged.publish();
    };
    finished ? keeping(*finished, "finished shards", write) : write();
    if (finished) finished->remove(folder.shard_names());
    sort_files(folder.report());
    return folder.report();
  });
}

}  // namespace fp8kv
