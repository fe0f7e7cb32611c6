"""How threads share tasks inside compiled code, without the interpreter and its lock.

A board is an array of int64 in memory that all of them see. Its first word holds how many tasks
there are (upper half) and which is the next (lower half): taking a task is one atomic addition.
The words that change stand in cache lines of their own.
"""

import numpy as np
from llvmlite import ir
from numba import carray, njit, types
from numba.extending import intrinsic

from agewise.core.random import mix

TASKS, FINISHED, LEAVE = 0, 8, 16
#: From here on a board holds what the tasks are about.
SUBJECT = 24
WORDS = 40

_HALF = 32
_LOWER = (1 << _HALF) - 1


def _word(context, builder, signature, arguments):
    """Where ``board[index]`` is, for the first two arguments."""
    board = context.make_array(signature.args[0])(context, builder, arguments[0])
    index = context.cast(builder, arguments[1], signature.args[1], types.intp)
    return builder.gep(board.data, [index])


@intrinsic
def current(typing_context, board, index):  # noqa: ARG001
    """``board[index]`` as it is in memory now."""

    def generate(context, builder, signature, arguments):
        pointer = _word(context, builder, signature, arguments)
        return builder.load_atomic(pointer, "acquire", 8)

    return types.int64(board, index), generate


@intrinsic
def publish(typing_context, board, index, value):  # noqa: ARG001
    """Set ``board[index]``; who sees it also sees all that was written before."""

    def generate(context, builder, signature, arguments):
        pointer = _word(context, builder, signature, arguments)
        value = context.cast(builder, arguments[2], signature.args[2], types.int64)
        builder.store_atomic(value, pointer, "release", 8)
        return context.get_dummy_value()

    return types.void(board, index, value), generate


@intrinsic
def raised(typing_context, board, index):  # noqa: ARG001
    """Add one to ``board[index]`` and return what it was."""

    def generate(context, builder, signature, arguments):
        pointer = _word(context, builder, signature, arguments)
        return builder.atomic_rmw("add", pointer, ir.Constant(ir.IntType(64), 1), "acq_rel")

    return types.int64(board, index), generate


@intrinsic
def _pointer(typing_context, address, like):  # noqa: ARG001
    def generate(context, builder, signature, arguments):
        return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

    return types.CPointer(like.dtype)(address, like), generate


@njit
def array_at(address, size, like):
    """The array of ``size`` entries of the type of ``like`` at this address."""
    return carray(_pointer(address, like), (size,))


@njit
def post(board, count):
    """Open ``count`` tasks: what they are about must be on the board already."""
    publish(board, FINISHED, 0)
    publish(board, TASKS, np.int64(count) << _HALF)


@njit
def take(board):
    """The number of a task that is now the caller's to do, or -1 if none is left."""
    tasks = raised(board, TASKS)
    task = tasks & _LOWER
    return task if task < tasks >> _HALF else np.int64(-1)


@njit
def finish(board):
    """Say that a task is done."""
    raised(board, FINISHED)


@njit
def await_all(board, count):
    """Return when all tasks are done; those that others took last no longer than one task."""
    while current(board, FINISHED) != count:
        pass


@njit
def await_tasks(board, looks):
    """Whether there are tasks to take; false if there were none for so many looks, or on leaving.

    A look takes some 8 ns: the chain of multiplications between two of them leaves the units of
    the core to its neighbour.
    """
    state = np.uint64(1)  # not 0, which a chain of multiplications would keep
    for _ in range(looks):
        tasks = current(board, TASKS)
        if tasks & _LOWER < tasks >> _HALF:
            return True
        if current(board, LEAVE) != 0:
            return False
        state = mix(mix(state))
    return state == np.uint64(1)  # never so in practice; it keeps the chain from being dropped
