import { readNpz } from "/npz.js";

const $ = (id) => document.getElementById(id);
const canvas = $("canvas"), ctx = canvas.getContext("2d");
const defaults = { threshold: 0.005, radius: 4, most: 1024, resize: "640x480", channel: "red" };

// One entry for each of the two pictures: {file, bitmap, found, npz}
const pictures = [null, null];
let pairs = [], layout = null, asked = 0, running = null, chosen = 0, matchId = 0, worker = null, stream = null;

// ---- settings ----------------------------------------------------------------------------------
function settings() {
  const exponent = Number($("threshold").value);
  return {
    threshold: exponent <= -4 ? 0 : Number((10 ** exponent).toPrecision(2)),
    radius: Number($("radius").value),
    most: $("most").value >= 13 ? -1 : Math.round(2 ** $("most").value),
    resize: $("resize").value,
    channel: $("channel").value,
  };
}

function showSettings() {
  const s = settings();
  $("threshold-value").value = s.threshold;
  $("radius-value").value = s.radius ? s.radius + " px" : "off";
  $("most-value").value = s.most < 0 ? "all" : s.most;
  $("similarity-value").value = Number($("similarity").value).toFixed(2);
  showCurl();
}

function applyDefaults() {
  $("threshold").value = Math.log10(defaults.threshold || 1e-4);
  $("radius").value = defaults.radius;
  $("most").value = defaults.most < 0 ? 13 : Math.log2(defaults.most);
  if (![...$("resize").options].some((o) => o.value === defaults.resize))
    $("resize").prepend(new Option(defaults.resize, defaults.resize));
  $("resize").value = defaults.resize;
  $("channel").value = defaults.channel;
  $("similarity").value = 0.8;
  showSettings();
}

function query(extra) {
  const s = settings();
  return new URLSearchParams({
    max_keypoints: s.most, keypoint_threshold: s.threshold, nms_radius: s.radius, resize: s.resize, channel: s.channel,
    exif: "apply", ...extra,
  }).toString();
}

// What is chosen here is meant as a picture, also when the browser takes it for something else: the server looks at its bytes.
function typeOf(file) { return file.type.startsWith("image/") ? file.type : "image/x-unknown"; }

function showCurl() {
  const file = pictures[0]?.file, name = file?.name || "picture.jpg", type = file ? typeOf(file) : "image/jpeg";
  const quoted = "'" + name.replaceAll("'", "'\\''") + "'";
  const token = $("token").value ? " \\\n  -H 'Authorization: Bearer …'" : "";
  $("curl").textContent = `curl --data-binary @${quoted} \\\n  -H 'Content-Type: ${type}'${token} \\\n  '${location.origin}/predict?${query({})}'`;
}

// ---- asking ------------------------------------------------------------------------------------
async function call(file, extra, accept, signal) {
  const headers = { "Content-Type": typeOf(file), Accept: accept };
  if ($("token").value) headers.Authorization = "Bearer " + $("token").value;
  const answer = await fetch("/predict?" + query(extra), { method: "POST", headers, body: file, signal });
  if (answer.status === 401) { $("token-box").hidden = false; $("token").focus(); }
  if (!answer.ok) {
    const text = await answer.text();
    let detail = text;
    try { detail = JSON.parse(text).detail; } catch { /* not JSON: shown as it is */ }
    throw new Error(detail ? String(detail).replace(/^image: /, file.name + ": ") : "status " + answer.status);
  }
  return answer;
}

function fail(error) {
  $("error").textContent = error.message || String(error);
  $("error").hidden = false;
}

async function refresh() {
  if (!pictures[0]) return;
  const mine = ++asked;
  running?.abort();
  running = new AbortController();
  $("busy").hidden = false;
  try {
    const matching = Boolean(pictures[1]);
    for (const p of pictures.filter(Boolean)) {
      const answer = await call(p.file, { return_descriptors: "false" }, "application/json", running.signal);
      const found = await answer.json();
      let npz = null;
      if (matching)
        npz = readNpz(await (await call(p.file, { descriptor_dtype: "float16" }, "application/x-npz", running.signal)).arrayBuffer());
      if (mine !== asked) return;
      p.found = found;
      p.npz = npz;
    }
    $("error").hidden = true;
    showTimes(pictures[0].found.timing_ms);
    document.querySelectorAll("[data-save]").forEach((b) => { b.disabled = false; });
    if (matching) match(); else { pairs = []; draw(); }
  } catch (error) {
    if (error.name !== "AbortError" && mine === asked) fail(error);
  } finally {
    if (mine === asked) $("busy").hidden = true;
  }
}

