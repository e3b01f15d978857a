/* Graphs of launches: a sequence of kernels that is launched again becomes a graph, whose nodes
 * follow one another. From then on it is one call of the driver, after the nodes whose grid or
 * arguments differ from the last time are changed: positions and sizes need no graph of their own.
 *
 * A product by a library is a graph within the graph, of what the library queues on a stream that is
 * captured; that is done again where its matrices are elsewhere. Since libraries choose kernels by
 * sizes, sequences with products of other sizes have graphs of their own.
 *
 * Whatever the driver cannot do with a graph is done launch by launch. Drivers without graphs, and
 * RELAX_CUDA_GRAPHS=0, do all so.
 */

typedef struct {
  void* function;
  Unsigned grid[3], block[3], shared;
  void **arguments, **extra;
} Node; /* CUDA_KERNEL_NODE_PARAMS, its first version */

#define GRAPHS(X)                                                                                  \
  X(cuGraphCreate, (void**, Unsigned))                                                             \
  X(cuGraphDestroy, (void*))                                                                       \
  X(cuGraphAddKernelNode, (void**, void*, void* const*, size_t, const Node*))                      \
  X(cuGraphInstantiate_v2, (void**, void*, void**, char*, size_t))                                 \
  X(cuGraphExecDestroy, (void*))                                                                   \
  X(cuGraphAddChildGraphNode, (void**, void*, void* const*, size_t, void*))                        \
  X(cuGraphExecChildGraphNodeSetParams, (void*, void*, void*))                                     \
  X(cuStreamBeginCapture_v2, (void*, Unsigned))                                                    \
  X(cuStreamEndCapture, (void*, void**))                                                           \
  X(cuGraphExecKernelNodeSetParams, (void*, void*, const Node*))                                   \
  X(cuGraphLaunch, (void*, void*))

static struct {
  GRAPHS(FIELD)
} cug;

enum { MOST_GRAPHS = 64, FEWEST_NODES = 2 };
enum { CAPTURE_RELAXED = 2 }; /* what others do at the time is not looked at */

typedef struct {
  int32_t count, num_words; /* 0 launches: nothing is kept here */
  int32_t is_refused;       /* the driver cannot make this graph */
  uint64_t used;            /* when; the one that was not for longest makes room */
  RxLaunch* launches;       /* as the nodes are */
  int64_t* words;           /* of all launches */
  void *graph, *executable, **nodes;
} Graph;

/* Of a device. */
typedef struct Graphs {
  uint64_t now;
  Graph kept[MOST_GRAPHS];
} Graphs;

static int32_t has_graphs; /* the driver */

