// Turns pixels into finished images in one pass: gathering, windows, flips, colours, normalization, type and layout,
// erasing and mixing.
//
// Each value of a channel is looked up in a table of 256 results that the host computed, so it equals the host's value bit
// for bit in every type. Only colours and mixing compute with floats, with the same operations as the host. The file is valid
// CUDA and C: with HOST defined, a C compiler compiles it, and it is tested on a CPU (tests/kernel).

#ifndef HOST
#define KERNEL extern "C" __global__ void __launch_bounds__(256)
#define DEVICE static __device__ __forceinline__
#define SHARED __shared__
// The compiler never fuses these operations.
#define TIMES(a, b) __fmul_rn(a, b)
#define PLUS(a, b) __fadd_rn(a, b)
#define TIMES_64(a, b) __dmul_rn(a, b)
#define PLUS_64(a, b) __dadd_rn(a, b)
#endif

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

// The padding of a picture, in the order of packds_pixels::Padding.
enum { CONSTANT, EDGE, REFLECT, SYMMETRIC };
enum { MOST_CHANNELS = 3, VALUES = 256, THREADS = 256 };
enum { FLIP_HORIZONTAL = 1, FLIP_VERTICAL = 2, ROWS_FIRST = 4, RESIZED = 8 };
// Fractional bits of a weight, as in packds_pixels::AxisTaps.
enum { PRECISION = 22 };
// Types of values.
enum { BYTES, HALVES, BRAINS, SINGLES };
// Operations on colours, in the order of packds_pixels::ops::Adjustment.
enum { NOTHING, BRIGHTNESS, CONTRAST, SATURATION, HUE, GRAYSCALE, SOLARIZE };
// Maximum number of operations of an image, as in packds_reader::device::Changes.
enum { MOST_COLORS = 32 };

// The part of a picture that an image shows. Pictures may differ in size.
struct Frame {
    u64 source; // first byte of the area, or of the picture if nothing is resized
    int x, y;   // where the window starts in the picture or the resized area; may be outside
    u32 flips;
    u32 width, height; // of the picture or the resized area
    u32 row_bytes;     // distance between two rows of the picture
    u32 across, down;  // where the taps of columns and rows start, in words, if the area is resized
};

// A rectangle of an image. The ends are exclusive.
struct Patch {
    u32 left, right, top, bottom;
};

// How an image is mixed with the image before it.
struct Share {
    struct Patch patch;
    u32 takes; // whether values are copied without mixing
    float own; // otherwise the share of this image
};

// A float and its bits.
union Single {
    u32 bits;
    float value;
};

// An operation on the colours of an image.
struct ColorOp {
    u32 kind;
    union Single by; // the factor; for SOLARIZE the bits are the threshold
};

// One launch: `n` images of one size. src/emission.rs has the same struct.
struct Emission {
    const u8 *source;           // interleaved pixels
    const struct Frame *frames; // one per image; null: whole pictures of the images' size, without gaps
    const u32 *table;           // VALUES bit patterns per channel, then one per patch and channel
    const struct Patch *patches; // `n_patches` per image, applied in order
    const struct Share *shares; // one per image; null: nothing is mixed
    const struct ColorOp *colors; // `n_colors` per image, applied in order
    const u32 *taps;            // from packds_reader::device::Resampling; null: no area is resized
    void *out;
    u32 n;
    u32 width, height;
    u32 channels;
    u32 planar;      // whether the result is stored as planes
    u32 type;
    u32 padding;
    u32 color;       // if padding is CONSTANT: a byte per channel, the first channel lowest
    u32 n_patches;
    u32 n_colors;
    u32 measures; // whether `colors` may contain CONTRAST
    u32 reserved;
};

// The source positions of an output position, and their weights.
struct Tap {
    u32 start, n;
    const int *weights;
};

// The line of an image to compute, and its source.
struct Line {
    struct Frame frame;
    const u8 *row; // a row of the picture, or the first row of the area; null if only padding is shown
    u32 at;        // the row to show
    u32 image, y;
};

