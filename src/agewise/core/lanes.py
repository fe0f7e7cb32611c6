"""Vectors of a few floats in registers: what the kernels of linear models and MLPs are made of.

Numba keeps an array of accumulators in memory and leaves a loop over sixteen of them scalar. A
type of its own, which LLVM lowers to one, two or four vector registers, whatever the processor
has, keeps them where they belong. Vectors know ``+ - * /`` with vectors of their type and numbers,
lane by lane and each rounded once; a multiply-add is fused where, and only where, it is written
so. Results are the same to the bit on every machine. Nothing here checks bounds.

Lanes are sixteen float32; long sums are kept in sixteen doubles.
"""

import operator

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, overload, register_model

LANES = 16
_INT32 = ir.IntType(32)


class _Vector(types.Type):
    """``width`` numbers of a float type, of ``align`` bytes each; ``ir`` is its type in LLVM."""

    def __init__(self, number, width):
        super().__init__(name=f"{number}x{width}")
        self.number, self.width, self.align = number, width, number.bitwidth // 8
        kind = ir.FloatType() if number == types.float32 else ir.DoubleType()
        self.ir = ir.VectorType(kind, width)


@register_model(_Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager, type_):
        super().__init__(manager, type_, type_.ir)


def _order(lanes):
    """A constant of these whole numbers: which lanes a shuffle takes."""
    return ir.Constant(ir.VectorType(_INT32, len(lanes)), lanes)


def _pointer_to(context, builder, signature, arguments):
    """Where ``array[index]`` is, for the first two arguments."""
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    index = context.cast(builder, arguments[1], signature.args[1], types.intp)
    return builder.gep(array.data, [index])


def _vector_at(context, builder, vector, signature, arguments):
    """Where ``array[index : index + width]`` is, for the first two arguments."""
    pointer = _pointer_to(context, builder, signature, arguments)
    return builder.bitcast(pointer, vector.ir.as_pointer())


def _as_vector(context, builder, vector, type_, value):
    """``value`` if it is such a vector already, else this number in every lane."""
    if type_ == vector:
        return value
    number = context.cast(builder, value, type_, vector.number)
    undefined = ir.Constant(vector.ir, ir.Undefined)
    first = builder.insert_element(undefined, number, ir.Constant(_INT32, 0))
    return builder.shuffle_vector(first, undefined, _order([0] * vector.width))


def _call_on_lanes(builder, name, vectors):
    """LLVM's function of this name, lane by lane."""
    type_ = vectors[0].type
    kind = ir.FunctionType(type_, [type_] * len(vectors))
    full_name = f"llvm.{name}.v{type_.count}{type_.element.intrinsic_name}"
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, full_name), vectors)


def _loading(vector):
    """Make ``load(array, index)`` for this type of vector."""

    @intrinsic
    def load(typing_context, array, index):  # noqa: ARG001
        """``array[index : index + width]`` of a contiguous array of such numbers."""

        def generate(context, builder, signature, arguments):
            pointer = _vector_at(context, builder, vector, signature, arguments)
            return builder.load(pointer, align=vector.align)

        return vector(array, index), generate

    return load


@intrinsic
def store(typing_context, array, index, vector):  # noqa: ARG001
    """Set ``array[index : index + width]`` of a contiguous array of such numbers."""

    def generate(context, builder, signature, arguments):
        pointer = _vector_at(context, builder, vector, signature, arguments)
        builder.store(arguments[2], pointer, align=vector.align)
        return context.get_dummy_value()

    return types.void(array, index, vector), generate


def _operate(symbol, instruction):
    """Let ``symbol`` of vectors, or of a vector and a number, be this instruction lane by lane."""

    @intrinsic
    def operation(typing_context, left, right):  # noqa: ARG001
        vector = left if isinstance(left, _Vector) else right

        def generate(context, builder, signature, arguments):
            lanes = (
                _as_vector(context, builder, vector, type_, value)
                for type_, value in zip(signature.args, arguments, strict=True)
            )
            return getattr(builder, instruction)(*lanes)

        return vector(left, right), generate

    @overload(symbol)
    def choose(left, right):
        if isinstance(left, _Vector) or isinstance(right, _Vector):
            return lambda left, right: operation(left, right)
        return None


