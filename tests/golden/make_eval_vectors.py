"""Writes eval-figures.json: distances of logit rows and figures of many tokens, to check the C++ evaluation against.

    python make_eval_vectors.py       needs NumPy and, for the divergences, SciPy (else NumPy's longdouble)

rows: pairs of logit rows with KL(softmax a || softmax b), the negative log likelihood of an id under b, and the
likeliest ids. tokens: negative log likelihoods and divergences of 1,500 tokens at rising depths, with what they come to
in all and in each bucket of depth. Logits are float32 and everything else is computed from them in float64.
"""

import json
import pathlib

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent


def log_softmax(x):
    try:
        from scipy.special import log_softmax as scipys
        return scipys(x.astype(np.float64))
    except ImportError:
        x = x.astype(np.longdouble)
        return (x - x.max()) - np.log(np.exp(x - x.max()).sum())


def divergence(p_log, q_log):
    try:
        from scipy.special import rel_entr
        return float(rel_entr(np.exp(p_log), np.exp(q_log)).sum())
    except ImportError:
        return float((np.exp(p_log) * (p_log - q_log)).sum())


def row(a, b, target):
    a, b = a.astype(np.float32), b.astype(np.float32)
    p, q = log_softmax(a), log_softmax(b)
    return {"a": [float(v) for v in a], "b": [float(v) for v in b], "target": int(target), "kld": divergence(p, q),
            "nll": float(-q[target]), "best_a": int(a.argmax()), "best_b": int(b.argmax())}


def parts_of(depths):
    """Lists of indices: a list a window, or equal shares of windows where there are fewer than 16."""
    starts = [0] + [i for i in range(1, len(depths)) if depths[i] <= depths[i - 1]] + [len(depths)]
    windows = [np.arange(a, b) for a, b in zip(starts, starts[1:])]
    count = -(-16 // len(windows))
    parts = []
    for window in windows:
        share = np.arange(len(window)) * min(count, len(window)) // len(window)
        parts += [window[share == k] for k in range(min(count, len(window)))]
    return parts


def standard_error(values, parts):
    """Of the mean, by the variance of a ratio of sums over parts (Cochran, Sampling Techniques, section 6.4)."""
    if len(parts) < 2:
        return 0.0
    off = np.array([values[p].sum() - values.mean() * len(p) for p in parts])
    return float(np.sqrt((off**2).sum() * len(parts) / (len(parts) - 1)) / len(values))


def figures(nll, base, kld, agree, depths):
    parts = parts_of(depths)
    error = lambda values: standard_error(values, parts)
    more = nll - base
    first = depths <= 16
    heavy = np.sort(kld)[::-1][:max(1, len(kld) // 100)].sum() / kld.sum()
    def place(chosen):
        if not chosen.any():
            return 0.0, 0.0
        return float(kld[chosen].mean()), standard_error(kld[chosen], parts_of(depths[chosen]))
    return {**dict(zip(("first_kld", "first_kld_error"), place(first))), "first_tokens": int(first.sum()), "heavy_share": float(heavy),
            **dict(zip(("later_kld", "later_kld_error"), place(~first))), "tokens": len(nll), "nll": float(nll.mean()), "nll_error": error(nll), "perplexity": float(np.exp(nll.mean())),
            "perplexity_error": float(np.exp(nll.mean()) * error(nll)), "ppl_delta": float(np.exp(more.mean()) - 1),
            "ppl_delta_error": float(np.exp(more.mean()) * error(more)), "kld": float(kld.mean()),
            "kld_error": error(kld), "kld_p999": float(np.percentile(kld, 99.9)), "kld_max": float(kld.max()),
            "top1": float(agree.mean())}


def main():
    rng = np.random.default_rng(20)
    rows = [row(rng.normal(0, 3, 40), rng.normal(0, 3, 40), 7)]
    a = rng.normal(0, 4, 40)
    rows.append(row(a, a + rng.normal(0, 0.01, 40), 3))             # two caches that nearly agree
    rows.append(row(a + 1000, a - 1000, 11))                        # far from 0: exp alone would overflow
    peaked = np.full(40, -50.0)
    peaked[5] = 50
    rows.append(row(peaked, a, 5))
    rows.append(row(np.zeros(40), np.zeros(40), 39))                # ties: the first

    n = 1500
    nll = rng.gamma(1.5, 1.2, n)
    base = np.abs(nll + rng.normal(0, 0.02, n))
    kld = rng.lognormal(-7, 2, n)
    agree = rng.random(n) < 0.97
    # Two windows, one of them beyond the second bound, in no order.
    depths = np.concatenate([np.arange(700, 1200), np.arange(1, 601), np.arange(1900, 2300)])
    buckets = []
    for low, high in [(0, 512), (512, 2048), (2048, 8192)]:
        inside = (depths >= low) & (depths < high)
        buckets.append({"first_depth": low, "end_depth": high,
                        **figures(nll[inside], base[inside], kld[inside], agree[inside], depths[inside])})
    tokens = {"nll": nll.tolist(), "baseline_nll": base.tolist(), "kld": kld.tolist(),
              "agree": [int(v) for v in agree], "depths": depths.tolist(), "total": figures(nll, base, kld, agree, depths),
              "buckets": buckets}
    percentiles = [{"values": v, "share": s, "result": float(np.percentile(v, 100 * s))}
                   for v, s in [([3.0], 0.999), ([2.0, 1.0], 0.5), ([5.0, 1.0, 4.0, 2.0], 0.999), ([1.0, 2.0], 1.0)]]
    with open(HERE / "eval-figures.json", "w") as out:
        json.dump({"rows": rows, "tokens": tokens, "percentiles": percentiles}, out)
        out.write("\n")


if __name__ == "__main__":
    main()
