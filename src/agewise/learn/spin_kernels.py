"""Looking out for a change in memory without holding the interpreter lock."""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from agewise.compiled import compiled
from agewise.random_kernels import mix


@intrinsic
def _current(typing_context, array):  # noqa: ARG001
    """``array[0]`` as it is in memory now, whatever was read before."""

    def generate(context, builder, signature, arguments):
        values = context.make_array(signature.args[0])(context, builder, arguments[0])
        zero = ir.Constant(ir.IntType(64), 0)
        return builder.load_atomic(builder.gep(values.data, [zero]), "acquire", 8)

    return types.int64(array), generate


@compiled(nogil=True)
def look_out(flag, seen, times):
    """Whether ``flag[0]`` became other than ``seen`` within so many looks (some 20 ns each)."""
    for look in range(times):
        if _current(flag) != seen:
            return True
        # A chain of multiplications between two looks leaves the core's units to its neighbour.
        if mix(mix(look)) == 0:
            return False
    return False