let timer = 0;
function refreshSoon() {
  showSettings();
  clearTimeout(timer);
  timer = setTimeout(refresh, 120);
}

function showTimes(t) {
  const parts = [t.preprocess, t.device_forward, t.postprocess], sum = parts.reduce((a, b) => a + b, 0) || 1;
  [...$("bar").children].forEach((bar, i) => { bar.style.width = (100 * parts[i]) / sum + "%"; });
  [...parts, t.total].forEach((ms, i) => { $("times").children[i].lastElementChild.textContent = ms.toFixed(ms < 10 ? 2 : 1) + " ms"; });
}

// ---- matching ----------------------------------------------------------------------------------
function match() {
  worker ??= new Worker("/matcher.js");
  const id = ++matchId;
  worker.onmessage = ({ data }) => {
    if (data.id !== matchId) return;
    pairs = data.pairs;
    draw();
  };
  worker.postMessage({ id, a: pictures[0].npz.descriptors.data, b: pictures[1].npz.descriptors.data, dim: 256 });
}

// ---- drawing -----------------------------------------------------------------------------------
function colour(rank) { // from strong to weak, told apart by people who see few colours too
  const stops = [[255, 221, 64], [255, 128, 64], [226, 60, 120], [120, 70, 220], [60, 90, 220]];
  const x = Math.min(rank, 0.9999) * (stops.length - 1), i = Math.floor(x), f = x - i;
  return `rgb(${stops[i].map((v, k) => Math.round(v + (stops[i + 1][k] - v) * f)).join(" ")})`;
}

function place() {
  const [a, b] = pictures, most = 1600;
  if (!b) {
    const s = Math.min(1, most / Math.max(a.bitmap.width, a.bitmap.height));
    return { w: Math.round(a.bitmap.width * s), h: Math.round(a.bitmap.height * s), at: [{ x: 0, y: 0, s }] };
  }
  const gap = 12;
  if (a.bitmap.width / a.bitmap.height + b.bitmap.width / b.bitmap.height > 2.2) { // wide ones: one above the other
    const w = Math.min(1100, Math.max(a.bitmap.width, b.bitmap.width));
    const sa = w / a.bitmap.width, sb = w / b.bitmap.width, ha = Math.round(a.bitmap.height * sa);
    return { w, h: ha + gap + Math.round(b.bitmap.height * sb), at: [{ x: 0, y: 0, s: sa }, { x: 0, y: ha + gap, s: sb }] };
  }
  const h = Math.min(800, Math.max(a.bitmap.height, b.bitmap.height));
  const sa = h / a.bitmap.height, sb = h / b.bitmap.height, wa = Math.round(a.bitmap.width * sa);
  return { w: wa + gap + Math.round(b.bitmap.width * sb), h, at: [{ x: 0, y: 0, s: sa }, { x: wa + gap, y: 0, s: sb }] };
}

function drawPoints(context, p, at, size, faint) {
  const points = p.found.keypoints;
  for (let i = points.length - 1; i >= 0; i--) { // strong ones last, on top
    const x = at.x + (points[i][0] + 0.5) * at.s, y = at.y + (points[i][1] + 0.5) * at.s;
    context.beginPath();
    context.arc(x, y, size, 0, 7);
    context.lineWidth = size * 0.95;
    context.strokeStyle = "#000a";
    context.stroke();
    context.lineWidth = size * 0.5;
    context.strokeStyle = faint ? "#fff9" : colour(i / Math.max(1, points.length));
    context.stroke();
  }
}

function paint(context, where, unit) { // unit: canvas pixels to one on the screen
  context.clearRect(0, 0, where.w, where.h);
  const narrow = Math.min(1, Math.max(0.5, where.w / unit / 800)); // smaller rings on a small picture
  const size = Math.max(2, (pictures[1] ? 1.8 : 3) * narrow * unit);
  pictures.forEach((p, i) => {
    if (p) context.drawImage(p.bitmap, where.at[i].x, where.at[i].y, p.bitmap.width * where.at[i].s, p.bitmap.height * where.at[i].s);
  });
  const good = pairs.filter((q) => q[2] >= Number($("similarity").value));
  pictures.forEach((p, i) => { if (p?.found) drawPoints(context, p, where.at[i], size, Boolean(pictures[1])); });
  if (!pictures[1]?.npz) return 0;
  const [ka, kb] = pictures.map((p) => p.npz.keypoints.data), [A, B] = where.at;
  context.lineWidth = Math.max(1, unit);
  for (const [i, j] of good) { // hues follow the place, so that neighbours can be followed
    context.strokeStyle = `hsl(${Math.round((ka[2 * i] / pictures[0].bitmap.width) * 300)} 95% 62% / .6)`;
    context.beginPath();
    context.moveTo(A.x + (ka[2 * i] + 0.5) * A.s, A.y + (ka[2 * i + 1] + 0.5) * A.s);
    context.lineTo(B.x + (kb[2 * j] + 0.5) * B.s, B.y + (kb[2 * j + 1] + 0.5) * B.s);
    context.stroke();
  }
  return good.length;
}

