"""Memory that a GPU reads and writes directly, and copies to and from it.

ONNX Runtime's Python makes a new array for each answer and copies through pageable memory. The CUDA driver's own
library, which is wherever a GPU works, page-locks memory of ours (cuMemHostRegister) and copies without the GIL,
without a new array, and only the rows that there are. Knows nothing of models.
"""

import contextlib
import ctypes
import mmap
import sys
import weakref
from collections.abc import Callable, Iterator
from functools import partial
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from azpy.errors import DeviceError

__all__ = ["Driver"]

_PORTABLE = 1  # CU_MEMHOSTREGISTER_PORTABLE: page-locked for all contexts


class Driver:
    """The CUDA driver, for one GPU.

    Args:
        index: which GPU.
        free: calls what unlocks memory, now or when no other thread minds.

    Raises:
        DeviceError: there is no driver, or it refuses.
    """

    def __init__(self, index: int, free: Callable[[Callable[[], object]], None]) -> None:
        self._free = free
        name = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
        try:
            self._library = ctypes.CDLL(name)
        except OSError as error:
            raise DeviceError(f"{name} cannot be loaded") from error
        device = ctypes.c_int(0)
        self._context = ctypes.c_void_p()
        self._call("cuInit", 0)
        self._call("cuDeviceGet", ctypes.byref(device), index)
        # The context that CUDA's runtime library, and so ONNX Runtime, works in. It is kept: a process has one.
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(self._context), device)

    def array(self, shape: tuple[int, ...], dtype: type[np.generic]) -> NDArray[Any]:
        """Page-locked zeros, unlocked when no array looks at them any more.

        Raises:
            DeviceError: the system locks no more memory.
        """
        size = prod(shape) * np.dtype(dtype).itemsize
        # Whole pages of its own: a page cannot be locked twice.
        pages = max(1, -(-size // mmap.PAGESIZE))
        mapping = mmap.mmap(-1, pages * mmap.PAGESIZE)
        memory = np.frombuffer(mapping, np.uint8)
        address = memory.ctypes.data
        with self._current():
            self._call("cuMemHostRegister_v2", ctypes.c_void_p(address), ctypes.c_size_t(memory.size), _PORTABLE)
        # With the mapping, which so stays until it is unlocked.
        weakref.finalize(memory, self._free, partial(self._unlock, mapping, address)).atexit = False
        return memory[:size].view(dtype).reshape(shape)

    def upload(self, address: int, array: NDArray[Any]) -> None:
        """Copies a page-locked array to the device; done when it returns.

        Raises:
            DeviceError: the GPU failed.
        """
        source, size = ctypes.c_void_p(array.ctypes.data), ctypes.c_size_t(array.nbytes)
        with self._current():
            self._call("cuMemcpyHtoD_v2", ctypes.c_uint64(address), source, size)

    def download(self, array: NDArray[Any], address: int) -> None:
        """Fills a page-locked array from the device; done when it returns.

        Raises:
            DeviceError: the GPU failed.
        """
        target, size = ctypes.c_void_p(array.ctypes.data), ctypes.c_size_t(array.nbytes)
        with self._current():
            self._call("cuMemcpyDtoH_v2", target, ctypes.c_uint64(address), size)

    def _unlock(self, _mapping: mmap.mmap, address: int) -> None:
        with contextlib.suppress(DeviceError), self._current():
            self._call("cuMemHostUnregister", ctypes.c_void_p(address))

    @contextlib.contextmanager
    def _current(self) -> Iterator[None]:
        """The thread's context is ours meanwhile: others in this process may work on another GPU."""
        self._call("cuCtxPushCurrent_v2", self._context)
        try:
            yield
        finally:
            self._call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))

    def _call(self, name: str, *arguments: Any) -> None:
        status = getattr(self._library, name)(*arguments)
        if status:
            raise DeviceError(f"the CUDA driver refuses {name} (CUDA error {status})")
