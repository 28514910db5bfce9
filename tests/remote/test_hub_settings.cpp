#include <map>
#include <string>

#include <doctest/doctest.h>

#include "remote/earlier_files.h"
#include "remote/hub_settings.h"
#include "remote/remote_address.h"
#include "remote/remote_cache.h"
#include "support/expect_error.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

Variables variables(std::map<std::string, std::string> values) {
  return [values](const char* name) {
    const auto found = values.find(name);
    return found == values.end() ? std::string() : found->second;
  };
}

}  // namespace

TEST_CASE("hub settings: the endpoint, the token and offline are those of huggingface_hub") {
  const test::TempDir temp;
  temp.write("home/token", "hf_file\n");
  temp.write("other", " hf_other ");
  const std::string home = (temp / "home").string(), other = (temp / "other").string();
  CHECK(hub_settings(variables({})).endpoint.text() == "https://huggingface.co");
  CHECK(hub_settings(variables({{"HF_ENDPOINT", "http://mirror:8/hf/"}})).endpoint.text() ==
        "http://mirror:8/hf");
  CHECK(hub_settings(variables({})).token == "");
  CHECK(hub_settings(variables({{"HF_HOME", home}})).token == "hf_file");
  CHECK(hub_settings(variables({{"HF_HOME", home}, {"HF_HUB_CACHE", "/elsewhere"}})).token ==
        "hf_file");
  CHECK(hub_settings(variables({{"HF_HOME", home}, {"HF_TOKEN_PATH", other}})).token == "hf_other");
  CHECK(hub_settings(variables({{"HF_HOME", home}, {"HF_TOKEN", "hf_given"}})).token == "hf_given");
  CHECK_FALSE(hub_settings(variables({{"HF_HUB_OFFLINE", "0"}})).offline);
  CHECK(hub_settings(variables({{"HF_HUB_OFFLINE", "1"}})).offline);
}

TEST_CASE("hub settings: a token that is none is not repeated") {
  const std::string error = test::error_of(
      [] {
        hub_settings(variables({{"HF_TOKEN", "hf_secret\r\nX-Other: 1"}}));
      },
      ErrorKind::usage);
  CHECK(error == "the token of the hub has characters that no token has");
}

TEST_CASE("remote address: names on the hub, and folders") {
  CHECK(parse_remote_address("hf://org/name").text() == "hf://org/name");
  CHECK(parse_remote_address("hf://org/name@refs/pr/1").hub->revision == "refs/pr/1");
  CHECK(parse_remote_address("https://host/a/b").text() == "https://host/a/b/");
  CHECK(parse_remote_address("http://127.0.0.1:8000/a").text() == "http://127.0.0.1:8000/a/");
  for (const char* text : {"hf://", "hf://a/b/c", "hf://a/b@", "hf://a/b@../c", "https://u:k@h/a",
                           "https://h/a?key=1", "http://h.example/a"}) {
    CAPTURE(text);
    const std::string error = test::error_of([&] { parse_remote_address(text); }, ErrorKind::usage);
    CHECK(error.find("key") == std::string::npos);
  }
}

TEST_CASE("remote cache: a folder of its own, in which no name leads out") {
  CHECK(remote_cache(variables({{"XDG_CACHE_HOME", "/x"}, {"HOME", "/h"}})) == "/x/fp8kv");
  CHECK(remote_cache(variables({{"XDG_CACHE_HOME", "relative"}, {"HOME", "/h"}})) ==
        "/h/.cache/fp8kv");
  CHECK(remote_cache(variables({})).empty());
  const auto folder = [](const char* address) {
    const HubSettings settings = hub_settings(variables({{"HF_ENDPOINT", "http://h:8/hf"}}));
    return CachedModel("/x", parse_remote_address(address), settings, "-y").folder_of("c").string();
  };
  CHECK(folder("hf://org/name@refs/pr/1") == "/x/h~8~hf/org~name/c-y");
  for (const char* address : {"https://h:8/a/b", "https://h:8/a~/b", "https://h:8/.."}) {
    CAPTURE(std::string(address));
    CHECK(folder(address).starts_with("/x/https~~~h~8/"));
    CHECK(folder(address).ends_with("/c-y"));
    CHECK(folder(address).find("/../") == std::string::npos);
  }
  CHECK(folder("https://h:8/a/b") != folder("https://h:8/a~/b"));
  CHECK(folder("https://h:8/a/b") == folder("https://h:8/a/b/"));
}

TEST_CASE("remote cache: a folder has a version if each of its files has a strong ETag") {
  for (const char* etag : {"\"\"", "\"a-1\""}) CHECK(is_strong_etag(etag));
  for (const char* etag : {"", "\"", "a", "W/\"a\"", "\"a\"b\"", "\"a b\"", "\"a\nb\""}) {
    CAPTURE(std::string(etag));
    CHECK_FALSE(is_strong_etag(etag));
  }
  PartialRecord record;
  record.files["a"].etag = "\"1\"";
  const auto version = folder_version(record);
  REQUIRE(version);
  CHECK(is_commit(*version));
  record.files["b"].etag = "\"2\"";
  CHECK(folder_version(record) != version);
  record.files["b"].etag = "W/\"2\"";
  CHECK_FALSE(folder_version(record));
}

}  // namespace fp8kv
