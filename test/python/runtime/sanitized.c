/* Calls as a host program makes them, from several threads, with dims and numbers of any size; run under
 * sanitizers, which report what C leaves undefined, memory that is lost, and races.
 *
 * `module.c` of `c_module.py` comes before: the functions "shapes", "sum", "update", "large".
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#define CHECK(condition) \
  if (!(condition)) {    \
    fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
    abort();             \
  }

enum { ROUNDS = 300, LENGTH = 500 };

static RxContext* shared;

static uint64_t next_random(uint64_t* state) {
  *state ^= *state << 13, *state ^= *state >> 7, *state ^= *state << 17;
  return *state;
}

/* Near a power of two, of either sign. */
static int64_t hostile(uint64_t* state) {
  uint64_t power = (uint64_t)1 << next_random(state) % 64;
  uint64_t value = power + next_random(state) % 5 - 2;
  return (int64_t)(next_random(state) % 4 ? value : -value);
}

static int32_t call(RxEntry entry, DLTensor* args, int32_t num_args, RxFresh* fresh, int32_t threads) {
  RxFresh* rooms[] = {fresh};
  DLTensor results[1] = {{0}};
  RxCall made = {.context = shared, .entry = entry, .args = args, .results = results,
                 .num_args = num_args, .num_results = fresh != NULL};
  return rx_call_on(&made, threads, rooms);
}

/* Values and dims that nobody means: an error with a text, or the right number of elements. */
static void call_with_hostile_dims(uint64_t* state) {
  int64_t values[5], dims[2][1] = {{5}, {0}}, empty[1];
  for (int i = 0; i < 5; i++) values[i] = hostile(state);
  if (next_random(state) % 2)
    for (int i = 0; i < 5; i++) values[i] &= 7;
  dims[1][0] = next_random(state) % 2 ? values[0] : 0;
  DLTensor args[] = {{values, {1, 0}, 1, {RX_INT, 64, 1}, dims[0], NULL, 0},
                     {empty, {1, 0}, 1, {RX_FLOAT, 32, 1}, dims[1], NULL, 0}};
  int32_t status = call(rx_fn_shapes, args, 2, NULL, 1);
  CHECK(!status == !*rx_last_error(shared));
}

static void sum(int32_t threads) {
  float x[LENGTH];
  int64_t dims[1] = {LENGTH};
  for (int i = 0; i < LENGTH; i++) x[i] = 1;
  DLTensor arg = {x, {1, 0}, 1, {RX_FLOAT, 32, 1}, dims, NULL, 0};
  RxFresh* fresh = calloc(1, sizeof *fresh + sizeof(int64_t));
  CHECK(call(rx_fn_sum, &arg, 1, fresh, threads) == RX_OK);
  CHECK(fresh->ndim == 1 && fresh->dims[0] == LENGTH);
  for (int i = 0; i < LENGTH; i++) CHECK(((float*)fresh->data)[i] == 2);
  rx_release(fresh);
  CHECK(!fresh->data);
  free(fresh);
}

static void lack_memory(int64_t length) {
  int64_t dims[1] = {1}, values[1] = {length};
  DLTensor arg = {values, {1, 0}, 1, {RX_INT, 64, 1}, dims, NULL, 0};
  RxFresh* fresh = calloc(1, sizeof *fresh + sizeof(int64_t));
  CHECK(call(rx_fn_large, &arg, 1, fresh, 3) == RX_OUT_OF_MEMORY);
  CHECK(strstr(rx_last_error(shared), "out of memory"));
  rx_release(fresh); /* allocated before the kernel failed, or not */
  free(fresh);
}

/* One call that all threads make. */
static int64_t count[1], count_dims[1] = {1};
static DLTensor count_arg = {count, {1, 0}, 1, {RX_INT, 64, 1}, count_dims, NULL, 0};
static DLTensor count_result = {count, {1, 0}, 1, {RX_INT, 64, 1}, count_dims, NULL, 0};
static RxCall update;

static void* work(void* data) {
  uint64_t state = (uint64_t)(uintptr_t)data;
  for (int i = 0; i < ROUNDS; i++) {
    call_with_hostile_dims(&state);
    sum(1 + (int32_t)(next_random(&state) % 4));
    CHECK(rx_call(&update) == RX_OK);
    DLTensor same = count_result;
    rx_exchange_argument(&update, 0, &same);
    if (i % 16 == 0) lack_memory(i % 32 ? 100 : (int64_t)1 << 62);
    if (i % 50 == 0) CHECK(!rx_profile(i));
    RxSpan spans[4];
    CHECK(rx_spans(spans, 4) >= 0);
  }
  return NULL;
}

