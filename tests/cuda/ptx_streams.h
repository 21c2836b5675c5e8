// Channels at which threads and copies arrive (PTX ISA: mbarrier), and copies of boxes of tensors that a descriptor tells
// (cp.async.bulk.tensor), as the simulated driver writes it.  Copies end as late as can be, or at once.

enum { MOST_CHANNELS = 64, MOST_BOXES = 256, MOST_DIMENSIONS = 5, BOX_ROW = 128, SWIZZLE_OF_128 = 3 };

// What driver.c makes of a tensor.
typedef struct {
  uint64_t magic, address;
  uint32_t size, rank;
  uint64_t shape[MOST_DIMENSIONS], strides[MOST_DIMENSIONS - 1];
  uint32_t box[MOST_DIMENSIONS], swizzle;
} tensor_map;
typedef struct { uint32_t place, expected, arrived; int64_t bytes, phase; int fenced; } channel;
typedef struct { const tensor_map *map; uint32_t to, channel; int at[MOST_DIMENSIONS]; } box;

static channel channels[MOST_CHANNELS];
static box boxes[MOST_BOXES];
static int channel_count, box_count, at_once;
static struct { channel *of; uint32_t parity; } awaited[MOST_BLOCK];

static void forget_channels(void) {
  static uint32_t blocks;
  channel_count = box_count = 0;
  at_once = blocks++ % 3 == 2;
}

static channel *channel_at(uint32_t place) {
  static channel none;
  for (int n = 0; n < channel_count; n += 1)
    if (channels[n].place == place) return &channels[n];
  fail("no channel has begun", place);
  return &none;
}

static void begin_channel(uint32_t place, uint32_t expected) {
  if (channel_count == MOST_CHANNELS) fail("too many channels", place);
  else channels[channel_count++] = (channel){.place = place, .expected = expected};
  (void)in_shared(place, 8);
}

// That channels have begun is seen by copies from here on.
static void fence_channels(void) {
  for (int n = 0; n < channel_count; n += 1) channels[n].fenced = 1;
}

static void end_phase(channel *own) {
  if (own->arrived < own->expected || own->bytes) return;
  own->arrived = 0;
  own->phase += 1;
}

static void arrive_at(uint32_t place, int64_t bytes) {
  channel *own = channel_at(place);
  own->bytes += bytes;
  own->arrived += 1;
  if (own->arrived > own->expected) fail("too many threads arrive", place);
  end_phase(own);
}

static int has_ended(const channel *own, uint32_t parity) { return (own->phase & 1) != parity; }

static int try_wait(uint32_t place, uint32_t parity) {
  channel *own = channel_at(place);
  awaited[self - threads].of = own;
  awaited[self - threads].parity = parity;
  if (!has_ended(own, parity) && !*failure) give_way(AT_CHANNEL);
  return 1;
}

static void land(const box *own) {
  const tensor_map *map = own->map;
  channel *arrived = channel_at(own->channel);
  uint32_t count = 1;
  for (uint32_t n = 0; n < map->rank; n += 1) count *= map->box[n];
  if (!arrived->fenced) fail("a copy may not see that a channel has begun", own->channel);
  if (own->to % 1024 || map->box[0] * map->size != BOX_ROW || map->swizzle != SWIZZLE_OF_128) fail("another swizzle", own->to);
  for (uint32_t number = 0; number < count && !*failure; number += 1) {
    uint32_t left = number, place = own->to + number * map->size;
    uint64_t from = map->address;
    int inside = 1;
    for (uint32_t n = 0; n < map->rank; left /= map->box[n], n += 1) {
      const int64_t at = own->at[n] + (int64_t)(left % map->box[n]);
      from += at * (n ? map->strides[n - 1] : map->size);
      inside &= 0 <= at && at < (int64_t)map->shape[n];
    }
    place ^= (place >> 7 & 7) << 4;
    unsigned char *to = in_shared(place, map->size);
    if (inside) memcpy(to, in_global(from, map->size), map->size);
    else memset(to, 0, map->size);
    memcpy(seen_memory + place, to, map->size);
  }
  arrived->bytes -= count * map->size;
  end_phase(arrived);
}

static void copy_box(uint32_t to, uint64_t map, uint32_t place, int rank, const int *at) {
  box own = {(const tensor_map *)(uintptr_t)map, to, place, {0}};
  memcpy(own.at, at, rank * sizeof *at);
  if (own.map->magic != 0x70616d || (int)own.map->rank != rank) fail("no description of a tensor", map);
  else if (box_count == MOST_BOXES) fail("too many copies of boxes under way", to);
  else boxes[box_count++] = own;
  if (at_once && box_count) land(&boxes[--box_count]);
}

// Whether threads go on that wait for channels, or a copy ends: the last one that has begun.
static int channels_move(int count) {
  int moved = 0;
  for (int n = 0; n < count; n += 1)
    if (threads[n].state == AT_CHANNEL && has_ended(awaited[n].of, awaited[n].parity)) {
      threads[n].state = RUNNING;
      moved = 1;
    }
  if (moved || !box_count) return moved;
  self = threads;
  land(&boxes[--box_count]);
  return !*failure;
}
