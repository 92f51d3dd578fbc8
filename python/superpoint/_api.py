"""Pictures in, arrays out."""

from __future__ import annotations

import ctypes as c
import operator
import os
import re
import threading
import weakref
from dataclasses import dataclass
from typing import Any, Iterable, Iterator, Optional, Tuple, Union

import numpy as np
from numpy.typing import NDArray

from ._library import (
    CDescriptors,
    CEngineOptions,
    CError,
    CFeatures,
    CFrame,
    CImage,
    CMaps,
    CMatches,
    CMatchOptions,
    CParams,
    CRect,
    check,
    default_weights,
    lib,
)

#: A path, the bytes of a picture file, or pixels: uint8, H x W (grey) or H x W x 3 (RGB).
Picture = Union[str, "os.PathLike[str]", bytes, NDArray[np.uint8]]

_CHOICES = {
    "nms": ("single", "hf"),
    "channel": ("red", "luma"),
    "exif": ("ignore", "apply"),
    "coordinates": ("corner", "centre", "colmap"),
    "descriptor_dtype": ("float16", "float32", "uint8"),
}
_DTYPES = (np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.uint8))
_PRECISIONS = ("auto", "fp32", "bf16", "int8", "fp16")
DIM = 256


@dataclass(frozen=True, eq=False)
class Features:
    """Keypoints of one picture, best first."""

    keypoints: NDArray[np.float32]  #: [N, 2]: x, y in the picture, in the coordinates asked for
    scores: NDArray[np.float32]  #: [N]
    descriptors: NDArray[Any]  #: [N, 256], each of length 1; [N, 0] when not asked for
    image_size: Tuple[int, int]  #: width, height of the picture
    pixels: NDArray[np.uint16]  #: [N, 2]: x, y in the network's frame, whole also with subpixel

    def __len__(self) -> int:
        return len(self.scores)


@dataclass(frozen=True, eq=False)
class Maps:
    """What the network says of every place of one frame."""

    scores: NDArray[np.float32]  #: [H, W], probability of a keypoint; H and W are multiples of 8
    descriptors: NDArray[np.float32]  #: [H / 8, W / 8, 256], each of length 1; that of cell (i, j) belongs to its centre


@dataclass(frozen=True)
class Info:
    """What runs."""

    engine: str
    device: str
    level: str
    precision: str
    threads: int
    weights: str
    revision: str
    sha256: str
    licence: str


def _whole(name: str, value: Any, kind: Any) -> int:
    """A whole number that fits the C type: ctypes by itself would cut it to its low bits."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name}: {value!r} is not a whole number") from None
    if kind(number).value != number:
        raise ValueError(f"{name}: {number} is out of range")
    return number


def _set_resize(params: CParams, value: Any) -> None:
    told = f'resize: {value!r} is not (width, height), "WxH", "max:N" or "native"'
    if isinstance(value, str):
        if value == "native":
            params.resize = 1
            return
        longest = re.fullmatch(r"max:([0-9]+)", value)
        if longest:
            params.resize, params.width = 2, _whole("resize", int(longest[1]), c.c_uint32)
            return
        sides = re.fullmatch(r"([0-9]+)x([0-9]+)", value)
        if not sides:
            raise ValueError(told)
        value = int(sides[1]), int(sides[2])
    try:
        width, height = value
    except (TypeError, ValueError):
        raise ValueError(told) from None
    params.resize, params.width, params.height = 0, _whole("resize", width, c.c_uint32), _whole("resize", height, c.c_uint32)


def _rectangle(value: Any) -> CRect:
    try:
        x, y, width, height = value
    except (TypeError, ValueError):
        raise ValueError(f"roi: {value!r} is not (x, y, width, height)") from None
    return CRect(*(_whole("roi", v, c.c_int32) for v in (x, y, width, height)))


_WHOLE = {"max_keypoints": c.c_int32, "nms_radius": c.c_int32, "border": c.c_int32, "max_pixels": c.c_uint64}


def _params(options: dict[str, Any]) -> CParams:
    params = CParams()
    lib.sp_params_default(params)
    for name, value in options.items():
        if name in _CHOICES:
            if value not in _CHOICES[name]:
                raise ValueError(f"{name}: {value!r} is none of {', '.join(_CHOICES[name])}")
            setattr(params, name, _CHOICES[name].index(value))
        elif name == "resize":
            _set_resize(params, value)
        elif name == "roi":
            params.roi = _rectangle(value)
        elif name in _WHOLE:
            setattr(params, name, _whole(name, value, _WHOLE[name]))
        elif name == "keypoint_threshold":
            params.keypoint_threshold = float(value)
        elif name in ("descriptors", "subpixel"):
            setattr(params, name, bool(value))
        else:
            raise TypeError(f"{name!r} is not a parameter")
    error = CError()
    check(lib.sp_params_check(params, error), error)
    return params


def _image(array: NDArray[np.uint8]) -> Tuple[CImage, NDArray[np.uint8]]:
    """A view of the array; the array that is returned has to outlive it."""
    if array.dtype != np.uint8 or array.ndim not in (2, 3) or (array.ndim == 3 and array.shape[2] not in (1, 3)):
        raise TypeError(f"pixels have to be uint8, H x W or H x W x 3, not {array.dtype} {array.shape}")
    if array.size == 0:
        raise ValueError(f"there are no pixels in an array of {array.shape}")
    kept = np.ascontiguousarray(array)
    channels = 1 if kept.ndim == 2 else kept.shape[2]
    height, width = kept.shape[:2]
    return CImage(width, height, channels, width * channels, kept.ctypes.data), kept


def _copy(pointer: Any, shape: Tuple[int, ...], dtype: Any) -> NDArray[Any]:
    """The library's memory as an array of our own."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    if size == 0:
        return np.empty(shape, dtype)
    return np.frombuffer(c.string_at(pointer, size), dtype).reshape(shape).copy()


