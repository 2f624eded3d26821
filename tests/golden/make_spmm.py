"""Products of sparse and dense matrices as scipy computes them, into tests/golden/spmm/.

    python3 -m venv venv && venv/bin/pip install numpy scipy && venv/bin/python tests/golden/make_spmm.py

Run it after make_sparse.py, whose matrices are multiplied too. The letter before the first underscore names a matrix, which
lies in every layout that scipy saves; `<letter>_b.npy` is what it is multiplied with.

    m i u b s k p z   the matrices of tests/golden/sparse: `<letter>_c.npy` is the product
    r                 with empty rows, a full row, a full column; entries repeated, out of order, zero
    d                 the same pattern, values of 53 bits
    n                 NaN, infinities and stored zeros; the products differ with what a layout stores, so that
                      `<file>_c.npy` is that of one file

All values but those of d are exact in f32. Products are summed in extended precision and rounded once.
"""

import pathlib
import shutil

import numpy as np
import scipy
import scipy.io
import scipy.sparse as sp

OUT = pathlib.Path(__file__).parent / "spmm"
SPARSE = pathlib.Path(__file__).parent / "sparse"
WIDTH = 21


def load(path):
    if path.suffix == ".npz":
        return sp.load_npz(path)
    return sp.coo_array(scipy.io.mmread(path))


def product(a, b):
    with np.errstate(invalid="ignore"):
        return np.asarray(a.astype(np.longdouble) @ b.astype(np.longdouble)).astype(np.float64)


def close(a, b, c):
    """Whether the product in ordinary precision is the same within its rounding, NaN and infinities in the same places."""
    with np.errstate(invalid="ignore"):
        ordinary = np.asarray(a.astype(np.float64) @ b)
        bound = np.asarray(abs(a).astype(np.float64) @ abs(b)) * (a.shape[1] + 2) * 2.0**-52
        same = (ordinary == c) | (np.isnan(ordinary) & np.isnan(c)) | (abs(ordinary - c) <= bound)
    assert same.all(), (ordinary, c)


def right(letter, inner, rng):
    b = rng.standard_normal((inner, WIDTH)).astype(np.float32).astype(np.float64)
    np.save(OUT / f"{letter}_b.npy", b)
    return b


def of_the_formats():
    rng = np.random.default_rng(20261201)
    for letter in "miubskpz":
        # scipy computes neither with f16 nor with the other byte order; an array is no sparse matrix.
        paths = [path for path in sorted(SPARSE.glob(f"{letter}_*"))
                 if path.suffix in (".npz", ".mtx") and not any(part in path.name for part in ("_f2", "big", "array"))
                 and "by_content" not in path.name]
        b = right(letter, load(paths[0]).shape[1], rng)
        c = product(load(paths[0]), b)
        np.save(OUT / f"{letter}_c.npy", c)
        for path in paths:
            close(load(path), b, c)


def save(name, matrix, index):
    for part in ("indices", "indptr", "offsets"):
        if hasattr(matrix, part):
            setattr(matrix, part, getattr(matrix, part).astype(index))
    if matrix.format == "coo":
        matrix.coords = tuple(coordinate.astype(index) for coordinate in matrix.coords)
    sp.save_npz(OUT / f"{name}.npz", matrix)


def reverse_rows(csr):
    csr = csr.copy()
    for row in range(csr.shape[0]):
        span = slice(csr.indptr[row], csr.indptr[row + 1])
        csr.indices[span] = csr.indices[span][::-1].copy()
        csr.data[span] = csr.data[span][::-1].copy()
    csr.has_sorted_indices = False
    return csr


def random_matrix(rng):
    """40 x 60: a tenth of it, rows 3 and 30 to 34 empty, row 7 and column 11 full."""
    rows, cols = 40, 60
    mask = rng.random((rows, cols)) < 0.1
    mask[:, 11] = True
    mask[[3, *range(30, 35)]] = False
    mask[7] = True
    return np.where(mask, rng.integers(1, 1 << 11, (rows, cols)) * rng.choice([-1, 1], (rows, cols)) / 256, 0)


