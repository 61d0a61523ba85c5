// Runs the kernel of emit.cu on a CPU. Blocks run one after the other, and the threads of a block are coroutines that
// switch at each barrier. So a missing barrier, or a write outside the output, has the same effect as on a GPU.
//
// Reads launches from standard input until it ends, and writes the result of each to standard output; see tests/kernel.
#define HOST
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#define KERNEL static void
#define DEVICE static inline
#define SHARED static
#define TIMES(a, b) ((a) * (b))
#define PLUS(a, b) ((a) + (b))
#define TIMES_64(a, b) ((a) * (b))
#define PLUS_64(a, b) ((a) + (b))

struct Place { unsigned x, y, z; };
static struct Place threadIdx, blockIdx, gridDim;
static void __attribute__((unused)) __syncthreads(void);

#include "emit.cu"

enum { STACK = 64 << 10, GUARD = 64 };

static ucontext_t scheduler, threads[THREADS];
static char *stacks;
static int running, ended[THREADS];
static struct Emission launched;

static void place(int thread) {
    threadIdx = (struct Place){thread % 32, thread / 32, 0};
}

static void __syncthreads(void) {
    int self = running;
    swapcontext(&threads[self], &scheduler);
    place(self);
}

static void run(void) {
    int changes = launched.n_patches > 0 || launched.shares != 0 || launched.taps != 0;
    if (launched.n_colors > 0) emit_colored(launched);
    else if (changes) emit_changed(launched);
    else emit(launched);
    ended[running] = 1;
}

// Runs one block. Its threads run in a varying order, each up to its next barrier.
static void block(unsigned order) {
    for (int i = 0; i < THREADS; i++) {
        getcontext(&threads[i]);
        threads[i].uc_stack.ss_sp = stacks + (size_t)i * STACK;
        threads[i].uc_stack.ss_size = STACK;
        threads[i].uc_link = &scheduler;
        makecontext(&threads[i], run, 0);
        ended[i] = 0;
    }
    for (int left = THREADS; left > 0;) {
        left = 0;
        for (int i = 0; i < THREADS; i++) {
            running = (i * 37 + order) % THREADS;
            if (ended[running]) continue;
            place(running);
            swapcontext(&scheduler, &threads[running]);
            left += !ended[running];
        }
    }
}

static void *taken(size_t bytes) {
    void *memory = malloc(bytes + 1);
    if (!memory) exit(3);
    return memory;
}

static void *read_all(size_t bytes) {
    void *memory = taken(bytes);
    if (fread(memory, 1, bytes, stdin) != bytes) exit(4);
    return memory;
}

// A launch: numbers, then source, frames, table, patches, shares, colours and taps.
enum {
    N, WIDTH, HEIGHT, CHANNELS, PLANAR, TYPE, PADDING, COLOR, PATCHES, LINES, IMAGES, FRAMES, SHARES, TAPS, COLORS, MEASURES, NUMBERS
};

// Prints the offset of each field of a launch, in the order of the struct, and the size of a launch.
static void print_layout(void) {
#define PRINT(field) printf("%zu ", offsetof(struct Emission, field))
    PRINT(source);
    PRINT(frames);
    PRINT(table);
    PRINT(patches);
    PRINT(shares);
    PRINT(colors);
    PRINT(taps);
    PRINT(out);
    PRINT(n);
    PRINT(width);
    PRINT(height);
    PRINT(channels);
    PRINT(planar);
    PRINT(type);
    PRINT(padding);
    PRINT(color);
    PRINT(n_patches);
    PRINT(n_colors);
    PRINT(measures);
    printf("%zu %d", sizeof(struct Emission), MOST_COLORS);
}

int main(int argc, char **argv) {
    (void)argv;
    if (argc > 1) return print_layout(), 0;
    uint32_t h[NUMBERS];
    uint64_t source_bytes;
    stacks = taken((size_t)THREADS * STACK);
    while (fread(h, sizeof h, 1, stdin) == 1) {
        if (fread(&source_bytes, sizeof source_bytes, 1, stdin) != 1) return 4;
        u8 *source = read_all(source_bytes);
        struct Frame *frames = read_all(h[FRAMES] ? h[N] * sizeof(struct Frame) : 0);
        u32 *table = read_all(h[CHANNELS] * (VALUES + h[PATCHES]) * sizeof(u32));
        struct Patch *patches = read_all(h[N] * h[PATCHES] * sizeof(struct Patch));
        struct Share *shares = read_all(h[SHARES] ? h[N] * sizeof(struct Share) : 0);
        struct ColorOp *colors = read_all(h[N] * h[COLORS] * sizeof(struct ColorOp));
        u32 *taps = read_all(h[TAPS] * sizeof(u32));
        size_t value_bytes = h[TYPE] == SINGLES ? 4 : h[TYPE] == BYTES ? 1 : 2;
        size_t bytes = (size_t)h[N] * h[WIDTH] * h[HEIGHT] * h[CHANNELS] * value_bytes;
        u8 *out = taken(bytes + 2 * GUARD);
        memset(out, 0xA5, bytes + 2 * GUARD);
        launched = (struct Emission){source, h[FRAMES] ? frames : 0, table, patches, h[SHARES] ? shares : 0, colors, h[TAPS] ? taps : 0,
            out + GUARD, h[N], h[WIDTH], h[HEIGHT], h[CHANNELS], h[PLANAR], h[TYPE], h[PADDING], h[COLOR], h[PATCHES], h[COLORS],
            h[MEASURES], 0};
        gridDim = (struct Place){h[LINES], h[IMAGES], 1};
        for (unsigned y = 0; y < gridDim.y; y++)
            for (unsigned x = 0; x < gridDim.x; x++) {
                blockIdx = (struct Place){x, y, 0};
                block(x + 5 * y);
            }
        fwrite(out, 1, bytes + 2 * GUARD, stdout);
        fflush(stdout);
        free(source), free(frames), free(table), free(patches), free(shares), free(colors), free(taps), free(out);
    }
    return 0;
}
