"""An extractor for hloc (Hierarchical-Localization).

    import superpoint.hloc
    superpoint.hloc.register()              # before hloc's extraction is called

    conf = {
        "output": "feats-superpoint-c",
        "model": {"name": "superpoint_c", "max_keypoints": 4096},
        "preprocessing": {"grayscale": True, "resize_max": 1024},
    }
    hloc.extract_features.main(conf, images, outputs)

hloc reads, resizes and stores; this finds and describes. `superpoint extract --output features.h5` does
all of it in one command, in the same layout. Needs PyTorch and hloc.
"""

from __future__ import annotations

import sys
import types
from typing import Any, Dict, List

import numpy as np
import torch
from hloc.utils.base_model import BaseModel

from ._api import SuperPoint as Detector


class SuperPoint(BaseModel):
    default_conf = {
        "weights": None,
        "precision": "auto",
        "threads": 0,
        "nms_radius": 4,
        "keypoint_threshold": 0.005,
        "max_keypoints": -1,
        "remove_borders": 4,
        "subpixel": False,
    }
    required_inputs = ["image"]
    detection_noise = 2.0

    def _init(self, conf: Dict[str, Any]) -> None:
        self.detector = Detector(conf["weights"], precision=conf["precision"], threads=conf["threads"])

    def _forward(self, data: Dict[str, torch.Tensor]) -> Dict[str, List[torch.Tensor]]:
        out: Dict[str, List[torch.Tensor]] = {"keypoints": [], "scores": [], "descriptors": []}
        for image in data["image"]:
            plane = image[0].mul(255).round().clamp(0, 255).to(torch.uint8).cpu().numpy()
            found = self.detector.detect(
                np.ascontiguousarray(plane),
                resize="native",
                nms_radius=self.conf["nms_radius"],
                keypoint_threshold=self.conf["keypoint_threshold"],
                max_keypoints=self.conf["max_keypoints"],
                border=self.conf["remove_borders"],
                subpixel=self.conf["subpixel"],
                descriptor_dtype="float32",
            )
            device = image.device
            out["keypoints"].append(torch.from_numpy(found.keypoints).to(device))
            out["scores"].append(torch.from_numpy(found.scores).to(device))
            out["descriptors"].append(torch.from_numpy(found.descriptors.T.copy()).to(device))
        return out


def register(name: str = "superpoint_c") -> None:
    """Let hloc find the class as the model `name`."""
    module = types.ModuleType(f"hloc.extractors.{name}")
    SuperPoint.__module__ = module.__name__
    setattr(module, "SuperPoint", SuperPoint)
    sys.modules[module.__name__] = module
