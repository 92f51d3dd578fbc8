"""A scene with known cameras, extracted and matched by superpoint and reconstructed by pycolmap.

Checks: every picture registered, reprojection error under a pixel, camera centres within 1 % of the ring's radius,
focal length within 1 %; and that cameras come out better with COLMAP's coordinates than with the corner's, which are half
a pixel off. With --opencv-doc FOLDER also two stereo pairs of Debian's opencv-doc.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pycolmap
import scene
from PIL import Image

PROGRAM = os.path.abspath(os.environ.get("SUPERPOINT", "build/bin/superpoint"))


def run(*args, cwd):
    subprocess.run([PROGRAM, *args, "--quiet"], cwd=cwd, check=True)


def prepare(folder, name, *extract):
    """A database of the pictures with matches that COLMAP has verified."""
    run("extract", "pictures", "--output", f"{name}.db", "--cameras", "single", *extract, cwd=folder)
    run("match", f"{name}.db", "--output", f"{name}.db", "--max-ratio", "0.95", cwd=folder)
    database = folder / f"{name}.db"
    names = sorted(os.listdir(folder / "pictures"))
    with open(folder / "pairs.txt", "w") as file:
        file.writelines(f"{a} {b}\n" for i, a in enumerate(names) for b in names[i + 1 :])
    pycolmap.verify_matches(str(database), str(folder / "pairs.txt"))
    return database


def reconstruct(folder, name, *extract, refine=True):
    database = prepare(folder, name, *extract)
    options = pycolmap.IncrementalPipelineOptions()
    options.random_seed = 1
    options.ba_refine_focal_length = options.ba_refine_extra_params = refine
    models = pycolmap.incremental_mapping(str(database), str(folder / "pictures"), str(folder / name), options)
    return max(models.values(), key=lambda m: m.num_reg_images()) if models else None


def align(found, true):
    """Rotation, scale and shift that bring the centres found onto the true ones (Umeyama)."""
    a, b = found - found.mean(0), true - true.mean(0)
    u, s, vt = np.linalg.svd(b.T @ a)
    sign = np.diag([1, 1, np.sign(np.linalg.det(u @ vt))])
    rotation = u @ sign @ vt
    scale = np.trace(np.diag(s) @ sign) / (a**2).sum()
    return rotation, scale, true.mean(0) - scale * rotation @ found.mean(0)


def mean_rotation(matrices):
    u, _, vt = np.linalg.svd(np.sum(matrices, axis=0))
    return u @ np.diag([1, 1, np.linalg.det(u @ vt)]) @ vt


def errors(model, truth):
    """Largest distance of a centre as a share of the ring's radius, and mean angle of the cameras in degrees, each after
    the best alignment of its own."""
    images = {image.name: image for image in model.images.values() if image.has_pose}
    names = sorted(images)
    poses = [images[n].cam_from_world() for n in names]
    rotations = [p.rotation.matrix() for p in poses]
    found = np.array([-r.T @ p.translation for r, p in zip(rotations, poses)])
    true = np.array([truth[n][1] for n in names])
    rotation, scale, shift = align(found, true)
    distances = np.linalg.norm(scale * found @ rotation.T + shift - true, axis=1)
    radius = np.linalg.norm(true - true.mean(0), axis=1).mean()
    world = mean_rotation([r.T @ truth[n][0] for r, n in zip(rotations, names)])
    cosines = [(np.trace(truth[n][0].T @ r @ world) - 1) / 2 for r, n in zip(rotations, names)]
    return distances.max() / radius, float(np.degrees(np.arccos(np.clip(cosines, -1, 1))).mean())


def known_scene(folder):
    quads, truth = scene.make_scene(), {}
    os.makedirs(folder / "pictures")
    for i, (rotation, centre) in enumerate(scene.cameras()):
        name = f"view{i:02d}.png"
        Image.fromarray(scene.render(quads, rotation, centre)).save(folder / "pictures" / name)
        truth[name] = (rotation, centre)
    camera = f"PINHOLE,{scene.FOCAL},{scene.FOCAL},{scene.WIDTH / 2},{scene.HEIGHT / 2}"
    failed, angle = False, {}
    for name, coordinates, model_of_camera in (("colmap", "colmap", camera), ("corner", "corner", camera),
                                               ("unknown-focal", "colmap", "SIMPLE_PINHOLE")):
        guessed = model_of_camera == "SIMPLE_PINHOLE"
        model = reconstruct(folder, name, "--camera", model_of_camera, "--coordinates", coordinates, "--resize", "native",
                            "--max-keypoints", "2048", refine=guessed)
        if model is None or model.num_reg_images() != len(truth):
            print(f"{name}: {model.num_reg_images() if model else 0} of {len(truth)} pictures registered")
            failed = True
            continue
        distance, angle[name] = errors(model, truth)
        reprojection = model.compute_mean_reprojection_error()
        focal = next(iter(model.cameras.values())).mean_focal_length()
        print(f"{name}: {model.num_reg_images()} of {len(truth)} pictures, {model.num_points3D()} points, reprojection "
              f"error {reprojection:.3f} px, centres within {100 * distance:.3f} %, cameras turned by "
              f"{angle[name]:.4f} degrees, focal length {focal:.1f} of {scene.FOCAL}")
        failed |= reprojection >= 1 or distance >= 0.01 or abs(focal / scene.FOCAL - 1) >= 0.01
    return failed or not angle.get("colmap", 9) < angle.get("corner", 0)


def aloe(folder, source):
    """The aloe plant, whose disparities are known: matches that COLMAP verified against them."""
    matches, keypoints = verified(folder, source, ("aloeL.jpg", "aloeR.jpg"), "SIMPLE_PINHOLE,3740,641,555")
    truth = np.asarray(Image.open(source / "aloeGT.png"))
    left, right = keypoints[0][matches[:, 0]], keypoints[1][matches[:, 1]]
    known = truth[left[:, 1].astype(int), left[:, 0].astype(int)].astype(float)
    error = np.abs(left[:, 0] - right[:, 0] - known)[known > 0]
    near = (error < 2).mean()
    print(f"aloe: {len(matches)} verified matches, {100 * near:.1f} % within 2 px of the true disparity, median "
          f"{np.median(error):.2f} px of a picture 1282 wide at a frame of 1024")
    return len(matches) < 100 or near < 0.85


def verified(folder, source, names, camera):
    work = folder / names[0]
    os.makedirs(work / "pictures")
    for name in names:
        os.symlink(source / name, work / "pictures" / name)
    prepare(work, "pair", "--camera", camera, "--resize", "max:1024")
    database = pycolmap.Database.open(str(work / "pair.db"))
    matches = np.asarray(database.read_two_view_geometry(1, 2).inlier_matches)
    keypoints = [np.asarray(database.read_keypoints(i))[:, :2] for i in (1, 2)]
    database.close()
    return matches, keypoints


def chessboard(folder, source):
    """Two cameras before a chessboard, of which only the calibration is known: COLMAP's own check."""
    matches, keypoints = verified(folder, source, ("left01.jpg", "right01.jpg"), "OPENCV,536,536,342,235,-0.27,0.04,0,0")
    print(f"chessboard: {len(matches)} verified matches of {len(keypoints[0])} and {len(keypoints[1])} keypoints")
    return len(matches) < 100


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--opencv-doc", type=Path)
    options = parser.parse_args()
    pycolmap.logging.minloglevel = 2
    with tempfile.TemporaryDirectory() as folder:
        failed = known_scene(Path(folder) / "scene")
        if options.opencv_doc:
            failed |= aloe(Path(folder), options.opencv_doc)
            failed |= chessboard(Path(folder), options.opencv_doc)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
