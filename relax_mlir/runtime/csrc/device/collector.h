/* Python's garbage collector, which must not free memory of a device while the device is in use.
 *
 * What a stand-in has Python do is within these; several threads may be, of several modules. See
 * `relax_mlir/interpreter/collector.py`.
 */
#ifndef RX_COLLECTOR_H
#define RX_COLLECTOR_H

typedef struct {
  int (*is_enabled)(void);
  void (*pause[2])(void), (*resume[2])(void); /* NULL: nothing */
  int depth, collects;                        /* who is within; whether it is on without them */
} RxCollector;

static void rx_pause(RxCollector* collector) {
  __atomic_fetch_add(&collector->depth, 1, __ATOMIC_SEQ_CST);
  if (collector->is_enabled()) __atomic_store_n(&collector->collects, 1, __ATOMIC_SEQ_CST);
  for (int i = 0; i < 2; i++)
    if (collector->pause[i]) collector->pause[i]();
}

static void rx_resume(RxCollector* collector) {
  if (__atomic_sub_fetch(&collector->depth, 1, __ATOMIC_SEQ_CST)) return;
  if (!__atomic_exchange_n(&collector->collects, 0, __ATOMIC_SEQ_CST)) return;
  for (int i = 0; i < 2; i++)
    if (collector->resume[i]) collector->resume[i]();
}

#endif
