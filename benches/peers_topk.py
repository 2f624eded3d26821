#!/usr/bin/env python3
"""Peers of `lodestar topk`: exact cosine / inner-product top-k over the same .npy inputs.

Setup    python3 -m venv venv-topk
         venv-topk/bin/pip install numpy faiss-cpu usearch numkong simsimd scikit-learn hnswlib threadpoolctl mkl
         (torch is optional: its wheel brings several GB of CUDA libraries; CPU code still works)
Inputs   peers_topk.py make --dir topk-in --n 100000 --q 256 --d 384 [--seed 1]
         writes corpus_{n}x{d}.npy and queries_{q}x{d}.npy (f32, standard normal, C order)
Measure  peers_topk.py run --corpus C.npy --queries Q.npy --k 10 --threads 2 \
             --peers faiss,numpy,usearch --metric cosine
         prints one JSON line per peer. Each peer runs in a fresh process pinned to `--threads` CPUs,
         so that the thread pools of one never disturb another.
What is timed: one search call over rows already in memory and (for inner-product engines, metric=cosine)
already L2-normalised, result ids and scores back as arrays. `setup_ms` (normalise + index build/packing),
`rss_mb` growth and the check against a float64 reference are reported apart.
`foreign` = cores' worth of CPU that other processes took meanwhile: repeat the run when it is above ~0.05.
`wall_ms` = median of reps, `min_ms` = best, `cpu_ms` = median process CPU time (robust to a shared machine).
`faiss` alone is the wheel's default: below 128,000 = Q*D it never calls sgemm, and its OpenBLAS 0.3.15 falls back to
SSE ("Prescott") on CPUs newer than itself. The fair bar is `--peers faiss_blas --coretype SkylakeX` (Haswell on AVX2).
`ab` : every round runs each peer once, and optionally a shell command (`--cmd`), so that ratios survive a noisy host;
with --cmd-key the command's own number (last JSON line on stdout) is taken instead of its wall time.
`e2e` : whole `python script` process from start to written ids (what a CLI has to beat).
"""
import argparse, json, os, resource, subprocess, sys, time

THREAD_VARS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS",
               "RAYON_NUM_THREADS", "GOTO_NUM_THREADS")
PEERS = ["faiss", "faiss_blas", "numpy", "numpy_gemm", "mkl_gemm", "mkl", "torch", "torch_gemm", "usearch", "numkong",
         "numkong_bf16", "simsimd", "sklearn_cosine", "sklearn_argkmin", "hnswlib"]


def make(a):
    import numpy as np
    os.makedirs(a.dir, exist_ok=True)
    for name, rows, seed in (("corpus", a.n, a.seed), ("queries", a.q, a.seed + 1)):
        p = os.path.join(a.dir, f"{name}_{rows}x{a.d}.npy")
        if not os.path.exists(p):
            rng = np.random.default_rng(seed)
            out = np.lib.format.open_memmap(p + ".tmp", mode="w+", dtype="<f4", shape=(rows, a.d))
            for i in range(0, rows, 65536):
                j = min(rows, i + 65536)
                out[i:j] = rng.standard_normal((j - i, a.d), dtype=np.float32)
            out.flush(); del out
            os.rename(p + ".tmp", p)
        print(p)


def sorted_topk(np, s, k):
    """argpartition, then order the k by (score desc, id asc)."""
    n = s.shape[1]
    if k < n:
        part = np.argpartition(s, n - k, axis=1)[:, n - k:]
    else:
        part = np.broadcast_to(np.arange(n), s.shape).copy()
    v = np.take_along_axis(s, part, 1)
    o = np.lexsort((part, -v), axis=1)
    return np.take_along_axis(part, o, 1), np.take_along_axis(v, o, 1)


