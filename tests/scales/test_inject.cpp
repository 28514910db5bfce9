#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include <doctest/doctest.h>

#include "base/rng.h"
#include "checkpoint/fingerprint.h"
#include "config/describe_model.h"
#include "json/json.h"
#include "scales/read/find_scales.h"
#include "scales/write/inject.h"
#include "scales/write/scale_patch.h"
#include "support/expect_error.h"
#include "support/models/inject_place.h"
#include "support/models/tiny_checkpoint.h"
#include "support/skip.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;

KvScales scales_for(const test::TinyConfig& config, uint64_t seed = 1, bool per_head = false) {
  Rng rng(seed);
  return test::random_scales(config, rng, per_head);
}

// A folder with a tiny model in "model", and room for outputs beside it.
struct Workplace {
  explicit Workplace(const test::TinyConfig& model = test::tiny_config(),
                     const test::TinyOptions& options = {})
      : config(model) {
    test::write_tiny_checkpoint(folder / "model", config, options);
  }

  fs::path model() const { return folder / "model"; }
  fs::path out() const { return folder / "out"; }
  Checkpoint open() const { return Checkpoint::open(model()); }
  InjectReport inject(const KvScales& scales,
                      const InjectOptions& options = {.target = "tgi"}) const {
    return inject_scales(open(), scales, out(), options);
  }
  std::string error(const KvScales& scales,
                    const InjectOptions& options = {.target = "tgi"}) const {
    return without_folder(test::error_of([&] { inject(scales, options); }));
  }
  std::string without_folder(std::string text) const {
    const std::string path = folder.path().string() + "/";
    for (size_t at; (at = text.find(path)) != text.npos;) text.erase(at, path.size());
    return text;
  }
  // What is in the folder beside "model".
  Strings beside() const {
    Strings names;
    for (const auto& entry : fs::directory_iterator(folder.path())) {
      if (entry.path() != model()) names.push_back(entry.path().filename().string());
    }
    return names;
  }

  test::TinyConfig config;
  test::TempDir folder;
};

// Everything about a tree that must not change: names, contents, times.
std::map<std::string, std::pair<std::string, fs::file_time_type>> snapshot(const fs::path& folder) {
  std::map<std::string, std::pair<std::string, fs::file_time_type>> out;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string name = fs::relative(entry.path(), folder).string();
    out[name] = {entry.is_regular_file() ? test::read_file(entry.path()) : "",
                 entry.last_write_time()};
  }
  out["."] = {"", fs::last_write_time(folder)};
  return out;
}

std::string how_of(const InjectReport& report, const std::string& name) {
  for (const InjectedFile& file : report.files) {
    if (file.name == name) return made_name(file.made);
  }
  return "not there";
}

TEST_CASE("inject: what is put in comes out bit for bit, whatever the shape of the model") {
  Rng rng(5);
  for (int round = 0; round < 12; ++round) {
    test::TinyConfig config = test::tiny_config();
    config.n_layers = static_cast<int64_t>(1 + rng.next() % 12);
    config.n_kv_heads = round % 3 == 0 ? 1 : round % 3 == 1 ? 2 : 4;
    config.dtype = round % 2 == 0 ? DType::bf16 : DType::f16;
    const Workplace place(config, {.n_shards = 1 + round % 3});
    const KvScales scales = scales_for(config, rng.next(), round % 4 == 0);
    place.inject(scales);
    const KvScales back = scales_at(Checkpoint::open(place.out())).scales;
    CHECK(back.layers == per_tensor(scales).layers);
    CHECK(back.format == Fp8Format::e4m3fn);
    CHECK(back.model_type == "llama");
    CHECK(back.n_kv_heads == config.n_kv_heads);
  }
}

