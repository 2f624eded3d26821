"""Sparse matrices as scipy writes them, into tests/golden/sparse/.

    python3 -m venv venv && venv/bin/pip install numpy scipy && venv/bin/python tests/golden/make_sparse.py

The letter before the first underscore names the matrix, which `<letter>_matrix.csv` holds dense and in plain text:
every other file of that letter must read as the same values. `e_<rows>x<columns>_*` hold nothing; `bad_*` are refused.
"""

import gzip
import pathlib
import shutil
import zipfile

import numpy as np
import scipy
import scipy.io
import scipy.sparse as sp

OUT = pathlib.Path(__file__).parent / "sparse"
SAVED = {"csr": sp.csr_array, "csc": sp.csc_array, "coo": sp.coo_array, "bsr": sp.bsr_array, "dia": sp.dia_array}


def dense(name, matrix):
    lines = [",".join(repr(float(value)) for value in row) for row in matrix]
    (OUT / f"{name}_matrix.csv").write_text("\n".join(lines) + "\n")


def with_index(matrix, dtype):
    for name in ("indices", "indptr", "offsets"):
        if hasattr(matrix, name):
            setattr(matrix, name, getattr(matrix, name).astype(dtype))
    if matrix.format == "coo":
        matrix.coords = tuple(index.astype(dtype) for index in matrix.coords)
    return matrix


def make(layout, matrix):
    if layout == "bsr":
        return sp.bsr_array(matrix, blocksize=(2, 4))
    return SAVED[layout](matrix)


def layouts():
    rng = np.random.default_rng(20261130)
    # Quarters: exact in f16, f32 and f64.
    m = rng.integers(-40, 40, (6, 8)) / 4 * (rng.random((6, 8)) < 0.4)
    m[3] = 0
    dense("m", m)
    for layout in SAVED:
        for bits in (32, 64):
            for compressed in (False, True):
                matrix = with_index(make(layout, m), f"int{bits}")
                kind = "deflated" if compressed else "stored"
                sp.save_npz(OUT / f"m_{layout}_i{bits}_{kind}.npz", matrix, compressed=compressed)
    for dtype in (np.float16, np.float32, ">f8", ">f4"):
        csr = sp.csr_array(m)
        np.savez(OUT / f"m_csr_{np.dtype(dtype).str[1:]}{'_big' if np.dtype(dtype).str[0] == '>' else ''}.npz",
                 format=b"csr", shape=csr.shape, data=csr.data.astype(dtype), indices=csr.indices, indptr=csr.indptr)
    sp.save_npz(OUT / "m_csr_old_class.npz", sp.csr_matrix(m))
    csr, coo, bsr = sp.csr_array(m), sp.coo_array(m), make("bsr", m)
    # As before scipy 1.0 under Python 3, and as Python 2 did it.
    np.savez(OUT / "m_csr_str.npz", format="csr", shape=csr.shape, data=csr.data, indices=csr.indices, indptr=csr.indptr)
    np.savez(OUT / "m_csr_big_index.npz", format=b"csr", shape=np.array(csr.shape, ">i4"), data=csr.data,
             indices=csr.indices.astype(">i8"), indptr=csr.indptr.astype(">i4"))
    np.savez(OUT / "m_csr_unsigned.npz", format=b"csr", shape=csr.shape, data=csr.data,
             indices=csr.indices.astype("u2"), indptr=csr.indptr.astype("u8"))
    np.savez(OUT / "m_coo_coords.npz", format=b"coo", shape=coo.shape, data=coo.data, coords=np.array(coo.coords),
             _is_array=True)
    np.savez(OUT / "m_coo_coords_fortran.npz", format=b"coo", shape=coo.shape, data=coo.data,
             coords=np.asfortranarray(coo.coords))
    np.savez(OUT / "m_bsr_fortran.npz", format=b"bsr", shape=bsr.shape, data=np.asfortranarray(bsr.data),
             indices=bsr.indices, indptr=bsr.indptr)
    order = np.random.default_rng(1).permutation(coo.nnz)
    shuffled = sp.coo_array((coo.data[order], (coo.row[order], coo.col[order])), shape=coo.shape)
    sp.save_npz(OUT / "m_coo_shuffled.npz", shuffled)
    # Room that whoever filled the arrays did not use; what it holds means nothing.
    np.savez(OUT / "m_csr_slack.npz", format=b"csr", shape=csr.shape, data=np.append(csr.data, [np.nan, 1, 2]),
             indices=np.append(csr.indices, np.array([-1, 8, 2**31 - 1], "i4")), indptr=csr.indptr)
    csc = sp.csc_array(m)
    np.savez(OUT / "m_csc_slack_i64.npz", format=b"csc", shape=csc.shape, data=np.append(csc.data, [np.nan, 1, 2]),
             indices=np.append(csc.indices, np.array([-1, 6, 2**62])), indptr=csc.indptr.astype("i8"))
    unsorted = sp.csr_array(m)
    for row in range(6):
        span = slice(unsorted.indptr[row], unsorted.indptr[row + 1])
        unsorted.indices[span] = unsorted.indices[span][::-1].copy()
        unsorted.data[span] = unsorted.data[span][::-1].copy()
    unsorted.has_sorted_indices = False
    sp.save_npz(OUT / "m_csr_unsorted.npz", unsorted)
    twice = sp.csr_array((np.concatenate([[v / 2, v / 2] for v in csr.data]), np.repeat(csr.indices, 2), csr.indptr * 2),
                         shape=csr.shape)
    sp.save_npz(OUT / "m_csr_repeated.npz", twice)
    sp.save_npz(OUT / "m_csc_repeated.npz", sp.csc_array(
        (lambda c: (np.concatenate([[v / 2, v / 2] for v in c.data]), np.repeat(c.indices, 2), c.indptr * 2))(sp.csc_array(m)),
        shape=m.shape))
    both = sp.coo_array((np.concatenate([coo.data * 0.25, coo.data * 0.75]),
                         (np.tile(coo.row, 2), np.tile(coo.col, 2))), shape=coo.shape)
    sp.save_npz(OUT / "m_coo_repeated.npz", both)
    scipy.io.mmwrite(OUT / "m_general.mtx", sp.coo_array(m), comment="two lines\nof comment", symmetry="general")
    scipy.io.mmwrite(OUT / "m_repeated.mtx", both, symmetry="general")
    scipy.io.mmwrite(OUT / "m_array.mtx", m, symmetry="general")
    with open(OUT / "m_general.mtx", "rb") as text:
        (OUT / "m_general.mtx.gz").write_bytes(gzip.compress(text.read(), mtime=0))
    shutil.copy(OUT / "m_general.mtx.gz", OUT / "m_compressed_by_content.mtx")