def build(name, X, Q, k, threads, metric, np):
    """Return (search(), setup seconds). X, Q raw f32; engines of inner product get normalised copies for cosine."""
    t0 = time.perf_counter()
    Xn, Qn = X, Q
    raw_ok = name in ("usearch", "sklearn_cosine")
    if metric == "cosine" and not raw_ok:
        Xn = X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-30)
        Qn = Q / np.maximum(np.linalg.norm(Q, axis=1, keepdims=True), 1e-30)
    nq, n = len(Q), len(X)
    bs = max(1, min(nq, (64 << 20) // n))  # <= 256 MB of scores at a time

    def chunked(scores):
        def f():
            I = np.empty((nq, min(k, n)), np.int64); S = np.empty((nq, min(k, n)), np.float32)
            for i in range(0, nq, bs):
                I[i:i + bs], S[i:i + bs] = sorted_topk(np, scores(Qn[i:i + bs]), min(k, n))
            return I, S
        return f

    if name in ("faiss", "faiss_blas"):
        import faiss
        faiss.omp_set_num_threads(threads)
        if name == "faiss_blas":  # force the sgemm path for every batch
            faiss.cvar.distance_compute_blas_threshold = 1
        ix = faiss.IndexFlatIP(X.shape[1]); ix.add(Xn)
        def f():
            S, I = ix.search(Qn, k)
            return I, S
    elif name == "numpy":
        f = chunked(lambda q: q @ Xn.T)
    elif name == "numpy_gemm":  # no selection: the GEMM part alone
        out = np.empty((bs, n), np.float32)
        def f():
            for i in range(0, nq, bs):
                q = Qn[i:i + bs]; np.dot(q, Xn.T, out=out[:len(q)])
    elif name in ("mkl_gemm", "mkl"):
        import ctypes, glob
        root = sys.prefix + "/lib/libmkl_rt.so*"
        lib = ctypes.CDLL(sorted(glob.glob(root))[-1], mode=ctypes.RTLD_GLOBAL)
        lib.MKL_Set_Num_Threads(ctypes.c_int(threads))
        P = ctypes.c_void_p; ci = ctypes.c_int; cf = ctypes.c_float
        out = np.empty((bs, n), np.float32)
        def gemm(q):
            m, d = q.shape
            lib.cblas_sgemm(ci(101), ci(111), ci(112), ci(m), ci(n), ci(d), cf(1), P(q.ctypes.data), ci(d),
                            P(Xn.ctypes.data), ci(d), cf(0), P(out.ctypes.data), ci(n))
            return out[:m]
        if name == "mkl":
            f = chunked(gemm)
        else:
            def f():
                for i in range(0, nq, bs):
                    gemm(Qn[i:i + bs])
    elif name in ("torch", "torch_gemm"):
        import torch
        torch.set_num_threads(threads)
        tx, tq = torch.from_numpy(Xn), torch.from_numpy(Qn)
        out = torch.empty((bs, n)) if name == "torch_gemm" else None
        def f():
            R = []
            with torch.inference_mode():
                for i in range(0, nq, bs):
                    q = tq[i:i + bs]
                    if out is not None:
                        torch.mm(q, tx.T, out=out[:len(q)])
                    else:
                        R.append(torch.topk(torch.mm(q, tx.T), min(k, n), dim=1, largest=True, sorted=True))
            if R:
                return torch.cat([r.indices for r in R]).numpy(), torch.cat([r.values for r in R]).numpy()
    elif name == "usearch":
        from usearch.index import search, MetricKind
        mk = MetricKind.Cos if metric == "cosine" else MetricKind.IP
        def f():
            m = search(X, Q, k, mk, exact=True, threads=threads)
            I, D = m.keys, m.distances
            return I.reshape(nq, -1).astype(np.int64), (1 - D).reshape(nq, -1)
    elif name in ("numkong", "numkong_bf16"):
        import numkong as nk
        if name == "numkong":
            packed = nk.dots_pack(Xn); cast = lambda q: q  # its f32 path accumulates in f64, single-threaded
        else:
            xb = nk.Tensor(Xn).astype("bfloat16")
            packed = nk.dots_pack(xb, dtype="bf16"); cast = lambda q: nk.Tensor(q).astype("bfloat16")
        f = chunked(lambda q: np.asarray(nk.dots_packed(cast(q), packed)))
    elif name == "simsimd":
        import simsimd
        f = chunked(lambda q: np.asarray(simsimd.cdist(q, Xn, metric="dot", threads=threads)))
    elif name in ("sklearn_cosine", "sklearn_argkmin"):
        from sklearn.neighbors import NearestNeighbors
        from threadpoolctl import threadpool_limits
        threadpool_limits(threads)
        m = "cosine" if name == "sklearn_cosine" else "sqeuclidean"  # on unit rows the same order as cosine
        nn = NearestNeighbors(n_neighbors=k, algorithm="brute", metric=m, n_jobs=1).fit(Xn)
        def f():
            D, I = nn.kneighbors(Qn)
            return I, (1 - D if m == "cosine" else 1 - D / 2)
    elif name == "hnswlib":
        import hnswlib
        bf = hnswlib.BFIndex(space="ip", dim=X.shape[1]); bf.init_index(max_elements=n); bf.add_items(Xn)
        try:
            bf.set_num_threads(threads)
        except AttributeError:
            pass
        def f():
            try:
                I, D = bf.knn_query(Qn, k=k, num_threads=threads)
            except TypeError:
                I, D = bf.knn_query(Qn, k=k)
            return I.astype(np.int64), 1 - D
    else:
        raise SystemExit(f"unknown peer {name}")
    return f, time.perf_counter() - t0


def busy():
    """Seconds of CPU used by everything on the machine (steal included): to see other processes' load."""
    v = [int(x) for x in open("/proc/stat").readline().split()[1:9]]
    return (sum(v) - v[3] - v[4]) / os.sysconf("SC_CLK_TCK")


def blas_info():
    try:
        from threadpoolctl import threadpool_info
        return [f"{i['internal_api']} {i.get('version')} {i.get('architecture','')}".strip()
                for i in threadpool_info() if i["user_api"] == "blas"]
    except Exception:
        return []


def one(a):
    cpus = sorted(os.sched_getaffinity(0))[:a.threads]
    os.sched_setaffinity(0, cpus)
    import numpy as np
    X = np.load(a.corpus)[: a.limit_n or None]; Q = np.load(a.queries)[: a.limit_q or None]
    X = np.ascontiguousarray(X, np.float32); Q = np.ascontiguousarray(Q, np.float32)
    r0 = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    f, setup = build(a.peer, X, Q, a.k, a.threads, a.metric, np)
    res = f()  # warm-up
    wall, cpu, stop = [], [], time.perf_counter() + a.budget
    b0, p0, s0 = busy(), time.process_time(), time.perf_counter()
    while len(wall) < a.reps or (len(wall) < a.max_reps and sum(wall) < 0.5):
        c0, t0 = time.process_time(), time.perf_counter()
        res = f()
        wall.append(time.perf_counter() - t0); cpu.append(time.process_time() - c0)
        if time.perf_counter() > stop and len(wall) >= 3:
            break
    span = time.perf_counter() - s0
    foreign = max(0.0, (busy() - b0) - (time.process_time() - p0)) / span
    r1 = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    (n, d), q = X.shape, len(Q)
    med = sorted(wall)[len(wall) // 2]; mcpu = sorted(cpu)[len(cpu) // 2]; mn = min(wall)
    o = dict(peer=a.peer, threads=a.threads, n=n, q=q, d=d, k=a.k, metric=a.metric, reps=len(wall),
             wall_ms=round(med * 1e3, 3), min_ms=round(mn * 1e3, 3), cpu_ms=round(mcpu * 1e3, 3),
             gflops=round(2 * n * q * d / med / 1e9, 2), gflops_best=round(2 * n * q * d / mn / 1e9, 2),
             gflops_cpu=round(2 * n * q * d * a.threads / mcpu / 1e9, 2), gbs=round(4 * n * d / med / 1e9, 2),
             gbs_best=round(4 * n * d / mn / 1e9, 2), setup_ms=round(setup * 1e3, 1),
             rss_mb=round((r1 - r0) / 1024, 1), foreign=round(foreign, 3), blas=blas_info())
    if res is not None and a.check:
        I, S = np.asarray(res[0]), np.asarray(res[1])
        m = min(q, a.check)
        X64 = X.astype(np.float64); Q64 = Q[:m].astype(np.float64)
        if a.metric == "cosine":
            X64 /= np.linalg.norm(X64, axis=1, keepdims=True); Q64 /= np.linalg.norm(Q64, axis=1, keepdims=True)
        R = Q64 @ X64.T
        ri, rs = sorted_topk(np, R, min(a.k, n))
        got = np.take_along_axis(R, np.clip(I[:m], 0, n - 1), 1)
        o["recall"] = round(float(np.mean([len(set(x) & set(y)) / len(y) for x, y in zip(I[:m].tolist(), ri.tolist())])), 6)
        o["same_order"] = round(float((I[:m] == ri).mean()), 6)
        o["score_err"] = float(f"{np.abs(got - S[:m]).max():.3g}")
    print(json.dumps(o), flush=True)


E2E = r'''
import sys, numpy as np
X=np.load(sys.argv[1]); Q=np.load(sys.argv[2]); k=int(sys.argv[3]); t=int(sys.argv[4])
X/=np.linalg.norm(X,axis=1,keepdims=True); Q/=np.linalg.norm(Q,axis=1,keepdims=True)
if sys.argv[5]=="faiss":
    import faiss; faiss.omp_set_num_threads(t)
    ix=faiss.IndexFlatIP(X.shape[1]); ix.add(X); S,I=ix.search(Q,k)
elif sys.argv[5]=="usearch":
    from usearch.index import search, MetricKind
    I=search(X,Q,k,MetricKind.IP,exact=True,threads=t).keys
else:
    I=np.empty((len(Q),k),np.int64)
    for i in range(0,len(Q),256):
        s=Q[i:i+256]@X.T; p=np.argpartition(s,s.shape[1]-k,axis=1)[:,-k:]
        v=np.take_along_axis(s,p,1); o=np.argsort(-v,axis=1); I[i:i+256]=np.take_along_axis(p,o,1)
np.save(sys.argv[6],I)
'''


def e2e(a):
    env = envfor(a)
    for p in a.peers.split(","):
        w = []
        for _ in range(a.reps + 1):
            t0 = time.perf_counter()
            subprocess.run([sys.executable, "-c", E2E, a.corpus, a.queries, str(a.k), str(a.threads), p, "_ids.npy"],
                           env=env, check=True, preexec_fn=lambda: os.sched_setaffinity(0, range(a.threads)))
            w.append(time.perf_counter() - t0)
        w = w[1:]
        print(json.dumps(dict(mode="e2e", peer=p, threads=a.threads, corpus=a.corpus, queries=a.queries, k=a.k,
                              wall_ms=round(sorted(w)[len(w) // 2] * 1e3, 1), min_ms=round(min(w) * 1e3, 1))), flush=True)


def ab(a):
    if os.environ.get("_AB") != "1":  # thread counts must be set before numpy is imported
        env = envfor(a); env.update(_AB="1", OMP_WAIT_POLICY="PASSIVE", GOMP_SPINCOUNT="0", KMP_BLOCKTIME="0")
        os.execve(sys.executable, [sys.executable, os.path.abspath(__file__)] + sys.argv[1:], env)
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:a.threads])
    import numpy as np
    X = np.ascontiguousarray(np.load(a.corpus)[: a.limit_n or None], np.float32)
    Q = np.ascontiguousarray(np.load(a.queries)[: a.limit_q or None], np.float32)
    E = {p: build(p, X, Q, a.k, a.threads, a.metric, np)[0] for p in a.peers.split(",")}
    T = {p: [] for p in E}
    def cmd():
        t0 = time.perf_counter()
        out = subprocess.run(a.cmd, shell=True, check=True, capture_output=True, text=True).stdout
        return json.loads(out.strip().splitlines()[-1])[a.cmd_key] / 1e3 if a.cmd_key else time.perf_counter() - t0
    if a.cmd:
        T = {"cmd": []} | T; cmd()
    for f in E.values():
        f()
    for _ in range(a.reps):
        if a.cmd:
            T["cmd"].append(cmd())
        for p, f in E.items():
            t0 = time.perf_counter(); f(); T[p].append(time.perf_counter() - t0)
    base = next(iter(T)); fl = 2e-9 * len(X) * len(Q) * X.shape[1]
    for p, w in T.items():
        r = sorted(x / y for x, y in zip(w, T[base])); m = sorted(w)[len(w) // 2]
        print(json.dumps(dict(mode="ab", peer=p, base=base, threads=a.threads, n=len(X), q=len(Q), d=X.shape[1], k=a.k,
                              wall_ms=round(m * 1e3, 3), min_ms=round(min(w) * 1e3, 3), gflops=round(fl / m, 1),
                              ratio=round(r[len(r) // 2], 3), ratio_range=[round(r[0], 3), round(r[-1], 3)])), flush=True)


def envfor(a):
    env = dict(os.environ)
    for v in THREAD_VARS:
        env[v] = str(a.threads)
    for v in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
        env.pop(v, None)
    if a.coretype:  # only for the old OpenBLAS inside the faiss wheel
        env["OPENBLAS_CORETYPE"] = a.coretype
    return env


def run(a):
    for p in a.peers.split(","):
        cmd = [sys.executable, os.path.abspath(__file__), "_one", "--peer", p] + [
            x for kv in dict(corpus=a.corpus, queries=a.queries, k=a.k, threads=a.threads, metric=a.metric, reps=a.reps,
                             max_reps=a.max_reps, budget=a.budget, check=a.check, limit_n=a.limit_n, limit_q=a.limit_q).items()
            for x in ("--" + kv[0].replace("_", "-"), str(kv[1]))]
        r = subprocess.run(cmd, env=envfor(a), capture_output=True, text=True)
        if r.returncode:
            print(json.dumps(dict(peer=p, threads=a.threads, k=a.k, corpus=a.corpus, queries=a.queries, error=(r.stderr.strip().splitlines() or ["?"])[-1][:300])), flush=True)
        else:
            line = json.loads(r.stdout)
            if a.coretype:
                line["coretype"] = a.coretype
            print(json.dumps(line), flush=True)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sub = ap.add_subparsers(dest="mode", required=True)
    m = sub.add_parser("make"); m.add_argument("--dir", required=True)
    for x, dv in (("n", 100000), ("q", 256), ("d", 384), ("seed", 1)):
        m.add_argument("--" + x, type=int, default=dv)
    for nm in ("run", "_one", "e2e", "ab"):
        s = sub.add_parser(nm)
        s.add_argument("--corpus", required=True); s.add_argument("--queries", required=True)
        s.add_argument("--k", type=int, default=10); s.add_argument("--threads", type=int, default=1)
        s.add_argument("--metric", choices=("cosine", "ip"), default="cosine")
        s.add_argument("--reps", type=int, default=5); s.add_argument("--max-reps", type=int, default=201)
        s.add_argument("--budget", type=float, default=12.0, help="seconds per peer, at least 3 reps")
        s.add_argument("--check", type=int, default=16, help="queries checked against float64 (0: none)")
        s.add_argument("--limit-n", type=int, default=0); s.add_argument("--limit-q", type=int, default=0)
        if nm == "_one":
            s.add_argument("--peer", required=True)
        else:
            s.add_argument("--peers", default="faiss,numpy,usearch,sklearn_argkmin,hnswlib", help=",".join(PEERS))
            s.add_argument("--cmd", default="", help="ab: also time this shell command")
            s.add_argument("--cmd-key", default="", help="ab: key of milliseconds in the command's last JSON line")
            s.add_argument("--coretype", default="", help="OPENBLAS_CORETYPE to force, e.g. SkylakeX")
    a = ap.parse_args()
    dict(make=make, run=run, _one=one, e2e=e2e, ab=ab)[a.mode](a)


main()
