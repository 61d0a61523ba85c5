"""Computes the random draws of augmentations, written only from docs/reference/augmentation.md.

Prints test vectors. Given a file, checks the vectors in it instead.
"""
import json, math, struct, sys

M, C = 2**64 - 1, 0x9E3779B97F4A7C15

def mix64(x):
    x = ((x ^ x >> 30) * 0xBF58476D1CE4E5B9) & M
    x = ((x ^ x >> 27) * 0x94D049BB133111EB) & M
    return x ^ x >> 31

def hash_words(seed, words):                      # hash_bytes of whole little-endian words
    h = mix64((seed + C) & M) ^ 8 * len(words)
    for word in words:
        h = mix64(((h ^ word) + C) & M)
    return h

def random(key, i): return mix64((key + (i + 1) * C) & M)

class Draws:
    def __init__(self, seed, epoch, sample, view, op):
        self.key = random(hash_words(seed, [epoch, 7, sample]), view << 32 | op)
    def word(self, i): return random(self.key, i)
    def unit(self, i): return (self.word(i) >> 11) * 2.0**-53
    def uniform(self, i, a, b): return a + (b - a) * self.unit(i)
    def log_uniform(self, i, a, b): return math.exp(self.uniform(i, math.log(a), math.log(b)))
    def below(self, i, n): return self.word(i) * n >> 64
    def beta(self, i, a):
        v = lambda j: 1 - self.unit(j)
        r = -math.expm1(2 / (2 * a + 1) * math.log(v(i)))
        b = 0.5 + 0.5 * math.sqrt(r) * math.cos(math.tau * self.unit(i + 1))
        return 1 / (1 + math.exp(math.log((1 - b) / b) + (math.log(v(i + 3)) - math.log(v(i + 2))) / a))

def area(d, width, height, scale, ratio):         # x, y, width, height of a random resized crop
    for t in range(10):
        a = width * height * d.uniform(2 * t, *scale)
        r = d.log_uniform(2 * t + 1, *ratio)
        w, h = round(math.sqrt(a * r)), round(math.sqrt(a / r))
        if 0 < w <= width and 0 < h <= height:
            return [d.below(21, width - w + 1), d.below(20, height - h + 1), w, h]
    w, h = width, height
    if width / height < ratio[0]: h = max(1, round(width / ratio[0]))
    elif width / height > ratio[1]: w = max(1, round(height * ratio[1]))
    return [(width - w) // 2, (height - h) // 2, w, h]

def iou(a, b):                                    # of boxes: left, top, right, bottom
    common = max(0, min(a[2], b[2]) - max(a[0], b[0])) * max(0, min(a[3], b[3]) - max(a[1], b[1]))
    return common / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - common)

def ioucrop(d, width, height, boxes, scale, ratio):  # x, y, width, height, or None
    for n in range(50):
        overlap = (0, 0.1, 0.3, 0.5, 0.7, 0.9, 1)[d.below(161 * n, 7)]
        if overlap == 1: return None
        for i in range(161 * n + 1, 161 * (n + 1), 4):
            w, h = int(width * d.uniform(i, *scale)), int(height * d.uniform(i + 1, *scale))
            if not (w and h and ratio[0] <= w / h <= ratio[1]): continue
            x, y = int((width - w) * d.unit(i + 2)), int((height - h) * d.unit(i + 3))
            inside = [b for b in boxes if x < (b[0] + b[2]) / 2 < x + w and y < (b[1] + b[3]) / 2 < y + h]
            if inside and max(iou(b, (x, y, x + w, y + h)) for b in inside) >= overlap: return [x, y, w, h]

def scalejitter(d, width, height, out, scale):    # width and height after the resize, x, y
    factor = min(out / width, out / height) * d.uniform(0, *scale)
    sides = max(1, int(width * factor)), max(1, int(height * factor))
    return [*sides, *(int(max(0, side - out) * d.unit(1)) for side in sides)]

def cover(d, width, height, out):                 # width and height after the resize, x, y
    factor = max(out[0] / width, out[1] / height)
    w, h = (max(least, round(side * factor)) for side, least in zip((width, height), out))
    return [w, h, d.below(1, w - out[0] + 1), d.below(0, h - out[1] + 1)]