def other_values():
    rng = np.random.default_rng(7)
    i = rng.integers(-100, 100, (5, 7)) * (rng.random((5, 7)) < 0.5)
    dense("i", i)
    for dtype in (np.int8, np.int16, np.int32, np.int64):
        sp.save_npz(OUT / f"i_csr_{np.dtype(dtype).name}.npz", sp.csr_array(i.astype(dtype)))
    scipy.io.mmwrite(OUT / "i_general.mtx", sp.coo_array(i), symmetry="general")
    scipy.io.mmwrite(OUT / "i_array.mtx", i, symmetry="general")
    u = np.abs(i)
    dense("u", u)
    for dtype in (np.uint8, np.uint16, np.uint32, np.uint64):
        sp.save_npz(OUT / f"u_csc_{np.dtype(dtype).name}.npz", sp.csc_array(u.astype(dtype)))
    b = i != 0
    dense("b", b)
    sp.save_npz(OUT / "b_csr_bool.npz", sp.csr_array(b))
    sp.save_npz(OUT / "b_bsr_bool.npz", sp.bsr_array(b, blocksize=(5, 7)))
    scipy.io.mmwrite(OUT / "b_general.mtx", sp.coo_array(b.astype(float)), field="pattern", symmetry="general")


def symmetries():
    rng = np.random.default_rng(11)
    half = np.tril(rng.standard_normal((6, 6)) * (rng.random((6, 6)) < 0.5))
    s = half + np.tril(half, -1).T
    dense("s", s)
    scipy.io.mmwrite(OUT / "s_symmetric.mtx", sp.coo_array(s), symmetry="symmetric", precision=17)
    scipy.io.mmwrite(OUT / "s_array.mtx", s, symmetry="symmetric", precision=17)
    k = np.tril(half, -1) - np.tril(half, -1).T
    dense("k", k)
    scipy.io.mmwrite(OUT / "k_skew.mtx", sp.coo_array(k), symmetry="skew-symmetric", precision=17)
    scipy.io.mmwrite(OUT / "k_array.mtx", k, symmetry="skew-symmetric", precision=17)
    p = s != 0
    dense("p", p)
    scipy.io.mmwrite(OUT / "p_symmetric.mtx", sp.coo_array(p.astype(float)), field="pattern", symmetry="symmetric")


def empty():
    for rows, cols in ((0, 0), (0, 4), (4, 0), (1, 1), (3, 2)):
        for layout in ("csr", "csc", "coo", "dia"):
            if 0 not in (rows, cols) or layout != "dia":
                sp.save_npz(OUT / f"e_{rows}x{cols}_{layout}.npz", SAVED[layout]((rows, cols)))
        scipy.io.mmwrite(OUT / f"e_{rows}x{cols}_real.mtx", sp.coo_array((rows, cols)), symmetry="general")
    z = sp.csr_array((np.array([0.0, 2.0, 0.0]), np.array([0, 1, 1]), np.array([0, 2, 3])), shape=(2, 2))
    dense("z", z.toarray())
    sp.save_npz(OUT / "z_csr.npz", z)
    sp.save_npz(OUT / "z_coo.npz", sp.coo_array(z))
    scipy.io.mmwrite(OUT / "z_general.mtx", sp.coo_array(z), symmetry="general")


