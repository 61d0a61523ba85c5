// Pixels into finished images: gather, window, flip, normalization, type and layout, erasing and mixing, in one pass.
//
// Each value of a channel is looked up in a table of 256 results that the host computed, so it is the host's value bit
// for bit in every type. Only mixing computes with floats, operation by operation as the host does. The file is CUDA and C:
// with HOST defined it is compiled by a C compiler and tested on a processor (tests/kernel.rs).

#ifndef HOST
#define KERNEL extern "C" __global__ void __launch_bounds__(256)
#define DEVICE static __device__ __forceinline__
#define SHARED __shared__
// Never joined into one rounding.
#define TIMES(a, b) __fmul_rn(a, b)
#define PLUS(a, b) __fadd_rn(a, b)
#endif

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

// What lies around a picture: packds_pixels::Padding, in its order.
enum { CONSTANT, EDGE, REFLECT, SYMMETRIC };
enum { MOST_CHANNELS = 3, VALUES = 256 };
enum { FLIP_HORIZONTAL = 1, FLIP_VERTICAL = 2, ROWS_FIRST = 4 };
// Fractional bits of a weight: packds_pixels::AxisTaps.
enum { PRECISION = 22 };
// Types of values.
enum { BYTES, HALVES, BRAINS, SINGLES };

// Which part of which picture an image shows.
struct Frame {
    u64 source; // first byte of the area, which is the picture where none is resized
    int x, y;   // where the window starts in the picture or the resized area, perhaps outside
    u32 flips;
    u32 width, height; // of the area
    u32 reserved;
};

// A rectangle of an image: places behind the last ones.
struct Patch {
    u32 left, right, top, bottom;
};

// What an image gets of the one before it.
struct Share {
    struct Patch patch;
    u32 takes; // whether values are taken as they are
    float own; // else the share of its own
};

// One launch: `n` images of one size from pictures of one size. src/emission.rs has the same struct.
struct Emission {
    const u8 *source;           // interleaved pixels
    const struct Frame *frames; // one for each image; none: whole pictures one after the other
    const u32 *table;           // VALUES bit patterns for each channel, then one for each patch and channel
    const struct Patch *patches; // `n_patches` for each image, set one after the other
    const struct Share *shares; // one for each image; none: nothing is mixed
    const u32 *across, *down;   // tables of packds_reader::device::Resampling; none: no area is resized
    void *out;
    u32 n;
    u32 source_width, source_height;
    u32 shown_width, shown_height; // of the resized areas, else of the pictures
    u32 width, height;
    u32 channels;
    u32 planar;      // whether planes lie one after the other
    u32 type;
    u32 padding;
    u32 color;       // where padding is CONSTANT: a byte for each channel, the first lowest
    u32 n_patches;
    u32 reserved;
};

// The source positions that an output is made of.
struct Tap {
    u32 start, n;
    const int *weights;
};

// A number and its bits.
union Single {
    u32 bits;
    float value;
};

// The line of an image that is made, and where it comes from.
struct Line {
    struct Frame frame;
    const u8 *row; // the picture's, or the area's first; none where there is only colour
    u32 at;        // the row that is shown
    u32 image, y;
};

// The position of a side of `side` pixels that is shown at `at`; -1 where the colour is.
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

// The number that a value's bits are.
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
            // Below the smallest normal half: exact, since both have few bits.
            single.bits += 0x38800000;
            single.value = PLUS(single.value, -6.103515625e-05f);
        }
        single.bits |= sign;
    }
    return single.value;
}

// The bits of the value of a type that is nearest to a number, halves to the even one; bytes: halves up.
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
    // From 65520 on the nearest half is infinite.
    if (single.bits >= 0x477ff000) return sign | 0x7c00;
    if (single.bits < 0x38800000) {
        // Adding a half shifts the bits to their place and rounds them.
        single.value = PLUS(single.value, 0.5f);
        return sign | (single.bits - 0x3f000000);
    }
    return sign | ((single.bits - 0x38000000 + 0xfff + (single.bits >> 13 & 1)) >> 13);
}

// What the host's `blend` makes of a value of its own and one of another image.
DEVICE u32 mixed(u32 type, const struct Share *share, u32 own, u32 other) {
    if (share->takes) return other;
    float rest = PLUS(1.0f, -share->own);
    return bits_of(type, PLUS(TIMES(share->own, number_of(type, own)), TIMES(rest, number_of(type, other))));
}

DEVICE int covers(const struct Patch *patch, u32 x, u32 y) {
    return x >= patch->left && x < patch->right && y >= patch->top && y < patch->bottom;
}

