/* Graphs of the stand-in for NVIDIA's driver: chains of launches, and of graphs that were captured. */

typedef struct GraphNode {
  struct GraphNode* next;
  const struct GraphNode* original; /* of a node of what is executable */
  Operation operation;
  Graph* child; /* NULL: the node is the operation */
} GraphNode;
struct Graph {
  GraphNode *first, *last;
  int is_executable;
};
typedef struct {
  void* function;
  unsigned grid[3], block[3], shared;
  void **arguments, **extra;
} NodeParams;

static int is_launch(const NodeParams* node) {
  return node->function && !node->extra && may_share(node->function, node->shared) &&
         node->grid[0] && node->grid[1] <= 65535 && node->grid[2] <= 65535;
}
static Graph* new_graph(void) { return calloc(1, sizeof(Graph)); }
static void free_graph(Graph* graph) {
  if (!graph) return;
  for (GraphNode *node = graph->first, *next; node; node = next) {
    next = node->next;
    free_graph(node->child);
    free(node);
  }
  free(graph);
}
static GraphNode* append(Graph* graph) {
  GraphNode* node = calloc(1, sizeof *node);
  if (graph->last)
    graph->last->next = node;
  else
    graph->first = node;
  return graph->last = node;
}
static Graph* copy_of(const Graph* graph) {
  Graph* copy = new_graph();
  for (const GraphNode* each = graph->first; each; each = each->next) {
    GraphNode* node = append(copy);
    node->original = each;
    node->operation = each->operation;
    node->child = each->child ? copy_of(each->child) : NULL;
  }
  return copy;
}
/* Whether the nodes do the same, with other arguments. */
static int are_alike(const Graph* a, const Graph* b) {
  const GraphNode *one = a->first, *other = b->first;
  for (; one && other; one = one->next, other = other->next)
    if (one->operation.function != other->operation.function ||
        one->operation.host != other->operation.host ||
        one->operation.is_set != other->operation.is_set)
      return 0;
  return one == other;
}
static void capture(Graph* graph, const Operation* operation) {
  append(graph)->operation = *operation;
}
static void queue(Stream* stream, const Graph* graph) {
  for (const GraphNode* node = graph->first; node; node = node->next)
    if (node->child)
      queue(stream, node->child);
    else
      add(stream, node->operation);
}
static GraphNode* node_of(Graph* executable, const void* original) {
  GraphNode* node = executable->first;
  while (node && node->original != original) node = node->next;
  return node;
}

API int cuGraphCreate(void** made, unsigned flags) {
  ENTER_CONTEXT(!flags);
  *made = new_graph();
  return graphs++, 0;
}
API int cuGraphDestroy(void* graph) {
  LOCKED;
  if (((Graph*)graph)->is_executable) abort();
  free_graph(graph);
  return graphs--, 0;
}
API int cuGraphExecDestroy(void* graph) {
  LOCKED;
  if (!((Graph*)graph)->is_executable) abort();
  free_graph(graph);
  return executables--, 0;
}
static int is_chained(const Graph* graph, void* const* after, size_t num_after) {
  if (graph->is_executable) return 0;
  return graph->last ? num_after == 1 && *after == graph->last : !num_after;
}
API int cuGraphAddKernelNode(void** made, void* to, void* const* after, size_t num_after,
                             const NodeParams* params) {
  ENTER_CONTEXT(is_chained(to, after, num_after) && is_launch(params));
  GraphNode* node = append(to);
  node->operation =
      launch_of(params->function, params->grid, params->block, params->shared, params->arguments);
  *made = node;
  return 0;
}
API int cuGraphAddChildGraphNode(void** made, void* to, void* const* after, size_t num_after,
                                 void* child) {
  ENTER_CONTEXT(is_chained(to, after, num_after) && !((Graph*)child)->is_executable);
  GraphNode* node = append(to);
  node->child = copy_of(child);
  *made = node;
  return 0;
}
API int cuGraphInstantiate_v2(void** made, void* from, void** node, char* log, size_t bytes) {
  ENTER_CONTEXT(!node && !log && !bytes);
  Graph* graph = copy_of(from);
  graph->is_executable = 1;
  *made = graph;
  return executables++, 0;
}
API int cuGraphExecKernelNodeSetParams(void* executable, void* original, const NodeParams* params) {
  ENTER_CONTEXT(((Graph*)executable)->is_executable && is_launch(params));
  GraphNode* own = node_of(executable, original);
  if (!own || own->operation.function != params->function) return 1;
  own->operation =
      launch_of(params->function, params->grid, params->block, params->shared, params->arguments);
  changes++;
  return 0;
}
API int cuGraphExecChildGraphNodeSetParams(void* executable, void* original, void* child) {
  ENTER_CONTEXT(((Graph*)executable)->is_executable);
  GraphNode* own = node_of(executable, original);
  if (!own || !own->child || !are_alike(own->child, child)) return 1;
  free_graph(own->child);
  own->child = copy_of(child);
  changes++;
  return 0;
}
API int cuGraphLaunch(void* executable, void* stream) {
  ENTER_CONTEXT(((Graph*)executable)->is_executable && is_stream(stream));
  queue(stream, executable);
  graph_launches++;
  return 0;
}
API int cuStreamBeginCapture_v2(void* stream, unsigned mode) {
  ENTER_CONTEXT(is_stream(stream) && mode == 2 && !((Stream*)stream)->captured);
  ((Stream*)stream)->captured = new_graph();
  return 0;
}
API int cuStreamEndCapture(void* given, void** made) {
  Stream* stream = given;
  LOCKED;
  if (!stream->captured) return 1;
  int status = enter(__func__);
  *made = status ? NULL : stream->captured;
  if (status)
    free_graph(stream->captured);
  else
    graphs++;
  stream->captured = NULL;
  return status;
}
