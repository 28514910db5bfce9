#include "unpack/unpacker.h"

#include <algorithm>
#include <exception>
#include <limits>
#include <span>
#include <zstd.h>

#include <zlib.h>

#include "base/error.h"

namespace fp8kv {
namespace {

// gzip in zlib's terms: the window that deflate may use, and 16 for the form of the header.
constexpr int kGzipWindow = MAX_WBITS + 16;

Error ends_early(const char* what) {
  return Error(cat(what, " ends too early: the file is cut short"), "fetch or pack it again");
}

[[noreturn]] void fail_memory(const char* what) {
  throw Error(cat(what, " cannot be unpacked: out of memory"), "free memory", ErrorKind::resource);
}

}  // namespace

struct Unpacker::State {
  State(Packing which, std::string_view bytes) : packing(which), packed(bytes), rest(bytes) {
    if (packing == Packing::gzip) {
      if (inflateInit2(&gzip, kGzipWindow) != Z_OK) fail_memory("gzip data");
    } else {
      zstd = ZSTD_createDStream();
      if (!zstd) fail_memory("Zstandard data");
    }
  }
  ~State() {
    if (packing == Packing::gzip) inflateEnd(&gzip);
    if (zstd) ZSTD_freeDStream(zstd);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  size_t offset() const { return packed.size() - rest.size(); }

  // Into all of `to`, or until the end. Returns how many bytes. What is before a place that
  // cannot be unpacked is given first, and its error the next time.
  size_t unpack(std::span<char> to) {
    if (failure) std::rethrow_exception(failure);
    size_t got = 0;
    try {
      packing == Packing::gzip ? unpack_gzip(to, got) : unpack_zstd(to, got);
    } catch (const Error&) {
      if (got == 0) throw;
      failure = std::current_exception();
    }
    return got;
  }

  void unpack_gzip(std::span<char> to, size_t& got) {
    gzip.next_out = reinterpret_cast<Bytef*>(to.data());
    gzip.avail_out = static_cast<uInt>(to.size());
    while (gzip.avail_out > 0 && !ended) {
      // zlib does not write through next_in; its type is not const for historical reasons.
      gzip.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(rest.data()));
      const auto given =
          static_cast<uInt>(std::min<size_t>(rest.size(), std::numeric_limits<uInt>::max()));
      gzip.avail_in = given;
      const int result = inflate(&gzip, Z_NO_FLUSH);
      rest.remove_prefix(given - gzip.avail_in);
      got = to.size() - gzip.avail_out;
      if (result == Z_STREAM_END) {
        next_member();
      } else if (result == Z_MEM_ERROR) {
        fail_memory("gzip data");
      } else if (result == Z_BUF_ERROR || (result == Z_OK && rest.empty() && gzip.avail_out > 0)) {
        throw ends_early("gzip data");
      } else if (result != Z_OK) {
        fail("gzip data is damaged before its byte ", offset(), ": ",
             gzip.msg ? gzip.msg : "it cannot be inflated");
      }
    }
  }

  void next_member() {
    const size_t padding = rest.find_first_not_of('\0');
    if (padding == rest.npos) {
      ended = true;
      return;
    }
    if (!rest.starts_with("\x1F\x8B")) {
      fail("behind gzip data, at byte ", offset(), ", is something else");
    }
    inflateReset(&gzip);
  }

  void unpack_zstd(std::span<char> to, size_t& got) {
    ZSTD_outBuffer out{to.data(), to.size(), 0};
    while (out.pos < out.size && !ended) {
      ZSTD_inBuffer in{rest.data(), rest.size(), 0};
      const size_t before = out.pos;
      const size_t result = ZSTD_decompressStream(zstd, &out, &in);
      rest.remove_prefix(in.pos);
      got = out.pos;
      if (ZSTD_isError(result)) fail_zstd(result);
      if (rest.empty() && out.pos < out.size) {
        if (result != 0) throw ends_early("Zstandard data");
        ended = true;
      } else if (in.pos == 0 && out.pos == before) {
        throw ends_early("Zstandard data");
      }
    }
  }

  [[noreturn]] void fail_zstd(size_t result) const {
    const std::string reason = ZSTD_getErrorName(result);
    if (reason.find("too much memory") != reason.npos) {
      throw Error("Zstandard data needs a window of more than 128 MiB",
                  "pack it without --ultra and --long, or unpack it into a pipe: "
                  "zstd -dc --memory=2048MB FILE");
    }
    fail("Zstandard data is damaged near its byte ", offset(), ": ", reason);
  }

  Packing packing;
  std::string_view packed;
  std::string_view rest;
  bool ended = false;
  std::exception_ptr failure;
  z_stream gzip{};
  ZSTD_DStream* zstd = nullptr;
};

Unpacker::Unpacker(Packing packing, std::string_view packed)
    : state_(std::make_unique<State>(packing, packed)) {
  FP8KV_ASSERT(packing != Packing::none);
}
Unpacker::~Unpacker() = default;
Unpacker::Unpacker(Unpacker&&) noexcept = default;

bool Unpacker::more(std::string& out, size_t wanted) {
  const size_t before = out.size();
  out.resize(before + wanted);
  try {
    out.resize(before + state_->unpack({out.data() + before, wanted}));
  } catch (...) {
    out.resize(before);
    throw;
  }
  return out.size() > before;
}

}  // namespace fp8kv