TEST_CASE("inject: the new shard has three F32 scalars per layer, and the rest is as it was") {
  const Workplace place;
  const KvScales scales = scales_for(place.config);
  place.inject(scales);
  const Checkpoint out = Checkpoint::open(place.out());
  const SafetensorsHeader shard = read_safetensors_header(place.out() / kScaleShard);
  CHECK(shard.metadata == std::map<std::string, std::string>{{"format", "pt"}});
  Strings names;
  for (const TensorEntry& entry : shard.tensors) {
    CHECK(entry.dtype == DType::f32);
    CHECK(entry.shape == Shape{});
    names.push_back(entry.name);
  }
  CHECK(names == Strings{"model.layers.0.self_attn.k_scale", "model.layers.0.self_attn.kv_scale",
                         "model.layers.0.self_attn.v_scale", "model.layers.1.self_attn.k_scale",
                         "model.layers.1.self_attn.kv_scale", "model.layers.1.self_attn.v_scale"});
  const float largest = std::max(scales.layers[1].k[0], scales.layers[1].v[0]);
  float written = 0;
  const std::string bytes = out.read("model.layers.1.self_attn.kv_scale");
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(&written));
  CHECK(written == largest);
  CHECK(out.tensors().size() == place.open().tensors().size() + 6);
  CHECK(test::read_file(place.out() / "model.safetensors") ==
        test::read_file(place.model() / "model.safetensors"));
}

TEST_CASE("inject: the config keeps every byte but for the one member") {
  const Workplace place;
  const std::string config =
      "{\"num_hidden_layers\": 2,   \"num_attention_heads\":4,\n\t\"num_key_value_heads\": 2.0,\n"
      "  \"hidden_size\": 32, \"model_type\": \"llama\", \"x\": [1e5, \"\\u00e9\"],\n"
      "  \"architectures\": [\"LlamaForCausalLM\"]\n}";
  place.folder.write("model/config.json", config);
  place.inject(scales_for(place.config));
  std::string expected = config;
  const std::string last = "[\"LlamaForCausalLM\"]";
  expected.insert(expected.find(last) + last.size(),
                  ",\"kv_cache_torch_dtype\": \"float8_e4m3fn\"");
  CHECK(test::read_file(place.out() / "config.json") == expected);
}

TEST_CASE("inject: an index that is there grows, in the format of Hugging Face") {
  const Workplace place;
  fs::rename(place.model() / "model.safetensors", place.model() / "weights.safetensors");
  std::string map;
  for (const auto& tensor : test::tiny_tensors(place.config)) {
    map += cat(map.empty() ? "" : ",", quote(tensor.name), ":'weights.safetensors'");
  }
  std::string index = cat("{'weight_map':{", map,
                          "},'metadata':{'total_size':1000.0,'total_parameters':7,'by':'me'}}");
  std::replace(index.begin(), index.end(), '\'', '"');
  place.folder.write("model/model.safetensors.index.json", index);
  place.inject(scales_for(place.config));
  const std::string text = test::read_file(place.out() / "model.safetensors.index.json");
  CHECK(
      text.starts_with("{\n  \"metadata\": {\n    \"total_parameters\": 7,\n    \"by\": \"me\",\n"
                       "    \"total_size\": 1024\n  },\n  \"weight_map\": {\n"
                       "    \"lm_head.weight\": \"weights.safetensors\",\n"
                       "    \"model.embed_tokens.weight\": \"weights.safetensors\",\n"));
  CHECK(
      text.ends_with("    \"model.layers.1.self_attn.v_scale\": \"model-kv-scales.safetensors\",\n"
                     "    \"model.norm.weight\": \"weights.safetensors\"\n  }\n}\n"));
  const Json names = Json::parse(text, "index").at("weight_map");
  for (size_t i = 1; i < names.size(); ++i) CHECK(names.key(i - 1) < names.key(i));
}

TEST_CASE("inject: a single-file model gets an index that names both files, and a note") {
  const Workplace place;
  const InjectReport report = place.inject(scales_for(place.config));
  const Json index = Json::read(place.out() / "model.safetensors.index.json");
  uint64_t weight_bytes = 0;
  for (const auto& tensor : test::tiny_tensors(place.config))
    weight_bytes += tensor.values.size() * 4;
  CHECK(index.at("metadata").at("total_size").as_int() == static_cast<int64_t>(weight_bytes + 24));
  CHECK(index.at("weight_map").at("lm_head.weight").as_string() == "model.safetensors");
  CHECK(index.at("weight_map").at("model.layers.0.self_attn.k_scale").as_string() == kScaleShard);
  CHECK(report.notes ==
        Strings{"transformers prefers model.safetensors and so ignores the index and the scales: "
                "there the model works as before"});
}

