"""The stereo pairs of Debian's opencv-doc, extracted and matched by superpoint and reconstructed by pycolmap.

- The aloe plant is a rectified pair: the second camera is the first, moved along x and not turned, and the disparities of
  its pixels are known.
- The chessboards were held before two cameras that did not move, thirteen times: one stereo rig seen thirteen times. The
  truth is OpenCV's calibration from the boards' corners. A single pair sees little more than a plane, which does not tell
  the direction of a short baseline, so the rig is reconstructed from the matches of all pairs together; each pair by
  itself has to be registered.

The settings are fixed, and nothing is chosen by its result: the whole grid of precisions, numbers of points, points on
pixels and between them, and seeds of COLMAP's random samples is run, and median and worst are printed.

- Native size and COLMAP's origin: no pixel is resampled or shifted.
- No threshold: the number of points decides.
- Lowe's ratio 0.9: the boards' corners all look alike.
- Matches within 2 px of their epipolar line. Those that are wrong and lie within it by chance are not seen from two
  pictures, and have any depth, which pulls hard at a baseline's direction. So bundle adjustment ends with a robust loss,
  whose scale is what a point between the pixels is off, a quarter of a pixel.

Checks, on all runs with --subpixel: all pictures registered, mean reprojection error under a pixel, the second camera, seen
from the first, within 1 % of the baseline in its place and within half a degree in its rotation.
"""

import argparse
import itertools
import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import cv2
import h5py
import mapping
import numpy as np
import pycolmap
from PIL import Image

BOARD = (9, 6)
NUMBERS = [f"{i:02d}" for i in range(1, 15) if i != 10]  # there is no tenth
BOARDS = [(f"left{n}.jpg", f"right{n}.jpg") for n in NUMBERS]
ALOE = ("aloeL.jpg", "aloeR.jpg")
ALOE_LENS = 3740, 641, 555  # the data set's focal length; the pictures' middle
ALOE_TRUTH = np.eye(3), np.array([-1.0, 0, 0])
ASIDE, TURNED = 1, 0.5  # bounds: % of the baseline, degrees
RATIO, SCALE = "0.9", 0.25
PRECISIONS, POINTS, SEEDS = ("auto", "fp32"), (2048, 4096, 8192), (1, 2, 3, 4, 5)


@dataclass
class Features:
    """What was found in all pictures and matched in the pairs."""

    keypoints: dict
    matches: dict


def extract(folder, source, name, precision, subpixel):
    pictures = folder / "pictures"
    if not pictures.exists():
        pictures.mkdir()
        for picture in itertools.chain(ALOE, *BOARDS):
            os.symlink(source / picture, pictures / picture)
    mapping.run("extract", "pictures", "--output", name, "--precision", precision, "--subpixel", str(subpixel).lower(),
                "--resize", "native", "--coordinates", "colmap", "--keypoint-threshold", "0", "--max-keypoints",
                str(max(POINTS)), cwd=folder)
    return folder / name


def best(path, count, to):
    """The `count` best points of each picture; `path` holds the best first."""
    with h5py.File(path) as all_points, h5py.File(to, "w") as some:
        for name, group in all_points.items():
            there = some.create_group(name)
            there["keypoints"], there["scores"] = group["keypoints"][:count], group["scores"][:count]
            there["descriptors"], there["image_size"] = group["descriptors"][:, :count], group["image_size"][:]
    return to


def match(folder, features):
    with open(folder / "pairs.txt", "w") as file:
        file.writelines(f"{a} {b}\n" for a, b in (ALOE, *BOARDS))
    (folder / "matches.h5").unlink(missing_ok=True)
    mapping.run("match", features.name, "--output", "matches.h5", "--pairs", "pairs.txt", "--max-ratio", RATIO, cwd=folder)
    matches = {}
    with h5py.File(features) as found, h5py.File(folder / "matches.h5") as matched:
        for pair in (ALOE, *BOARDS):
            to = matched["/".join(pair)]["matches0"][:]
            matches[pair] = np.stack([np.flatnonzero(to >= 0), to[to >= 0]], 1).astype(np.uint32)
        return Features({name: group["keypoints"][:] for name, group in found.items()}, matches)


# ---------------------------------------------------------------- the truth of the chessboards


def corners(picture):
    grey = cv2.imread(str(picture), cv2.IMREAD_GRAYSCALE)
    there, found = cv2.findChessboardCornersSB(grey, BOARD, flags=cv2.CALIB_CB_ACCURACY | cv2.CALIB_CB_EXHAUSTIVE)
    if not there:
        there, found = cv2.findChessboardCorners(grey, BOARD)
        assert there, picture
        found = cv2.cornerSubPix(grey, found, (5, 5), (-1, -1), (cv2.TERM_CRITERIA_COUNT + cv2.TERM_CRITERIA_EPS, 50, 1e-4))
    found = found.reshape(-1, 1, 2)
    # The board looks the same upside down: here the cameras were upright, and its first corner is on the left.
    return found if found[0, 0, 0] < found[-1, 0, 0] else found[::-1].copy()