/* A queue that three threads push to and three pop from, until it is closed: what each pops of one that
 * pushes is in order, and all of it arrives once. */
enum { ENDS = 3, ITEMS = 4000 };

typedef struct {
  RxQueue* queue;
  int number;
  int64_t popped, sum;
} End;

static void* push_items(void* data) {
  End* end = data;
  for (uint64_t i = 0; i < ITEMS;) {
    int32_t status = rx_queue_push(end->queue, (uint64_t)end->number << 32 | i, i % 3 * 1000000000);
    CHECK(status == RX_OK || (status == RX_QUEUE_BUSY && i % 3 == 0));
    i += status == RX_OK;
  }
  return NULL;
}

static void* pop_items(void* data) {
  End* end = data;
  int64_t last[ENDS] = {-1, -1, -1};
  uint64_t item;
  int32_t status;
  while ((status = rx_queue_pop(end->queue, &item, (int64_t)1 << 62)) == RX_OK) {
    int64_t index = (int64_t)(uint32_t)item;
    CHECK(item >> 32 < ENDS && index > last[item >> 32]);
    last[item >> 32] = index;
    end->popped++, end->sum += index;
  }
  CHECK(status == RX_QUEUE_CLOSED);
  return NULL;
}

static void pass_items(int64_t depth) {
  RxQueue* queue = rx_queue_new(depth);
  CHECK(queue);
  End ends[2 * ENDS];
  pthread_t threads[2 * ENDS];
  for (int i = 0; i < 2 * ENDS; i++) {
    ends[i] = (End){queue, i, 0, 0};
    CHECK(!pthread_create(&threads[i], NULL, i < ENDS ? push_items : pop_items, &ends[i]));
  }
  for (int i = 0; i < ENDS; i++) pthread_join(threads[i], NULL);
  rx_queue_close(queue);
  int64_t popped = 0, sum = 0;
  for (int i = ENDS; i < 2 * ENDS; i++) {
    pthread_join(threads[i], NULL);
    popped += ends[i].popped, sum += ends[i].sum;
  }
  CHECK(popped == ENDS * ITEMS && sum == (int64_t)ENDS * ITEMS * (ITEMS - 1) / 2);
  rx_queue_free(queue);
}

static void use_queues(void) {
  CHECK(!rx_queue_new(0) && !rx_queue_new(-1) && !rx_queue_new(INT64_MAX));
  for (int64_t depth = 1; depth <= 5; depth++) {
    RxQueue* queue = rx_queue_new(depth);
    uint64_t item;
    CHECK(rx_queue_pop(queue, &item, 1000) == RX_QUEUE_BUSY);
    for (uint64_t lap = 0; lap < 3; lap++) {
      for (int64_t i = 0; i < depth; i++) CHECK(rx_queue_push(queue, ~(uint64_t)i, 0) == RX_OK);
      CHECK(rx_queue_push(queue, 7, lap * 1000) == RX_QUEUE_BUSY);
      if (lap == 2) rx_queue_close(queue), rx_queue_close(queue);
      for (int64_t i = 0; i < depth; i++)
        CHECK(rx_queue_pop(queue, &item, -1) == RX_OK && item == ~(uint64_t)i);
    }
    CHECK(rx_queue_push(queue, 7, 1000000000) == RX_QUEUE_CLOSED);
    CHECK(rx_queue_pop(queue, &item, 1000000000) == RX_QUEUE_CLOSED);
    rx_queue_free(queue);
  }
  for (int64_t depth = 1; depth < 100; depth = 3 * depth + 1) pass_items(depth);
}

static void run_threads(int number) {
  pthread_t threads[8];
  for (int i = 0; i < number; i++)
    CHECK(!pthread_create(&threads[i], NULL, work, (void*)(uintptr_t)(i + 1)));
  work((void*)(uintptr_t)99);
  for (int i = 0; i < number; i++) pthread_join(threads[i], NULL);
}

int main(int argc, char** argv) {
  (void)argv;
  shared = rx_create();
  CHECK(shared);
  update = (RxCall){.context = shared, .entry = rx_fn_update, .args = &count_arg,
                    .results = &count_result, .num_args = 1, .num_results = 1};
  use_queues();
  run_threads(3);
  CHECK(count[0] == 4 * ROUNDS);
  CHECK(rx_profile((int64_t)1 << 61));
  if (argc > 1) { /* also in a child */
    pid_t child = fork();
    if (!child) {
      run_threads(2);
      _exit(0);
    }
    int status = 1;
    CHECK(waitpid(child, &status, 0) == child && !status);
  }
  rx_profile(0);
  rx_destroy(shared);
  return 0;
}