TEST_CASE("inject: everything else comes along, but for hidden folders and what is no file") {
  const Workplace place;
  place.folder.write("model/tokenizer.json", "{}");
  place.folder.write("model/.gitattributes", "x");
  place.folder.write("model/original/params.json", "{\"dim\": 1}");
  place.folder.write("model/.git/HEAD", "x");
  place.folder.write("model/original/LICENSE", "of the model");
  fs::create_symlink("original/LICENSE", place.model() / "LICENSE");
  fs::create_symlink("nowhere", place.model() / "gone");
  fs::create_directory_symlink("..", place.model() / "up");
  const InjectReport report =
      place.inject(scales_for(place.config), {.target = "tgi", .link = LinkMode::copy});
  Strings names;
  for (const InjectedFile& file : report.files) names.push_back(file.name);
  CHECK(names == Strings{".gitattributes", "LICENSE", "config.json", "model-kv-scales.safetensors",
                         "model.safetensors", "model.safetensors.index.json", "original/LICENSE",
                         "original/params.json", "tokenizer.json"});
  CHECK(report.skipped == Strings{"'.git': a hidden folder", "'gone': a link that leads nowhere",
                                  "'up': a link to a folder"});
  CHECK(test::read_file(place.out() / "original/params.json") == "{\"dim\": 1}");
  CHECK(test::read_file(place.out() / "LICENSE") == "of the model");
  CHECK_FALSE(fs::is_symlink(place.out() / "LICENSE"));
  CHECK_FALSE(fs::exists(place.out() / ".git"));
}

TEST_CASE("inject: the way of linking is the one asked for, and what it costs is counted") {
  const Workplace place;
  const InjectReport hard =
      place.inject(scales_for(place.config), {.target = "tgi", .link = LinkMode::hard});
  CHECK(how_of(hard, "model.safetensors") == "hard-linked");
  CHECK(how_of(hard, "config.json") == "written");
  CHECK(fs::equivalent(place.out() / "model.safetensors", place.model() / "model.safetensors"));
  const InjectReport copy = place.inject(
      scales_for(place.config), {.target = "tgi", .link = LinkMode::copy, .overwrite = true});
  CHECK(how_of(copy, "model.safetensors") == "copied");
  CHECK_FALSE(
      fs::equivalent(place.out() / "model.safetensors", place.model() / "model.safetensors"));
  CHECK(copy.written_bytes ==
        hard.written_bytes + fs::file_size(place.model() / "model.safetensors"));
}

TEST_CASE(
    "inject: what holds no tensors is a file of its own, however large and whatever is asked for") {
  const Workplace place;
  place.folder.write("model/chat_template.jinja", "of the source");
  place.folder.write("model/tokenizer.json", std::string(1 << 17, ' '));
  const auto is_same = [&](const char* name) {
    return fs::equivalent(place.out() / name, place.model() / name);
  };
  const InjectReport report = place.inject(scales_for(place.config));
  CHECK(how_of(report, "chat_template.jinja") == "copied");
  std::ofstream(place.out() / "chat_template.jinja") << "edited in place";
  CHECK(test::read_file(place.model() / "chat_template.jinja") == "of the source");
  CHECK(how_of(report, "tokenizer.json") == "copied");
  const InjectReport hard = place.inject(
      scales_for(place.config), {.target = "tgi", .link = LinkMode::hard, .overwrite = true});
  CHECK(how_of(hard, "tokenizer.json") == "copied");
  for (const char* name : {"chat_template.jinja", "tokenizer.json"}) CHECK_FALSE(is_same(name));
  CHECK(is_same("model.safetensors"));
  std::ofstream(place.out() / "tokenizer.json") << "edited in place";
  CHECK(test::read_file(place.model() / "tokenizer.json") == std::string(1 << 17, ' '));
}