def stereo_calibration(points):
    """OpenCV's, of the corners [side][pair]: error, [(lens, distortion)] of both, rotation and direction of the second."""
    size = 640, 480
    board = np.zeros((BOARD[0] * BOARD[1], 3), np.float32)
    board[:, :2] = np.mgrid[: BOARD[0], : BOARD[1]].T.reshape(-1, 2)
    boards = [board] * len(points[0])
    single = [cv2.calibrateCamera(boards, p, size, None, None, flags=cv2.CALIB_FIX_K3)[1:3] for p in points]
    error, k1, d1, k2, d2, rotation, translation, _, _ = cv2.stereoCalibrate(
        boards, *points, *single[0], *single[1], size, flags=cv2.CALIB_USE_INTRINSIC_GUESS | cv2.CALIB_FIX_K3)
    direction = translation.ravel()
    return error, [(k1, d1), (k2, d2)], (rotation, direction / np.linalg.norm(direction))


def calibrate(source):
    """The lenses and the truth; prints how well the pairs themselves know it (jackknife over them)."""
    points = [[corners(source / pair[side]) for pair in BOARDS] for side in (0, 1)]
    error, lenses, truth = stereo_calibration(points)
    count = len(BOARDS)
    others = [stereo_calibration([p[:i] + p[i + 1 :] for p in points])[2][1] for i in range(count)]
    known = np.sqrt((count - 1) / count * ((np.array(others) - np.mean(others, axis=0)) ** 2).sum())
    print(f"chessboards: calibrated by {count} pairs within {error:.3f} px; the truth itself is known within "
          f"{100 * known:.2f} % of the baseline (one standard error)", flush=True)
    return [colmap_camera(*lens) for lens in lenses], truth


def colmap_camera(lens, distortion):
    """COLMAP's OPENCV model; its origin is the corner of the first pixel, OpenCV's the middle."""
    return pycolmap.Camera(model="OPENCV", width=640, height=480, params=[
        lens[0, 0], lens[1, 1], lens[0, 2] + 0.5, lens[1, 2] + 0.5, *distortion.ravel()[:4]])


# ---------------------------------------------------------------- two cameras


def write_pair(path, cameras, keypoints, matches):
    """A database of the pictures left and right."""
    path.unlink(missing_ok=True)
    with pycolmap.Database.open(str(path)) as database:
        ids = []
        for name, camera, points in zip(("left", "right"), cameras, keypoints):
            sensor = pycolmap.sensor_t(type=pycolmap.SensorType.CAMERA, id=database.write_camera(camera))
            rig, frame = pycolmap.Rig(), pycolmap.Frame()
            rig.add_ref_sensor(sensor)
            frame.rig_id = database.write_rig(rig)
            ids.append(database.write_image(pycolmap.Image(name=name, camera_id=sensor.id)))
            frame.add_data_id(pycolmap.data_t(sensor, ids[-1]))
            database.write_frame(frame)
            database.write_keypoints(ids[-1], points)
        database.write_matches(*ids, matches)


def verified(path, cameras, keypoints, matches, seed):
    """The matches that COLMAP's check leaves."""
    write_pair(path, cameras, keypoints, matches)
    mapping.verify(path, calibrated=True, seed=seed)
    with pycolmap.Database.open(str(path)) as opened:
        return np.asarray(opened.read_two_view_geometry(1, 2).inlier_matches).reshape(-1, 2)


@dataclass
class Outcome:
    registered: bool
    reprojection: float = np.inf
    turned: float = np.inf
    aside: float = np.inf

    def well(self):
        return self.registered and self.reprojection < 1 and self.turned < TURNED and self.aside < ASIDE


def reconstruct(path, truth, seed):
    """Two pictures of a database whose matches are verified."""
    model = mapping.reconstruct(path, two_views=True, seed=seed)
    if model is None or model.num_reg_images() != 2:
        return Outcome(False)
    mapping.refine_robustly(model, SCALE)
    found = mapping.poses(model)
    rotation, direction = mapping.between(found["left"], found["right"])
    aside = 100 * np.sin(np.radians(min(mapping.degrees_between(direction, truth[1]), 90)))
    return Outcome(True, model.compute_mean_reprojection_error(), mapping.angle(rotation.T @ truth[0]), float(aside))