_operate(operator.add, "fadd")
_operate(operator.sub, "fsub")
_operate(operator.mul, "fmul")
_operate(operator.truediv, "fdiv")


_lanes_type = _Vector(types.float32, LANES)
_four = _Vector(types.float32, 4)
_sums = _Vector(types.float64, LANES)
_ZERO = ir.Constant(_lanes_type.ir, [0.0] * LANES)

load = _loading(_lanes_type)
load_sums = _loading(_sums)


@intrinsic
def spread(typing_context, value):  # noqa: ARG001
    """All lanes equal to ``value``."""

    def generate(context, builder, signature, arguments):
        return _as_vector(context, builder, _lanes_type, signature.args[0], arguments[0])

    return _lanes_type(value), generate


@intrinsic
def entry(typing_context, array, index):  # noqa: ARG001
    """``array[index]`` of a contiguous array, for an index that is known to be inside."""

    def generate(context, builder, signature, arguments):
        return builder.load(_pointer_to(context, builder, signature, arguments))

    return array.dtype(array, index), generate


@intrinsic
def load_four(typing_context, array, index):  # noqa: ARG001
    """``array[index : index + 4]`` as float32, whatever the type of the numbers there."""
    number = array.dtype

    def generate(context, builder, signature, arguments):
        pointer = _pointer_to(context, builder, signature, arguments)
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
        return builder.shuffle_vector(arguments[0], undefined, _order(chosen))

    return _lanes_type(four, which), generate


@intrinsic
def fused(typing_context, factor, lanes, addend):  # noqa: ARG001
    """``factor * lanes + addend`` with one rounding; the factor is a number or lanes."""

    def generate(context, builder, signature, arguments):
        factor = _as_vector(context, builder, _lanes_type, signature.args[0], arguments[0])
        return _call_on_lanes(builder, "fma", [factor, arguments[1], arguments[2]])

    return _lanes_type(factor, lanes, addend), generate


@intrinsic
def where_positive(typing_context, condition, lanes):  # noqa: ARG001
    """``lanes`` where ``condition`` is above 0, and 0 elsewhere."""

    def generate(context, builder, signature, arguments):  # noqa: ARG001
        return builder.select(builder.fcmp_ordered(">", arguments[0], _ZERO), arguments[1], _ZERO)

    return _lanes_type(condition, lanes), generate


@intrinsic
def any_nonzero(typing_context, lanes):  # noqa: ARG001
    """Whether some lane is not 0."""

    def generate(context, builder, signature, arguments):  # noqa: ARG001
        unequal = builder.fcmp_unordered("!=", arguments[0], _ZERO)
        bits = builder.bitcast(unequal, ir.IntType(LANES))
        return builder.icmp_unsigned("!=", bits, ir.Constant(ir.IntType(LANES), 0))

    return types.boolean(lanes), generate


@intrinsic
def plus_products(typing_context, sums, left, right):  # noqa: ARG001
    """``sums + left * right`` of lanes, in double: the products are exact."""

    def generate(context, builder, signature, arguments):  # noqa: ARG001
        left, right = (builder.fpext(lanes, _sums.ir) for lanes in arguments[1:])
        return _call_on_lanes(builder, "fma", [left, right, arguments[0]])

    return _sums(sums, left, right), generate


@intrinsic
def plus_scaled(typing_context, sums, factor, lanes):  # noqa: ARG001
    """``sums + factor * lanes`` for one factor, in double and rounded once."""

    def generate(context, builder, signature, arguments):
        factors = _as_vector(context, builder, _sums, signature.args[1], arguments[1])
        values = builder.fpext(arguments[2], _sums.ir)
        return _call_on_lanes(builder, "fma", [factors, values, arguments[0]])

    return _sums(sums, types.float64, lanes), generate


@intrinsic
def prefetch(typing_context, array, index):  # noqa: ARG001
    """Ask for the cache line of ``array[index]``, which will be read soon."""

    def generate(context, builder, signature, arguments):
        pointer = _pointer_to(context, builder, signature, arguments)
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
            masks = [_order(lanes) for lanes in _halves(distance)]
            pairs = zip(left[:distance], left[distance:], strict=True)
            left = [
                builder.fadd(*(builder.shuffle_vector(one, other, mask) for mask in masks))
                for one, other in pairs
            ]
        return left[0]

    return _lanes_type(sixteen), generate
