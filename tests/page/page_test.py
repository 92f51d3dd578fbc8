"""The demo page in a real Chromium, driven by Playwright: `make page-test`. Screenshots go to the folder named."""
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import zipfile

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect, sync_playwright

ROOT = pathlib.Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "sample_data/bridge.jpg"
OUT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "/tmp/superpoint-page")
PROGRAM = os.environ.get("SUPERPOINT", str(ROOT / "build/bin/superpoint"))
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")


def start():
    server = subprocess.Popen([PROGRAM, "serve", "--port", "0", "--access-log", "off"], stderr=subprocess.PIPE, text=True)
    for line in server.stderr:
        if found := re.search(r"Listening on (http://\S+)", line):
            return server, found.group(1)
    raise SystemExit("the server did not start")


def wait_for(page, expression, seconds=60):
    """Polled from here: the page's policy forbids the evaluation that wait_for_function uses."""
    for _ in range(seconds * 20):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(50)
    raise AssertionError(expression)


def count(page):
    wait_for(page, "document.getElementById('busy').hidden && /\\d/.test(document.getElementById('count').textContent)")
    return int(re.match(r"\d+", page.text_content("#count")).group())


def set_range(page, name, value):
    """As a person with a keyboard would: the event is the browser's own."""
    page.locator("#" + name).fill(str(value))
    page.wait_for_timeout(250)


def second_picture(page):
    """The sample, shrunk by the page's own browser, so that there are matches to find."""
    data = page.evaluate("""async (bytes) => {
        const bitmap = await createImageBitmap(new Blob([new Uint8Array(bytes)]));
        const c = new OffscreenCanvas(1200, 700);
        c.getContext('2d').drawImage(bitmap, 80, 40, 1360, 780, 0, 0, 1200, 700);
        const blob = await c.convertToBlob({type: 'image/jpeg', quality: 0.9});
        return Array.from(new Uint8Array(await blob.arrayBuffer()));
    }""", list(SAMPLE.read_bytes()))
    path = OUT / "second.jpg"
    path.write_bytes(bytes(data))
    return path


def check_accessible(page, what):
    """What axe-core finds wrong for people with screen readers, keyboards or weak eyes: nothing."""
    found = Axe().run(page).response["violations"]
    assert not found, (what, [(v["id"], v["help"], [n["html"][:120] for n in v["nodes"]]) for v in found])


