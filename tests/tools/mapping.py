"""Features and matches by superpoint, verified and mapped by pycolmap, and how far the cameras are from the truth."""

import os
import shutil
import subprocess

import numpy as np
import pycolmap

PROGRAM = os.path.abspath(os.environ.get("SUPERPOINT", "build/bin/superpoint"))


def run(*args, cwd):
    subprocess.run([PROGRAM, *args, "--quiet"], cwd=cwd, check=True)


def verify(database, calibrated=False, seed=1):
    """COLMAP's check of the matches of all pairs. With `calibrated`, strictly: by essential matrices, and within 2 px."""
    options = pycolmap.TwoViewGeometryOptions()
    options.ransac.random_seed = seed
    if calibrated:
        options.min_E_F_inlier_ratio = 0
        options.ransac.max_error = 2
    with open(database.parent / "pairs.txt", "w") as file:
        with pycolmap.Database.open(str(database)) as opened:
            names = [image.name for image in opened.read_all_images()]
        file.writelines(f"{a} {b}\n" for i, a in enumerate(names) for b in names[i + 1 :])
    pycolmap.verify_matches(str(database), file.name, options)


def prepare(folder, name, *extract):
    """The database folder/name.db of folder/pictures, with matches that COLMAP has verified."""
    run("extract", "pictures", "--output", f"{name}.db", *extract, cwd=folder)
    run("match", f"{name}.db", "--output", f"{name}.db", "--max-ratio", "0.95", cwd=folder)
    verify(folder / f"{name}.db")
    return folder / f"{name}.db"


def reconstruct(database, refine=(), two_views=False, seed=1):
    """The largest model, or None. `refine`: which of focal_length, principal_point and extra_params are not known."""
    options = pycolmap.IncrementalPipelineOptions()
    options.random_seed = seed
    for what in ("focal_length", "principal_point", "extra_params"):
        setattr(options, "ba_refine_" + what, what in refine)
    if two_views:
        # What COLMAP leaves out by default, since more pictures would tell better: a model of two, its points, which
        # have two views each, and angles as small as stereo cameras have.
        options.min_model_size = 2
        options.triangulation.ignore_two_view_tracks = False
        options.mapper.init_min_tri_angle = 1
        options.mapper.init_min_num_inliers = 15  # enough for COLMAP to call a pair verified
        options.mapper.filter_max_reproj_error = 2  # as the check of the matches
        options.triangulation.min_angle = options.mapper.filter_min_tri_angle = 0.5
    work = database.with_suffix(".models")
    shutil.rmtree(work, ignore_errors=True)
    models = pycolmap.incremental_mapping(str(database), str(database.parent / "pictures"), str(work), options)
    return max(models.values(), key=lambda m: m.num_reg_images()) if models else None


def refine_robustly(model, scale):
    """Bundle adjustment once more, until it stands still, with Cauchy's loss: points farther off than `scale` pixels pull
    less, the farther the less. The lenses stay."""
    options = pycolmap.BundleAdjustmentOptions()
    options.refine_focal_length = options.refine_principal_point = options.refine_extra_params = False
    options.print_summary = False
    options.ceres.loss_function_type = pycolmap.LossFunctionType.CAUCHY
    options.ceres.loss_function_scale = scale
    options.ceres.solver_options.max_num_iterations = 200
    pycolmap.bundle_adjustment(model, options)


def poses(model):
    """{name: (R, C)}: world to camera, and centre."""
    found = {}
    for image in model.images.values():
        if image.has_pose:
            pose = image.cam_from_world()
            rotation = pose.rotation.matrix()
            found[image.name] = rotation, -rotation.T @ pose.translation
    return found


def angle(rotation):
    return float(np.degrees(np.arccos(np.clip((np.trace(rotation) - 1) / 2, -1, 1))))


def between(first, second):
    """The second camera seen from the first: rotation, and direction of the translation."""
    rotation = second[0] @ first[0].T
    translation = second[0] @ (first[1] - second[1])
    return rotation, translation / np.linalg.norm(translation)


def degrees_between(a, b):
    return float(np.degrees(np.arctan2(np.linalg.norm(np.cross(a, b)), a @ b)))


def align(found, true):
    """Rotation, scale and shift that bring the centres found onto the true ones (Umeyama)."""
    a, b = found - found.mean(0), true - true.mean(0)
    u, s, vt = np.linalg.svd(b.T @ a)
    sign = np.diag([1, 1, np.sign(np.linalg.det(u @ vt))])
    rotation = u @ sign @ vt
    scale = np.trace(np.diag(s) @ sign) / (a**2).sum()
    return rotation, scale, true.mean(0) - scale * rotation @ found.mean(0)


def errors(model, truth):
    """Largest distance of a centre from the truth, as a share of the ring's radius, and mean angle of the cameras in
    degrees, when the centres are aligned. (An alignment of the rotations would hide what turns all cameras alike.)"""
    found = poses(model)
    names = sorted(found)
    centres, true = (np.array([p[n][1] for n in names]) for p in (found, truth))
    rotation, scale, shift = align(centres, true)
    distances = np.linalg.norm(scale * centres @ rotation.T + shift - true, axis=1)
    radius = np.linalg.norm(true - true.mean(0), axis=1).mean()
    angles = [angle(truth[n][0] @ rotation @ found[n][0].T) for n in names]
    return distances.max() / radius, float(np.mean(angles))
