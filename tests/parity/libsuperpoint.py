"""The C library through ctypes, as thin as it can be: what the comparisons need and no more.

Every structure repeats include/superpoint.h field by field.
"""
import ctypes as c
import os

import numpy as np


class Error(c.Structure):
    _fields_ = [("status", c.c_int), ("text", c.c_char * 508)]


class Rect(c.Structure):
    _fields_ = [(n, c.c_int32) for n in ("x", "y", "width", "height")]


class Params(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t), ("max_keypoints", c.c_int32), ("keypoint_threshold", c.c_float),
        ("nms_radius", c.c_int32), ("nms", c.c_int), ("border", c.c_int32), ("channel", c.c_int),
        ("resize", c.c_int), ("width", c.c_uint32), ("height", c.c_uint32), ("exif", c.c_int),
        ("coordinates", c.c_int), ("descriptors", c.c_bool), ("descriptor_dtype", c.c_int), ("roi", Rect),
        ("max_pixels", c.c_uint64), ("subpixel", c.c_bool)]


class Frame(c.Structure):
    _fields_ = [
        ("width", c.c_uint32), ("height", c.c_uint32), ("content_width", c.c_uint32),
        ("content_height", c.c_uint32), ("original_width", c.c_uint32), ("original_height", c.c_uint32),
        ("scale_x", c.c_double), ("scale_y", c.c_double), ("stride", c.c_size_t), ("pixels", c.c_void_p),
        ("mask", c.c_void_p)]


class Image(c.Structure):
    _fields_ = [
        ("width", c.c_uint32), ("height", c.c_uint32), ("channels", c.c_uint32), ("stride", c.c_size_t),
        ("pixels", c.c_void_p)]


class ImageInfo(c.Structure):
    _fields_ = [
        ("format", c.c_char * 8), ("width", c.c_uint32), ("height", c.c_uint32), ("orientation", c.c_int),
        ("multiple", c.c_bool)]


class EngineOptions(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t), ("engine", c.c_char_p), ("precision", c.c_int), ("level", c.c_char_p),
        ("threads", c.c_uint32), ("width", c.c_uint32), ("height", c.c_uint32), ("nms_radius", c.c_int32),
        ("legacy", c.c_bool)]


class Maps(c.Structure):
    _fields_ = [
        ("width", c.c_uint32), ("height", c.c_uint32), ("scores", c.c_void_p), ("suppressed", c.c_void_p),
        ("nms_radius", c.c_int32), ("descriptors", c.c_void_p), ("forward_ms", c.c_double),
        ("capacity", c.c_size_t), ("memory", c.c_void_p)]


class Features(c.Structure):
    _fields_ = [
        ("count", c.c_size_t), ("keypoints", c.c_void_p), ("scores", c.c_void_p), ("descriptors", c.c_void_p),
        ("descriptor_dtype", c.c_int), ("pixels", c.c_void_p), ("device_nms", c.c_bool),
        ("extract_ms", c.c_double), ("memory", c.c_void_p)]


PRECISIONS = ("auto", "fp32", "bf16", "int8", "fp16")
FLOAT16, FLOAT32, UINT8 = 0, 1, 2
DTYPES = {FLOAT16: np.float16, FLOAT32: np.float32, UINT8: np.uint8}


def _copy(address, dtype, shape):
    count = int(np.prod(shape))
    if count == 0:
        return np.zeros(shape, dtype)
    raw = (c.c_char * (count * np.dtype(dtype).itemsize)).from_address(address)
    return np.frombuffer(raw, dtype).reshape(shape).copy()


