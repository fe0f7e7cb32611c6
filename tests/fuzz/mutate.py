"""Changes of valid input: of its bytes, of the tree that it describes, and of arrays."""

import io
import json
import math
import os
import warnings
import zipfile

import numpy as np

NUMBERS = (
    0, 1, -1, 2, 7, 255, 2**31, 2**53 + 1, 2**63, 2**64, 10**400, -(10**400), 0.5, -0.0, 1e-320,
    1e-9, 1e9, 1e154, 1e308, -1e308, math.inf, -math.inf, math.nan,
)  # fmt: skip
TEXTS = (
    "", " ", "none", "nan", "kind", "self", "__class__", "1e9", "../../x", "a[1]*?.csv", "x" * 3000,
    "\x1b[2Jfuzz", "<script>fuzz</script>", "é\u202e", "\x00", "\n", "{", "[", '"', "/dev/zero",
    "\udcff", "０", "١",
)  # fmt: skip
TOKENS = (
    b"", b"\x00", b"\xff\xfe", b"\x1b[2J", b"\n", b"\r", b",", b"=", b'"', b"'''", b"#", b"nan",
    b"-inf", b"1e999", b"-1", b"1_000", b"9" * 5000, b"[" * 5000, b'{"a":' * 2000, b"{a=" * 500,
    b"a." * 3000, b"=1\na=", b"<script>", b"PK\x03\x04", b"PAR1", b"\x1f\x8b\x08", b"\x93NUMPY",
    b"\xef\xbb\xbf", b"\xf0\x9f\x98\x80", b"true", b"1979-05-27", b"0x7f", b"\x80\x04\x95",
)  # fmt: skip


def mutate_bytes(content, rng):
    """One change of the bytes: flipped, cut, doubled, moved, or put in between."""
    start = rng.randrange(len(content) + 1)
    end = min(len(content), start + rng.choice((1, 1, 2, 4, 16, 64, 1000)))
    match rng.randrange(8):
        case 0 if content:
            at = rng.randrange(len(content))
            return content[:at] + bytes([content[at] ^ 1 << rng.randrange(8)]) + content[at + 1 :]
        case 1:
            return content[:start] + rng.randbytes(end - start) + content[end:]
        case 2:
            return content[:start] + content[end:]
        case 3:
            return content[:end] + content[start:]
        case 4:
            return content[:start]
        case 5:
            other = rng.randrange(len(content) + 1)
            return content[:other] + content[start:end] + content[other:]
        case 6:
            return content[:start] + rng.choice(TOKENS) + content[end:]
        case _:
            return content[:start] + rng.choice(TOKENS) + content[start:]


def odd_value(rng):
    """A value that hardly belongs anywhere."""
    kind = rng.randrange(4)
    if kind == 0:
        return rng.choice((None, True, False, [], {}, [[]], {"kind": "none"}, {"": 1}, [1, "a"]))
    if kind == 1:
        return rng.choice(TEXTS)
    return rng.choice(NUMBERS)


def mutate_tree(tree, rng):
    """One change of nested dictionaries and lists: a value, a key, or where it stands."""
    tree = json.loads(json.dumps(tree))
    places = list(_places(tree))
    if not places:
        return tree
    inside, key = rng.choice(places)
    other, other_key = rng.choice(places)
    match rng.randrange(8):
        case 0 | 1 | 2:
            inside[key] = odd_value(rng)
        case 3:
            del inside[key]
        case 4:
            inside[key] = _same(other[other_key])
        case 5:
            inside[key] = rng.choice(([inside[key]], {"kind": inside[key]}, {key: inside[key]}))
        case 6 if isinstance(inside, dict):
            inside[rng.choice((*TEXTS, *_keys(tree)))] = inside.pop(key)
        case 7 if isinstance(inside, dict):
            inside[rng.choice((*TEXTS, *_keys(tree)))] = odd_value(rng)
        case _:
            inside[key] = _other_number(inside[key], rng)
    return tree


def _same(value):
    return json.loads(json.dumps(value))


def _other_number(value, rng):
    if isinstance(value, bool) or not isinstance(value, int | float):
        return rng.choice(NUMBERS)
    return value * rng.choice((-1, 0, 0.5, 2, 10, 1000, 1e6, 1e300))