def bad():
    csr = sp.csr_array(np.eye(3))
    parts = {"shape": csr.shape, "data": csr.data, "indices": csr.indices, "indptr": csr.indptr}
    sp.save_npz(OUT / "bad_complex.npz", sp.csr_array(np.eye(3) * 1j))
    sp.save_npz(OUT / "bad_1d.npz", sp.coo_array(np.arange(3.0)))
    np.savez(OUT / "bad_object_data.npz", format=b"csr", **{**parts, "data": np.array([1, "x", None], dtype=object)})
    np.savez(OUT / "bad_object_format.npz", format=np.array(["csr"], dtype=object), **parts)
    np.savez(OUT / "bad_longdouble.npz", format=b"csr", **{**parts, "data": csr.data.astype(np.longdouble)})
    np.savez(OUT / "bad_not_sparse.npz", a=np.eye(3), b=np.eye(2))
    np.savez(OUT / "bad_format.npz", format=b"lil", **parts)
    np.savez(OUT / "bad_no_indices.npz", format=b"csr", **{k: v for k, v in parts.items() if k != "indices"})
    np.savez(OUT / "bad_column.npz", format=b"csr", **{**parts, "indices": np.array([0, 3, 2])})
    np.savez(OUT / "bad_negative_column.npz", format=b"csr", **{**parts, "indices": np.array([0, -1, 2])})
    np.savez(OUT / "bad_huge_column.npz", format=b"csr", **{**parts, "indices": np.array([0, 1 << 32, 2])})
    np.savez(OUT / "bad_negative_indptr.npz", format=b"csr", **{**parts, "indptr": np.array([0, -1, 2, 3])})
    np.savez(OUT / "bad_decreasing_indptr.npz", format=b"csr", **{**parts, "indptr": np.array([0, 2, 1, 3])})
    np.savez(OUT / "bad_first_indptr.npz", format=b"csr", **{**parts, "indptr": np.array([1, 1, 2, 3])})
    np.savez(OUT / "bad_short_indptr.npz", format=b"csr", **{**parts, "indptr": np.array([0, 1, 3])})
    np.savez(OUT / "bad_short_indices.npz", format=b"csr", **{**parts, "indices": np.array([0, 1])})
    np.savez(OUT / "bad_short_data.npz", format=b"csr", **{**parts, "data": np.ones(2)})
    np.savez(OUT / "bad_float_indices.npz", format=b"csr", **{**parts, "indices": np.array([0.0, 1.0, 2.0])})
    np.savez(OUT / "bad_shape.npz", format=b"csr", **{**parts, "shape": np.array([3, -3])})
    np.savez(OUT / "bad_wide.npz", format=b"csr", **{**parts, "shape": np.array([3, (1 << 32) + 1])})
    np.savez(OUT / "bad_rows.npz", format=b"coo", shape=np.array([1 << 40, 3]), data=np.ones(1), row=np.array([5]),
             col=np.array([0]))
    np.savez(OUT / "bad_coo_row.npz", format=b"coo", shape=(3, 3), data=np.ones(1), row=np.array([3]), col=np.array([0]))
    np.savez(OUT / "bad_coords.npz", format=b"coo", shape=(2, 3), data=np.ones(1), coords=np.array([[2], [1]]))
    np.savez(OUT / "bad_blocks.npz", format=b"bsr", shape=(3, 4), data=np.ones((1, 2, 2)), indices=np.array([0]),
             indptr=np.array([0, 1]))
    good = OUT / "m_csr_i32_deflated.npz"
    (OUT / "bad_truncated.npz").write_bytes(good.read_bytes()[:-30])
    changed = bytearray((OUT / "m_csr_i32_stored.npz").read_bytes())
    at = changed.index(b"data.npy") + len(b"data.npy") + 20 + 128
    changed[at] ^= 1
    (OUT / "bad_checksum.npz").write_bytes(changed)
    scipy.io.mmwrite(OUT / "bad_complex.mtx", sp.coo_array(np.eye(2) * 1j), symmetry="general")
    scipy.io.mmwrite(OUT / "bad_hermitian.mtx", sp.coo_array(np.array([[1, 1j], [-1j, 1]])), symmetry="hermitian")


def check():
    for path in sorted(OUT.glob("[a-z]_*.npz")):
        # scipy computes neither with f16 nor with the other byte order.
        if path.name[0] == "e" or "_f2" in path.name or "big" in path.name:
            continue
        expected = np.loadtxt(OUT / f"{path.name[0]}_matrix.csv", delimiter=",", ndmin=2)
        assert np.array_equal(sp.load_npz(path).toarray().astype(float), expected), path
        for member in zipfile.ZipFile(path).namelist():
            assert member.endswith(".npy"), member


if __name__ == "__main__":
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    layouts()
    other_values()
    symmetries()
    empty()
    bad()
    check()
    (OUT / "versions.txt").write_text(f"numpy {np.__version__}\nscipy {scipy.__version__}\n")
