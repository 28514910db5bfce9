#include <map>

#include <doctest/doctest.h>

#include "checkpoint/hub_models.h"
#include "support/expect_error.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

namespace fs = std::filesystem;

Variables given(const std::map<std::string, std::string>& values) {
  return [values](const char* name) {
    const auto found = values.find(name);
    return found == values.end() ? "" : found->second;
  };
}

const std::string kCommit = "0123456789abcdef0123456789abcdef01234567";

// A cache with one complete model, in huggingface_hub's layout.
struct Cache {
  Cache() {
    fs::create_directories(entry / "refs/refs/pr");
    fs::create_directories(entry / "blobs");
    fs::create_directories(snapshot());
    temp.write("models--org--tiny/refs/main", kCommit);
    temp.write("models--org--tiny/refs/refs/pr/3", kCommit);
    add("config.json", "{}");
    add("tokenizer.json", "{}");
    add("model.safetensors", "x");
  }
  void add(const std::string& file, const std::string& text) const {
    temp.write("models--org--tiny/blobs/" + file, text);
    fs::create_symlink("../../blobs/" + file, snapshot() / file);
  }
  fs::path snapshot() const { return entry / "snapshots" / kCommit; }
  fs::path find(const std::string& name) const {
    return find_model(name, given({{"HF_HUB_CACHE", temp.path().string()}}));
  }
  std::string error_of(const std::string& name) const {
    const auto work = [&] { find(name); };
    return test::error_of(work) + "\n" + test::help_of(work);
  }

  test::TempDir temp;
  fs::path entry = temp / "models--org--tiny";
};

}  // namespace

TEST_CASE("hub models: names are those that the hub takes") {
  for (const char* name :
       {"gpt2", "org/name", "org/name@v1.0", "a-b/c_d.e", "org/name@refs/pr/3"}) {
    CAPTURE(name);
    CHECK(hub_name(name));
  }
  for (const char* text : {"", "/name", "org/", "a/b/c", "./name", "../name", "org/name.",
                           "org/.name", "org/-name", "a--b/c", "a/b..c", "a/b.git", "org/name@",
                           "org/name@../x", "org/name@/x", "org/na me", "org\\name"}) {
    CAPTURE(text);
    CHECK_FALSE(hub_name(text));
  }
  CHECK(hub_name("org/name")->revision == "main");
  CHECK(hub_name("org/name@v1")->repo == "org/name");
  CHECK(hub_name("org/name@v1")->revision == "v1");
}

// Results of huggingface_hub 2.4 for the same variables.
TEST_CASE("hub models: the cache is where huggingface_hub has it") {
  const auto cache = [](const std::map<std::string, std::string>& values) {
    return hub_cache(given(values)).string();
  };
  const std::map<std::string, std::string> home = {{"HOME", "/home/me"}};
  CHECK(cache(home) == "/home/me/.cache/huggingface/hub");
  CHECK(cache({{"XDG_CACHE_HOME", "/x"}}) == "/x/huggingface/hub");
  CHECK(cache({{"XDG_CACHE_HOME", "/x"}, {"HF_HOME", "/hf"}}) == "/hf/hub");
  CHECK(cache({{"HF_HOME", "/hf"}, {"HUGGINGFACE_HUB_CACHE", "/old"}}) == "/old");
  CHECK(cache({{"HUGGINGFACE_HUB_CACHE", "/old"}, {"HF_HUB_CACHE", "/new"}}) == "/new");
  CHECK(cache({{"HOME", "/home/me"}, {"HF_HUB_CACHE", "~/c"}}) == "/home/me/c");
  CHECK(cache({{"SCRATCH", "/s"}, {"HF_HOME", "$SCRATCH/hf"}}) == "/s/hf/hub");
  CHECK(cache({{"SCRATCH", "/s"}, {"HF_HUB_CACHE", "${SCRATCH}c"}}) == "/sc");
  CHECK(cache({{"HF_HUB_CACHE", "/a$NOT_SET/b"}}) == "/a$NOT_SET/b");
}