// Line `y` of image `i`.
DEVICE struct Line line_of(const struct Emission *e, u32 i, u32 y) {
    u64 picture = (u64)e->source_width * e->source_height * e->channels;
    struct Line line = {{i * picture, 0, 0, 0, 0, 0, 0}, 0, 0, i, y};
    if (e->frames) line.frame = e->frames[i];
    u32 from = line.frame.flips & FLIP_VERTICAL ? e->height - 1 - y : y;
    int row = shown(line.frame.y + (int)from, (int)e->shown_height, e->padding);
    if (row < 0) return line;
    line.at = (u32)row;
    u64 before = e->down ? 0 : (u64)line.at * e->source_width * e->channels;
    line.row = e->source + line.frame.source + before;
    return line;
}

// What position `at` of an axis is made of, where areas have `length` positions.
DEVICE struct Tap tap_of(const u32 *table, u32 length, u32 at) {
    const u32 *part = table + table[length - 1];
    const u32 *words = part + 1 + (u64)at * (2 + part[0]);
    struct Tap tap = {words[0], words[1], (const int *)(words + 2)};
    return tap;
}

DEVICE int limited(int sum) {
    sum >>= PRECISION;
    return sum < 0 ? 0 : sum > 255 ? 255 : sum;
}

// The byte of channel `c` in column `x` of the resized area that a line shows: by one axis, then by the other, bytes in between.
DEVICE u32 resampled(const struct Emission *e, const struct Line *line, u32 x, u32 c) {
    struct Tap inner = tap_of(e->across, line->frame.width, x), outer = tap_of(e->down, line->frame.height, line->at);
    u64 inner_step = e->channels, outer_step = (u64)e->source_width * e->channels;
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

// The value of channel `c` in column `x` of a line, before it is mixed.
DEVICE u32 value(const struct Emission *e, const struct Line *line, const u32 *table, u32 x, u32 c) {
    for (u32 patch = e->n_patches; patch-- > 0;)
        if (covers(&e->patches[(u64)line->image * e->n_patches + patch], x, line->y))
            return e->table[e->channels * VALUES + patch * e->channels + c];
    u32 column = line->frame.flips & FLIP_HORIZONTAL ? e->width - 1 - x : x;
    int from = shown(line->frame.x + (int)column, (int)e->shown_width, e->padding);
    u32 byte;
    if (line->row == 0 || from < 0) byte = e->color >> (8 * c) & 255;
    else if (e->down) byte = resampled(e, line, (u32)from, c);
    else byte = line->row[(u32)from * e->channels + c];
    return table[c * VALUES + byte];
}

// A line, and the one that it is mixed with.
struct Pair {
    struct Line own, other;
    const struct Share *share; // none: it is not mixed
};

DEVICE struct Pair pair_of(const struct Emission *e, u32 i, u32 y) {
    struct Pair pair = {line_of(e, i, y), line_of(e, i, y), 0};
    if (e->shares == 0 || e->n < 2) return pair;
    pair.other = line_of(e, i == 0 ? e->n - 1 : i - 1, y);
    pair.share = &e->shares[i];
    return pair;
}

// Writes the value of channel `c` in column `x`.
DEVICE void put(const struct Emission *e, const struct Pair *pair, const u32 *table, u64 at, u32 x, u32 c) {
    u32 bits = value(e, &pair->own, table, x, c);
    if (pair->share != 0 && covers(&pair->share->patch, x, pair->own.y))
        bits = mixed(e->type, pair->share, bits, value(e, &pair->other, table, x, c));
    store(e->out, at, e->type, bits);
}

// Writes line `y` of image `i`. The 32 threads of `lane` write values that lie side by side.
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

// Blocks of 32 x 8 threads: each row of threads writes lines of its own. The grid is (lines, images).
DEVICE void images(const struct Emission *e, u32 *table) {
    u32 thread = threadIdx.y * 32 + threadIdx.x;
    for (u32 at = thread; at < e->channels * VALUES; at += 256) table[at] = e->table[at];
    __syncthreads();
    for (u32 i = blockIdx.y; i < e->n; i += gridDim.y)
        for (u32 y = blockIdx.x * 8 + threadIdx.y; y < e->height; y += gridDim.x * 8) line(e, table, i, y, threadIdx.x);
}

// Where nothing is set, mixed or resized: the compiler leaves that out.
KERNEL emit(const struct Emission e) {
    SHARED u32 table[MOST_CHANNELS * VALUES];
    struct Emission plain = e;
    plain.n_patches = 0;
    plain.shares = 0;
    plain.across = plain.down = 0;
    images(&plain, table);
}

KERNEL emit_changed(const struct Emission e) {
    SHARED u32 table[MOST_CHANNELS * VALUES];
    images(&e, table);
}
