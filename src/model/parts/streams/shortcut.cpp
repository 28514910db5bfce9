#include "model/parts/streams/shortcut.h"

#include "model/parts/streams/stream_rows.h"

namespace fp8kv {

ShortcutForward::ShortcutForward(ForwardMemory& memory, const ModelConfig& config)
    : backend_(memory.backend()) {
  stream_ = memory.rows(config.dim);
  kept_ = memory.rows(config.dim);
  chosen_ = memory.rows(config.stream_dim());
}

TensorView ShortcutForward::stream(const ConstTensorView& x) {
  const TensorView out = stream_.first(x.shape[0]);
  copy_stream(backend_, x, 0, out);
  return out;
}

void ShortcutForward::put(const ConstTensorView& y, const TensorView& x) {
  put_stream(backend_, y, 0, x);
}

void ShortcutForward::keep(const ConstTensorView& made, const TensorView& x) {
  put_stream(backend_, made, 1, x);
}

TensorView ShortcutForward::kept(const ConstTensorView& x) {
  const TensorView out = kept_.first(x.shape[0]);
  copy_stream(backend_, x, 1, out);
  return out;
}

void ShortcutForward::merge(const ConstTensorView& x, const ConstTensorView& rows,
                            const TensorView& out) {
  const TensorView chosen = chosen_.first(rows.shape[0]);
  backend_.embed(x, rows, chosen);
  copy_stream(backend_, chosen, 0, out);
}

}  // namespace fp8kv