TEST_CASE("inject: links that leave the model's folder are refused") {
  const Workplace place;
  place.folder.write("secret", "of this machine");
  for (const char* name : {"LICENSE", "sub/notes.txt", "extra.safetensors"}) {
    CAPTURE(name);
    fs::create_directories((place.model() / name).parent_path());
    fs::create_symlink(place.folder / "secret", place.model() / name);
    CHECK(place.error(scales_for(place.config), {.target = "tgi"}) ==
          cat("'model/", name, "': is a link to 'secret', outside the model's folder"));
    fs::remove(place.model() / name);
  }
  // A shard, too, whatever is in it.
  fs::rename(place.model() / "model.safetensors", place.folder / "weights");
  fs::create_symlink("../weights", place.model() / "model.safetensors");
  CHECK(place.error(scales_for(place.config), {.target = "tgi"}) ==
        "'model/model.safetensors': is a link to 'weights', outside the model's folder");
  CHECK(place.beside().size() == 2);  // the secret and the weights
}

TEST_CASE("inject: a snapshot of the hub's cache has its blobs beside it, and nothing else") {
  const Workplace place;
  const fs::path cache = place.folder / "models--a--b";
  const fs::path snapshot = cache / "snapshots/0123";
  fs::create_directories(cache / "blobs");
  fs::create_directories(cache / "snapshots");
  fs::rename(place.model(), snapshot);
  fs::rename(snapshot / "model.safetensors", cache / "blobs/aa");
  fs::create_symlink("../../blobs/aa", snapshot / "model.safetensors");
  place.folder.write("models--a--b/refs/main", "0123");
  const KvScales scales = scales_for(place.config);
  inject_scales(Checkpoint::open(snapshot), scales, place.out(), {.target = "tgi"});
  CHECK(test::read_file(place.out() / "model.safetensors") == test::read_file(cache / "blobs/aa"));
  CHECK_FALSE(fs::is_symlink(place.out() / "model.safetensors"));
  fs::create_symlink("../../refs/main", snapshot / "notes");
  CHECK(place.without_folder(test::error_of([&] {
    inject_scales(Checkpoint::open(snapshot), scales, place.folder / "again", {.target = "tgi"});
  })) == "'models--a--b/snapshots/0123/notes': is a link to 'models--a--b/refs/main', outside "
         "the model's folder");
}

TEST_CASE("inject: copies have the mode of their source, new files that of the umask") {
  const Workplace place;
  place.folder.write("model/tokenizer.json", "{}");
  fs::permissions(place.model() / "tokenizer.json", fs::perms{0640});
  fs::permissions(place.model() / "model.safetensors", fs::perms{0440});
  const mode_t before = umask(022);
  place.inject(scales_for(place.config), {.target = "tgi", .link = LinkMode::copy});
  umask(before);
  const auto mode_of = [&](const char* name) {
    return fs::status(place.out() / name).permissions();
  };
  CHECK(mode_of("tokenizer.json") == fs::perms{0640});
  CHECK(mode_of("model.safetensors") == fs::perms{0440});
  CHECK(mode_of(kScaleShard) == fs::perms{0644});
}

TEST_CASE("inject: the source is not modified, whatever the way of linking") {
  for (const LinkMode mode : {LinkMode::automatic, LinkMode::hard, LinkMode::copy}) {
    const Workplace place(test::tiny_config(), {.n_shards = 2});
    place.folder.write("model/sub/file", "x");
    const auto before = snapshot(place.model());
    place.inject(scales_for(place.config), {.target = "tgi", .link = mode});
    CHECK((snapshot(place.model()) == before));
  }
}