def shortside(d, width, height, low, high, step, longest):  # width and height after the resize
    factor = (low + step * d.below(0, (high - low) // step + 1)) / min(width, height)
    factor = min(factor, longest / max(width, height))
    return [max(1, int(width * factor)), max(1, int(height * factor))]

def erased(d, width, height, p, scale, ratio):    # x, y, width, height, or None
    if not d.unit(0) < p: return None
    for t in range(10):
        a = width * height * d.uniform(1 + 2 * t, *scale)
        r = d.log_uniform(2 + 2 * t, *ratio)
        h, w = round(math.sqrt(a * r)), round(math.sqrt(a / r))
        if h < height and w < width:
            return [d.below(22, width - w + 1), d.below(21, height - h + 1), w, h]

def jitter(d, b, c, s, h):                        # order, then the factors
    order = [0, 1, 2, 3]
    for i, last in (1, 3), (2, 2), (3, 1):
        j = d.below(i, last + 1)
        order[last], order[j] = order[j], order[last]
    factors = [d.uniform(4 + i, max(0.0, 1 - x), 1 + x) for i, x in enumerate((b, c, s))]
    return order + factors + [d.uniform(7, -h, h)]

def patch(d, side, alpha):                        # cutmix: left, right, top, bottom
    half = math.floor(0.5 * math.sqrt(1 - d.beta(1, alpha)) * side)
    y, x = d.below(5, side), d.below(6, side)
    return [max(0, x - half), min(side, x + half), max(0, y - half), min(side, y + half)]

def normal(d, n):                                 # value n of a rectangle that is erased randomly
    word = d.word(32 + n // 2)
    radius = math.sqrt(-2 * math.log(((word >> 32) + 0.5) * 2.0**-32))
    turn = math.tau * ((word & 2**32 - 1) * 2.0**-32)
    return radius * (math.sin(turn) if n % 2 else math.cos(turn))

def f32(x): return struct.unpack("f", struct.pack("f", x))[0]

def linspace(a, b, n, i):
    a, b = f32(a), f32(b)
    step = f32(f32(b - a) / (n - 1))
    return f32(a + f32(step * i)) if i < n // 2 else f32(b - f32(step * (n - 1 - i)))

POLICY_OPS = ["Identity", "ShearX", "ShearY", "TranslateX", "TranslateY", "Rotate", "Brightness", "Color", "Contrast",
              "Sharpness", "Posterize", "Solarize", "AutoContrast", "Equalize"]

def magnitude(op, i, n, size):                    # size is None for the wide space
    w, h = [32.0] * 2 if size is None else [150 / 331 * side for side in size]
    s, a, f, p = (0.99, 135.0, 0.99, 6) if size is None else (0.3, 30.0, 0.9, 4)
    if op == "Posterize": return 8.0 - round(f32(i / f32((n - 1) / p)))
    if op == "Solarize": return linspace(255.0, 0.0, n, i)
    most = {"ShearX": s, "ShearY": s, "TranslateX": w, "TranslateY": h, "Rotate": a}
    most.update(dict.fromkeys(["Brightness", "Color", "Contrast", "Sharpness"], f))
    return linspace(0.0, most[op], n, i) if op in most else 0.0

def signed(op, m, negative): return [op, -m if negative and op in POLICY_OPS[1:10] else m]

def randaugment(d, n, i, bins, size):             # ops and magnitudes
    ops = [POLICY_OPS[d.below(2 * k, 14)] for k in range(n)]
    return [signed(op, magnitude(op, i, bins, size), d.unit(2 * k + 1) < 0.5) for k, op in enumerate(ops)]

def trivialaugment(d, bins):
    op = POLICY_OPS[d.below(0, 14)]
    return [signed(op, magnitude(op, d.below(1, bins), bins, None), d.unit(2) < 0.5)]

POLICIES = {
    "imagenet":
        "Posterize 4 8 Rotate 6 9|Solarize 6 5 AutoContrast 6 0|Equalize 8 0 Equalize 6 0|"
        "Posterize 6 7 Posterize 6 6|Equalize 4 0 Solarize 2 4|Equalize 4 0 Rotate 8 8|"
        "Solarize 6 3 Equalize 6 0|Posterize 8 5 Equalize 10 0|Rotate 2 3 Solarize 6 8|"
        "Equalize 6 0 Posterize 4 6|Rotate 8 8 Color 4 0|Rotate 4 9 Equalize 6 0|"
        "Equalize 0 0 Equalize 8 0|Invert 6 0 Equalize 10 0|Color 6 4 Contrast 10 8|"
        "Rotate 8 8 Color 10 2|Color 8 8 Solarize 8 7|Sharpness 4 7 Invert 6 0|"
        "ShearX 6 5 Equalize 10 0|Color 4 0 Equalize 6 0|Equalize 4 0 Solarize 2 4|"
        "Solarize 6 5 AutoContrast 6 0|Invert 6 0 Equalize 10 0|Color 6 4 Contrast 10 8|"
        "Equalize 8 0 Equalize 6 0",
    "cifar10":
        "Invert 1 0 Contrast 2 6|Rotate 7 2 TranslateX 3 9|Sharpness 8 1 Sharpness 9 3|"
        "ShearY 5 8 TranslateY 7 9|AutoContrast 5 0 Equalize 9 0|ShearY 2 7 Posterize 3 7|"
        "Color 4 3 Brightness 6 7|Sharpness 3 9 Brightness 7 9|Equalize 6 0 Equalize 5 0|"
        "Contrast 6 7 Sharpness 6 5|Color 7 7 TranslateX 5 8|Equalize 3 0 AutoContrast 4 0|"
        "TranslateY 4 3 Sharpness 2 6|Brightness 9 6 Color 2 8|Solarize 5 2 Invert 0 0|"
        "Equalize 2 0 AutoContrast 6 0|Equalize 2 0 Equalize 6 0|Color 9 9 Equalize 6 0|"
        "AutoContrast 8 0 Solarize 2 8|Brightness 1 3 Color 7 0|Solarize 4 5 AutoContrast 9 0|"
        "TranslateY 9 9 TranslateY 7 9|AutoContrast 9 0 Solarize 8 3|Equalize 8 0 Invert 1 0|"
        "TranslateY 7 9 AutoContrast 9 0",
    "svhn":
        "ShearX 9 4 Invert 2 0|ShearY 9 8 Invert 7 0|Equalize 6 0 Solarize 6 6|"
        "Invert 9 0 Equalize 6 0|Equalize 6 0 Rotate 9 3|ShearX 9 4 AutoContrast 8 0|"
        "ShearY 9 8 Invert 4 0|ShearY 9 5 Solarize 2 6|Invert 9 0 AutoContrast 8 0|"
        "Equalize 6 0 Rotate 9 3|ShearX 9 4 Solarize 3 3|ShearY 8 8 Invert 7 0|"
        "Equalize 9 0 TranslateY 6 6|Invert 9 0 Equalize 6 0|Contrast 3 3 Rotate 8 4|"
        "Invert 8 0 TranslateY 0 2|ShearY 7 6 Solarize 4 8|Invert 6 0 Rotate 8 4|"
        "ShearY 3 7 TranslateX 9 3|ShearX 1 6 Invert 6 0|Solarize 7 2 TranslateY 6 7|"
        "ShearY 8 4 Invert 8 0|ShearX 7 9 TranslateY 8 3|ShearY 8 5 AutoContrast 7 0|"
        "ShearX 7 2 Invert 1 0",
}

def autoaugment(d, policy, size):
    words = POLICIES[policy].split("|")[d.below(0, 25)].split()
    ops = [(op, int(tenths) / 10, int(i)) for op, tenths, i in (words[:3], words[3:])]
    return [signed(op, magnitude(op, i, 10, size), d.unit(3 + k) < 0.5)
            for k, (op, p, i) in enumerate(ops) if d.unit(1 + k) < p]

def mosaic(d, width, height, p):
    return [side // 4 + d.below(draw, side // 2 + 1) for draw, side in ((8, width), (9, height))] if d.unit(7) < p else None

BOXES = (10, 20, 60, 50.5), (300, 40, 480, 360), (-5, 100, 40, 380)

def vector(seed, epoch, sample, view, op):
    d, mix = Draws(seed, epoch, sample, view, op), Draws(seed, epoch, sample, 2**32 - 1, 2**32 - 1)
    return {"at": [str(n) for n in (seed, epoch, sample, view, op)], "words": [str(d.word(i)) for i in range(2)],
            "flip": d.unit(0) < 0.5, "rrc_500x375": area(d, 500, 375, (0.08, 1.0), (3 / 4, 4 / 3)),
            "rrc_900x64": area(d, 900, 64, (0.5, 1.0), (3 / 4, 4 / 3)),
            "ioucrop_500x375": ioucrop(d, 500, 375, BOXES, (0.3, 1.0), (0.5, 2.0)),
            "ioucrop_90x60": ioucrop(d, 90, 60, BOXES[:1], (0.1, 0.9), (0.25, 4.0)),
            "scalejitter256_500x375": scalejitter(d, 500, 375, 256, (0.1, 2.0)),
            "cover192x256_500x375": cover(d, 500, 375, (192, 256)),
            "shortside480_500x375": shortside(d, 500, 375, 480, 800, 32, 1000),
            "crop32_4": [d.below(1, 9) - 4, d.below(0, 9) - 4],
            "erase_224": erased(d, 224, 224, 0.75, (0.02, 0.33), (0.3, 3.3)), "jitter": jitter(d, 0.4, 0.4, 0.4, 0.1),
            "randaugment_224x160": randaugment(d, 2, 9, 31, (224, 160)), "trivialaugment": trivialaugment(d, 31),
            **{f"autoaugment_{name}_32x32": autoaugment(d, name, (32, 32)) for name in POLICIES},
            "normals": [normal(d, i) for i in range(4)],
            "mixup_0.2": mix.beta(1, 0.2), "cutmix_1_on_224": patch(mix, 224, 1.0),
            "mosaic_0.5_on_90x61": mosaic(mix, 90, 61, 0.5)}

def vectors():
    seeds = (0, 0), (42, 3), (2**64 - 1, 2**32 - 1)
    return [vector(s, e, n, v, o) for s, e in seeds for n in (0, 17, 999_999_999) for v in (0, 1) for o in (0, 3)]

if __name__ == "__main__":
    if len(sys.argv) == 1:
        print("[\n" + ",\n".join(json.dumps(v) for v in vectors()) + "\n]")
    else:
        assert json.load(open(sys.argv[1])) == vectors(), "the vectors differ"