// The position on a side of `side` pixels that is shown at position `at`; -1 if the padding colour is shown.
DEVICE int shown(int at, int side, u32 padding) {
    if (at >= 0 && at < side) return at;
    if (padding == CONSTANT) return -1;
    if (padding == EDGE) return at < 0 ? 0 : side - 1;
    if (padding == REFLECT && side == 1) return 0;
    int period = padding == REFLECT ? 2 * side - 2 : 2 * side;
    int last = padding == REFLECT ? period : period - 1;
    int rest = at % period;
    if (rest < 0) rest += period;
    return rest < side ? rest : last - rest;
}

DEVICE void store(void *out, u64 at, u32 type, u32 bits) {
    if (type == SINGLES) ((u32 *)out)[at] = bits;
    else if (type == BYTES) ((u8 *)out)[at] = (u8)bits;
    else ((u16 *)out)[at] = (u16)bits;
}

// Converts the bits of a value to a float.
DEVICE float number_of(u32 type, u32 bits) {
    union Single single;
    single.bits = bits;
    if (type == BYTES) single.value = (float)bits;
    if (type == BRAINS) single.bits = bits << 16;
    if (type == HALVES) {
        u32 sign = (bits & 0x8000) << 16, exponent = bits & 0x7c00;
        single.bits = (bits & 0x7fff) << 13;
        if (exponent == 0x7c00) single.bits += 0x70000000;
        else if (exponent != 0) single.bits += 0x38000000;
        else {
            // A subnormal half. The sum is exact, because both terms have few bits.
            single.bits += 0x38800000;
            single.value = PLUS(single.value, -6.103515625e-05f);
        }
        single.bits |= sign;
    }
    return single.value;
}

// The bits of the nearest value of a type. Ties round to even; for bytes they round up.
DEVICE u32 bits_of(u32 type, float value) {
    union Single single;
    single.value = value;
    if (type == SINGLES) return single.bits;
    if (type == BYTES) {
        float up = PLUS(value, 0.5f);
        return up <= 0.0f ? 0 : up >= 255.0f ? 255 : (u32)up;
    }
    if (type == BRAINS) return (single.bits + 0x7fff + (single.bits >> 16 & 1)) >> 16;
    u32 sign = single.bits >> 16 & 0x8000;
    single.bits &= 0x7fffffff;
    // Values of 65520 and above round to infinity.
    if (single.bits >= 0x477ff000) return sign | 0x7c00;
    if (single.bits < 0x38800000) {
        // Adding 0.5 moves the bits to the right place and rounds them.
        single.value = PLUS(single.value, 0.5f);
        return sign | (single.bits - 0x3f000000);
    }
    return sign | ((single.bits - 0x38000000 + 0xfff + (single.bits >> 13 & 1)) >> 13);
}

// Blends a value with a value of another image, like the host's `blend`.
DEVICE u32 mixed(u32 type, const struct Share *share, u32 own, u32 other) {
    if (share->takes) return other;
    float rest = PLUS(1.0f, -share->own);
    return bits_of(type, PLUS(TIMES(share->own, number_of(type, own)), TIMES(rest, number_of(type, other))));
}

DEVICE int covers(const struct Patch *patch, u32 x, u32 y) {
    return x >= patch->left && x < patch->right && y >= patch->top && y < patch->bottom;
}

DEVICE int is_resized(const struct Emission *e, const struct Frame *frame) {
    return e->taps != 0 && (frame->flips & RESIZED) != 0;
}

