"""Picture pairs with a known homography, in the layout of HPatches, so that HPatches itself reads the same way.

A set is a folder of scenes; a scene is a folder with 1.png (or .ppm, .jpg), 2.png … and H_1_2 … (3x3 text, maps
picture 1 to picture k). Scenes named i_* change light, v_* viewpoint; the name before the first dot is the picture
that confidence intervals draw by.

    python3 train/pairs.py heldout --data DIR --out SET       pairs made from the manifest's held-out pictures
    python3 train/pairs.py folder --from DIR --out SET        pairs made from the pictures of any folder
    python3 train/pairs.py sweep --data DIR --out SET         rotation, scale, blur, noise and JPEG sweeps of every fourth
    python3 train/pairs.py opencv --from DIR --out SET        graf1-graf3 and a film of opencv-doc's data
"""
import argparse
import pathlib

import cv2
import numpy as np

import data
import geometry

WIDTH, HEIGHT = 640, 480
SWEPT = 4  # of so many held-out pictures one is swept: each gives 37 pairs


def luma(bgr):
    """Pillow's mode L."""
    b, g, r = (bgr[..., i].astype(np.int64) for i in range(3))
    return ((19595 * r + 38470 * g + 7471 * b + 0x8000) >> 16).astype(np.uint8)


def base(picture, rng, widest=False):
    """A homography from a 640x480 view into the picture, at a random scale and place that leave room around."""
    h, w = picture.shape[:2]
    largest = min(w / WIDTH, h / HEIGHT)
    s = largest if widest else np.exp(rng.uniform(np.log(max(min(1.0, largest), 0.35 * largest)), np.log(largest)))
    x, y = rng.uniform(0, w - s * WIDTH), rng.uniform(0, h - s * HEIGHT)
    return np.array([[s, 0, x], [0, s, y], [0, 0, 1]])


def view(picture, to_picture):
    """The 640x480 view; the picture is shrunk first where the view is coarser, so that nothing aliases."""
    scale = np.sqrt(abs(np.linalg.det(to_picture[:2, :2] - np.outer(to_picture[:2, 2], to_picture[2, :2]))))
    f = 1.0
    if scale > 1.2:
        f = 1.0 / scale
        picture = cv2.resize(picture, None, fx=f, fy=f, interpolation=cv2.INTER_AREA)
    shrink = np.array([[f, 0, 0.5 * f - 0.5], [0, f, 0.5 * f - 0.5], [0, 0, 1]])
    m = shrink @ to_picture
    return cv2.warpPerspective(picture, m, (WIDTH, HEIGHT), flags=cv2.INTER_CUBIC | cv2.WARP_INVERSE_MAP,
                               borderMode=cv2.BORDER_CONSTANT, borderValue=float(picture.mean()))


def relight(grey, rng):
    """A strong change of light: contrast, brightness, gamma, a shadow's edge, blur, noise and JPEG."""
    x = grey.astype(np.float32) / 255
    x = np.clip((x - 0.5) * rng.uniform(0.45, 1.3) + 0.5 + rng.uniform(-0.22, 0.22), 1e-3, 1) ** np.exp(rng.uniform(-0.6, 0.6))
    if rng.random() < 0.5:
        shade = cv2.resize(rng.random((3, 4)).astype(np.float32), (WIDTH, HEIGHT), interpolation=cv2.INTER_CUBIC)
        x = x * (1 - rng.uniform(0.2, 0.65) * np.clip(shade, 0, 1))
    if rng.random() < 0.4:
        x = cv2.GaussianBlur(x, (0, 0), rng.uniform(0.5, 1.3))
    x = x + rng.standard_normal(x.shape) * rng.uniform(0, 0.02)
    y = np.clip(x * 255 + 0.5, 0, 255).astype(np.uint8)
    if rng.random() < 0.5:
        y = cv2.imdecode(cv2.imencode(".jpg", y, [cv2.IMWRITE_JPEG_QUALITY, int(rng.integers(45, 95))])[1], cv2.IMREAD_GRAYSCALE)
    return y


def viewpoint(rng):
    """A strong change of viewpoint of a 640x480 picture, drawn until at least 45 % of it stays in view."""
    while True:
        h = geometry.random_homography(rng, WIDTH, HEIGHT, np.pi / 5, (0.6, 1.5), 0.4, 0.06)
        valid = geometry.valid_area(h, (WIDTH, HEIGHT), (WIDTH, HEIGHT))
        back = geometry.valid_area(np.linalg.inv(h), (WIDTH, HEIGHT), (WIDTH, HEIGHT))
        if valid.mean() > 0.45 and back.mean() > 0.45:
            return h


def write(folder, pictures, homographies):
    folder.mkdir(parents=True, exist_ok=True)
    for i, p in enumerate(pictures):
        cv2.imwrite(str(folder / f"{i + 1}.png"), p)
    for i, h in enumerate(homographies):
        np.savetxt(folder / f"H_1_{i + 2}", h, fmt="%.12g")


