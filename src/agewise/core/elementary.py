"""Exponentials, logarithms, powers and the circle, the same to the bit on every machine.

The functions of a system's C library and of NumPy choose among variants by what the processor can
do, and differ in the last bits between variants and versions. These are additions,
multiplications, divisions and moves of bits, each of which IEEE 754 defines to the bit, and they
are never fused or put in another order. Their error is below 0.9 units in the last place.
Arguments outside the domain give NaN, and where a result overflows it is infinity.
"""

import numpy as np

from agewise.core.jit import inlined, kernel, njit

_LN2 = 0.6931471805599453
#: Nats in a bit per real channel use: ½ log2(1 + x) is log1p(x) over this.
NATS_PER_BIT = 2.0 * _LN2

_INVERSE_LN2 = 1.4426950408889634
# ln 2 in parts: the first has so few bits that a whole number of them is exact.
_LN2_HIGH = 0.6931471803691238
_LN2_LOW = 1.9082149292705877e-10
_TWO_PI_HIGH, _TWO_PI_LOW = 6.283185307179586, 2.4492935982947064e-16
_THIRD_LOW, _FIFTH_LOW = 1.850371707708594e-17, -1.1102230246251566e-17
_SPLITTER = 134217729.0  # 2^27 + 1
_MAGIC = 6755399441055744.0  # 1.5 * 2^52: adding and taking it away rounds to a whole number
_LEAST_NORMAL = 2.2250738585072014e-308
_ROOT_HALF_BITS = np.int64(0x3FE6A09E667F3BCD)
_BIAS, _TWO_52, _MANTISSA = np.int64(1100), 4503599627370496.0, np.int64(0xFFFFFFFFFFFFF)
_LARGEST, _SMALLEST = 709.782712893384, -745.1332191019412


@inlined
def _bits_of(number):
    """The 64 bits of a float64 as a whole number."""
    return np.float64(number).view(np.int64)


@inlined
def _float_of(bits):
    """The float64 of 64 bits."""
    return np.int64(bits).view(np.float64)


# ------------------------------------------------------------------------------------ exponentials
@inlined
def _power_of_two(k):
    """2^k for a whole number -1022 <= k <= 1023."""
    return _float_of((k + np.int64(1023)) << np.int64(52))


@inlined
def _reduced(x, low):
    """(k, r, c): x + low = k ln 2 + r + c, with r of at most about ln 2 / 2 and c tiny."""
    k = (x * _INVERSE_LN2 + _MAGIC) - _MAGIC
    high = x - k * _LN2_HIGH
    rest = k * _LN2_LOW
    r = high - rest
    return k, r, ((high - r) - rest) + low


@inlined
def _beyond_linear(r):
    """``exp(r) - 1 - r`` for r from -0.36 to 0.36, by Taylor's series."""
    s = r * r
    a = 1.0 / 2.0 + r * (1.0 / 6.0)
    b = 1.0 / 24.0 + r * (1.0 / 120.0)
    c = 1.0 / 720.0 + r * (1.0 / 5040.0)
    d = 1.0 / 40320.0 + r * (1.0 / 362880.0)
    e = 1.0 / 3628800.0 + r * (1.0 / 39916800.0)
    f = 1.0 / 479001600.0 + r * (1.0 / 6227020800.0)
    return s * (a + s * (b + s * (c + s * (d + s * (e + s * f)))))


@inlined
def _exp_of_sum(x, low):
    """``exp(x + low)`` where low is far smaller than x."""
    if not x <= _LARGEST:
        return x + np.inf  # NaN stays NaN
    if x < _SMALLEST:
        return 0.0
    k, r, c = _reduced(x, low)
    whole = 1.0 + r
    beyond = _beyond_linear(r)
    rest = (r - (whole - 1.0)) + (beyond + (c + c * (r + beyond)))
    half = np.int64(k) >> np.int64(1)  # in two steps, for the ends of the range
    return (whole + rest) * _power_of_two(half) * _power_of_two(np.int64(k) - half)


@njit
def exp(x):
    """The exponential function."""
    return _exp_of_sum(x, 0.0)


@inlined
def exp32(x):
    """The exponential of a float32 that is at most 0, as a float32; in double and then rounded.

    It has no branches, so that loops over it become vector instructions.
    """
    x = np.float64(x)
    x = x if not x < -110.0 else -110.0  # NaN stays NaN
    t = x * _INVERSE_LN2 + _MAGIC
    r = x - (t - _MAGIC) * _LN2
    s = r * r
    a = 1.0 + r
    b = 1.0 / 2.0 + r * (1.0 / 6.0)
    c = 1.0 / 24.0 + r * (1.0 / 120.0)
    d = 1.0 / 720.0 + r * (1.0 / 5040.0)
    e = 1.0 / 40320.0 + r * (1.0 / 362880.0)
    # The whole number is in the last bits of t, and belongs into the exponent.
    scale = _float_of((_bits_of(t) << np.int64(52)) + _bits_of(1.0))
    return np.float32((a + s * (b + s * (c + s * (d + s * e)))) * scale)