def layouts(letter, dense, rng):
    b = right(letter, dense.shape[1], rng)
    c = product(sp.csr_array(dense), b)
    np.save(OUT / f"{letter}_c.npy", c)
    csr, coo = sp.csr_array(dense), sp.coo_array(dense)
    save(f"{letter}_csr", csr, np.int32)
    save(f"{letter}_csr_i64", sp.csr_array(dense), np.int64)
    save(f"{letter}_csc", sp.csc_array(dense), np.int64)
    save(f"{letter}_coo", coo, np.int32)
    save(f"{letter}_bsr", sp.bsr_array(dense, blocksize=(4, 5)), np.int32)
    save(f"{letter}_dia", sp.dia_array(dense), np.int32)
    save(f"{letter}_csr_unsorted", reverse_rows(csr), np.int32)
    # Every entry in two halves, the second ones in the other direction, after the first ones.
    halves = sp.coo_array((np.concatenate([coo.data / 2, coo.data[::-1] / 2]),
                           (np.concatenate([coo.row, coo.row[::-1]]), np.concatenate([coo.col, coo.col[::-1]]))),
                          shape=coo.shape)
    save(f"{letter}_coo_repeated", halves, np.int64)
    indptr, order = 2 * csr.indptr, np.argsort(halves.row, kind="stable")
    repeated = sp.csr_array((halves.data[order], halves.col[order], indptr), shape=csr.shape)
    save(f"{letter}_csr_repeated", repeated, np.int32)
    # Zeros that are stored: a third of the places without an entry.
    zeros = (dense == 0) & (rng.random(dense.shape) < 0.3)
    row, col = np.nonzero((dense != 0) | zeros)
    save(f"{letter}_coo_zeros", sp.coo_array((dense[row, col], (row, col)), shape=dense.shape), np.int32)
    save(f"{letter}_csr_zeros", sp.csr_array(sp.coo_array((dense[row, col], (row, col)), shape=dense.shape)), np.int32)
    for path in OUT.glob(f"{letter}_*.npz"):
        close(sp.load_npz(path), b, c)


def types(dense, rng):
    """Other types of values: those of r that are whole numbers after a multiplication by 256."""
    whole = (dense * 256).astype(np.int64)
    b = right("w", dense.shape[1], rng)
    np.save(OUT / "w_c.npy", product(sp.csr_array(whole), b))
    for dtype in (np.int16, np.int32, np.int64, np.float32):
        save(f"w_csr_{np.dtype(dtype).name}", sp.csr_array(whole.astype(dtype)), np.int32)
    save("w_bsr_int32", sp.bsr_array(whole.astype(np.int32), blocksize=(2, 3)), np.int64)
    b = right("t", dense.shape[1], rng)
    np.save(OUT / "t_c.npy", product(sp.csr_array((dense != 0).astype(np.int8)), b))
    for layout in (sp.csr_array, sp.csc_array, sp.coo_array):
        matrix = layout(dense != 0)
        save(f"t_{matrix.format}_bool", matrix, np.int32)
    save("t_csr_uint8", sp.csr_array((dense != 0).astype(np.uint8)), np.int32)


def not_finite():
    a = np.zeros((9, 12))
    a[0, 1], a[0, 4], a[1, 2], a[1, 3], a[2, 5], a[3, 6], a[5, 0], a[5, 11] = np.nan, 1, np.inf, 2, -np.inf, 3, -1, 4
    a[6, :] = np.arange(12) - 6
    a[7, [2, 3]] = np.inf, -np.inf
    b = np.arange(12.0)[:, None] - np.arange(WIDTH)[None, :] / 4
    b[4, 1], b[6, 2], b[8, 3], b[11, 4], b[0, 4], b[2, 5], b[5, 6] = np.nan, np.inf, -np.inf, np.inf, np.inf, 0, 0
    b[9, 7], b[10, 7] = np.inf, np.nan
    np.save(OUT / "n_b.npy", b)
    zeros = [(0, 8), (3, 9), (4, 10), (8, 6), (8, 8)]
    row, col = np.nonzero(a)
    with_zeros = sp.coo_array((np.append(a[row, col], np.zeros(len(zeros))),
                               (np.append(row, [z[0] for z in zeros]), np.append(col, [z[1] for z in zeros]))),
                              shape=a.shape)
    matrices = {
        "n_csr": sp.csr_array(a), "n_csc": sp.csc_array(a), "n_coo": sp.coo_array(a), "n_dia": sp.dia_array(a),
        "n_bsr": sp.bsr_array(a, blocksize=(3, 4)), "n_coo_zeros": with_zeros, "n_csr_zeros": sp.csr_array(with_zeros),
        "n_csc_zeros": sp.csc_array(with_zeros), "n_csr_f32": sp.csr_array(a.astype(np.float32)),
        "n_csr_unsorted": reverse_rows(sp.csr_array(with_zeros)),
    }
    for name, matrix in matrices.items():
        save(name, matrix, np.int32)
        loaded = sp.load_npz(OUT / f"{name}.npz")
        # What is an entry is what csr holds. scipy's own products of coo skip zeros that are stored, and those of dia multiply
        # by the zeros between the entries of a diagonal, which are dropped when it makes csr of dia.
        loaded = loaded.tocsr() if loaded.format in ("coo", "dia") else loaded
        c = product(loaded, b)
        np.save(OUT / f"{name}_c.npy", c)
        close(loaded, b, c)
    count = {name: int(np.isnan(np.load(OUT / f"{name}_c.npy")).sum()) for name in matrices}
    assert count["n_csr"] < count["n_csr_zeros"] < count["n_bsr"] and count["n_dia"] == count["n_csr"], count


if __name__ == "__main__":
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    of_the_formats()
    generator = np.random.default_rng(20261202)
    pattern = random_matrix(generator)
    layouts("r", pattern, generator)
    layouts("d", np.where(pattern != 0, generator.standard_normal(pattern.shape), 0), generator)
    types(pattern, generator)
    not_finite()
    (OUT / "versions.txt").write_text(f"numpy {np.__version__}\nscipy {scipy.__version__}\n")
