// Pixels into finished images: gather, window, flip, normalization, type and layout, in one pass.
//
// Each value of a channel is looked up in a table of 256 results that the host computed, so it is the host's value bit
// for bit in every type, and no floating-point arithmetic happens here. The file is CUDA and C: with HOST defined it is
// compiled by a C compiler and tested on a processor (tests/kernel.rs).

#ifndef HOST
#define KERNEL extern "C" __global__ void __launch_bounds__(256)
#define DEVICE static __device__ __forceinline__
#define SHARED __shared__
#endif

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

// What lies around a picture: packds_pixels::Padding, in its order.
enum { CONSTANT, EDGE, REFLECT, SYMMETRIC };
enum { MOST_CHANNELS = 3, VALUES = 256 };
enum { FLIP_HORIZONTAL = 1, FLIP_VERTICAL = 2 };

// Which part of which picture an image shows.
struct Frame {
    u64 source;  // first byte of the picture
    int x, y;    // where the window starts in the picture, perhaps outside
    u32 flips;
    u32 reserved;
};

// One launch: `n` images of one size from pictures of one size. src/emission.rs has the same struct.
struct Emission {
    const u8 *source;           // interleaved pixels
    const struct Frame *frames; // one for each image; none: whole pictures one after the other
    const u32 *table;           // VALUES bit patterns for each channel
    void *out;
    u32 n;
    u32 source_width, source_height;
    u32 width, height;
    u32 channels;
    u32 planar;      // whether planes lie one after the other
    u32 value_bytes; // 1, 2 or 4
    u32 padding;
    u32 color;       // where padding is CONSTANT: a byte for each channel, the first lowest
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

DEVICE void store(void *out, u64 at, u32 value_bytes, u32 bits) {
    if (value_bytes == 4) ((u32 *)out)[at] = bits;
    else if (value_bytes == 2) ((u16 *)out)[at] = (u16)bits;
    else ((u8 *)out)[at] = (u8)bits;
}

// The value of channel `c` in column `x` of an image's line, which shows the line `row` of its picture.
DEVICE u32 value(const struct Emission *e, const struct Frame *frame, const u8 *row, const u32 *table, u32 x, u32 c) {
    u32 column = frame->flips & FLIP_HORIZONTAL ? e->width - 1 - x : x;
    int from = shown(frame->x + (int)column, (int)e->source_width, e->padding);
    u32 byte = row == 0 || from < 0 ? e->color >> (8 * c) & 255 : row[(u32)from * e->channels + c];
    return table[c * VALUES + byte];
}

// Writes line `y` of image `i`. The 32 threads of `lane` write values that lie side by side.
DEVICE void line(const struct Emission *e, const u32 *table, u32 i, u32 y, u32 lane) {
    u64 picture = (u64)e->source_width * e->source_height * e->channels;
    struct Frame frame = {i * picture, 0, 0, 0, 0};
    if (e->frames) frame = e->frames[i];
    u32 from = frame.flips & FLIP_VERTICAL ? e->height - 1 - y : y;
    int shown_row = shown(frame.y + (int)from, (int)e->source_height, e->padding);
    const u8 *row = shown_row < 0 ? 0 : e->source + frame.source + (u64)shown_row * e->source_width * e->channels;
    u64 image = (u64)i * e->width * e->height * e->channels;
    if (e->planar) {
        for (u32 c = 0; c < e->channels; c++) {
            u64 start = image + ((u64)c * e->height + y) * e->width;
            for (u32 x = lane; x < e->width; x += 32)
                store(e->out, start + x, e->value_bytes, value(e, &frame, row, table, x, c));
        }
        return;
    }
    u64 start = image + (u64)y * e->width * e->channels;
    for (u32 at = lane; at < e->width * e->channels; at += 32) {
        u32 x = e->channels == 3 ? at / 3 : at;
        u32 c = e->channels == 3 ? at - 3 * x : 0;
        store(e->out, start + at, e->value_bytes, value(e, &frame, row, table, x, c));
    }
}

// Blocks of 32 x 8 threads: each row of threads writes lines of its own. The grid is (lines, images).
KERNEL emit(const struct Emission e) {
    SHARED u32 table[MOST_CHANNELS * VALUES];
    u32 thread = threadIdx.y * 32 + threadIdx.x;
    for (u32 at = thread; at < e.channels * VALUES; at += 256) table[at] = e.table[at];
    __syncthreads();
    for (u32 i = blockIdx.y; i < e.n; i += gridDim.y)
        for (u32 y = blockIdx.x * 8 + threadIdx.y; y < e.height; y += gridDim.x * 8)
            line(&e, table, i, y, threadIdx.x);
}