TEST_CASE("inject: a dry run plans the same and writes nothing") {
  const Workplace place;
  const auto before = snapshot(place.folder.path());
  const InjectReport plan =
      place.inject(scales_for(place.config), {.target = "tgi", .dry_run = true});
  CHECK((snapshot(place.folder.path()) == before));
  const InjectReport done =
      place.inject(scales_for(place.config), {.target = "tgi", .link = LinkMode::hard});
  REQUIRE(plan.files.size() == done.files.size());
  for (size_t i = 0; i < plan.files.size(); ++i) {
    CHECK(plan.files[i].name == done.files[i].name);
    CHECK(plan.files[i].bytes == done.files[i].bytes);
    CHECK(done.files[i].bytes == fs::file_size(place.out() / done.files[i].name));
  }
  CHECK(how_of(plan, "model.safetensors") == "linked or copied");
  CHECK(plan.written_bytes == done.written_bytes);
  CHECK(plan.notes == done.notes);
}

TEST_CASE("inject: the names follow those of the checkpoint") {
  const Workplace place;
  std::vector<test::TinyTensor> tensors = test::tiny_tensors(place.config);
  for (auto& tensor : tensors) tensor.name = "language_" + tensor.name;
  test::write_tiny_weights(place.model(), tensors, DType::f32);
  place.inject(scales_for(place.config));
  CHECK(Checkpoint::open(place.out()).find("language_model.layers.1.self_attn.kv_scale"));
}

TEST_CASE("inject: a model without K projections where they should be is refused") {
  const Workplace place;
  std::vector<test::TinyTensor> tensors = test::tiny_tensors(place.config);
  const auto write_without = [&](const std::string& gone) {
    std::vector<test::TinyTensor> kept;
    for (const auto& tensor : tensors) {
      if (tensor.name.find(gone) == std::string::npos) kept.push_back(tensor);
    }
    test::write_tiny_weights(place.model(), kept, DType::f32);
  };
  write_without("k_proj");
  CHECK(place.error(scales_for(place.config)) ==
        "'model': has no stacks of layers with tensors named *.layers.N.self_attn.k_proj.*, "
        "expected one");
  write_without("0.self_attn.k_proj");
  CHECK(place.error(scales_for(place.config)) ==
        "'model': has no K projection in layer 0 of 'model.layers', where there are scales to put");
}

TEST_CASE("inject: scales for FNUZ are halved, those of heads reduced, and both is said") {
  const Workplace place(test::tiny_config(), {.n_shards = 2});
  KvScales scales = scales_for(place.config);
  scales.layers = {{{0.5f, 0.25f}, {1, 2}}, {{3, 4}, {8, 6}}};
  scales.provenance.observation = Observation::before_rope;
  const InjectReport report = place.inject(with_format(scales, Fp8Format::e4m3fnuz));
  CHECK(scales_at(Checkpoint::open(place.out())).scales.layers ==
        std::vector<LayerScales>{{{0.5f}, {2}}, {{4}, {8}}});
  CHECK(report.notes ==
        Strings{"scales for E4M3FNUZ were halved to those for E4M3FN",
                "the scales of 2 KV heads were reduced to their maximum: TGI has one per layer",
                "K was observed before RoPE, but is cached after it, where a value can be up to "
                "1.41 times as large and then saturates"});
}

TEST_CASE("inject: scales that are all 1 are written with a word") {
  const Workplace place(test::tiny_config(), {.n_shards = 2});
  KvScales scales = scales_for(place.config);
  scales.layers = {{{1}, {1}}, {{1}, {1}}};
  CHECK(place.inject(scales).notes ==
        Strings{"every scale is 1, which is also what runtimes use when there is none"});
}

TEST_CASE("inject: scales that do not fit or cannot be used are refused, and nothing is written") {
  const Workplace place;
  const InjectOptions options{.target = "tgi", .scales_name = "'s.json'"};
  test::TinyConfig other = place.config;
  other.n_layers = 3;
  CHECK(place.error(scales_for(other), options) == "'s.json': is for 3 layers, the model has 2");
  other = place.config;
  other.n_kv_heads = 4;
  CHECK(place.error(scales_for(other), options) ==
        "'s.json': has scales for 4 KV heads, the model has 2");
  other = place.config;
  other.model_type = "qwen2";
  CHECK(place.error(scales_for(other), options) ==
        "'s.json': is for model_type 'qwen2', the model is 'llama'");
  KvScales zero = scales_for(place.config);
  zero.layers[1].k[0] = 0;
  CHECK(place.error(zero, options) ==
        "'s.json': layer 1: the K scale is 0, expected a positive, finite, normal number");
  KvScales e5m2 = scales_for(place.config);
  e5m2.format = Fp8Format::e5m2;
  CHECK(place.error(e5m2, options) == "scales made for float8_e5m2 cannot serve float8_e4m3fn");
  CHECK(place.beside().empty());
}