class Library:
    def __init__(self, path=None):
        here = os.path.dirname(os.path.abspath(__file__))
        self.lib = c.CDLL(path or os.environ.get("SUPERPOINT_LIBRARY")
                          or os.path.join(here, "../../build/lib/libsuperpoint.so"))

    def check(self, status, err):
        if status:
            raise RuntimeError(err.text.decode())

    def params(self, **changes):
        p = Params()
        self.lib.sp_params_default(c.byref(p))
        for name, value in changes.items():
            setattr(p, name, value)
        return p

    def decode(self, data, **changes):
        """A picture file: uint8 [h,w,3] and its ImageInfo."""
        err, image, info, p = Error(), Image(), ImageInfo(), self.params(**changes)
        self.check(self.lib.sp_image_decode(data, c.c_size_t(len(data)), c.byref(p), c.byref(image), c.byref(info),
                                            c.byref(err)), err)
        return self._take(image), info

    def resize(self, array, width, height):
        """A contiguous uint8 [h,w,channels] to [height,width,channels]."""
        err, out = Error(), Image()
        h, w, channels = array.shape
        image = Image(w, h, channels, w * channels, array.ctypes.data)
        self.check(self.lib.sp_image_resize(c.byref(image), c.c_uint32(width), c.c_uint32(height), c.byref(out),
                                            c.byref(err)), err)
        return self._take(out)

    def frame(self, data, **changes):
        """The frame of a picture file: uint8 [h,w]."""
        err, frame, p = Error(), Frame(), self.params(**changes)
        self.check(self.lib.sp_frame_decode(data, c.c_size_t(len(data)), c.byref(p), c.byref(frame), None,
                                            c.byref(err)), err)
        out = _copy(frame.pixels, np.uint8, (frame.height, frame.stride))[:, : frame.width]
        self.lib.sp_frame_free(c.byref(frame))
        return out

    def _take(self, image):
        rows = _copy(image.pixels, np.uint8, (image.height, image.stride))[:, : image.width * image.channels]
        out = rows.reshape(image.height, image.width, image.channels)
        self.lib.sp_image_free(c.byref(image))
        return out

    def engine(self, weights, **options):
        return Engine(self, weights, **options)

    def extract(self, maps, frame, params):
        """(pixels [n,2], keypoints [n,2], scores [n], descriptors [n,256] or None)"""
        err, found = Error(), Features()
        self.check(self.lib.sp_features_extract(c.byref(maps), c.byref(frame), c.byref(params), c.byref(found),
                                                c.byref(err)), err)
        n = found.count
        out = (_copy(found.pixels, np.uint16, (n, 2)), _copy(found.keypoints, np.float32, (n, 2)),
               _copy(found.scores, np.float32, (n,)),
               _copy(found.descriptors, DTYPES[found.descriptor_dtype], (n, 256)) if params.descriptors else None)
        self.lib.sp_features_free(c.byref(found))
        return out


def frame_of(plane):
    """A frame around a contiguous uint8 array, which must outlive it."""
    height, width = plane.shape
    return Frame(width, height, width, height, width, height, 1.0, 1.0, width, plane.ctypes.data, None)


class Engine:
    def __init__(self, library, weights, engine="auto", precision="fp32", level=None, threads=0):
        self.library, lib, err = library, library.lib, Error()
        self.model, self.handle, self.maps = c.c_void_p(), c.c_void_p(), Maps()
        library.check(lib.sp_model_open(weights.encode(), None, c.byref(self.model), c.byref(err)), err)
        o = EngineOptions()
        lib.sp_engine_options_default(c.byref(o))
        o.engine, o.precision, o.threads = engine.encode(), PRECISIONS.index(precision), threads
        o.level = level.encode() if level else None
        library.check(lib.sp_engine_create(self.model, c.byref(o), c.byref(self.handle), c.byref(err)), err)

    def run(self, plane):
        """The maps (valid until the next run), scores [h,w] and descriptors [h/8,w/8,256] of a uint8 plane."""
        err, frame = Error(), frame_of(plane)
        pointers = (c.POINTER(Frame) * 1)(c.pointer(frame))
        self.library.check(self.library.lib.sp_engine_run(self.handle, pointers, c.c_size_t(1), c.byref(self.maps),
                                                          c.byref(err)), err)
        h, w = plane.shape
        return (_copy(self.maps.scores, np.float32, (h, w)),
                _copy(self.maps.descriptors, np.float32, (h // 8, w // 8, 256)))

    def close(self):
        lib = self.library.lib
        lib.sp_maps_free(c.byref(self.maps))
        lib.sp_engine_free(self.handle)
        lib.sp_model_free(self.model)