class SuperPoint:
    """The network with its weights, ready to run.

    `weights` is a safetensors file or "owner/name[@revision]" in the local Hugging Face cache; None:
    those that come with the package. `engine`: auto, cpu, blackhole, reference. `precision`: auto,
    fp32, bf16, int8. `params` are the defaults of `detect`. One object may be used by several threads,
    which then take turns.
    """

    def __init__(
        self,
        weights: Optional[Union[str, "os.PathLike[str]"]] = None,
        *,
        engine: str = "auto",
        precision: str = "auto",
        threads: int = 0,
        level: Optional[str] = None,
        **params: Any,
    ) -> None:
        if precision not in _PRECISIONS:
            raise ValueError(f"precision: {precision!r} is none of {', '.join(_PRECISIONS)}")
        _params(params)
        if not isinstance(engine, str):
            raise TypeError(f"engine: {engine!r} is not a name")
        _whole("threads", threads, c.c_uint32)
        self._defaults = params
        self._lock = threading.Lock()
        self._maps = CMaps()
        error, model, made = CError(), c.c_void_p(), c.c_void_p()
        path = os.fsencode(default_weights() if weights is None else weights)
        check(lib.sp_model_open(path, None, model, error), error)
        options = CEngineOptions()
        lib.sp_engine_options_default(options)
        options.engine = engine.encode()
        options.precision = _PRECISIONS.index(precision)
        options.threads = threads
        options.level = level.encode() if level else None
        status = lib.sp_engine_create(model, options, made, error)
        if status != 0:
            lib.sp_model_free(model)
        check(status, error)
        self._engine, self._model = made, model
        self._finalizer = weakref.finalize(self, _release, made, model, self._maps)

    def close(self) -> None:
        """Free the engine and its memory now instead of when the object goes. A call in another thread ends first."""
        with self._lock:
            self._finalizer()

    def __enter__(self) -> "SuperPoint":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    @property
    def info(self) -> Info:
        with self._lock:
            self._check_open()
            engine = lib.sp_engine_get_info(self._engine).contents
            model = lib.sp_model_get_info(self._model).contents
            return Info(
                engine=engine.engine.decode(),
                device=engine.device.decode("utf-8", "replace"),
                level=engine.level.decode(),
                precision=lib.sp_precision_text(engine.precision).decode(),
                threads=engine.threads,
                weights=model.id.decode(),
                revision=model.revision.decode(),
                sha256=model.sha256.decode(),
                licence=model.licence.decode(),
            )

    def _check_open(self) -> None:
        if not self._finalizer.alive:
            raise ValueError("this SuperPoint was closed")

    def _frame(self, image: Picture, params: CParams, mask: Optional[NDArray[Any]], frame: CFrame) -> None:
        error = CError()
        if isinstance(image, np.ndarray):
            view, kept = _image(image)
            check(lib.sp_frame_from_image(view, params, frame, error), error)
            del kept
        elif isinstance(image, bytes):
            check(lib.sp_frame_decode(image, len(image), params, frame, None, error), error)
        elif isinstance(image, (str, os.PathLike)):
            with open(image, "rb") as file:
                data = file.read()
            check(lib.sp_frame_decode(data, len(data), params, frame, None, error), error, os.fspath(image))
        else:
            raise TypeError(f"a picture is a path, the bytes of a file, or a numpy array, not {type(image).__name__}")
        if mask is not None:
            if not isinstance(mask, np.ndarray):
                raise TypeError(f"mask: has to be a numpy array, not {type(mask).__name__}")
            # Only a zero is 0: numbers of other types would lose it in the conversion (0.5, 256).
            view, kept = _image(mask if mask.dtype == np.uint8 else (mask != 0).astype(np.uint8))
            check(lib.sp_frame_set_mask(frame, view, error), error)
            del kept

    def detect(self, image: Picture, *, mask: Optional[NDArray[Any]] = None, **params: Any) -> Features:
        """Find and describe the keypoints of one picture.

        Parameters, with their defaults: max_keypoints 1024 (-1: all), keypoint_threshold 0.005,
        nms_radius 4, nms "single" ("hf"), border 4, channel "red" ("luma"), resize (640, 480) ("native",
        "max:N"), exif "ignore" ("apply"), coordinates "corner" ("centre", "colmap"), descriptors True,
        descriptor_dtype "float16" ("float32", "uint8"), subpixel False (True: points lie between pixels, where
        the scores peak), roi (x, y, w, h). `mask`: no points where it is 0.
        """
        settings = _params({**self._defaults, **params})
        frame, found, error = CFrame(), CFeatures(), CError()
        try:
            self._frame(image, settings, mask, frame)
            with self._lock:
                self._run(frame)
                check(lib.sp_features_extract(self._maps, frame, settings, found, error), error)
            n = found.count
            columns = DIM if settings.descriptors else 0
            return Features(
                keypoints=_copy(found.keypoints, (n, 2), np.float32),
                scores=_copy(found.scores, (n,), np.float32),
                descriptors=_copy(found.descriptors, (n, columns), _DTYPES[settings.descriptor_dtype]),
                image_size=(frame.original_width, frame.original_height),
                pixels=_copy(found.pixels, (n, 2), np.uint16),
            )
        finally:
            lib.sp_features_free(found)
            lib.sp_frame_free(frame)

    def maps(self, image: Picture, **params: Any) -> Maps:
        """The network's dense output for one picture, before anything is suppressed or selected.

        Of the parameters of `detect`, `resize`, `channel` and `exif` count.
        """
        settings = _params({**self._defaults, **params})
        frame = CFrame()
        try:
            self._frame(image, settings, None, frame)
            with self._lock:
                self._run(frame)
                height, width = self._maps.height, self._maps.width
                return Maps(
                    scores=_copy(self._maps.scores, (height, width), np.float32),
                    descriptors=_copy(self._maps.descriptors, (height // 8, width // 8, DIM), np.float32),
                )
        finally:
            lib.sp_frame_free(frame)

    def _run(self, frame: CFrame) -> None:
        """The forward pass into `_maps`; the lock is held."""
        self._check_open()
        error = CError()
        frames = (c.POINTER(CFrame) * 1)(c.pointer(frame))
        check(lib.sp_engine_run(self._engine, frames, 1, self._maps, error), error)

    def detect_many(self, images: Iterable[Picture], **params: Any) -> Iterator[Features]:
        """`detect` for each."""
        return (self.detect(image, **params) for image in images)


def _release(engine: c.c_void_p, model: c.c_void_p, maps: CMaps) -> None:
    lib.sp_maps_free(maps)
    lib.sp_engine_free(engine)
    lib.sp_model_free(model)


def _descriptors(array: NDArray[Any]) -> Tuple[CDescriptors, NDArray[Any]]:
    if not isinstance(array, np.ndarray):
        raise TypeError(f"descriptors have to be a numpy array, not {type(array).__name__}")
    if array.ndim != 2 or array.shape[1] != DIM or array.dtype not in _DTYPES:
        raise TypeError(f"descriptors have to be float16, float32 or uint8, [N, {DIM}], not {array.dtype} {array.shape}")
    kept = np.ascontiguousarray(array)
    return CDescriptors(kept.ctypes.data, len(kept), _DTYPES.index(kept.dtype)), kept


class Matcher:
    """Nearest neighbours among descriptors, with threads and memory that stay from call to call.

    Mutual ones only, unless told otherwise; with Lowe's ratio (tested in both directions when mutual)
    and a largest distance of the unit vectors (0...2). Several threads take turns.
    """

    def __init__(
        self,
        *,
        mutual: bool = True,
        max_ratio: float = 1.0,
        max_distance: float = 2.0,
        threads: int = 0,
        level: Optional[str] = None,
    ) -> None:
        options, error = CMatchOptions(), CError()
        lib.sp_match_options_default(options)
        options.mutual, options.max_ratio, options.max_distance = mutual, max_ratio, max_distance
        options.threads = _whole("threads", threads, c.c_uint32)
        options.level = level.encode() if level else None
        self._lock = threading.Lock()
        self._matcher = c.c_void_p()
        check(lib.sp_matcher_create(options, self._matcher, error), error)
        self._finalizer = weakref.finalize(self, lib.sp_matcher_free, self._matcher)

    def match(self, a: NDArray[Any], b: NDArray[Any]) -> Tuple[NDArray[np.uint32], NDArray[np.float32]]:
        """Descriptors [N, 256] each: pairs [M, 2] of indices, in rising order of the first, and similarities [M]."""
        error, found = CError(), CMatches()
        first, kept_a = _descriptors(a)
        second, kept_b = _descriptors(b)
        try:
            with self._lock:
                check(lib.sp_match(self._matcher, first, second, found, error), error)
            return _copy(found.pairs, (found.count, 2), np.uint32), _copy(found.similarities, (found.count,), np.float32)
        finally:
            lib.sp_matches_free(found)
            del kept_a, kept_b


def match(
    a: NDArray[Any],
    b: NDArray[Any],
    *,
    mutual: bool = True,
    max_ratio: float = 1.0,
    max_distance: float = 2.0,
    threads: int = 0,
) -> Tuple[NDArray[np.uint32], NDArray[np.float32]]:
    """One call of `Matcher.match`; for many pairs keep a Matcher."""
    matcher = Matcher(mutual=mutual, max_ratio=max_ratio, max_distance=max_distance, threads=threads)
    return matcher.match(a, b)
