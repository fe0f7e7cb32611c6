"""Vectors of a few floats in registers, and what all of them can do.

Numba keeps an array of accumulators in memory and leaves a loop over sixteen of them scalar. A
type of its own, which LLVM lowers to one, two or four vector registers, whatever the processor
has, keeps them where they belong. Vectors know ``+ - * /`` with vectors of their type and numbers,
lane by lane and each rounded once; a multiply-add is fused where, and only where, it is written
so. Results are the same to the bit on every machine. Nothing here checks bounds.
"""

import operator

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, overload, register_model

INT32 = ir.IntType(32)


class Vector(types.Type):
    """``width`` numbers of a float type, of ``align`` bytes each; ``ir`` is its type in LLVM."""

    def __init__(self, number, width):
        super().__init__(name=f"{number}x{width}")
        self.number, self.width, self.align = number, width, number.bitwidth // 8
        kind = ir.FloatType() if number == types.float32 else ir.DoubleType()
        self.ir = ir.VectorType(kind, width)


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager, type_):
        super().__init__(manager, type_, type_.ir)


def order(lanes):
    """A constant of these whole numbers: which lanes a shuffle takes."""
    return ir.Constant(ir.VectorType(INT32, len(lanes)), lanes)


def pointer_to(context, builder, signature, arguments):
    """Where ``array[index]`` is, for the first two arguments."""
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    index = context.cast(builder, arguments[1], signature.args[1], types.intp)
    return builder.gep(array.data, [index])


def vector_at(context, builder, vector, signature, arguments):
    """Where ``array[index : index + width]`` is, for the first two arguments."""
    pointer = pointer_to(context, builder, signature, arguments)
    return builder.bitcast(pointer, vector.ir.as_pointer())


def in_every_lane(builder, value, width):
    """A vector of this width, all lanes equal to ``value``."""
    undefined = ir.Constant(ir.VectorType(value.type, width), ir.Undefined)
    first = builder.insert_element(undefined, value, ir.Constant(INT32, 0))
    return builder.shuffle_vector(first, undefined, order([0] * width))


def as_vector(context, builder, vector, type_, value):
    """``value`` if it is such a vector already, else this number in every lane."""
    if type_ == vector:
        return value
    number = context.cast(builder, value, type_, vector.number)
    return in_every_lane(builder, number, vector.width)


def call_on_lanes(builder, name, vectors):
    """LLVM's function of this name, lane by lane."""
    type_ = vectors[0].type
    kind = ir.FunctionType(type_, [type_] * len(vectors))
    full_name = f"llvm.{name}.v{type_.count}{type_.element.intrinsic_name}"
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, full_name), vectors)


def spreading(vector):
    """Make ``spread(value)`` for this type of vector."""

    @intrinsic
    def spread(typing_context, value):  # noqa: ARG001
        """All lanes equal to ``value``."""

        def generate(context, builder, signature, arguments):
            return as_vector(context, builder, vector, signature.args[0], arguments[0])

        return vector(value), generate

    return spread


def loading(vector):
    """Make ``load(array, index)`` for this type of vector."""

    @intrinsic
    def load(typing_context, array, index):  # noqa: ARG001
        """``array[index : index + width]`` of a contiguous array of such numbers."""

        def generate(context, builder, signature, arguments):
            pointer = vector_at(context, builder, vector, signature, arguments)
            return builder.load(pointer, align=vector.align)

        return vector(array, index), generate

    return load


@intrinsic
def store(typing_context, array, index, vector):  # noqa: ARG001
    """Set ``array[index : index + width]`` of a contiguous array of such numbers."""

    def generate(context, builder, signature, arguments):
        pointer = vector_at(context, builder, vector, signature, arguments)
        builder.store(arguments[2], pointer, align=vector.align)
        return context.get_dummy_value()

    return types.void(array, index, vector), generate


def _operate(symbol, instruction):
    """Let ``symbol`` of vectors, or of a vector and a number, be this instruction lane by lane."""

    @intrinsic
    def operation(typing_context, left, right):  # noqa: ARG001
        vector = left if isinstance(left, Vector) else right

        def generate(context, builder, signature, arguments):
            lanes = (
                as_vector(context, builder, vector, type_, value)
                for type_, value in zip(signature.args, arguments, strict=True)
            )
            return getattr(builder, instruction)(*lanes)

        return vector(left, right), generate

    @overload(symbol)
    def choose(left, right):
        if isinstance(left, Vector) or isinstance(right, Vector):
            return lambda left, right: operation(left, right)
        return None


_operate(operator.add, "fadd")
_operate(operator.sub, "fsub")
_operate(operator.mul, "fmul")
_operate(operator.truediv, "fdiv")