def _places(tree):
    """Every dictionary or list below, with each of its keys."""
    keys = list(tree) if isinstance(tree, dict) else range(len(tree))
    for key in keys:
        yield tree, key
        if isinstance(tree[key], dict | list):
            yield from _places(tree[key])


def _keys(tree):
    return [str(key) for _, key in _places(tree)]


def as_toml(tree):
    """A tree as TOML text, its sections as inline tables."""
    return "\n".join(f"{_quoted(key)} = {_literal(value)}" for key, value in tree.items()) + "\n"


def _literal(value):
    match value:
        case dict():
            inside = ", ".join(f"{_quoted(key)} = {_literal(x)}" for key, x in value.items())
            return f"{{{inside}}}"
        case list():
            return f"[{', '.join(map(_literal, value))}]"
        case None:
            return '"none"'
        case str():
            return _quoted(value)
        case bool():
            return str(value).lower()
        case _:
            return repr(value)


def _quoted(text):
    return json.dumps(str(text))


class Trap:
    """Whoever unpickles this makes a folder at ``path``."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


DTYPES = (
    "f2", "f4", ">f8", "f8", "g", "i1", "i8", ">i4", "u1", "u8", "?", "c16", "S3", "U3", "M8[s]",
    "m8[s]", "V4",
)  # fmt: skip


def mutate_array(array, rng, trap):
    """One change of an array: values, type, shape, or an object that must not be unpickled."""
    with warnings.catch_warnings():  # of casts that are meant
        warnings.simplefilter("ignore")
        return _mutated(np.array(array), rng, trap)


def _mutated(flat, rng, trap):
    match rng.randrange(10):
        case 0 | 1 | 2 if flat.size and flat.dtype.kind in "iuf":
            value = rng.choice([number for number in NUMBERS if isinstance(number, float)])
            changed = flat.astype(np.float64)
            changed.reshape(-1)[rng.randrange(flat.size)] = value
            return changed
        case 3 | 4:
            try:
                return flat.astype(rng.choice(DTYPES))
            except (TypeError, ValueError, OverflowError, RuntimeError):  # what NumPy cannot cast
                return flat
        case 5:
            return flat.T
        case 6:
            return flat[tuple(slice(rng.randrange(n + 1)) for n in flat.shape)]
        case 7:
            shapes = ((-1,), (1, -1), (-1, 1), (1, 1, -1))
            return flat.reshape(rng.choice(shapes)) if flat.size else flat
        case 8:
            return rng.choice((np.array(1.0), np.array("a"), np.zeros((0, 3)), np.zeros((3, 0))))
        case _:
            held = np.empty(flat.shape or (1,), dtype=object)
            held[...] = Trap(trap)
            return held


def npz_bytes(arrays):
    """An NPZ file; objects are pickled into it."""
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def mutate_archive(content, rng):
    """One change of a member of a ZIP file: taken away, renamed, or other bytes in it."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = [(name, archive.read(name)) for name in archive.namelist()]
    except Exception:  # damaged before
        return content
    if not members:
        return content
    at = rng.randrange(len(members))
    name, inside = members[at]
    match rng.randrange(6):
        case 0:
            members.pop(at)
        case 1:
            members[at] = (
                rng.choice(("gains", "gains.txt", "../x.npy", "a.npy", name[:-4])),
                inside,
            )
        case 2:
            members[at] = (name, rng.choice(TOKENS))
        case 3:
            members[at] = (name, members[rng.randrange(len(members))][1])
        case 4:
            members[at] = (name, _promising(rng))
        case _:
            members[at] = (name, mutate_bytes(inside, rng))
    buffer = io.BytesIO()
    kind = rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
    with zipfile.ZipFile(buffer, "w", kind) as archive:
        for name, inside in members:
            archive.writestr(name or "x", inside)
    return buffer.getvalue()


def _promising(rng):
    """An array whose header promises more than there is."""
    shape = rng.choice(
        ((10**5, 10**5), (2**40,), (10**9, 3), (0, 10**12), (2**62, 4), (10**7, 1, 1))
    )
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}"
    padded = header.ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(padded).to_bytes(2, "little") + padded.encode()