TEST_CASE("inject: scales with the fingerprint of another model are refused") {
  const Workplace place;
  KvScales scales = scales_for(place.config);
  const std::string own = model_fingerprint(place.open(), test::model_of(place.config));
  scales.provenance.model_fingerprint = own;
  CHECK_NOTHROW(place.inject(scales, {.target = "tgi", .dry_run = true}));
  scales.provenance.model_fingerprint = "kv-proj-v1:00";
  CHECK(place.error(scales) ==
        cat("the scales: was calibrated on another model than 'model': the K and V projections are "
            "others (",
            own, " instead of kv-proj-v1:00)"));
  CHECK(place.beside().empty());
}

TEST_CASE("inject: a checkpoint that carries scales already is refused") {
  const Workplace place;
  const KvScales scales = scales_for(place.config);
  place.inject(scales);
  const Checkpoint injected = Checkpoint::open(place.out());
  CHECK(place.without_folder(test::error_of([&] {
    inject_scales(injected, scales, place.folder / "again", {.target = "tgi"});
  })) == "'out': already carries scales (kv_scale and k_scale/v_scale)");
  place.folder.write(cat("model/", kScaleShard), "left over");
  CHECK(place.error(scales, {.target = "tgi", .overwrite = true}) ==
        "'model': already has a file 'model-kv-scales.safetensors'");
}

TEST_CASE("inject: an output that exists is kept, unless replacing it was asked for") {
  const Workplace place;
  const KvScales scales = scales_for(place.config);
  place.folder.write("out/config.json", "old");
  CHECK(place.error(scales) == "'out': already exists");
  CHECK(place.error(scales, {.target = "tgi", .dry_run = true}) == "'out': already exists");
  CHECK(test::read_file(place.out() / "config.json") == "old");
  place.inject(scales, {.target = "tgi", .overwrite = true});
  CHECK(scales_at(Checkpoint::open(place.out())).scales.layers == scales.layers);
  CHECK(place.beside() == Strings{"out"});
}

TEST_CASE("inject: a folder that holds something else is never replaced") {
  const Workplace place;
  place.folder.write("out/thesis.tex", "mine");
  CHECK(place.error(scales_for(place.config), {.target = "tgi", .overwrite = true}) ==
        "'out': is not a model folder, and is not replaced");
  CHECK(test::read_file(place.out() / "thesis.tex") == "mine");
}

TEST_CASE("inject: the source, what is in it and what holds it are no output") {
  const Workplace place;
  fs::create_directory_symlink("model", place.folder / "link");
  const struct {
    std::string out;
    std::string message;
  } cases[] = {{"model", "'model': is the source 'model', which is never modified"},
               {"model/", "'model/': is the source 'model', which is never modified"},
               {"link", "'link': is the source 'model', which is never modified"},
               {"link/out", "'link/out': is within the source 'model', which is never modified"},
               {"model/sub/../out",
                "'model/sub/../out': is within the source 'model', which is never modified"}};
  for (const auto& wrong : cases) {
    const fs::path out = place.folder.path() / wrong.out;
    CHECK(place.without_folder(test::error_of(
              [&] {
                inject_scales(place.open(), scales_for(place.config), out,
                              {.target = "tgi", .overwrite = true});
              },
              ErrorKind::usage)) == wrong.message);
  }
  const std::string parent = place.folder.path().string();
  CHECK(test::error_of(
            [&] {
              inject_scales(place.open(), scales_for(place.config), parent,
                            {.target = "tgi", .overwrite = true});
            },
            ErrorKind::usage) == cat(quote(parent), ": holds the source ",
                                     quote(place.model().string()), ", which is never modified"));
}