@inlined
def log1p32(x):
    """``log(1 + x)`` of a float32 from 0 to 1, as a float32; in double and then rounded."""
    s = np.float64(x) / (2.0 + np.float64(x))
    z = s * s
    a = 1.0 + z * (1.0 / 3.0)
    b = 1.0 / 5.0 + z * (1.0 / 7.0)
    c = 1.0 / 9.0 + z * (1.0 / 11.0)
    d = 1.0 / 13.0 + z * (1.0 / 15.0)
    e = 1.0 / 17.0 + z * (1.0 / 19.0)
    w = z * z
    return np.float32(2.0 * s * (a + w * (b + w * (c + w * (d + w * e)))))


@njit
def expm1(x):
    """``exp(x) - 1``, also for small x."""
    if not abs(x) < 40.0:
        return exp(x) - 1.0
    k, r, c = _reduced(x, 0.0)
    scale = _power_of_two(np.int64(k))
    beyond = scale * (_beyond_linear(r) + (c + c * r))
    if k == 0.0:
        return r + beyond
    first, second = scale - 1.0, scale * r
    whole = first + second
    part = whole - first
    return whole + (((first - (whole - part)) + (second - part)) + beyond)


# -------------------------------------------------------------------------------------- logarithms
@inlined
def _split(x):
    """(k, m): x = 2^k m with m from sqrt(1/2) to sqrt(2), for a positive finite x."""
    shift = 0.0
    if x < _LEAST_NORMAL:
        x, shift = x * 18014398509481984.0, -54.0
    bits = _bits_of(x)
    k = (bits - _ROOT_HALF_BITS) >> np.int64(52)
    return np.float64(k) + shift, _float_of(bits - (k << np.int64(52)))


@inlined
def _log_of_parts(k, f, c):
    """``k ln 2 + log(1 + f) + c`` for f from -0.3 to 0.42 and a tiny c."""
    s = f / (2.0 + f)
    z = s * s
    w = z * z
    even = 2.0 / 3.0 + w * (2.0 / 7.0 + w * (2.0 / 11.0 + w * (2.0 / 15.0 + w * (2.0 / 19.0))))
    odd = 2.0 / 5.0 + w * (2.0 / 9.0 + w * (2.0 / 13.0 + w * (2.0 / 17.0 + w * (2.0 / 21.0))))
    # log(1 + f) = 2 atanh(s) = f - f^2/2 + s (f^2/2 + z (even + z odd))
    half = 0.5 * f * f
    inner = s * (half + z * (even + z * odd)) + (k * _LN2_LOW + c)
    return k * _LN2_HIGH - ((half - inner) - f)


@njit
def log(x):
    """The natural logarithm."""
    if not 0.0 < x < np.inf:
        if x == 0.0:
            return -np.inf
        return x if x == np.inf else np.nan
    k, m = _split(x)
    return _log_of_parts(k, m - 1.0, 0.0)


@njit
def log1p(x):
    """``log(1 + x)``, also for small x."""
    if not -1.0 < x < np.inf:
        if x == -1.0:
            return -np.inf
        return x if x == np.inf else np.nan
    u = 1.0 + x
    part = u - 1.0
    lost = (1.0 - (u - part)) + (x - part)
    k, m = _split(u)
    return _log_of_parts(k, m - 1.0, lost / u)


@inlined
def log_unit(x):
    """The natural logarithm for 0 < x <= 1 that are not tiny; without branches, for vector units.

    The exponent is taken from the bits as a positive number, which no vector unit has to convert:
    it becomes the last bits of 2^52.
    """
    bits = _bits_of(x) - _ROOT_HALF_BITS + (_BIAS << np.int64(52))
    exponent = np.int64(np.uint64(bits) >> np.uint64(52))
    k = _float_of(exponent | _bits_of(_TWO_52)) - (_TWO_52 + _BIAS)
    m = _float_of((bits & _MANTISSA) + _ROOT_HALF_BITS)
    return _log_of_parts(k, m - 1.0, 0.0)


# ------------------------------------------------------------------------------------------ powers
@inlined
def _product(a, b):
    """``a b`` as the rounded product and what rounding lost (Dekker, Veltkamp)."""
    p = a * b
    t = _SPLITTER * a
    a_high = t - (t - a)
    a_low = a - a_high
    t = _SPLITTER * b
    b_high = t - (t - b)
    b_low = b - b_high
    return p, ((a_high * b_high - p) + a_high * b_low + a_low * b_high) + a_low * b_low


@inlined
def _sum(a, b):
    """``a + b`` as the rounded sum and what rounding lost, where a is the larger."""
    s = a + b
    return s, b - (s - a)


@inlined
def _times(a_high, a_low, b_high, b_low):
    """The product of two numbers that are sums of two."""
    p, lost = _product(a_high, b_high)
    return _sum(p, lost + (a_high * b_low + a_low * b_high))