// Line `y` of image `i`.
DEVICE struct Line line_of(const struct Emission *e, u32 i, u32 y) {
    u32 row_bytes = e->width * e->channels;
    struct Line line = {{(u64)i * e->height * row_bytes, 0, 0, 0, e->width, e->height, row_bytes, 0, 0}, 0, 0, i, y};
    if (e->frames) line.frame = e->frames[i];
    u32 from = line.frame.flips & FLIP_VERTICAL ? e->height - 1 - y : y;
    int row = shown(line.frame.y + (int)from, (int)line.frame.height, e->padding);
    if (row < 0) return line;
    line.at = (u32)row;
    u64 before = is_resized(e, &line.frame) ? 0 : (u64)line.at * line.frame.row_bytes;
    line.row = e->source + line.frame.source + before;
    return line;
}

// The source positions of position `at` of an axis.
DEVICE struct Tap tap_of(const u32 *taps, u32 at) {
    const u32 *words = taps + 1 + (u64)at * (2 + taps[0]);
    struct Tap tap = {words[0], words[1], (const int *)(words + 2)};
    return tap;
}

DEVICE int limited(int sum) {
    sum >>= PRECISION;
    return sum < 0 ? 0 : sum > 255 ? 255 : sum;
}

// The byte of channel `c` in column `x` of a line's resized area. Resizes one axis, rounds to bytes, then resizes the
// other.
DEVICE u32 resampled(const struct Emission *e, const struct Line *line, u32 x, u32 c) {
    struct Tap inner = tap_of(e->taps + line->frame.across, x), outer = tap_of(e->taps + line->frame.down, line->at);
    u64 inner_step = e->channels, outer_step = line->frame.row_bytes;
    const u8 *first = line->row + outer.start * outer_step + inner.start * inner_step + c;
    if (line->frame.flips & ROWS_FIRST) {
        struct Tap tap = inner;
        inner = outer, outer = tap;
        u64 step = inner_step;
        inner_step = outer_step, outer_step = step;
    }
    int sum = 1 << (PRECISION - 1);
    for (u32 o = 0; o < outer.n; o++) {
        int part = 1 << (PRECISION - 1);
        for (u32 i = 0; i < inner.n; i++) part += first[o * outer_step + i * inner_step] * inner.weights[i];
        sum += limited(part) * outer.weights[o];
    }
    return (u32)limited(sum);
}

// The byte of channel `c` in column `x` of a line.
DEVICE u32 shown_byte(const struct Emission *e, const struct Line *line, u32 x, u32 c) {
    u32 column = line->frame.flips & FLIP_HORIZONTAL ? e->width - 1 - x : x;
    int from = shown(line->frame.x + (int)column, (int)line->frame.width, e->padding);
    if (line->row == 0 || from < 0) return e->color >> (8 * c) & 255;
    if (is_resized(e, &line->frame)) return resampled(e, line, (u32)from, c);
    return line->row[(u32)from * e->channels + c];
}

// The values of the last patch that covers column `x` of a line; null if none does.
DEVICE const u32 *set_to(const struct Emission *e, const struct Line *line, u32 x) {
    for (u32 patch = e->n_patches; patch-- > 0;)
        if (covers(&e->patches[(u64)line->image * e->n_patches + patch], x, line->y))
            return &e->table[e->channels * VALUES + patch * e->channels];
    return 0;
}

// The value of channel `c` in column `x` of a line, before mixing.
DEVICE u32 value(const struct Emission *e, const struct Line *line, const u32 *table, u32 x, u32 c) {
    const u32 *set = set_to(e, line, x);
    return set ? set[c] : table[c * VALUES + shown_byte(e, line, x, c)];
}

// A line, and the line that it is mixed with.
struct Pair {
    struct Line own, other;
    const struct Share *share; // null if the line is not mixed
};

// Whether images are mixed, each with the image before it.
DEVICE int mixes(const struct Emission *e) {
    return e->shares != 0 && e->n > 1;
}

DEVICE u32 before(const struct Emission *e, u32 i) {
    return i == 0 ? e->n - 1 : i - 1;
}