def walk(page, url):
    problems = []
    page.on("pageerror", lambda e: problems.append(str(e)))
    page.on("console", lambda m: problems.append(m.text) if m.type == "error" else None)
    page.on("request", lambda r: problems.append("outside: " + r.url) if not r.url.startswith((url, "blob:", "data:")) else None)
    page.goto(url)
    expect(page.locator("#server")).to_contain_text("·")
    page.screenshot(path=OUT / "empty-light.png")
    check_accessible(page, "empty")

    # by keyboard: the skip link comes first, then links, then the buttons
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    for _ in range(4):
        page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Choose a file"

    page.set_input_files("#file", SAMPLE)
    base = count(page)
    assert base > 100, base
    page.wait_for_timeout(300)
    page.screenshot(path=OUT / "points-light.png")
    check_accessible(page, "points")
    assert page.get_attribute("#canvas", "aria-label").startswith("bridge.jpg: ")

    set_range(page, "threshold", -1)
    strict = count(page)
    assert strict < base, (strict, base)
    page.click("button[type=reset]")
    page.wait_for_timeout(300)
    assert count(page) == base
    set_range(page, "radius", 20)
    assert count(page) < base
    page.click("button[type=reset]")
    set_range(page, "most", 5)
    assert count(page) == 32
    assert page.text_content("#most-value") == "32"
    assert "max_keypoints=32" in page.text_content("#curl")
    page.click("button[type=reset]")
    page.wait_for_timeout(300)
    count(page)

    # the curl call that the page shows gives the same number
    command = page.text_content("#curl").replace("@'bridge.jpg'", f"@'{SAMPLE}'")
    found = json.loads(subprocess.run(["bash", "-c", command + " -s"], capture_output=True, check=True).stdout)
    assert found["num_keypoints"] == base
    page.click("#copy")
    expect(page.locator("#copied")).not_to_be_empty()

    for kind in ("json", "npz", "png"):
        with page.expect_download() as download:
            page.click(f"[data-save={kind}]")
        path = OUT / download.value.suggested_filename
        download.value.save_as(path)
        data = path.read_bytes()
        if kind == "json":
            assert json.loads(data)["num_keypoints"] == base
        elif kind == "npz":
            assert set(zipfile.ZipFile(io.BytesIO(data)).namelist()) == {"keypoints.npy", "scores.npy", "descriptors.npy"}
        else:
            assert data.startswith(b"\x89PNG") and int.from_bytes(data[16:20], "big") == 1600

    box = page.locator("#canvas").bounding_box()
    first = found["keypoints"][0]
    page.mouse.move(box["x"] + first[0] * box["width"] / 1600, box["y"] + first[1] * box["height"] / 900)
    expect(page.locator("#tip")).to_contain_text("score")

    # a second picture, dropped
    other = second_picture(page)
    transfer = page.evaluate_handle("""(bytes) => {
        const t = new DataTransfer();
        t.items.add(new File([new Uint8Array(bytes)], 'second.jpg', {type: 'image/jpeg'}));
        return t;
    }""", list(other.read_bytes()))
    page.dispatch_event("#stage", "drop", {"dataTransfer": transfer})
    wait_for(page, "/match/.test(document.getElementById('count').textContent) && !/^0 /.test(document.getElementById('count').textContent)")
    assert count(page) > 30, page.text_content("#count")
    page.wait_for_timeout(200)
    assert page.locator("#tip").is_hidden()
    page.screenshot(path=OUT / "matches-light.png")
    check_accessible(page, "matches")
    page.click("#unmatch")
    assert count(page) == base

    # what is no picture is explained
    for name, kind in (("notes.md", "text/markdown"), ("a.json", "application/json"), ("a.png", "image/png")):
        page.set_input_files("#file", {"name": name, "mimeType": kind, "buffer": b"no picture"})
        expect(page.locator("#error")).to_contain_text(name + ": not a picture of a known kind")
    page.screenshot(path=OUT / "error-light.png")
    check_accessible(page, "error")
    # the browser itself reports the 400
    assert [p for p in problems if "400" not in p] == [], problems


def other_looks(browser, url):
    for name, options in (("dark", {"color_scheme": "dark", "viewport": {"width": 1280, "height": 860}}),
                          ("phone", {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True, "device_scale_factor": 2}),
                          ("phone-dark", {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark", "device_scale_factor": 2})):
        page = browser.new_context(**options).new_page()
        page.goto(url)
        page.wait_for_timeout(300)
        page.screenshot(path=OUT / f"empty-{name}.png")
        page.set_input_files("#file", SAMPLE)
        count(page)
        page.wait_for_timeout(400)
        page.screenshot(path=OUT / f"points-{name}.png", full_page=name.startswith("phone"))
        check_accessible(page, name)
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= options["viewport"]["width"], (name, width)
        page.set_viewport_size({"width": 320, "height": 640})
        assert page.evaluate("(() => { const t = document.querySelector('.times'); return t.scrollWidth <= t.clientWidth; })()"), name
        page.goto(url + "/docs")
        page.wait_for_selector("details")
        page.screenshot(path=OUT / f"docs-{name}.png")
        check_accessible(page, "docs " + name)
        page.close()


def camera(browser, url):
    page = browser.new_context(permissions=["camera"]).new_page()
    page.goto(url)
    page.click("[data-camera]")
    page.wait_for_selector("#shoot", state="visible")
    page.wait_for_timeout(800)
    page.click("#shoot")
    count(page)
    page.screenshot(path=OUT / "camera.png")
    page.close()


def main():
    if not os.path.exists(CHROMIUM):
        print(f"SKIPPED: there is no Chromium at {CHROMIUM}; CHROMIUM names another", file=sys.stderr)
        return
    OUT.mkdir(parents=True, exist_ok=True)
    server, url = start()
    try:
        with sync_playwright() as p:
            browser = p.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"])
            walk(browser.new_context(viewport={"width": 1280, "height": 860}, accept_downloads=True,
                                     permissions=["clipboard-write", "clipboard-read"]).new_page(), url)
            other_looks(browser, url)
            camera(browser, url)
            browser.close()
    finally:
        server.terminate()
        assert server.wait(30) == 0
    print("the page does what it should; screenshots in", OUT)


if __name__ == "__main__":
    main()
