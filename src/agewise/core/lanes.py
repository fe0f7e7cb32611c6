"""Sixteen floats in registers: what the kernels of linear models are made of.

Lanes are vectors of float32 (see `vectors`); long sums are kept in sixteen doubles.
"""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from agewise.core.vectors import (
    INT32,
    Vector,
    as_vector,
    call_on_lanes,
    in_every_lane,
    loading,
    order,
    pointer_to,
    spreading,
)

LANES = 16

lanes_type = Vector(types.float32, LANES)
_four = Vector(types.float32, 4)
_sums = Vector(types.float64, LANES)
_ZERO = ir.Constant(lanes_type.ir, [0.0] * LANES)

spread = spreading(lanes_type)
load = loading(lanes_type)
load_sums = loading(_sums)


@intrinsic
def entry(typing_context, array, index):  # noqa: ARG001
    """``array[index]`` of a contiguous array, for an index that is known to be inside."""

    def generate(context, builder, signature, arguments):
        return builder.load(pointer_to(context, builder, signature, arguments))

    return array.dtype(array, index), generate


@intrinsic
def load_four(typing_context, array, index):  # noqa: ARG001
    """``array[index : index + 4]`` as float32, whatever the type of the numbers there."""
    number = array.dtype

    def generate(context, builder, signature, arguments):
        pointer = pointer_to(context, builder, signature, arguments)
        kind = ir.VectorType(pointer.type.pointee, 4).as_pointer()
        values = builder.load(builder.bitcast(pointer, kind), align=number.bitwidth // 8)
        if isinstance(number, types.Integer):
            return (builder.sitofp if number.signed else builder.uitofp)(values, _four.ir)
        return values if number == types.float32 else builder.fptrunc(values, _four.ir)

    return _four(array, index), generate


@intrinsic(prefer_literal=True)
def spread_one(typing_context, four, which):  # noqa: ARG001
    """All lanes equal to number ``which`` (0 to 3, a constant) of four."""
    chosen = [which.literal_value] * LANES

    def generate(context, builder, signature, arguments):  # noqa: ARG001
        undefined = ir.Constant(_four.ir, ir.Undefined)
        return builder.shuffle_vector(arguments[0], undefined, order(chosen))

    return lanes_type(four, which), generate


@intrinsic
def fused(typing_context, factor, lanes, addend):  # noqa: ARG001
    """``factor * lanes + addend`` with one rounding; the factor is a number or lanes."""

    def generate(context, builder, signature, arguments):
        factor = as_vector(context, builder, lanes_type, signature.args[0], arguments[0])
        return call_on_lanes(builder, "fma", [factor, arguments[1], arguments[2]])

    return lanes_type(factor, lanes, addend), generate


@intrinsic
def where_positive(typing_context, condition, lanes):  # noqa: ARG001
    """``lanes`` where ``condition`` is above 0, and 0 elsewhere."""

    def generate(context, builder, signature, arguments):  # noqa: ARG001
        return builder.select(builder.fcmp_ordered(">", arguments[0], _ZERO), arguments[1], _ZERO)

    return lanes_type(condition, lanes), generate


@intrinsic
def any_nonzero(typing_context, lanes):  # noqa: ARG001
    """Whether some lane is not 0."""

    def generate(context, builder, signature, arguments):  # noqa: ARG001
        unequal = builder.fcmp_unordered("!=", arguments[0], _ZERO)
        bits = builder.bitcast(unequal, ir.IntType(LANES))
        return builder.icmp_unsigned("!=", bits, ir.Constant(ir.IntType(LANES), 0))

    return types.boolean(lanes), generate


@intrinsic
def no_sums(typing_context):  # noqa: ARG001
    """Sixteen sums in double, all 0."""

    def generate(context, builder, signature, arguments):  # noqa: ARG001
        return ir.Constant(_sums.ir, [0.0] * LANES)

    return _sums(), generate


@intrinsic
def plus_products(typing_context, sums, left, right):  # noqa: ARG001
    """``sums + left * right`` of lanes, in double: the products are exact."""

    def generate(context, builder, signature, arguments):  # noqa: ARG001
        left, right = (builder.fpext(lanes, _sums.ir) for lanes in arguments[1:])
        return call_on_lanes(builder, "fma", [left, right, arguments[0]])

    return _sums(sums, left, right), generate


@intrinsic
def plus_scaled(typing_context, sums, factor, lanes):  # noqa: ARG001
    """``sums + factor * lanes`` for one factor, in double and rounded once."""

    def generate(context, builder, signature, arguments):  # noqa: ARG001
        factors = in_every_lane(builder, arguments[1], LANES)
        values = builder.fpext(arguments[2], _sums.ir)
        return call_on_lanes(builder, "fma", [factors, values, arguments[0]])

    return _sums(sums, types.float64, lanes), generate


@intrinsic
def prefetch(typing_context, array, index):  # noqa: ARG001
    """Ask for the cache line of ``array[index]``, which will be read soon."""

    def generate(context, builder, signature, arguments):
        pointer = pointer_to(context, builder, signature, arguments)
        byte = ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [byte, INT32, INT32, INT32])
        ask = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        read, keep, data = (ir.Constant(INT32, n) for n in (0, 3, 1))
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
            masks = [order(lanes) for lanes in _halves(distance)]
            pairs = zip(left[:distance], left[distance:], strict=True)
            left = [
                builder.fadd(*(builder.shuffle_vector(one, other, mask) for mask in masks))
                for one, other in pairs
            ]
        return left[0]

    return lanes_type(sixteen), generate