function draw() {
  if (!pictures[0]) return;
  $("tip").hidden = true; // it told of a point that may have moved
  layout = place();
  canvas.width = layout.w;
  canvas.height = layout.h;
  const matches = paint(ctx, layout, layout.w / (canvas.getBoundingClientRect().width || layout.w));
  const counts = pictures.filter((p) => p?.found).map((p) => p.found.num_keypoints);
  const text = pictures[1]
    ? `${matches} ${matches === 1 ? "match" : "matches"} between ${counts.join(" and ")} keypoints`
    : `${counts[0] ?? 0} ${counts[0] === 1 ? "keypoint" : "keypoints"}`;
  $("count").textContent = text;
  canvas.setAttribute("aria-label", `${pictures[0].file.name || "picture"}${pictures[1] ? " beside " + pictures[1].file.name : ""}: ${text}`);
}

function point(event) { // the keypoint under the mouse
  const tip = $("tip"), box = canvas.getBoundingClientRect();
  tip.hidden = true;
  if (!layout || !pictures[0]?.found) return;
  const scale = layout.w / box.width, x = (event.clientX - box.left) * scale, y = (event.clientY - box.top) * scale;
  let best = 12 * scale, hit = null;
  pictures.forEach((p, k) => {
    p?.found?.keypoints.forEach((q, i) => {
      const at = layout.at[k], d = Math.hypot(at.x + (q[0] + 0.5) * at.s - x, at.y + (q[1] + 0.5) * at.s - y);
      if (d < best) { best = d; hit = { q, rank: i + 1, score: p.found.scores[i] }; }
    });
  });
  if (!hit) return;
  tip.textContent = `#${hit.rank}  x ${hit.q[0]}  y ${hit.q[1]}  score ${hit.score.toFixed(4)}`;
  tip.hidden = false;
  const wrap = canvas.parentElement.getBoundingClientRect();
  tip.style.left = Math.min(event.clientX - wrap.left + 14, wrap.width - tip.offsetWidth - 4) + "px";
  tip.style.top = Math.max(4, event.clientY - wrap.top - 34) + "px";
}

// ---- pictures ----------------------------------------------------------------------------------
async function take(file, index) {
  $("error").hidden = true;
  let bitmap;
  try {
    bitmap = await createImageBitmap(file);
  } catch {
    // A format that the server reads and the browser does not: points on a plain ground.
    try {
      const found = await (await call(file, { return_descriptors: "false" }, "application/json")).json();
      bitmap = new OffscreenCanvas(found.original_size.width, found.original_size.height);
      bitmap.getContext("2d").fillRect(0, 0, bitmap.width, bitmap.height);
    } catch (error) { fail(error); return; }
  }
  pictures[index] = { file, bitmap, found: null, npz: null };
  if (index === 0 && pictures[1]) { pictures[1].npz = null; }
  pairs = [];
  $("drop").hidden = true;
  $("shown").hidden = false;
  $("match-settings").hidden = $("unmatch").hidden = !pictures[1];
  draw();
  showSettings();
  refresh();
}

function choose(index) { chosen = index; $("file").value = ""; $("file").click(); }
function dropped(files) {
  const pics = [...files].filter((f) => !f.type || f.type.startsWith("image/"));
  if (!pics.length) { if (files.length) fail(new Error("That is not a picture.")); return; }
  if (pics.length > 1) take(pics[0], 0).then(() => take(pics[1], 1));
  else take(pics[0], pictures[0] ? 1 : 0);
}

async function openCamera() {
  if (!navigator.mediaDevices?.getUserMedia) {
    fail(new Error("The browser gives pages the camera only over HTTPS or from localhost."));
    return;
  }
  try {
    stream = await navigator.mediaDevices.getUserMedia({ video: { facingMode: "environment", width: { ideal: 1280 } } });
    $("video").srcObject = stream;
    await $("video").play();
    $("drop").hidden = $("shown").hidden = true;
    $("camera").hidden = false;
    $("shoot").focus();
  } catch (error) { closeCamera(); fail(new Error("The camera cannot be used: " + error.message)); }
}

