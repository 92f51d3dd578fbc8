"""The model of transformers, run by this library.

    from superpoint.hf import SuperPointForKeypointDetection
    from transformers import AutoImageProcessor

    processor = AutoImageProcessor.from_pretrained("magic-leap-community/superpoint")
    model = SuperPointForKeypointDetection.from_pretrained(None)   # or a file, or a Hub id in the cache
    outputs = model(**processor(image, return_tensors="pt"))
    processor.post_process_keypoint_detection(outputs, [(image.height, image.width)])

The output has the fields, shapes, order and units of transformers' own: relative coordinates, padding
with zeros, a mask, points in raster order unless `max_keypoints` cuts them. Needs PyTorch.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Iterator, Optional, Tuple

import numpy as np
import torch
from numpy.typing import NDArray

from ._api import DIM, Features, SuperPoint


@dataclass
class SuperPointKeypointDescriptionOutput:
    """As transformers' class of that name."""

    loss: Optional[torch.Tensor] = None
    keypoints: Optional[torch.Tensor] = None  #: [B, N, 2], x / width, y / height
    scores: Optional[torch.Tensor] = None  #: [B, N]
    descriptors: Optional[torch.Tensor] = None  #: [B, N, 256]
    mask: Optional[torch.Tensor] = None  #: [B, N] int, 0 where there is padding
    hidden_states: Optional[Tuple[torch.Tensor, ...]] = None

    def to_tuple(self) -> Tuple[Any, ...]:
        return tuple(v for v in (getattr(self, f.name) for f in fields(self)) if v is not None)

    def keys(self) -> Iterator[str]:
        return (f.name for f in fields(self) if getattr(self, f.name) is not None)

    def __getitem__(self, key: Any) -> Any:
        return getattr(self, key) if isinstance(key, str) else self.to_tuple()[key]


class SuperPointForKeypointDetection:
    """Callable like transformers' model. `precision` is fp32 by default, to give the same numbers."""

    def __init__(
        self,
        detector: SuperPoint,
        *,
        keypoint_threshold: float = 0.005,
        max_keypoints: int = -1,
        nms_radius: int = 4,
        border_removal_distance: int = 4,
    ) -> None:
        self.detector = detector
        self.keypoint_threshold = keypoint_threshold
        self.max_keypoints = max_keypoints
        self.nms_radius = nms_radius
        self.border = border_removal_distance

    @classmethod
    def from_pretrained(
        cls, weights: Optional[str] = None, *, precision: str = "fp32", threads: int = 0, **config: Any
    ) -> "SuperPointForKeypointDetection":
        return cls(SuperPoint(weights, precision=precision, threads=threads), **config)

    def eval(self) -> "SuperPointForKeypointDetection":
        return self

    def to(self, *_: Any, **__: Any) -> "SuperPointForKeypointDetection":
        return self

    def _one(self, plane: NDArray[np.uint8]) -> Tuple[NDArray[np.float32], NDArray[np.float32], NDArray[Any]]:
        found: Features = self.detector.detect(
            plane,
            resize="native",
            nms="hf",
            nms_radius=self.nms_radius,
            keypoint_threshold=self.keypoint_threshold,
            border=0,
            max_keypoints=-1,
            descriptor_dtype="float32",
        )
        x, y = found.pixels[:, 0].astype(np.int64), found.pixels[:, 1].astype(np.int64)
        # transformers gives its border the size of the frame times eight, so that only the strips on
        # the left and at the top are taken off
        kept = np.flatnonzero((x >= self.border) & (y >= self.border))
        if 0 <= self.max_keypoints < len(kept):
            kept = kept[: self.max_keypoints]
        else:
            kept = kept[np.lexsort((x[kept], y[kept]))]
        points = np.stack([x[kept] / np.float32(plane.shape[1]), y[kept] / np.float32(plane.shape[0])], axis=1)
        return points.astype(np.float32), found.scores[kept], found.descriptors[kept]

    def __call__(self, pixel_values: torch.Tensor, labels: Any = None, **_: Any) -> SuperPointKeypointDescriptionOutput:
        """`pixel_values`: [B, C, H, W] in 0...1, of which channel 0 is looked at."""
        if labels is not None:
            raise ValueError("SuperPoint does not support training for now.")
        if pixel_values.ndim != 4 or 0 in pixel_values.shape:
            raise ValueError(f"pixel_values of shape {tuple(pixel_values.shape)}: must be [B, C, H, W], of one picture at least")
        planes = pixel_values[:, 0].detach().cpu().mul(255).round().clamp(0, 255).to(torch.uint8).numpy()
        results = [self._one(plane) for plane in planes]
        longest = max(len(scores) for _, scores, _ in results)
        batch = len(results)
        keypoints, scores = np.zeros((batch, longest, 2), np.float32), np.zeros((batch, longest), np.float32)
        descriptors, mask = np.zeros((batch, longest, DIM), np.float32), np.zeros((batch, longest), np.int32)
        for i, (p, s, d) in enumerate(results):
            keypoints[i, : len(s)], scores[i, : len(s)], descriptors[i, : len(s)], mask[i, : len(s)] = p, s, d, 1
        device = pixel_values.device
        return SuperPointKeypointDescriptionOutput(
            keypoints=torch.from_numpy(keypoints).to(device),
            scores=torch.from_numpy(scores).to(device),
            descriptors=torch.from_numpy(descriptors).to(device),
            mask=torch.from_numpy(mask).to(device),
        )