def aloe(folder, features, seed):
    lens = pycolmap.Camera(model="SIMPLE_PINHOLE", width=1282, height=1110, params=ALOE_LENS)
    points = [features.keypoints[name] for name in ALOE]
    verified(folder / "aloe.db", [lens, lens], points, features.matches[ALOE], seed)
    return reconstruct(folder / "aloe.db", ALOE_TRUTH, seed)


def rig(folder, features, cameras, truth, seed, pairs=None):
    """All pairs as one: the points of all left pictures as those of one, likewise the right ones. `pairs` takes what
    becomes of each pair by itself."""
    points, matches, before = ([], []), [], np.zeros(2, np.uint32)
    for pair in BOARDS:
        found = [features.keypoints[name] for name in pair]
        matches.append(verified(folder / "pair.db", cameras, found, features.matches[pair], seed) + before)
        if pairs is not None:
            pairs.append(reconstruct(folder / "pair.db", truth, seed))
        for side in (0, 1):
            points[side].append(found[side])
            before[side] += len(found[side])
    path = folder / "rig.db"
    verified(path, cameras, [np.concatenate(p) for p in points], np.concatenate(matches).astype(np.uint32), seed)
    return reconstruct(path, truth, seed)


def near_truth(source, features):
    """Share of the aloe's matches within 2 px of the known disparity, where it is known; none is verified."""
    matches = features.matches[ALOE]
    left, right = (features.keypoints[name][matches[:, side]] for side, name in enumerate(ALOE))
    known = np.asarray(Image.open(source / "aloeGT.png"))[left[:, 1].astype(int), left[:, 0].astype(int)].astype(float)
    return float((np.abs(left[:, 0] - right[:, 0] - known)[known > 0] < 2).mean())


# ---------------------------------------------------------------- the grid


def describe(outcomes):
    aside = [o.aside for o in outcomes]
    return (f"aside {np.median(aside):.2f} % (worst {max(aside):.2f}), turned {max(o.turned for o in outcomes):.2f} degrees, "
            f"reprojection {max(o.reprojection for o in outcomes):.3f} px")


def run_cell(folder, source, features, cameras, truth):
    """{scene: outcomes of all seeds}, and what became of the pairs alone."""
    outcomes, pairs = {"aloe": [], "rig": []}, []
    for seed in SEEDS:
        outcomes["aloe"].append(aloe(folder, features, seed))
        outcomes["rig"].append(rig(folder, features, cameras, truth, seed, pairs if seed == SEEDS[0] else None))
    for scene, results in outcomes.items():
        print(f"  {scene}: {describe(results)}", flush=True)
    there = [p for p in pairs if p.registered]
    print(f"  {len(there)} of {len(pairs)} chessboards registered by themselves, reprojection "
          f"{max((p.reprojection for p in there), default=0):.3f} px at most; {100 * near_truth(source, features):.1f} % of "
          f"the aloe's matches within 2 px of the disparity", flush=True)
    return outcomes, pairs


def summary(subpixel, outcomes, pairs):
    """Print; True when each run is within the bounds."""
    print(f"{'with --subpixel' if subpixel else 'on whole pixels'}:")
    for scene, results in outcomes.items():
        print(f"  {scene}: {sum(o.well() for o in results)} of {len(results)} within the bounds, {describe(results)}")
    alone = sum(p.registered and p.reprojection < 1 for p in pairs)
    print(f"  chessboards alone: {alone} of {len(pairs)} registered with less than a pixel", flush=True)
    return alone == len(pairs) and all(o.well() for results in outcomes.values() for o in results)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=Path("/usr/share/doc/opencv-doc/examples/data"))
    source = parser.parse_args().data
    if not (source / ALOE[0]).exists():
        print(f"{source}: is not there; apt-get install opencv-doc")
        return 1
    pycolmap.logging.minloglevel = 3
    cameras, truth = calibrate(source)
    outcomes = {s: {"aloe": [], "rig": []} for s in (False, True)}
    pairs = {False: [], True: []}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for precision, subpixel in itertools.product(PRECISIONS, (False, True)):
            everything = extract(folder, source, f"{precision}-{subpixel}.h5", precision, subpixel)
            for count in POINTS:
                print(f"{precision}, {count} points{', --subpixel' if subpixel else ''}", flush=True)
                features = match(folder, best(everything, count, folder / "best.h5"))
                found, alone = run_cell(folder, source, features, cameras, truth)
                for scene, results in found.items():
                    outcomes[subpixel][scene] += results
                pairs[subpixel] += alone
    well = {s: summary(s, outcomes[s], pairs[s]) for s in (False, True)}
    return int(not well[True])


if __name__ == "__main__":
    sys.exit(main())
