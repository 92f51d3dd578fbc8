"""SuperPoint: interest points in pictures and their descriptors.

    from superpoint import SuperPoint, match

    detector = SuperPoint()
    a = detector.detect("left.jpg", max_keypoints=2048)
    b = detector.detect(array)              # uint8, H x W or H x W x 3 (RGB)
    pairs, similarities = match(a.descriptors, b.descriptors, max_ratio=0.9)
    print(a.keypoints[pairs[:, 0]], b.keypoints[pairs[:, 1]])
"""

from ._api import Features, Info, Maps, Matcher, SuperPoint, match
from ._library import Error, lib

__version__ = lib.sp_version().decode()
__all__ = ["Error", "Features", "Info", "Maps", "Matcher", "SuperPoint", "match", "__version__"]