@inlined
def _log_in_two(x):
    """log(x) as a sum of two numbers, for a positive finite x: about 100 bits of it."""
    k, m = _split(x)
    f = m - 1.0
    # s = f / (2 + f) in two numbers
    below, below_low = _sum(2.0, f)
    s = f / below
    p, lost = _product(s, below)
    s_low = (((f - p) - lost) - s * below_low) / below
    # log m = 2 s (1 + z (1/3 + z (1/5 + z (1/7 + ...))))
    z, z_low = _times(s, s_low, s, s_low)
    tail = 1.0 / 19.0 + z * (1.0 / 21.0 + z * (1.0 / 23.0))
    tail = 1.0 / 13.0 + z * (1.0 / 15.0 + z * (1.0 / 17.0 + z * tail))
    tail = 1.0 / 7.0 + z * (1.0 / 9.0 + z * (1.0 / 11.0 + z * tail))
    q, q_low = _times(z, z_low, tail, 0.0)
    q, more = _sum(1.0 / 5.0, q)
    q, q_low = _times(z, z_low, q, more + (q_low + _FIFTH_LOW))
    q, more = _sum(1.0 / 3.0, q)
    q, q_low = _times(z, z_low, q, more + (q_low + _THIRD_LOW))
    q, q_low = _times(2.0 * s, 2.0 * s_low, q, q_low)
    value, more = _sum(2.0 * s, q)
    value_low = more + (q_low + 2.0 * s_low)
    if k == 0.0:
        return _sum(value, value_low)
    high, more = _sum(k * _LN2_HIGH, value)
    return _sum(high, more + (k * _LN2_LOW + value_low))


@njit
def power(x, y):
    """``x**y`` for a base of at least 0; NaN for one below."""
    if y == 0.0 or x == 1.0:
        return 1.0
    if not 0.0 < x < np.inf:
        if x == 0.0:
            return 0.0 if y > 0.0 else np.inf
        if x == np.inf:
            return np.inf if y > 0.0 else 0.0
        return np.nan
    high, low = _log_in_two(x)
    if not abs(y * high) < 800.0:  # far out of range, where the parts would overflow
        return exp(y * high)
    p, lost = _product(y, high)
    return _exp_of_sum(p, lost + y * low)


# -------------------------------------------------------------------------------------- the circle
@inlined
def cos_sin(turns):
    """Cosine and sine of ``2 pi turns``; without branches, for vector units."""
    turns = turns - ((turns + _MAGIC) - _MAGIC)  # from -1/2 to 1/2
    quarter = (4.0 * turns + _MAGIC) - _MAGIC  # from -2 to 2
    t = turns - 0.25 * quarter
    x, lost = _product(_TWO_PI_HIGH, t)
    low = lost + _TWO_PI_LOW * t
    z = x * x
    s = 1.0 / 6227020800.0 - z * (1.0 / 1307674368000.0 - z * (1.0 / 355687428096000.0))
    s = 1.0 / 5040.0 - z * (1.0 / 362880.0 - z * (1.0 / 39916800.0 - z * s))
    s = 1.0 / 6.0 - z * (1.0 / 120.0 - z * s)
    sine = x - (x * z * s - low * (1.0 - 0.5 * z))
    c = 1.0 / 87178291200.0 - z * (1.0 / 20922789888000.0 - z * (1.0 / 6402373705728000.0))
    c = 1.0 / 40320.0 - z * (1.0 / 3628800.0 - z * (1.0 / 479001600.0 - z * c))
    c = 1.0 / 24.0 - z * (1.0 / 720.0 - z * c)
    half = 0.5 * z
    whole = 1.0 - half
    cosine = whole + (((1.0 - whole) - half) + (z * z * c - x * low))
    # Choices between two numbers, so that loops over it become vector instructions.
    x, y = (sine, cosine) if abs(quarter) == 1.0 else (cosine, sine)
    return (
        -x if quarter == 1.0 or abs(quarter) == 2.0 else x,
        -y if quarter == -1.0 or abs(quarter) == 2.0 else y,
    )


# ----------------------------------------------------------------------------- what Python calls
@kernel
def exp_each(values):
    """`exp` of each entry of a float64 vector."""
    found = np.empty(values.size)
    for i in range(values.size):
        found[i] = exp(values[i])
    return found


@kernel
def log1p_each(values):
    """`log1p` of each entry of a float64 vector."""
    found = np.empty(values.size)
    for i in range(values.size):
        found[i] = log1p(values[i])
    return found


@kernel
def power_each(bases, exponent):
    """Each entry of a float64 vector to one power."""
    found = np.empty(bases.size)
    for i in range(bases.size):
        found[i] = power(bases[i], exponent)
    return found


@kernel
def cos_sin_each(turns):
    """`cos_sin` of each entry of a float64 vector, ``[entry, (cosine, sine)]``."""
    found = np.empty((turns.size, 2))
    for i in range(turns.size):
        found[i, 0], found[i, 1] = cos_sin(turns[i])
    return found