def make(pictures, out, each, seed):
    """`each` light scenes and viewpoint scenes of each picture, more of large ones; one pair a scene."""
    for path in pictures:
        picture = luma(data.load_grey(path))
        if min(picture.shape) < 240:
            continue
        if picture.shape[0] < HEIGHT or picture.shape[1] < WIDTH:
            f = max(HEIGHT / picture.shape[0], WIDTH / picture.shape[1])
            picture = cv2.resize(picture, None, fx=f, fy=f, interpolation=cv2.INTER_CUBIC)
        picture = np.ascontiguousarray(picture)
        name = path.stem.replace(".", "_")
        n = each * (2 if min(picture.shape) > 1000 else 1)
        rng = np.random.default_rng([seed, *name.encode()])
        for i in range(n):
            b = base(picture, rng)
            first = view(picture, b)
            write(out / f"i_{name}.{i}", [first, relight(first, rng)], [np.eye(3)])
            b = base(picture, rng)
            first, h = view(picture, b), viewpoint(rng)
            second = view(picture, b @ np.linalg.inv(h))
            write(out / f"v_{name}.{i}", [first, second], [h])


def about_centre(angle=0.0, scale=1.0):
    c, s = np.cos(angle) * scale, np.sin(angle) * scale
    x, y = (WIDTH - 1) / 2, (HEIGHT - 1) / 2
    return np.array([[c, -s, x - c * x + s * y], [s, c, y - s * x - c * y], [0, 0, 1]])


def sweep(pictures, out, seed):
    """One scene a picture and kind; picture k of it is the k-th degree of that kind."""
    for path in pictures:
        picture = luma(data.load_grey(path))
        if min(picture.shape) < 400:
            continue
        if picture.shape[0] < HEIGHT or picture.shape[1] < WIDTH:
            f = max(HEIGHT / picture.shape[0], WIDTH / picture.shape[1])
            picture = cv2.resize(picture, None, fx=f, fy=f, interpolation=cv2.INTER_CUBIC)
        name = path.stem.replace(".", "_")
        rng = np.random.default_rng([seed, 5, *name.encode()])
        b = base(picture, rng, widest=True)  # so that there is detail left at twice the size
        first = view(picture, b)
        rot = [about_centre(np.deg2rad(a)) for a in range(0, 181, 15)]
        write(out / f"rotation_{name}", [first] + [view(picture, b @ np.linalg.inv(h)) for h in rot], rot)
        zoom = [about_centre(0, s) for s in (0.5, 0.6, 0.7, 0.85, 1.0, 1.2, 1.4, 1.7, 2.0)]
        write(out / f"scale_{name}", [first] + [view(picture, b @ np.linalg.inv(h)) for h in zoom], zoom)
        blur = [cv2.GaussianBlur(first, (0, 0), s) for s in (0.5, 1.0, 1.5, 2.0, 3.0)]
        write(out / f"blur_{name}", [first] + blur, [np.eye(3)] * len(blur))
        noise = [np.clip(first + rng.standard_normal(first.shape) * s, 0, 255).astype(np.uint8) for s in (4, 8, 16, 24, 32)]
        write(out / f"noise_{name}", [first] + noise, [np.eye(3)] * len(noise))
        jpeg = [cv2.imdecode(cv2.imencode(".jpg", first, [cv2.IMWRITE_JPEG_QUALITY, q])[1], 0) for q in (90, 70, 50, 30, 15)]
        write(out / f"jpeg_{name}", [first] + jpeg, [np.eye(3)] * len(jpeg))


def opencv(source, out):
    """The graffiti wall, and frames of a square that a camera at rest watches while people cross it.

    The film's truth is the identity, which whoever walks there breaks. For aloe and leuven, which no homography
    relates, see realpairs.py.
    """
    read = lambda n: luma(cv2.imread(str(source / n)))
    store = cv2.FileStorage(str(source / "H1to3p.xml"), cv2.FILE_STORAGE_READ)
    h = store.getFirstTopLevelNode().mat()
    write(out / "v_graf", [read("graf1.png"), read("graf3.png")], [h])
    frames = video(source / "vtest.avi", range(0, 700, 100))
    write(out / "video_square", frames, [np.eye(3)] * (len(frames) - 1))


def video(path, numbers):
    """Frames of a film, by number."""
    film, out = cv2.VideoCapture(str(path)), []
    for n in numbers:
        film.set(cv2.CAP_PROP_POS_FRAMES, n)
        ok, frame = film.read()
        if not ok:
            raise SystemExit(f"{path}: has no frame {n}")
        out.append(luma(frame))
    return out


def load(folder):
    """All pairs of a set: (scene, k, path of picture 1, path of picture k, homography), in sorted order."""
    out = []
    for scene in sorted(p for p in pathlib.Path(folder).iterdir() if p.is_dir()):
        files = {p.stem: p for p in scene.iterdir() if p.suffix in (".png", ".ppm", ".pgm", ".jpg")}
        for h in sorted(scene.glob("H_1_*"), key=lambda p: int(p.name[4:])):
            k = h.name[4:]
            out.append((scene.name, int(k), files["1"], files[k], np.loadtxt(h)))
    return out


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("kind", choices=["heldout", "folder", "sweep", "opencv"])
    a.add_argument("--data")
    a.add_argument("--from", dest="source", type=pathlib.Path)
    a.add_argument("--out", type=pathlib.Path, required=True)
    a.add_argument("--each", type=int, default=2)
    a.add_argument("--seed", type=int, default=11)
    o = a.parse_args()
    if o.kind == "opencv":
        opencv(o.source, o.out)
    elif o.kind == "sweep":
        sweep(data.pictures(o.data, "held-out")[::SWEPT], o.out, o.seed)
    else:
        pictures = data.pictures(o.data, "held-out") if o.kind == "heldout" else \
            sorted(p for p in o.source.iterdir() if p.suffix.lower() in (".png", ".jpg", ".jpeg", ".ppm"))
        make(pictures, o.out, o.each, o.seed)


if __name__ == "__main__":
    main()
