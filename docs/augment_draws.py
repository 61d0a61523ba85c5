"""Draws of docs/augmentation.md, written from that page alone; checks the vectors of the file given."""
import json, math, sys

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

def vector(seed, epoch, sample, view, op):
    d, mix = Draws(seed, epoch, sample, view, op), Draws(seed, epoch, sample, 2**32 - 1, 2**32 - 1)
    return {"at": [str(n) for n in (seed, epoch, sample, view, op)], "words": [str(d.word(i)) for i in range(2)],
            "flip": d.unit(0) < 0.5, "rrc_500x375": area(d, 500, 375, (0.08, 1.0), (3 / 4, 4 / 3)),
            "rrc_900x64": area(d, 900, 64, (0.5, 1.0), (3 / 4, 4 / 3)),
            "crop32_4": [d.below(1, 9) - 4, d.below(0, 9) - 4],
            "erase_224": erased(d, 224, 224, 0.75, (0.02, 0.33), (0.3, 3.3)), "jitter": jitter(d, 0.4, 0.4, 0.4, 0.1),
            "mixup_0.2": mix.beta(1, 0.2), "cutmix_1_on_224": patch(mix, 224, 1.0)}

def vectors():
    seeds = (0, 0), (42, 3), (2**64 - 1, 2**32 - 1)
    return [vector(s, e, n, v, o) for s, e in seeds for n in (0, 17, 999_999_999) for v in (0, 1) for o in (0, 3)]

if len(sys.argv) == 1:
    print("[\n" + ",\n".join(json.dumps(v) for v in vectors()) + "\n]")
else:
    assert json.load(open(sys.argv[1])) == vectors(), "the vectors are others"