static void find_graphs(void) {
  const char* wanted = getenv("RELAX_CUDA_GRAPHS");
  has_graphs = !wanted || strcmp(wanted, "0");
#define LOOK_UP_GRAPH(name, types)                                                                 \
  *(void**)(&cug.name) = dlsym(library, #name);                                                    \
  if (!cug.name) has_graphs = 0;
  GRAPHS(LOOK_UP_GRAPH)
}

/* Frees what the driver has of it. */
static void drop_graph(Graph* graph) {
  if (graph->executable) cug.cuGraphExecDestroy(graph->executable);
  if (graph->graph) cug.cuGraphDestroy(graph->graph);
  free(graph->nodes);
  graph->graph = graph->executable = NULL;
  graph->nodes = NULL;
}

static void forget(Graph* graph) {
  drop_graph(graph);
  free(graph->launches);
  free(graph->words);
  memset(graph, 0, sizeof *graph);
}

static void forget_graphs(void) {
  for (int i = 0; own->graphs && i < MOST_GRAPHS; i++) forget(&own->graphs->kept[i]);
  free(own->graphs);
  own->graphs = NULL;
}

/* Whether they are of the same kernel, or products of the same sizes. */
static int is_alike(const RxLaunch* a, const RxLaunch* b) {
  if (a->kernel != b->kernel) return 0;
  return a->kernel != RX_PRODUCT || !memcmp(a->words, b->words, offsetof(RxProduct, lhs));
}

static int is_of(const Graph* graph, const RxLaunch* launches, int32_t count) {
  if (graph->count != count) return 0;
  for (int32_t i = 0; i < count; i++)
    if (!is_alike(&graph->launches[i], &launches[i])) return 0;
  return 1;
}

static Graph* find_graph(const RxLaunch* launches, int32_t count) {
  for (int i = 0; i < MOST_GRAPHS; i++)
    if (is_of(&own->graphs->kept[i], launches, count)) return &own->graphs->kept[i];
  return NULL;
}

/* Keeps a sequence that was not seen before, without a graph yet; out of memory, it does not. */
static void keep(const RxLaunch* launches, int32_t count) {
  Graph* graph = own->graphs->kept;
  for (int i = 1; i < MOST_GRAPHS; i++)
    if (own->graphs->kept[i].used < graph->used) graph = &own->graphs->kept[i];
  forget(graph);
  int32_t num_words = 0;
  for (int32_t i = 0; i < count; i++) num_words += rx_launch_words(&launches[i]);
  RxLaunch* copies = malloc((size_t)count * sizeof *copies);
  int64_t* words = malloc((size_t)num_words * sizeof *words + 1);
  if (!copies || !words) {
    free(copies);
    free(words);
    return;
  }
  uint64_t now = own->graphs->now;
  *graph = (Graph){.count = count, .used = now, .launches = copies, .words = words};
  for (int32_t i = 0; i < count; i++) {
    copies[i] = launches[i];
    copies[i].words = words;
    int32_t count_words = rx_launch_words(&launches[i]);
    memcpy(words, launches[i].words, (size_t)count_words * sizeof *words);
    words += count_words;
  }
}

static Node node_of(const RxLaunch* launch, void** arguments) {
  const RxKernel* kernel = &rx_kernels[launch->kernel];
  Node node = {.function = own->functions[launch->kernel],
               .arguments = arguments,
               .shared = dynamic_bytes(kernel)};
  for (int i = 0; i < 3; i++) {
    node.grid[i] = (Unsigned)launch->grid[i];
    node.block[i] = (Unsigned)kernel->block[i];
  }
  return node;
}

static int set_kernel(Graph* graph, int32_t i, const RxLaunch* launch, int is_new) {
  void** made = &graph->nodes[i];
  Arguments arguments;
  if (list_arguments(&rx_kernels[launch->kernel], launch->words, &arguments)) return 1;
  Node node = node_of(launch, arguments.addresses);
  return is_new ? cug.cuGraphAddKernelNode(made, graph->graph, made - !!i, i ? 1 : 0, &node)
                : cug.cuGraphExecKernelNodeSetParams(graph->executable, *made, &node);
}

/* What a product queues, as a graph that the caller destroys; NULL: there is none. Its stream is not
 * the device's, on which other libraries may wait at the time. */
static void* capture(const RxLaunch* launch) {
  void* captured = NULL;
  if (!own->capturing && cu.cuStreamCreate(&own->capturing, STREAM_NON_BLOCKING)) {
    own->capturing = NULL;
    return NULL;
  }
  if (cug.cuStreamBeginCapture_v2(own->capturing, CAPTURE_RELAXED)) return NULL;
  const char* wrong = queue_product(launch, own->capturing);
  int status = cug.cuStreamEndCapture(own->capturing, &captured);
  if (!wrong && !status) return captured;
  if (captured) cug.cuGraphDestroy(captured);
  return NULL;
}

static int set_product(Graph* graph, int32_t i, const RxLaunch* launch, int is_new) {
  void **made = &graph->nodes[i], *child = capture(launch);
  if (!child) return 1;
  int status =
      is_new ? cug.cuGraphAddChildGraphNode(made, graph->graph, made - !!i, i ? 1 : 0, child)
             : cug.cuGraphExecChildGraphNodeSetParams(graph->executable, *made, child);
  cug.cuGraphDestroy(child);
  return status;
}

/* Whether the driver takes the launch as it is now. */
static int set_node(Graph* graph, int32_t i, const RxLaunch* launch, int is_new) {
  int is_product = launch->kernel == RX_PRODUCT;
  if ((is_product ? set_product : set_kernel)(graph, i, launch, is_new)) return 0;
  RxLaunch* kept = &graph->launches[i];
  int32_t num_words = rx_launch_words(launch);
  memcpy(kept->grid, launch->grid, sizeof kept->grid);
  memcpy(graph->words + (kept->words - graph->words), launch->words, (size_t)num_words * 8);
  return 1;
}

static int make_graph(Graph* graph, const RxLaunch* launches) {
  graph->nodes = calloc((size_t)graph->count, sizeof(void*));
  if (!graph->nodes || cug.cuGraphCreate(&graph->graph, 0)) return 0;
  for (int32_t i = 0; i < graph->count; i++)
    if (!set_node(graph, i, &launches[i], 1)) return 0;
  return !cug.cuGraphInstantiate_v2(&graph->executable, graph->graph, NULL, NULL, 0);
}

/* Whether it launches the same groups with the same arguments. */
static int is_same(const RxLaunch* a, const RxLaunch* b) {
  int differ = 0;
  for (int i = 0; i < 3; i++) differ |= a->grid[i] != b->grid[i];
  int32_t num_words = rx_launch_words(a);
  for (int32_t i = 0; i < num_words; i++) differ |= a->words[i] != b->words[i];
  return !differ;
}

static int update_graph(Graph* graph, const RxLaunch* launches) {
  for (int32_t i = 0; i < graph->count; i++)
    if (!is_same(&launches[i], &graph->launches[i]) && !set_node(graph, i, &launches[i], 0))
      return 0;
  return 1;
}

/* Launches as a graph if these kernels were launched before; nonzero: nothing was launched. */
static int launch_graph(const RxLaunch* launches, int32_t count) {
  if (!has_graphs || count < FEWEST_NODES) return 1;
  if (!own->graphs) own->graphs = calloc(1, sizeof *own->graphs);
  if (!own->graphs) return 1;
  own->graphs->now++;
  Graph* graph = find_graph(launches, count);
  if (!graph) {
    keep(launches, count);
    return 1;
  }
  graph->used = own->graphs->now;
  if (graph->is_refused) return 1;
  int is_ready = graph->executable ? update_graph(graph, launches) : make_graph(graph, launches);
  if (is_ready && !cug.cuGraphLaunch(graph->executable, own->stream)) return 0;
  drop_graph(graph);
  graph->is_refused = 1;
  return 1;
}
