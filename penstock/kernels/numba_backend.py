"""numba itself: compiled kernels, and intrinsics for instructions that Python lacks.

Only `penstock.kernels.compiled` imports this, in processes that use compiled kernels.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from numba.extending import intrinsic

from penstock.kernels.cache import KernelCache

ir: Any = importlib.import_module("llvmlite.ir")  # has no type hints

F = TypeVar("F", bound=Callable[..., Any])


def compile_kernel(function: F, **options: Any) -> F:
    """A dispatcher: compiles for the argument types of a call, or loads the code from disk."""
    compiled = numba.njit(nogil=True, boundscheck=False, error_model="numpy", **options)(function)
    compiled._cache = KernelCache(function)
    return cast(F, compiled)


def _trailing_zeros(_typing: Any, _word: Any) -> Any:
    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        zero_is_undefined = context.get_constant(numba.types.boolean, True)
        return builder.cttz(arguments[0], zero_is_undefined)

    return numba.types.int64(numba.types.uint64), generate


trailing_zeros: Callable[[Any], Any] = cast(Any, intrinsic(_trailing_zeros))
"""The position of the lowest set bit of a 64-bit word that is not 0; for kernels only."""


def _popcount(_typing: Any, _word: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return numba.types.int64(numba.types.uint64), generate


popcount: Callable[[Any], Any] = cast(Any, intrinsic(_popcount))
"""The number of set bits of a 64-bit word; for kernels only."""


def _put_eight(_typing: Any, target: Any, _at: Any, rows: Any, _row: Any, _plus: Any) -> Any:
    types = numba.types
    signature = types.void(target, types.int64, rows, types.int64, types.uint16)
    eight = ir.VectorType(ir.IntType(16), 8)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        target, at, rows, row, plus = arguments
        to = context.make_array(signature.args[0])(context, builder, target).data
        table = context.make_array(signature.args[2])(context, builder, rows).data
        first = builder.mul(row, ir.Constant(ir.IntType(64), 8))
        source = builder.bitcast(builder.gep(table, [first]), eight.as_pointer())
        values = builder.load(source, align=2)
        lone = builder.insert_element(
            ir.Constant(eight, ir.Undefined), plus, ir.Constant(ir.IntType(32), 0)
        )
        nowhere = ir.Constant(ir.VectorType(ir.IntType(32), 8), [0] * 8)
        spread = builder.shuffle_vector(lone, ir.Constant(eight, ir.Undefined), nowhere)
        goal = builder.bitcast(builder.gep(to, [at]), eight.as_pointer())
        builder.store(builder.add(values, spread), goal, align=2)
        return context.get_dummy_value()

    return signature, generate


put_eight: Callable[[Any, Any, Any, Any, Any], None] = cast(Any, intrinsic(_put_eight))
"""put_eight(target, at, rows, row, plus): target[at : at + 8] = rows[row] + plus, of 16-bit values.

One load, one addition and one store. LLVM does not derive them from the equivalent loop, and
extracting bits this way is two to three times faster than bit by bit (docs/notes/matching.md).
For kernels only.
"""


def _prefetch(_typing: Any, array: Any, _at: Any) -> Any:
    signature = numba.types.void(array, numba.types.int64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array, at = arguments
        data = context.make_array(signature.args[0])(context, builder, array).data
        address, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        place = builder.bitcast(builder.gep(data, [at]), address)
        kind = ir.FunctionType(ir.VoidType(), [address, number, number, number])
        declared = builder.module.declare_intrinsic("llvm.prefetch", [address], kind)
        to_read, keep, data_cache = (ir.Constant(number, value) for value in (0, 3, 1))
        builder.call(declared, [place, to_read, keep, data_cache])
        return context.get_dummy_value()

    return signature, generate


prefetch: Callable[[Any, Any], None] = cast(Any, intrinsic(_prefetch))
"""prefetch(array, at): prefetch the cache line of the `at`-th number of the flattened array;
nothing is read, so it may lie beyond the end. For kernels only."""