function closeCamera() {
  stream?.getTracks().forEach((t) => t.stop());
  stream = null;
  $("camera").hidden = true;
  $(pictures[0] ? "shown" : "drop").hidden = false;
}

function shoot() {
  const video = $("video"), shot = document.createElement("canvas");
  shot.width = video.videoWidth;
  shot.height = video.videoHeight;
  shot.getContext("2d").drawImage(video, 0, 0);
  shot.toBlob((blob) => { closeCamera(); take(new File([blob], "camera.jpg", { type: "image/jpeg" }), 0); }, "image/jpeg", 0.92);
}

// ---- taking away -------------------------------------------------------------------------------
function save(blob, ending) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = (pictures[0].file.name || "picture").replace(/\.[^.]*$/, "") + "." + ending;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

async function takeAway(kind) {
  try {
    if (kind === "png") {
      const where = place(), full = document.createElement("canvas"), k = pictures[1] ? 1 : 1 / where.at[0].s;
      const big = { w: Math.round(where.w * k), h: Math.round(where.h * k), at: where.at.map((a) => ({ x: a.x * k, y: a.y * k, s: a.s * k })) };
      full.width = big.w;
      full.height = big.h;
      paint(full.getContext("2d"), big, Math.max(big.w, big.h) / 900);
      full.toBlob((blob) => save(blob, "png"));
    } else {
      const accept = kind === "npz" ? "application/x-npz" : "application/json";
      save(await (await call(pictures[0].file, {}, accept)).blob(), kind);
    }
  } catch (error) { fail(error); }
}

// ---- wiring ------------------------------------------------------------------------------------
document.querySelectorAll("[data-choose]").forEach((b) => b.addEventListener("click", () => choose(Number(b.dataset.choose))));
document.querySelectorAll("[data-save]").forEach((b) => b.addEventListener("click", () => takeAway(b.dataset.save)));
document.querySelector("[data-camera]").addEventListener("click", openCamera);
$("file").addEventListener("change", () => { if ($("file").files[0]) take($("file").files[0], chosen); });
$("shoot").addEventListener("click", shoot);
$("stop-camera").addEventListener("click", closeCamera);
$("unmatch").addEventListener("click", () => {
  pictures[1] = null;
  pairs = [];
  $("match-settings").hidden = $("unmatch").hidden = true;
  draw();
  refresh();
});
for (const id of ["threshold", "radius", "most", "resize", "channel"]) $(id).addEventListener("input", refreshSoon);
$("similarity").addEventListener("input", () => { showSettings(); draw(); });
$("token").addEventListener("change", () => { start(); refresh(); });
$("settings").addEventListener("reset", (event) => { event.preventDefault(); applyDefaults(); draw(); refresh(); });
$("settings").addEventListener("submit", (event) => event.preventDefault());
canvas.addEventListener("mousemove", point);
canvas.addEventListener("mouseleave", () => { $("tip").hidden = true; });
$("copy").addEventListener("click", async () => {
  try {
    await navigator.clipboard.writeText($("curl").textContent);
    $("copied").textContent = "Copied";
  } catch {
    getSelection().selectAllChildren($("curl"));
    $("copied").textContent = "Selected: press Ctrl+C";
  }
  setTimeout(() => { $("copied").textContent = ""; }, 3000);
});
for (const type of ["dragenter", "dragover"])
  addEventListener(type, (event) => { event.preventDefault(); $("stage").classList.add("over"); });
for (const type of ["dragleave", "drop"])
  addEventListener(type, (event) => { event.preventDefault(); if (type === "drop" || !event.relatedTarget) $("stage").classList.remove("over"); });
addEventListener("resize", () => draw());
addEventListener("drop", (event) => dropped(event.dataTransfer.files));
addEventListener("paste", (event) => { if (event.clipboardData.files.length) dropped(event.clipboardData.files); });

async function start() {
  const headers = $("token").value ? { Authorization: "Bearer " + $("token").value } : {};
  const answer = await fetch("/info", { headers });
  if (answer.status === 401) { $("token-box").hidden = false; $("server").textContent = "A bearer token is needed"; return; }
  const info = await answer.json();
  $("server").textContent = `${info.engine} · ${info.level} · ${info.precision}`;
  $("server").title = info.device;
  const w = info.model.weights;
  $("weights").textContent = `${info.device}. Weights ${w.id}, ${w.licence}, sha256 ${w.sha256.slice(0, 12)}…; superpoint ${info.version}.`;
  const d = info.defaults;
  Object.assign(defaults, { threshold: d.keypoint_threshold, radius: d.nms_radius, most: d.max_keypoints, resize: d.resize, channel: d.channel });
  applyDefaults();
}

applyDefaults();
start().catch(fail);
