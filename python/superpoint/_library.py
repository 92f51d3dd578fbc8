"""The C library through ctypes: structs and functions as include/superpoint.h has them."""

from __future__ import annotations

import ctypes as c
import os
from pathlib import Path
from typing import Iterator

_HERE = Path(__file__).resolve().parent
_TREE = _HERE.parent.parent  # when the package is used from the source tree


class Error(Exception):
    """What the library reports: `status` is the number of its sp_status."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class CError(c.Structure):
    _fields_ = [("status", c.c_int), ("text", c.c_char * 508)]


class CRect(c.Structure):
    _fields_ = [("x", c.c_int32), ("y", c.c_int32), ("width", c.c_int32), ("height", c.c_int32)]


class CParams(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("max_keypoints", c.c_int32),
        ("keypoint_threshold", c.c_float),
        ("nms_radius", c.c_int32),
        ("nms", c.c_int),
        ("border", c.c_int32),
        ("channel", c.c_int),
        ("resize", c.c_int),
        ("width", c.c_uint32),
        ("height", c.c_uint32),
        ("exif", c.c_int),
        ("coordinates", c.c_int),
        ("descriptors", c.c_bool),
        ("descriptor_dtype", c.c_int),
        ("roi", CRect),
        ("max_pixels", c.c_uint64),
        ("subpixel", c.c_bool),
    ]


class CImage(c.Structure):
    _fields_ = [
        ("width", c.c_uint32),
        ("height", c.c_uint32),
        ("channels", c.c_uint32),
        ("stride", c.c_size_t),
        ("pixels", c.c_void_p),
    ]


class CFrame(c.Structure):
    _fields_ = [
        ("width", c.c_uint32),
        ("height", c.c_uint32),
        ("content_width", c.c_uint32),
        ("content_height", c.c_uint32),
        ("original_width", c.c_uint32),
        ("original_height", c.c_uint32),
        ("scale_x", c.c_double),
        ("scale_y", c.c_double),
        ("stride", c.c_size_t),
        ("pixels", c.c_void_p),
        ("mask", c.c_void_p),
    ]


class CModelInfo(c.Structure):
    _fields_ = [
        ("path", c.c_char_p),
        ("id", c.c_char_p),
        ("revision", c.c_char_p),
        ("sha256", c.c_char_p),
        ("licence", c.c_char_p),
        ("parameters", c.c_uint64),
    ]


class CEngineOptions(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("engine", c.c_char_p),
        ("precision", c.c_int),
        ("level", c.c_char_p),
        ("threads", c.c_uint32),
        ("width", c.c_uint32),
        ("height", c.c_uint32),
        ("nms_radius", c.c_int32),
        ("legacy", c.c_bool),
    ]


class CEngineInfo(c.Structure):
    _fields_ = [
        ("engine", c.c_char_p),
        ("device", c.c_char_p),
        ("level", c.c_char_p),
        ("precision", c.c_int),
        ("threads", c.c_uint32),
        ("traced", c.c_bool),
        ("device_nms", c.c_bool),
        ("nms_radius", c.c_int32),
        ("fused_stages", c.c_char_p),
    ]


class CMaps(c.Structure):
    _fields_ = [
        ("width", c.c_uint32),
        ("height", c.c_uint32),
        ("scores", c.POINTER(c.c_float)),
        ("suppressed", c.POINTER(c.c_float)),
        ("nms_radius", c.c_int32),
        ("descriptors", c.POINTER(c.c_float)),
        ("forward_ms", c.c_double),
        ("capacity", c.c_size_t),
        ("memory", c.c_void_p),
    ]


class CFeatures(c.Structure):
    _fields_ = [
        ("count", c.c_size_t),
        ("keypoints", c.POINTER(c.c_float)),
        ("scores", c.POINTER(c.c_float)),
        ("descriptors", c.c_void_p),
        ("descriptor_dtype", c.c_int),
        ("pixels", c.POINTER(c.c_uint16)),
        ("device_nms", c.c_bool),
        ("extract_ms", c.c_double),
        ("memory", c.c_void_p),
    ]


class CDescriptors(c.Structure):
    _fields_ = [("data", c.c_void_p), ("count", c.c_size_t), ("dtype", c.c_int)]


class CMatchOptions(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("mutual", c.c_bool),
        ("max_ratio", c.c_float),
        ("max_distance", c.c_float),
        ("level", c.c_char_p),
        ("threads", c.c_uint32),
    ]


class CMatches(c.Structure):
    _fields_ = [
        ("count", c.c_size_t),
        ("pairs", c.POINTER(c.c_uint32)),
        ("similarities", c.POINTER(c.c_float)),
        ("memory", c.c_void_p),
    ]


#: The structs by their names in C, for the test that compares their layout.
STRUCTS = {
    "sp_error": CError,
    "sp_rect": CRect,
    "sp_params": CParams,
    "sp_image": CImage,
    "sp_frame": CFrame,
    "sp_model_info": CModelInfo,
    "sp_engine_options": CEngineOptions,
    "sp_engine_info": CEngineInfo,
    "sp_maps": CMaps,
    "sp_features": CFeatures,
    "sp_descriptors": CDescriptors,
    "sp_match_options": CMatchOptions,
    "sp_matches": CMatches,
}

_P = c.POINTER
_FUNCTIONS = {
    "sp_version": (c.c_char_p, []),
    "sp_params_default": (None, [_P(CParams)]),
    "sp_params_check": (c.c_int, [_P(CParams), _P(CError)]),
    "sp_frame_from_image": (c.c_int, [_P(CImage), _P(CParams), _P(CFrame), _P(CError)]),
    "sp_frame_decode": (c.c_int, [c.c_char_p, c.c_size_t, _P(CParams), _P(CFrame), c.c_void_p, _P(CError)]),
    "sp_frame_set_mask": (c.c_int, [_P(CFrame), _P(CImage), _P(CError)]),
    "sp_frame_free": (None, [_P(CFrame)]),
    "sp_model_open": (c.c_int, [c.c_char_p, c.c_void_p, _P(c.c_void_p), _P(CError)]),
    "sp_model_free": (None, [c.c_void_p]),
    "sp_model_get_info": (_P(CModelInfo), [c.c_void_p]),
    "sp_precision_text": (c.c_char_p, [c.c_int]),
    "sp_engine_options_default": (None, [_P(CEngineOptions)]),
    "sp_engine_create": (c.c_int, [c.c_void_p, _P(CEngineOptions), _P(c.c_void_p), _P(CError)]),
    "sp_engine_free": (None, [c.c_void_p]),
    "sp_engine_get_info": (_P(CEngineInfo), [c.c_void_p]),
    "sp_engine_run": (c.c_int, [c.c_void_p, _P(_P(CFrame)), c.c_size_t, _P(CMaps), _P(CError)]),
    "sp_maps_free": (None, [_P(CMaps)]),
    "sp_features_extract": (c.c_int, [_P(CMaps), _P(CFrame), _P(CParams), _P(CFeatures), _P(CError)]),
    "sp_features_free": (None, [_P(CFeatures)]),
    "sp_match_options_default": (None, [_P(CMatchOptions)]),
    "sp_matcher_create": (c.c_int, [_P(CMatchOptions), _P(c.c_void_p), _P(CError)]),
    "sp_matcher_free": (None, [c.c_void_p]),
    "sp_match": (c.c_int, [c.c_void_p, _P(CDescriptors), _P(CDescriptors), _P(CMatches), _P(CError)]),
    "sp_matches_free": (None, [_P(CMatches)]),
}


def _candidates() -> Iterator[str]:
    named = os.environ.get("SUPERPOINT_LIBRARY")
    if named:
        yield named
        return
    for path in (_HERE / "libsuperpoint.so", _TREE / "build" / "lib" / "libsuperpoint.so"):
        if path.exists():
            yield str(path)
    yield "libsuperpoint.so.0"


def _load() -> c.CDLL:
    failures = []
    for name in _candidates():
        try:
            library = c.CDLL(name)
        except OSError as error:
            failures.append(str(error))
            continue
        for function, (result, arguments) in _FUNCTIONS.items():
            entry = getattr(library, function)
            entry.restype, entry.argtypes = result, arguments
        return library
    raise ImportError("libsuperpoint cannot be loaded: " + "; ".join(failures))


lib = _load()


def check(status: int, error: CError, where: object = None) -> None:
    """Raise what a call reported, and of which file."""
    if status != 0:
        text = error.text.decode("utf-8", "replace")
        raise Error(status, text if where is None else f"{where}: {text}")


def default_weights() -> str:
    """SUPERPOINT_WEIGHTS, or the file that comes with the package or the source tree."""
    named = os.environ.get("SUPERPOINT_WEIGHTS")
    if named:
        return named
    for path in (_HERE / "superpoint.safetensors", _TREE / "weights" / "superpoint.safetensors"):
        if path.exists():
            return str(path)
    raise FileNotFoundError("no weights come with this package; name them, or set SUPERPOINT_WEIGHTS")