DEVICE struct Pair pair_of(const struct Emission *e, u32 i, u32 y) {
    struct Pair pair = {line_of(e, i, y), line_of(e, i, y), 0};
    if (!mixes(e)) return pair;
    pair.other = line_of(e, before(e, i), y);
    pair.share = &e->shares[i];
    return pair;
}

// Whether column `x` uses the other line.
DEVICE int is_mixed(const struct Pair *pair, u32 x) {
    return pair->share != 0 && covers(&pair->share->patch, x, pair->own.y);
}

// Writes the value of channel `c` in column `x`.
DEVICE void put(const struct Emission *e, const struct Pair *pair, const u32 *table, u64 at, u32 x, u32 c) {
    u32 bits = value(e, &pair->own, table, x, c);
    if (is_mixed(pair, x)) bits = mixed(e->type, pair->share, bits, value(e, &pair->other, table, x, c));
    store(e->out, at, e->type, bits);
}

// Writes line `y` of image `i`. The 32 threads of `lane` write adjacent values.
DEVICE void line(const struct Emission *e, const u32 *table, u32 i, u32 y, u32 lane) {
    struct Pair pair = pair_of(e, i, y);
    u64 image = (u64)i * e->width * e->height * e->channels;
    if (e->planar) {
        for (u32 c = 0; c < e->channels; c++) {
            u64 start = image + ((u64)c * e->height + y) * e->width;
            for (u32 x = lane; x < e->width; x += 32) put(e, &pair, table, start + x, x, c);
        }
        return;
    }
    u64 start = image + (u64)y * e->width * e->channels;
    for (u32 at = lane; at < e->width * e->channels; at += 32) {
        u32 x = e->channels == 3 ? at / 3 : at;
        put(e, &pair, table, start + at, x, e->channels == 3 ? at - 3 * x : 0);
    }
}

DEVICE u32 thread_number(void) {
    return threadIdx.y * 32 + threadIdx.x;
}

DEVICE void load_table(const struct Emission *e, u32 *table) {
    for (u32 at = thread_number(); at < e->channels * VALUES; at += THREADS) table[at] = e->table[at];
    __syncthreads();
}

// Blocks have 32 x 8 threads. Each row of threads writes separate lines. The grid is (lines, images).
DEVICE void images(const struct Emission *e, u32 *table) {
    load_table(e, table);
    for (u32 i = blockIdx.y; i < e->n; i += gridDim.y)
        for (u32 y = blockIdx.x * 8 + threadIdx.y; y < e->height; y += gridDim.x * 8) line(e, table, i, y, threadIdx.x);
}

// All channels of a pixel: bytes, or the bits of values.
struct Pixel {
    u32 of[MOST_CHANNELS];
};

DEVICE struct Pixel shown_pixel(const struct Emission *e, const struct Line *line, u32 x) {
    struct Pixel pixel;
    for (u32 c = 0; c < MOST_CHANNELS; c++) pixel.of[c] = c < e->channels ? shown_byte(e, line, x, c) : 0;
    return pixel;
}

// Pillow's luma (ITU-R 601). With one channel, its byte.
DEVICE u32 luma(struct Pixel pixel, u32 channels) {
    if (channels != 3) return pixel.of[0];
    return (pixel.of[0] * 19595 + pixel.of[1] * 38470 + pixel.of[2] * 7471 + 0x8000) >> 16;
}

// Extrapolates from `base` through `value` and truncates to a byte. NaN gives 0.
DEVICE u32 blended(u32 value, u32 base, float factor) {
    float sum = PLUS((float)base, TIMES(factor, (float)((int)value - (int)base)));
    return !(sum > 0.0f) ? 0 : sum >= 255.0f ? 255 : (u32)sum;
}

// The value minus the fraction `by` of it. Ties round up.
DEVICE u32 darkened(u32 value, double by) {
    return (u32)PLUS_64(TIMES_64((double)value, PLUS_64(1.0, -by)), 0.5);
}

