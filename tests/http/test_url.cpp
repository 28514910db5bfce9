#include <string>

#include <doctest/doctest.h>

#include "http/private_address.h"
#include "http/url.h"

namespace fp8kv {
namespace {

std::string text_of(const std::optional<Url>& url) {
  return url ? url->text() : "none";
}

}  // namespace

TEST_CASE("url: scheme and host in lower case, without the scheme's own port and the fragment") {
  CHECK(text_of(parse_url("HTTPS://Host.Example:443/a/B?c=D#e")) == "https://host.example/a/B?c=D");
  CHECK(text_of(parse_url("http://host:8000")) == "http://host:8000/");
  CHECK(text_of(parse_url("http://[::1]:80?q")) == "http://[::1]/?q");
}

TEST_CASE("url: what could be read in two ways is none") {
  for (const char* text : {"ftp://host/", "host/path", "http://user:key@host/", "http://host/a b",
                           "http://host\\@other/", "http:///path", "http://host:99x/",
                           "http://:80/", "http://host/\r\nX: y", "http://h\xc3\xb6st/"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_url(text));
  }
}

TEST_CASE("url: a Location is absolute, or relative to the URL that gave it") {
  const Url base = *parse_url("https://host:8/a/b?x=/y");
  CHECK(text_of(redirected(base, "http://other/c")) == "http://other/c");
  CHECK(text_of(redirected(base, "//other/c")) == "https://other/c");
  CHECK(text_of(redirected(base, "/c?d=e://f")) == "https://host:8/c?d=e://f");
  CHECK(text_of(redirected(base, "c")) == "https://host:8/a/c");
  CHECK(text_of(redirected(base, "file:///etc/passwd")) == "none");
}

TEST_CASE("url: names that are private addresses, however they are written") {
  for (const char* host :
       {"localhost", "a.localhost", "localhost.", "127.0.0.1", "10.1.2.3", "192.168.0.1",
        "172.31.255.255", "169.254.169.254", "100.64.0.1", "0.0.0.0", "2130706433", "0x7f000001",
        "127.1", "[::1]", "[fe80::1]", "[fd00::1]", "[::ffff:10.0.0.1]", "[64:ff9b::a00:1]"}) {
    CAPTURE(host);
    CHECK(is_private_name(*parse_url(std::string("http://") + host)));
  }
  for (const char* host : {"huggingface.co", "8.8.8.8", "172.32.0.1", "100.128.0.1", "[2600::1]",
                           "10.example", "local.host", "[::ffff:8.8.8.8]"}) {
    CAPTURE(host);
    CHECK_FALSE(is_private_name(*parse_url(std::string("http://") + host)));
  }
}

TEST_CASE("url: bytes that may not stand in a path are escaped") {
  CHECK(escaped_path("a/b-1.x_~") == "a/b-1.x_~");
  CHECK(escaped_path("a b?#%\xc3") == "a%20b%3F%23%25%C3");
}

}  // namespace fp8kv
