"""Sixteen floats in registers: what the kernels of linear models are made of.

Numba keeps an array of accumulators in memory and leaves a loop over sixteen of them scalar. A
type of its own, which LLVM lowers to one, two or four vector registers, keeps them where they
belong. Lanes know ``+ - * /`` with lanes and numbers, each rounded once; a multiply-add is fused
where, and only where, it is written so, on every machine. Long sums are kept in sixteen doubles.
Nothing here checks bounds.
"""

import operator

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, overload, register_model

LANES = 16

_VECTOR = ir.VectorType(ir.FloatType(), LANES)
_DOUBLES = ir.VectorType(ir.DoubleType(), LANES)
_FOUR = ir.VectorType(ir.FloatType(), 4)
_INT32 = ir.IntType(32)


class _Lanes(types.Type):
    def __init__(self):
        super().__init__(name="Lanes")


lanes_type = _Lanes()


@register_model(_Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager, type_):
        super().__init__(manager, type_, _VECTOR)


class _Four(types.Type):
    def __init__(self):
        super().__init__(name="Four")


_four = _Four()


@register_model(_Four)
class _FourModel(models.PrimitiveModel):
    def __init__(self, manager, type_):
        super().__init__(manager, type_, _FOUR)


class _Sums(types.Type):
    def __init__(self):
        super().__init__(name="Sums")


_sums = _Sums()


@register_model(_Sums)
class _SumsModel(models.PrimitiveModel):
    def __init__(self, manager, type_):
        super().__init__(manager, type_, _DOUBLES)


def _pointer(context, builder, signature, arguments):
    """Where ``array[index]`` is, for the first two arguments."""
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    index = context.cast(builder, arguments[1], signature.args[1], types.intp)
    return builder.gep(array.data, [index])


def _spread(context, builder, type_, value):
    """One number in every lane."""
    value = context.cast(builder, value, type_, types.float32)
    undefined = ir.Constant(_VECTOR, ir.Undefined)
    first = builder.insert_element(undefined, value, ir.Constant(_INT32, 0))
    zeros = ir.Constant(ir.VectorType(_INT32, LANES), [0] * LANES)
    return builder.shuffle_vector(first, undefined, zeros)


@intrinsic
def entry(typing_context, array, index):  # noqa: ARG001
    """``array[index]`` of a contiguous array, for an index that is known to be inside."""

    def generate(context, builder, signature, arguments):
        return builder.load(_pointer(context, builder, signature, arguments))

    return array.dtype(array, index), generate


@intrinsic
def spread(typing_context, value):  # noqa: ARG001
    """All lanes equal to ``value``."""

    def generate(context, builder, signature, arguments):
        return _spread(context, builder, signature.args[0], arguments[0])

    return lanes_type(value), generate


@intrinsic
def load(typing_context, array, index):  # noqa: ARG001
    """The lanes ``array[index : index + 16]`` of a float32 array."""

    def generate(context, builder, signature, arguments):
        pointer = _pointer(context, builder, signature, arguments)
        return builder.load(builder.bitcast(pointer, _VECTOR.as_pointer()), align=4)

    return lanes_type(array, index), generate