TEST_CASE("hub models: a name is its revision's snapshot, a path itself") {
  const Cache cache;
  CHECK(cache.find("org/tiny") == cache.snapshot());
  CHECK(cache.find("org/tiny@main") == cache.snapshot());
  CHECK(cache.find("org/tiny@" + kCommit) == cache.snapshot());
  CHECK(cache.find("org/tiny@refs/pr/3") == cache.snapshot());
  CHECK(cache.find(cache.entry.string()) == cache.snapshot());
  CHECK(cache.find(cache.entry.string() + "/") == cache.snapshot());
  CHECK(cache.find(cache.snapshot().string()) == cache.snapshot());
  CHECK(cache.find(cache.temp.path().string()) == cache.temp.path());
  CHECK(cache.find("no-such") == "no-such");
  CHECK(cache.find("no/such/path") == "no/such/path");
}

TEST_CASE("hub models: a name of one part is found as well") {
  const Cache cache;
  fs::rename(cache.entry, cache.temp / "models--tiny");
  CHECK(cache.find("tiny") == cache.temp / "models--tiny/snapshots" / kCommit);
}

TEST_CASE("hub models: what is not there is an error with the line that fetches it") {
  const Cache cache;
  const std::string where = cache.temp.path().string();
  const std::string all =
      " --include \"*.json\" --include \"*.safetensors\" --include \"*.jinja\" --include "
      "\"tokenizer.model\" --include \"merges.txt\"";
  CHECK(cache.error_of("org/other") ==
        "'org/other': is no path here, and no model of this name is in the hub's cache (" + where +
            ")\ncheck the path; or fetch the model: hf download org/other" + all);
  CHECK(cache.error_of("org/tiny@v2") ==
        "'org/tiny@v2': the hub's cache has the revision " + kCommit + " of it, not 'v2' (" +
            where + "/models--org--tiny)\nfetch it: hf download org/tiny --revision v2" + all +
            "; or name one that is there: org/tiny@" + kCommit);
}

TEST_CASE("hub models: of a snapshot that is not whole, what lacks is named") {
  const Cache cache;
  fs::remove(cache.snapshot() / "model.safetensors");
  const std::string where = "'" + cache.snapshot().string() + "': is not whole: ";
  CHECK(cache.error_of("org/tiny") == where +
                                          "model.safetensors is missing\nfetch what is missing: "
                                          "hf download org/tiny model.safetensors");
  cache.add(
      "model.safetensors.index.json",
      R"({"weight_map": {"a": "m-1.safetensors", "b": "m-2.safetensors", "c": "m-2.safetensors"}})");
  const std::string both =
      where +
      "m-1.safetensors and m-2.safetensors are missing\nfetch what is missing: hf "
      "download org/tiny m-1.safetensors m-2.safetensors";
  CHECK(cache.error_of("org/tiny") == both);
  cache.add("m-1.safetensors", "x");
  fs::create_symlink("../../blobs/nowhere", cache.snapshot() / "m-2.safetensors");
  CHECK(cache.error_of("org/tiny@" + kCommit) ==
        where +
            "m-2.safetensors is missing\nfetch what is missing: hf download org/tiny --revision " +
            kCommit + " m-2.safetensors");
  CHECK(cache.error_of(cache.snapshot().string()) == cache.error_of("org/tiny@" + kCommit));
}

// The folder may have scales of other tools or other weights. The command that reads it reports
// what is missing.
TEST_CASE("hub models: a snapshot of another form is taken as it is") {
  const Cache cache;
  fs::remove(cache.snapshot() / "model.safetensors");
  cache.add("rank0.safetensors", "x");
  CHECK(cache.find("org/tiny") == cache.snapshot());
  fs::remove(cache.snapshot() / "rank0.safetensors");
  fs::remove(cache.snapshot() / "config.json");
  cache.add("kv_cache_scales.json", "{}");
  CHECK(cache.find("org/tiny") == cache.snapshot());
}

TEST_CASE("hub models: of a model's own file the folder is meant") {
  const Cache cache;
  CHECK(model_folder(cache.snapshot() / "model.safetensors") == cache.snapshot());
  CHECK(find_model(cache.snapshot() / "model.safetensors") ==
        cache.snapshot() / "model.safetensors");
  cache.temp.write("alone.safetensors", "x");
  CHECK(model_folder(cache.temp / "alone.safetensors") == cache.temp / "alone.safetensors");
}

}  // namespace fp8kv
