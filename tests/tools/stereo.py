"""The stereo pairs of Debian's opencv-doc, extracted and matched by superpoint and reconstructed by pycolmap.

- The aloe plant is a rectified pair: the second camera is the first, moved along x and not turned, and the disparities of
  its pixels are known.
- The chessboards were held before two cameras that did not move, thirteen times. The truth is OpenCV's calibration from
  the boards' corners. Each pair is reconstructed by itself; one pair tells the direction of a short baseline within a
  degree or so, so the cameras are held against the truth with the matches of all thirteen together.

Checks: both pictures registered, mean reprojection error under a pixel, and the second camera, seen from the first,
within 1 % of the baseline in its place and within half a degree in its rotation.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

import cv2
import mapping
import numpy as np
import pycolmap
from PIL import Image

BOARD, SIZE = (9, 6), (640, 480)
ALOE_CAMERA = (3740, 3740, 641, 555)  # the data set's focal length; the pictures' middle
ONE_PERCENT = float(np.degrees(np.arcsin(0.01)))
TURNED = 0.5
# Two pictures have few points in common: weak ones help. Single precision gives the same points on every machine.
ALL_POINTS = ("--max-keypoints", "8192", "--keypoint-threshold", "0.0005", "--precision", "fp32")


def report(name, model, matches, truth):
    """Print the second camera's errors; True when all is within the bounds."""
    registered = model.num_reg_images() if model else 0
    if registered != 2:
        print(f"{name}: {registered} of 2 pictures registered, {matches} verified matches", flush=True)
        return False
    found = mapping.poses(model)
    rotation, direction = mapping.between(*(found[n] for n in sorted(found)))
    turned, moved = mapping.angle(rotation.T @ truth[0]), mapping.degrees_between(direction, truth[1])
    reprojection = model.compute_mean_reprojection_error()
    print(f"{name}: 2 of 2 pictures, {matches} verified matches, {model.num_points3D()} points, reprojection error "
          f"{reprojection:.3f} px, second camera turned by {turned:.3f} degrees, {100 * np.sin(np.radians(moved)):.2f} % of "
          f"the baseline aside", flush=True)
    return reprojection < 1 and turned < TURNED and moved < ONE_PERCENT


def link(folder, sources):
    """Pictures as folder/pictures/NAME."""
    for name, source in sources.items():
        (folder / "pictures" / name).parent.mkdir(parents=True, exist_ok=True)
        os.symlink(source, folder / "pictures" / name)


# ---------------------------------------------------------------- aloe


def aloe(folder, source):
    link(folder, {name: source / name for name in ("aloeL.jpg", "aloeR.jpg")})
    camera = "PINHOLE," + ",".join(map(str, ALOE_CAMERA))
    database = mapping.prepare(folder, "aloe", "--camera", camera, "--resize", "native", *ALL_POINTS, ratio="0.9",
                               calibrated=True)
    with pycolmap.Database.open(str(database)) as opened:
        matches = np.asarray(opened.read_two_view_geometry(1, 2).inlier_matches)
        left, right = (np.asarray(opened.read_keypoints(i))[m, :2] for i, m in ((1, matches[:, 0]), (2, matches[:, 1])))
    truth = np.asarray(Image.open(source / "aloeGT.png"))
    known = truth[left[:, 1].astype(int), left[:, 0].astype(int)].astype(float)
    error = np.abs(left[:, 0] - right[:, 0] - known)[known > 0]
    near = (error < 2).mean()
    print(f"aloe: {100 * near:.1f} % of the matches within 2 px of the true disparity, median {np.median(error):.2f} px")
    well = report("aloe", mapping.reconstruct(database, two_views=True), len(matches), (np.eye(3), np.array([-1.0, 0, 0])))
    return well and near > 0.85


# ---------------------------------------------------------------- chessboards


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


def calibrate(pairs):
    """OpenCV's: [(lens, distortion)] of left and right, rotation, and direction from left to right."""
    board = np.zeros((BOARD[0] * BOARD[1], 3), np.float32)
    board[:, :2] = np.mgrid[: BOARD[0], : BOARD[1]].T.reshape(-1, 2)
    boards = [board] * len(pairs)
    points = [[corners(pair[side]) for pair in pairs] for side in (0, 1)]
    single = [cv2.calibrateCamera(boards, p, SIZE, None, None, flags=cv2.CALIB_FIX_K3)[1:3] for p in points]
    error, k1, d1, k2, d2, rotation, translation, _, _ = cv2.stereoCalibrate(
        boards, *points, *single[0], *single[1], SIZE, flags=cv2.CALIB_USE_INTRINSIC_GUESS | cv2.CALIB_FIX_K3)
    print(f"chessboards: calibrated by {len(pairs)} pairs within {error:.3f} px", flush=True)
    direction = translation.ravel()
    return [(k1, d1), (k2, d2)], (rotation, direction / np.linalg.norm(direction))