@intrinsic
def load_four(typing_context, array, index):  # noqa: ARG001
    """``array[index : index + 4]`` as float32, whatever the type of the numbers there."""
    number = array.dtype

    def generate(context, builder, signature, arguments):
        pointer = _pointer(context, builder, signature, arguments)
        kind = ir.VectorType(pointer.type.pointee, 4).as_pointer()
        values = builder.load(builder.bitcast(pointer, kind), align=number.bitwidth // 8)
        if isinstance(number, types.Integer):
            return (builder.sitofp if number.signed else builder.uitofp)(values, _FOUR)
        return values if number == types.float32 else builder.fptrunc(values, _FOUR)

    return _four(array, index), generate


@intrinsic(prefer_literal=True)
def spread_one(typing_context, four, which):  # noqa: ARG001
    """All lanes equal to number ``which`` (0 to 3, a constant) of four."""
    chosen = [which.literal_value] * LANES

    def generate(context, builder, signature, arguments):  # noqa: ARG001
        lanes = ir.Constant(ir.VectorType(_INT32, LANES), chosen)
        return builder.shuffle_vector(arguments[0], ir.Constant(_FOUR, ir.Undefined), lanes)

    return lanes_type(four, which), generate


@intrinsic
def store(typing_context, array, index, lanes):  # noqa: ARG001
    """Set ``array[index : index + 16]``."""

    def generate(context, builder, signature, arguments):
        pointer = _pointer(context, builder, signature, arguments)
        builder.store(arguments[2], builder.bitcast(pointer, _VECTOR.as_pointer()), align=4)
        return context.get_dummy_value()

    return types.void(array, index, lanes), generate


@intrinsic
def fused(typing_context, factor, lanes, addend):  # noqa: ARG001
    """``factor * lanes + addend`` with one rounding; the factor is a number or lanes."""

    def generate(context, builder, signature, arguments):
        factor = arguments[0]
        if signature.args[0] != lanes_type:
            factor = _spread(context, builder, signature.args[0], factor)
        kind = ir.FunctionType(_VECTOR, [_VECTOR] * 3)
        fma = cgutils.get_or_insert_function(builder.module, kind, "llvm.fma.v16f32")
        return builder.call(fma, [factor, arguments[1], arguments[2]])

    return lanes_type(factor, lanes, addend), generate


def _operate(symbol, instruction):
    """Let ``symbol`` of lanes, or of lanes and a number, be this instruction lane by lane."""

    @intrinsic
    def operation(typing_context, left, right):  # noqa: ARG001
        def generate(context, builder, signature, arguments):
            lanes = (
                value if type_ == lanes_type else _spread(context, builder, type_, value)
                for type_, value in zip(signature.args, arguments, strict=True)
            )
            return getattr(builder, instruction)(*lanes)

        return lanes_type(left, right), generate

    @overload(symbol)
    def choose(left, right):
        if lanes_type in (left, right):
            return lambda left, right: operation(left, right)
        return None

    return choose


_OPERATIONS = [
    _operate(symbol, instruction)
    for symbol, instruction in (
        (operator.add, "fadd"),
        (operator.sub, "fsub"),
        (operator.mul, "fmul"),
        (operator.truediv, "fdiv"),
    )
]


@intrinsic
def where_positive(typing_context, condition, lanes):  # noqa: ARG001
    """``lanes`` where ``condition`` is above 0, and 0 elsewhere."""

    def generate(context, builder, signature, arguments):  # noqa: ARG001
        zero = ir.Constant(_VECTOR, [0.0] * LANES)
        return builder.select(builder.fcmp_ordered(">", arguments[0], zero), arguments[1], zero)

    return lanes_type(condition, lanes), generate


@intrinsic
def any_nonzero(typing_context, lanes):  # noqa: ARG001
    """Whether some lane is not 0."""

    def generate(context, builder, signature, arguments):  # noqa: ARG001
        zero = ir.Constant(_VECTOR, [0.0] * LANES)
        unequal = builder.fcmp_unordered("!=", arguments[0], zero)
        bits = builder.bitcast(unequal, ir.IntType(LANES))
        return builder.icmp_unsigned("!=", bits, ir.Constant(ir.IntType(LANES), 0))

    return types.boolean(lanes), generate


def _doubles_at(context, builder, signature, arguments):
    """Where ``array[index : index + 16]`` of an array of doubles is."""
    pointer = _pointer(context, builder, signature, arguments)
    return builder.bitcast(pointer, _DOUBLES.as_pointer())


def _fused_doubles(builder, left, right, addend):
    """``left * right + addend`` with one rounding."""
    kind = ir.FunctionType(_DOUBLES, [_DOUBLES] * 3)
    fma = cgutils.get_or_insert_function(builder.module, kind, "llvm.fma.v16f64")
    return builder.call(fma, [left, right, addend])


@intrinsic
def no_sums(typing_context):  # noqa: ARG001
    """Sixteen sums in double, all 0."""

    def generate(context, builder, signature, arguments):  # noqa: ARG001
        return ir.Constant(_DOUBLES, [0.0] * LANES)

    return _sums(), generate


@intrinsic
def load_sums(typing_context, array, index):  # noqa: ARG001
    """The sums ``array[index : index + 16]`` of an array of doubles."""

    def generate(context, builder, signature, arguments):
        return builder.load(_doubles_at(context, builder, signature, arguments), align=8)

    return _sums(array, index), generate


@intrinsic
def store_sums(typing_context, array, index, sums):  # noqa: ARG001
    """Set ``array[index : index + 16]`` of an array of doubles."""

    def generate(context, builder, signature, arguments):
        pointer = _doubles_at(context, builder, signature, arguments)
        builder.store(arguments[2], pointer, align=8)
        return context.get_dummy_value()

    return types.void(array, index, sums), generate


@intrinsic
def plus_products(typing_context, sums, left, right):  # noqa: ARG001
    """``sums + left * right`` of lanes, in double: the products are exact."""

    def generate(context, builder, signature, arguments):  # noqa: ARG001
        left, right = (builder.fpext(lanes, _DOUBLES) for lanes in arguments[1:])
        return _fused_doubles(builder, left, right, arguments[0])

    return _sums(sums, left, right), generate


@intrinsic
def plus_scaled(typing_context, sums, factor, lanes):  # noqa: ARG001
    """``sums + factor * lanes`` for one factor, in double and rounded once."""

    def generate(context, builder, signature, arguments):  # noqa: ARG001
        undefined = ir.Constant(_DOUBLES, ir.Undefined)
        first = builder.insert_element(undefined, arguments[1], ir.Constant(_INT32, 0))
        zeros = ir.Constant(ir.VectorType(_INT32, LANES), [0] * LANES)
        factors = builder.shuffle_vector(first, undefined, zeros)
        values = builder.fpext(arguments[2], _DOUBLES)
        return _fused_doubles(builder, factors, values, arguments[0])

    return _sums(sums, types.float64, lanes), generate


@intrinsic
def prefetch(typing_context, array, index):  # noqa: ARG001
    """Ask for the cache line of ``array[index]``, which will be read soon."""

    def generate(context, builder, signature, arguments):
        pointer = _pointer(context, builder, signature, arguments)
        byte = ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [byte, _INT32, _INT32, _INT32])
        ask = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        read, keep, data = (ir.Constant(_INT32, n) for n in (0, 3, 1))
        builder.call(ask, [builder.bitcast(pointer, byte), read, keep, data])
        return context.get_dummy_value()

    return types.void(array, index), generate


def _halves(distance):
    """Which lanes of a pair are added: those of the first, then of the second, ``distance`` apart.

    Lanes 16 to 31 are those of the second.
    """
    low = []
    for lane in range(LANES):
        place = lane % (2 * distance)
        base = lane - place
        low.append(base + place if place < distance else LANES + base + place - distance)
    return low, [lane + distance for lane in low]


@intrinsic
def sums_across(typing_context, sixteen):  # noqa: ARG001
    """Lane i of the result is the sum of all lanes of ``sixteen[i]``, added in pairs."""

    def generate(context, builder, signature, arguments):  # noqa: ARG001
        left = [builder.extract_value(arguments[0], i) for i in range(LANES)]
        while len(left) > 1:
            distance = len(left) // 2
            masks = [
                ir.Constant(ir.VectorType(_INT32, LANES), lanes) for lanes in _halves(distance)
            ]
            pairs = zip(left[:distance], left[distance:], strict=True)
            left = [
                builder.fadd(*(builder.shuffle_vector(one, other, mask) for mask in masks))
                for one, other in pairs
            ]
        return left[0]

    return lanes_type(sixteen), generate
