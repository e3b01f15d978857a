/* Checks of host code within a function: casts, facts, and sizes that must fit 64 bits. */

int32_t rx_match_cast(RxContext* context, const RxFunction* info, int64_t* dims, int64_t* symbols) {
  DLTensor tensor = {.ndim = info->args[0].ndim, .shape = dims};
  return !accept(info, &tensor, 0, symbols) && bind_slowly(context, info, &tensor, symbols);
}

int32_t rx_require(RxContext* context, const RxFunction* info, const int64_t* symbols) {
  for (int32_t f = 0; f < info->num_facts; f++) {
    const RxFact* fact = &info->facts[f];
    Linear lhs = evaluate_known(symbols, fact->lhs), rhs = evaluate_known(symbols, fact->rhs);
    if (!lhs.fault && !rhs.fault && holds(fact->relation, lhs.b, rhs.b)) return 0;
  }
  clear_error(context);
  say(context, "%s requires ", info->name);
  for (int32_t f = 0; f < info->num_facts; f++)
    say(context, f ? " or %s" : "%s", info->facts[f].text);
  for (int32_t s = 0; s < info->num_symbols; s++)
    say(context, "%s%s = %lld", s ? ", " : ", but ", info->symbols[s], (long long)symbols[s]);
  return 1;
}

/* Whether the value of an expression fits 64 bits. */
static int fits(Linear value) { return !value.fault && fits_int64(value.b); }

/* The first subexpression, in evaluation order, that does not fit 64 bits, or else the whole. */
static RxDim misfit(RxDim dim, const int64_t* symbols) {
  RxDim part = {2, dim.program};
  while (part.count < dim.count && fits(evaluate_known(symbols, part))) part.count += 2;
  return part;
}

static int mentions(RxDim dim, int64_t symbol) {
  for (int64_t at = 0; at < dim.count; at += 2)
    if (dim.program[at] == RX_SYMBOL && dim.program[at + 1] == symbol) return 1;
  return 0;
}

static void say_size(RxContext* context, const RxSizes* info, RxDim size, int32_t kind,
                     const int64_t* symbols) {
  Linear value = evaluate_known(symbols, size);
  const char* separator = " (";
  kind == RX_BYTES ? say_out_of_memory(context) : clear_error(context);
  say(context, "'%s' needs %s'", info->name, kind == RX_DIMENSION ? "a dim of " : "");
  print_dim(context, info->symbols, size);
  say(context, "'%s, which %s", kind == RX_BYTES ? " bytes" : "", value.fault ? value.fault : "is ");
  if (!value.fault) say_wide(context, value.b);
  for (int64_t s = 0; s < info->num_symbols; s++) {
    if (!mentions(size, s)) continue;
    say(context, "%s%s = %lld", separator, info->symbols[s], (long long)symbols[s]);
    separator = ", ";
  }
  say(context, separator[0] == ',' ? ")%s" : "%s", value.fault ? "" : if_beyond(value.b));
}

/* Whether an expression must be refused. */
static int is_wrong(const RxSize* size, const int64_t* symbols) {
  RxDim part = misfit(size->size, symbols);
  Linear value = evaluate_known(symbols, part);
  return !fits(value) || (size->kind == RX_DIMENSION && value.b < 0);
}

void rx_refuse_sizes(RxContext* context, const RxSizes* info, const int64_t* symbols) {
  /* Bytes first: "out of memory" is more useful than an overflow. */
  for (int32_t kind = RX_BYTES; kind >= RX_INTEGER; kind--) {
    for (int32_t i = 0; i < info->num_sizes; i++) {
      const RxSize* size = &info->sizes[i];
      if (size->kind != kind || !is_wrong(size, symbols)) continue;
      RxDim part = misfit(size->size, symbols);
      int is_whole = !fits(evaluate_known(symbols, size->size));
      say_size(context, info, is_whole ? size->size : part, kind, symbols);
      return;
    }
  }
}

void rx_refuse_index(RxContext* context, const char* where, int64_t index, int32_t axis,
                     int64_t extent) {
  clear_error(context);
  say(context, "%s has the index %lld outside of dim %d of %lld", where, (long long)index, axis,
      (long long)extent);
}
