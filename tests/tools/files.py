"""Feature and match files, read by h5py with hloc's keys and by pycolmap's database."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import h5py
import numpy as np
import pycolmap
from PIL import Image

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = os.path.abspath(os.environ.get("SUPERPOINT", "build/bin/superpoint"))
NAMES = ["a.png", "b.png", "sub/c.png"]


def run(*args, cwd):
    subprocess.run([PROGRAM, *args], cwd=cwd, check=True, stderr=subprocess.DEVNULL)


def npz_points(cwd, name):
    with np.load(Path(cwd) / "npz" / (name + ".npz")) as data:
        return {k: data[k] for k in data.files}


def check_hdf5(cwd):
    with h5py.File(Path(cwd) / "f.h5") as file:
        identity = json.loads(file.attrs["superpoint"])
        assert identity["pictures"]["count"] == 3 and len(identity["weights"]["sha256"]) == 64
        for name in NAMES:
            group, plain = file[name], npz_points(cwd, name)
            assert set(group) == {"keypoints", "scores", "descriptors", "image_size"}, set(group)
            keypoints = group["keypoints"][...]
            assert keypoints.dtype == np.float32 and keypoints.shape == plain["keypoints"].shape
            # hdf5 has pixel centres at integers, npz the published package's corner: half a scale less a half
            scale = plain["image_size"] / (640, 480)
            np.testing.assert_allclose(keypoints, plain["keypoints"] + scale / 2 - 0.5, atol=1e-3)
            np.testing.assert_array_equal(group["scores"][...], plain["scores"])
            assert group["scores"].dtype == np.float32
            assert group["descriptors"].dtype == np.float16 and group["descriptors"].shape == (256, len(keypoints))
            np.testing.assert_array_equal(group["descriptors"][...], plain["descriptors"].T)
            np.testing.assert_array_equal(group["image_size"][...], plain["image_size"])
            np.testing.assert_allclose(group["keypoints"].attrs["uncertainty"], 2 * scale.mean())
    print("h5py reads the features: hloc's keys, shapes and types")


def check_matches(cwd):
    """As hloc reads them: names_to_pair, then matches0 and matching_scores0."""
    with h5py.File(Path(cwd) / "m.h5") as file, h5py.File(Path(cwd) / "f.h5") as features:
        for i, first in enumerate(NAMES):
            for second in NAMES[i + 1 :]:
                group = file["/".join((first.replace("/", "-"), second.replace("/", "-")))]
                matches, scores = group["matches0"][...], group["matching_scores0"][...]
                assert matches.dtype == np.int16 and scores.dtype == np.float16
                a = features[first]["descriptors"][...].astype(np.float32)
                b = features[second]["descriptors"][...].astype(np.float32)
                table = a.T @ b
                best = table.argmax(1)
                expected = np.where(table.argmax(0)[best] == np.arange(len(best)), best, -1)
                differ = np.flatnonzero(matches != expected)
                # equal up to the last bits of a sum: a near tie may go either way
                assert len(differ) <= 2, (first, second, differ)
                found = matches >= 0
                reference = (1 + table[np.arange(len(best)), best]) / 2
                np.testing.assert_allclose(scores[found], reference[found], atol=1e-3)
                assert (scores[~found] == 0).all()
    print("h5py reads the matches: hloc's pairs, and numpy finds the same neighbours")


def check_database(cwd):
    database = pycolmap.Database.open(str(Path(cwd) / "f.db"))
    images = {image.name: image.image_id for image in database.read_all_images()}
    assert sorted(images) == sorted(NAMES)
    for name in NAMES:
        plain = npz_points(cwd, name)
        scale = plain["image_size"] / (640, 480)
        keypoints = database.read_keypoints(images[name])
        np.testing.assert_allclose(keypoints[:, :2], plain["keypoints"] + scale / 2, atol=1e-3)
        camera = database.read_camera(database.read_image(images[name]).camera_id)
        assert (camera.width, camera.height) == tuple(plain["image_size"]), camera
    matches = database.read_matches(images["a.png"], images["b.png"])
    with h5py.File(Path(cwd) / "m.h5") as file:
        partners = file["a.png/b.png/matches0"][...]
    expected = {(i, j) for i, j in enumerate(partners) if j >= 0}
    assert {tuple(m) for m in matches.tolist()} == expected and len(expected) > 20
    database.close()
    print("pycolmap", pycolmap.__version__, "opens the database: cameras, images, keypoints, matches")


def main():
    with tempfile.TemporaryDirectory() as cwd:
        os.makedirs(Path(cwd) / "pictures" / "sub")
        picture = Image.open(ROOT / "sample_data" / "bridge.jpg").convert("RGB")
        for i, name in enumerate(NAMES):
            picture.crop((40 * i, 20 * i, 40 * i + 1400 - 100 * i, 20 * i + 800)).save(Path(cwd) / "pictures" / name)
        run("extract", "pictures", "--output", "f.h5", cwd=cwd)
        run("extract", "pictures", "--output", "f.db", cwd=cwd)
        run("extract", "pictures", "--format", "npz", "--output", "npz", cwd=cwd)
        run("match", "f.h5", "--output", "m.h5", cwd=cwd)
        run("match", "f.h5", "--output", "f.db", cwd=cwd)
        check_hdf5(cwd)
        check_matches(cwd)
        check_database(cwd)


if __name__ == "__main__":
    sys.exit(main())