TEST_CASE("inject: a name that begins like the source's is another folder") {
  const Workplace place;
  inject_scales(place.open(), scales_for(place.config), place.folder / "model-fp8/",
                {.target = "tgi"});
  CHECK(scales_at(Checkpoint::open(place.folder / "model-fp8")).scales.layers.size() == 2);
}

TEST_CASE("inject: a missing parent and an unknown target are refused") {
  const Workplace place;
  const KvScales scales = scales_for(place.config);
  CHECK(place.without_folder(test::error_of([&] {
    inject_scales(place.open(), scales, place.folder / "a/b", {.target = "tgi"});
  })) == "'a': no such folder");
  CHECK(test::error_of([&] { place.inject(scales, {.target = "tgl"}); }, ErrorKind::usage) ==
        "no target 'tgl' (did you mean 'tgi'?)");
}

// Files beyond this size cannot be written until the end of the scope: what a full disk is like.
class SmallDisk {
 public:
  explicit SmallDisk(rlim_t bytes) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit small{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
  }
  ~SmallDisk() { setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_{};
};

TEST_CASE("inject: a disk that fills up on the way leaves nothing behind") {
  const Workplace place;
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  std::string message;
  {
    const SmallDisk disk(8192);  // enough for config.json and the scales
    message = test::error_of(
        [&] { place.inject(scales_for(place.config), {.target = "tgi", .link = LinkMode::copy}); },
        ErrorKind::resource);
  }
  std::signal(SIGXFSZ, handler);
  CHECK(place.without_folder(message) == cat("'out' was not made: 'out.tmp-", getpid(),
                                             "/model.safetensors': cannot write: File too large"));
  CHECK(place.beside().empty());
}

TEST_CASE("inject: killed on the way, it leaves nothing under the name of the output") {
  const Workplace place;
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {  // writing past the limit kills it, as nothing handles SIGXFSZ
    const rlimit no_core{0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    std::signal(SIGXFSZ, SIG_DFL);
    const SmallDisk disk(8192);
    place.inject(scales_for(place.config), {.target = "tgi", .link = LinkMode::copy});
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  REQUIRE(WIFSIGNALED(status));
  CHECK(place.beside() == Strings{cat("out.tmp-", child)});
  place.inject(scales_for(place.config));
  CHECK(scales_at(Checkpoint::open(place.out())).scales.layers.size() == 2);
}

TEST_CASE("inject: real checkpoints of every layout take scales and give them back") {
  for (const char* name :
       {"stories260K-hf-f32", "stories260K-hf-bf16-sharded", "stories260K-hf-f16-untied"}) {
    const auto path = test::shared_data(cat("models/", name));
    if (!path) return;
    const test::TempDir folder;
    const Checkpoint source = Checkpoint::open(*path);
    const ModelDescription model = describe_model(source.config());
    test::TinyConfig alike;
    alike.model_type = model.model_type;
    alike.n_layers = model.n_layers();
    alike.n_kv_heads = model.n_kv_heads();
    KvScales scales = scales_for(alike, 7);
    scales.provenance.model_fingerprint = model_fingerprint(source, model);
    inject_scales(source, scales, folder / "out", {.target = "tgi"});
    const Checkpoint out = Checkpoint::open(folder / "out");
    CHECK(scales_at(out).scales.layers == scales.layers);
    CHECK(model_fingerprint(out, describe_model(out.config())) ==
          scales.provenance.model_fingerprint);
  }
}

}  // namespace

TEST_CASE("inject: a model that changed since it was opened is refused, and nothing is left") {
  for (const char* target : {"tgi", "json"}) {
    const Workplace place;
    const Checkpoint checkpoint = place.open();
    std::fstream(place.model() / "model.safetensors", std::ios::in | std::ios::out)
        .seekp(-1, std::ios::end)
        .put('\1');
    CHECK(place.without_folder(test::error_of([&] {
      inject_scales(checkpoint, scales_for(place.config), place.out(), {.target = target});
    })) == "'model/model.safetensors': changed while it was read: it was written to");
    CHECK(place.beside().empty());
  }
}

}  // namespace fp8kv