// The hue of a colour as a byte; 0 for gray. Rounds like the host and Pillow.
DEVICE u32 hue_of(struct Pixel pixel, u32 high, u32 range) {
    u32 to_red = high - pixel.of[0], to_green = high - pixel.of[1], to_blue = high - pixel.of[2];
    u32 plus = to_green, minus = to_red;
    double sixths = 4.0;
    if (to_red == 0) sixths = 0.0, plus = to_blue, minus = to_green;
    else if (to_green == 0) sixths = 2.0, plus = to_red, minus = to_blue;
    float parts = (float)(range == 0 ? 1 : range);
    double more = PLUS_64(sixths, (double)((float)plus / parts)), less = (double)((float)minus / parts);
    double circle = PLUS_64((double)(float)PLUS_64(more, -less) / 6.0, 1.0);
    return (u32)TIMES_64((double)(float)(circle >= 1.0 ? PLUS_64(circle, -1.0) : circle), 255.0);
}

// Rotates the hue of a colour by the fraction `factor` of the circle. Hue and saturation are rounded to bytes.
DEVICE struct Pixel turned(struct Pixel pixel, float factor) {
    u32 red = pixel.of[0], green = pixel.of[1], blue = pixel.of[2];
    u32 high = red > green ? red : green, low = red < green ? red : green;
    high = blue > high ? blue : high, low = blue < low ? blue : low;
    u32 range = high - low;
    float parts = (float)range / (float)(high == 0 ? 1 : high);
    float saturation = (float)((double)(u32)TIMES_64((double)parts, 255.0) / 255.0);
    u32 hue = (hue_of(pixel, high, range) + (u32)(int)TIMES_64((double)factor, 255.0)) & 255;
    double sixths = TIMES_64((double)hue, 6.0) / 255.0;
    u32 sector = (u32)sixths;
    float part = (float)PLUS_64(sixths, -(double)sector);
    double falling = (double)TIMES(saturation, part);
    double rising = TIMES_64((double)saturation, PLUS_64(1.0, -(double)part));
    u32 middle = darkened(high, sector & 1 ? falling : rising);
    low = darkened(high, (double)saturation);
    sector %= 6;
    pixel.of[0] = sector == 0 || sector == 5 ? high : sector == 1 || sector == 4 ? middle : low;
    pixel.of[1] = sector == 1 || sector == 2 ? high : sector == 0 || sector == 3 ? middle : low;
    pixel.of[2] = sector == 3 || sector == 4 ? high : sector == 2 || sector == 5 ? middle : low;
    return pixel;
}

// A pixel after one operation; `mean` is the mean luma of its image before this operation.
DEVICE struct Pixel adjusted(struct Pixel pixel, u32 channels, struct ColorOp color, u32 mean) {
    int is_gray = channels != 3;
    if (color.kind == HUE) return is_gray ? pixel : turned(pixel, color.by.value);
    if (is_gray && (color.kind == SATURATION || color.kind == GRAYSCALE)) return pixel;
    u32 gray = luma(pixel, channels);
    u32 base = color.kind == SATURATION ? gray : color.kind == CONTRAST ? mean : 0;
    for (u32 c = 0; c < MOST_CHANNELS; c++) {
        u32 value = pixel.of[c];
        if (color.kind == GRAYSCALE) value = gray;
        else if (color.kind == SOLARIZE) value = value < color.by.bits ? value : 255 - value;
        else if (color.kind != NOTHING) value = blended(value, base, color.by.value);
        pixel.of[c] = value;
    }
    return pixel;
}

// A pixel of a line after the first `n` operations of its image. `means` must be complete for these operations.
DEVICE struct Pixel colored(const struct Emission *e, const struct Line *line, const u8 *means, u32 x, u32 n) {
    struct Pixel pixel = shown_pixel(e, line, x);
    const struct ColorOp *colors = e->colors + (u64)line->image * e->n_colors;
    for (u32 k = 0; k < n; k++) pixel = adjusted(pixel, e->channels, colors[k], means[k]);
    return pixel;
}