def colmap_camera(lens, distortion):
    """COLMAP's OPENCV model; its origin is the corner of the first pixel, OpenCV's the middle."""
    return [lens[0, 0], lens[1, 1], lens[0, 2] + 0.5, lens[1, 2] + 0.5, *distortion.ravel()[:4]]


def write_pair(path, cameras, keypoints, matches):
    """A database of the pictures left and right."""
    with pycolmap.Database.open(str(path)) as database:
        ids = []
        for name, camera, points in zip(("left", "right"), cameras, keypoints):
            lens = pycolmap.Camera(model="OPENCV", width=SIZE[0], height=SIZE[1], params=colmap_camera(*camera))
            sensor = pycolmap.sensor_t(type=pycolmap.SensorType.CAMERA, id=database.write_camera(lens))
            rig, frame = pycolmap.Rig(), pycolmap.Frame()
            rig.add_ref_sensor(sensor)
            frame.rig_id = database.write_rig(rig)
            ids.append(database.write_image(pycolmap.Image(name=name, camera_id=sensor.id)))
            frame.add_data_id(pycolmap.data_t(sensor, ids[-1]))
            database.write_frame(frame)
            database.write_keypoints(ids[-1], points)
        database.write_matches(*ids, matches)
    mapping.verify(path, calibrated=True)


def one_chessboard(folder, number, pair, cameras, truth):
    """(keypoints of left and right, matches), and whether all is well."""
    link(folder, {"left/picture.jpg": pair[0], "right/picture.jpg": pair[1]})
    database = mapping.prepare(folder, "pair", "--camera", "OPENCV", "--resize", "native", *ALL_POINTS)
    with pycolmap.Database.open(str(database)) as opened:
        for image, camera in zip(opened.read_all_images(), cameras):
            lens = opened.read_camera(image.camera_id)
            lens.params = colmap_camera(*camera)
            opened.update_camera(lens)
        opened.clear_two_view_geometries()
    mapping.verify(database, calibrated=True)
    with pycolmap.Database.open(str(database)) as opened:
        matches = np.asarray(opened.read_two_view_geometry(1, 2).inlier_matches)
        keypoints = [np.asarray(opened.read_keypoints(i)) for i in (1, 2)]
    model = mapping.reconstruct(database, two_views=True)
    report(f"chessboard {number}", model, len(matches), truth)
    well = model is not None and model.num_reg_images() == 2 and model.compute_mean_reprojection_error() < 1
    return (keypoints, matches), well


def chessboards(folder, source):
    numbers = [f"{i:02d}" for i in range(1, 15) if i != 10]  # there is no tenth
    pairs = [(source / f"left{n}.jpg", source / f"right{n}.jpg") for n in numbers]
    cameras, truth = calibrate(pairs)
    well, points, matches, before = True, ([], []), [], np.zeros(2, np.uint32)
    for number, pair in zip(numbers, pairs):
        (found, matched), good = one_chessboard(folder / number, number, pair, cameras, truth)
        matches.append(matched + before)
        for side in (0, 1):
            points[side].append(found[side])
            before[side] += len(found[side])
        well &= good
    (folder / "all" / "pictures").mkdir(parents=True)
    database = folder / "all" / "all.db"
    matches = np.concatenate(matches).astype(np.uint32)
    write_pair(database, cameras, [np.concatenate(p) for p in points], matches)
    return well & report("all chessboards", mapping.reconstruct(database, two_views=True), len(matches), truth)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=Path("/usr/share/doc/opencv-doc/examples/data"))
    source = parser.parse_args().data
    if not (source / "aloeL.jpg").exists():
        print(f"{source}: is not there; apt-get install opencv-doc")
        return 1
    pycolmap.logging.minloglevel = 3
    with tempfile.TemporaryDirectory() as folder:
        well = aloe(Path(folder) / "aloe", source)
        well &= chessboards(Path(folder) / "chessboards", source)
    return int(not well)


if __name__ == "__main__":
    sys.exit(main())