// Computes the mean luma of image `i` before each CONTRAST. All threads of a block call this together.
DEVICE void measure(const struct Emission *e, u64 *sums, u8 *means, u32 i) {
    u32 thread = thread_number();
    for (u32 k = 0; k < e->n_colors; k++) {
        if (e->colors[(u64)i * e->n_colors + k].kind != CONTRAST) continue;
        u64 sum = 0;
        for (u32 y = threadIdx.y; y < e->height; y += 8) {
            struct Line line = line_of(e, i, y);
            for (u32 x = threadIdx.x; x < e->width; x += 32) sum += luma(colored(e, &line, means, x, k), e->channels);
        }
        sums[thread] = sum;
        __syncthreads();
        for (u32 half = THREADS / 2; half > 0; half /= 2) {
            if (thread < half) sums[thread] += sums[thread + half];
            __syncthreads();
        }
        if (thread == 0) means[k] = (u8)PLUS_64((double)sums[0] / (double)((u64)e->width * e->height), 0.5);
        __syncthreads();
    }
}

// The values of a pixel of a line, before mixing.
DEVICE struct Pixel values(const struct Emission *e, const struct Line *line, const u32 *table, const u8 *means, u32 x) {
    const u32 *set = set_to(e, line, x);
    struct Pixel pixel = {{0, 0, 0}};
    if (set == 0) pixel = colored(e, line, means, x, e->n_colors);
    for (u32 c = 0; c < MOST_CHANNELS; c++)
        if (c < e->channels) pixel.of[c] = set ? set[c] : table[c * VALUES + pixel.of[c]];
    return pixel;
}

// Writes line `y` of image `i`, pixel by pixel, because an operation needs all channels. `means` has the means of the image, then of
// the image that it is mixed with.
DEVICE void colored_line(const struct Emission *e, const u32 *table, const u8 *means, u32 i, u32 y) {
    struct Pair pair = pair_of(e, i, y);
    u64 plane = (u64)e->width * e->height;
    for (u32 x = threadIdx.x; x < e->width; x += 32) {
        struct Pixel own = values(e, &pair.own, table, means, x), other = own;
        int is_shared = is_mixed(&pair, x);
        if (is_shared) other = values(e, &pair.other, table, means + MOST_COLORS, x);
        u64 pixel = (u64)y * e->width + x;
        for (u32 c = 0; c < MOST_CHANNELS; c++) {
            if (c >= e->channels) break;
            u32 bits = is_shared ? mixed(e->type, pair.share, own.of[c], other.of[c]) : own.of[c];
            u64 at = e->planar ? c * plane + pixel : pixel * e->channels + c;
            store(e->out, (u64)i * plane * e->channels + at, e->type, bits);
        }
    }
}

// For launches without patches, mixing, resizing and colour changes. The compiler removes the code for these.
KERNEL emit(const struct Emission e) {
    SHARED u32 table[MOST_CHANNELS * VALUES];
    struct Emission plain = e;
    plain.n_patches = 0;
    plain.shares = 0;
    plain.taps = 0;
    images(&plain, table);
}

// For launches without colour changes.
KERNEL emit_changed(const struct Emission e) {
    SHARED u32 table[MOST_CHANNELS * VALUES];
    images(&e, table);
}

KERNEL emit_colored(const struct Emission e) {
    SHARED u32 table[MOST_CHANNELS * VALUES];
    SHARED u64 sums[THREADS];
    SHARED u8 means[2 * MOST_COLORS];
    load_table(&e, table);
    for (u32 i = blockIdx.y; i < e.n; i += gridDim.y) {
        if (e.measures) {
            measure(&e, sums, means, i);
            if (mixes(&e)) measure(&e, sums, means + MOST_COLORS, before(&e, i));
        }
        for (u32 y = blockIdx.x * 8 + threadIdx.y; y < e.height; y += gridDim.x * 8) colored_line(&e, table, means, i, y);
    }
}
